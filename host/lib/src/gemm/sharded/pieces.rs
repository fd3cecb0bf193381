//! The pieces in which an operand comes to a place.

use std::ops::Range;

use crate::devices::{Block, ShardLayout};

/// Panels of an operand that travels, at least.
const PANELS: usize = 4;

/// Rows or columns of a panel are a multiple of this, but for the last.
pub(super) const UNIT: usize = 64;

/// Rows of A, or columns of B, that a place uses in one product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) range: Range<usize>,
    /// Whether the place's shard has it.
    pub(super) is_own: bool,
}

/// The rows of A (side 0), or the columns of B (side 1), of a place's part of C. First its own,
/// then those of the next places, in panels.
pub(super) fn pieces(
    layout: &ShardLayout,
    side: usize,
    size: [usize; 2],
    (place, places): (usize, usize),
    range: Range<usize>,
) -> Vec<Piece> {
    let block = |range: &Range<usize>| match side {
        0 => Block::new(range.clone(), 0..size[1]),
        _ => Block::new(0..size[0], range.clone()),
    };
    let has =
        |place: usize, range: &Range<usize>| layout.block(place, size).contains(&block(range));
    if has(place, &range) {
        return vec![Piece { range, is_own: true }];
    }
    let bounds = match (layout, side) {
        (ShardLayout::Rows(bounds) | ShardLayout::Grid { rows: bounds, .. }, 0) => &bounds[..],
        (ShardLayout::Cols(bounds) | ShardLayout::Grid { cols: bounds, .. }, 1) => &bounds[..],
        _ => &[],
    };
    let inner =
        bounds.iter().copied().filter(|bound| range.contains(bound) && *bound > range.start);
    let mut cuts = inner.collect::<Vec<_>>();
    cuts.dedup();
    let starts = [range.start].into_iter().chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([range.end]);
    let parts = starts.zip(ends).map(|(start, end)| start..end).collect::<Vec<_>>();
    let travelling =
        parts.iter().filter(|part| !has(place, part)).map(|part| part.len()).sum::<usize>();
    let width = (travelling / PANELS / UNIT).max(1) * UNIT;
    // How many places after this one has it. What nobody has alone comes from all.
    let distance = |range: &Range<usize>| {
        let owner = (0..places).find(|step| has((place + step) % places, range));
        owner.unwrap_or(0)
    };
    let mut pieces = Vec::new();
    for part in parts {
        if has(place, &part) {
            pieces.push((0, Piece { range: part, is_own: true }));
            continue;
        }
        let far = 1 + distance(&part);
        let panels = part.clone().step_by(width);
        let panels = panels.map(|start| start..part.end.min(start + width));
        pieces.extend(panels.map(|range| (far, Piece { range, is_own: false })));
    }
    if bounds.is_empty() {
        // Each place begins elsewhere.
        let first = pieces.len() * place / places;
        pieces.rotate_left(first);
    }
    pieces.sort_by_key(|(far, _)| *far);
    pieces.into_iter().map(|(_, piece)| piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_begins_with_its_own_and_then_with_the_next_ones() {
        let layout = ShardLayout::cols(1024, 4);
        let pieces = pieces(&layout, 1, [100, 1024], (1, 4), 0..1024);
        let own =
            pieces.iter().map(|piece| (piece.range.clone(), piece.is_own)).collect::<Vec<_>>();
        let panels = [(256..512, true), (512..704, false), (704..768, false), (768..960, false)];
        assert_eq!(own[..4], panels);
        assert_eq!(own[4..], [(960..1024, false), (0..192, false), (192..256, false)]);
    }

    #[test]
    fn an_operand_that_travels_comes_in_four_panels() {
        for layout in [ShardLayout::cols(1024, 2), ShardLayout::rows(512, 2)] {
            let pieces = pieces(&layout, 1, [512, 1024], (0, 2), 0..1024);
            let panels = pieces.iter().filter(|piece| !piece.is_own).collect::<Vec<_>>();
            assert!(panels.len() >= 4, "{layout}: {pieces:?}");
            let len = pieces.iter().map(|piece| piece.range.len()).sum::<usize>();
            assert_eq!(len, 1024);
        }
    }
}
