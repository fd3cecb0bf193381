//! The pieces in which an operand comes to a place.

use std::ops::Range;

use crate::devices::{Block, ShardLayout};

/// Panels of an operand that travels, at least: few, whose products fill a GPU, or many, of which
/// the first comes early. The predicted times decide.
pub(super) const PANELS: [usize; 3] = [4, 6, 8];

/// Rows or columns of a panel are a multiple of this, but for the last. Columns with scales of
/// blocks are whole blocks.
pub(super) const UNIT: usize = 64;

/// Rows of A, or columns of B, that a place uses in one product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) range: Range<usize>,
    /// Whether the place's shard has it.
    pub(super) is_own: bool,
}

/// The rows of A (side 0), or the columns of B (side 1), of a place's part of C: first its own,
/// then those of the next places, in so many panels or some more. A panel may come from several
/// places: its product is to fill a GPU. It is a multiple of the first unit, where that leaves
/// enough panels, or of the second; the last may be narrower.
pub(super) fn pieces(
    layout: &ShardLayout,
    side: usize,
    size: [usize; 2],
    (place, places): (usize, usize),
    (range, [unit, least], panels): (Range<usize>, [usize; 2], usize),
) -> Vec<Piece> {
    let has = |range: &Range<usize>| {
        let block = match side {
            0 => Block::new(range.clone(), 0..size[1]),
            _ => Block::new(0..size[0], range.clone()),
        };
        layout.block(place, size).contains(&block)
    };
    if has(&range) {
        return vec![Piece { range, is_own: true }];
    }
    let block = layout.block(place, size);
    let own = if side == 0 { block.rows } else { block.cols };
    let own = own.start.clamp(range.start, range.end)..own.end.clamp(range.start, range.end);
    let is_own = !own.is_empty() && has(&own);
    // Where a place has nothing alone, each begins elsewhere.
    let elsewhere = range.start + (range.len() / unit * place / places) * unit;
    let own = if is_own { own } else { elsewhere..elsewhere };
    let each = (range.len() - own.len()) / panels;
    let unit = if unit <= each { unit } else { least };
    let width = (each / unit).max(1) * unit;
    let cut = |run: Range<usize>| {
        let starts = run.clone().step_by(width);
        let ends = starts.clone().map(move |start| run.end.min(start + width));
        starts.zip(ends).map(|(start, end)| Piece { range: start..end, is_own: false })
    };
    let mut pieces = Vec::new();
    pieces.extend(is_own.then(|| Piece { range: own.clone(), is_own: true }));
    pieces.extend(cut(own.end..range.end));
    pieces.extend(cut(range.start..own.start));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(pieces: &[Piece]) -> Vec<(Range<usize>, bool)> {
        pieces.iter().map(|piece| (piece.range.clone(), piece.is_own)).collect()
    }

    #[test]
    fn a_place_begins_with_its_own_and_then_with_the_next_ones() {
        let layout = ShardLayout::cols(1024, 4);
        let pieces = pieces(&layout, 1, [100, 1024], (1, 4), (0..1024, [UNIT; 2], 4));
        let panels = [(256..512, true), (512..704, false), (704..896, false), (896..1024, false)];
        assert_eq!(ranges(&pieces)[..4], panels);
        assert_eq!(ranges(&pieces)[4..], [(0..192, false), (192..256, false)]);
    }

    #[test]
    fn an_operand_that_travels_comes_in_four_panels() {
        for layout in [ShardLayout::cols(1024, 2), ShardLayout::rows(512, 2)] {
            for place in 0..2 {
                let pieces = pieces(&layout, 1, [512, 1024], (place, 2), (0..1024, [UNIT; 2], 4));
                let panels = pieces.iter().filter(|piece| !piece.is_own).count();
                assert!(panels >= 4, "{layout}: {pieces:?}");
                // Each column comes once.
                let mut columns =
                    pieces.into_iter().flat_map(|piece| piece.range).collect::<Vec<_>>();
                columns.sort_unstable();
                assert!(columns.into_iter().eq(0..1024), "{layout}");
            }
        }
    }
}
