//! Which part of a matrix each place holds.

use std::{fmt, ops::Range};

use super::MOST_PLACES;
use crate::error::{Error, Result};

/// Shards of one matrix begin at multiples of this: so they are 16-byte aligned, in every element
/// type, and tiles of most kernels begin there.
pub(crate) const UNIT: usize = 64;

/// Which part of a matrix each place holds. Plain data; a place may hold nothing.
///
/// Rows and columns are given by their bounds: place i of `[0, 128, 128, 200]` holds 0 to 127,
/// nothing, and 128 to 199.
///
/// ```
/// use gpu_gemm::ShardLayout;
///
/// assert_eq!(ShardLayout::rows(200, 3), ShardLayout::Rows(vec![0, 128, 192, 200]));
/// assert_eq!(ShardLayout::rows(200, 3).to_string(), "rows 0..128, 128..192, 192..200");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardLayout {
    /// Each place holds all of it.
    Replicated,
    /// Place i holds the rows from bound i to the next.
    Rows(Vec<usize>),
    /// Place i holds the columns from bound i to the next.
    Cols(Vec<usize>),
    /// Places are a grid, row by row. Each holds the rows and the columns of its place in it.
    Grid {
        /// Bounds of rows.
        rows: Vec<usize>,
        /// Bounds of columns.
        cols: Vec<usize>,
    },
}

/// Rows and columns of a part of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) rows: Range<usize>,
    pub(crate) cols: Range<usize>,
}

impl Block {
    pub(crate) fn new(rows: Range<usize>, cols: Range<usize>) -> Self {
        Block { rows, cols }
    }

    pub(crate) fn size(&self) -> [usize; 2] {
        [self.rows.len(), self.cols.len()]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.cols.is_empty()
    }

    pub(crate) fn and(&self, other: &Block) -> Block {
        Block { rows: both(&self.rows, &other.rows), cols: both(&self.cols, &other.cols) }
    }

    pub(crate) fn contains(&self, other: &Block) -> bool {
        other.is_empty() || self.and(other) == *other
    }
}

/// What two ranges have in common.
fn both(one: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    let start = one.start.max(other.start);
    start..one.end.min(other.end).max(start)
}

/// Bounds of `places` nearly equal parts, in multiples of [`UNIT`]. (No devices have more places
/// than [`MOST_PLACES`], so that a layout for more is refused.)
fn bounds(len: usize, places: usize) -> Vec<usize> {
    let places = places.min(MOST_PLACES);
    let units = len.div_ceil(UNIT) as u128;
    let bound = |place: usize| (units * place as u128).div_ceil(places.max(1) as u128);
    (0..=places).map(|place| (bound(place) as usize).saturating_mul(UNIT).min(len)).collect()
}

impl ShardLayout {
    /// `len` rows in nearly equal parts, in multiples of 64. The last places may have fewer, or
    /// none.
    pub fn rows(len: usize, places: usize) -> Self {
        ShardLayout::Rows(bounds(len, places))
    }

    /// The same of columns.
    pub fn cols(len: usize, places: usize) -> Self {
        ShardLayout::Cols(bounds(len, places))
    }

    /// The same of a grid of so many rows and columns of places.
    pub fn grid(size: [usize; 2], places: [usize; 2]) -> Self {
        let [rows, cols] = [0, 1].map(|side| bounds(size[side], places[side]));
        ShardLayout::Grid { rows, cols }
    }

    /// What a place holds of a matrix of that size.
    pub(crate) fn block(&self, place: usize, [rows, cols]: [usize; 2]) -> Block {
        let at = |bounds: &[usize], index: usize| bounds[index]..bounds[index + 1];
        match self {
            ShardLayout::Replicated => Block::new(0..rows, 0..cols),
            ShardLayout::Rows(bounds) => Block::new(at(bounds, place), 0..cols),
            ShardLayout::Cols(bounds) => Block::new(0..rows, at(bounds, place)),
            ShardLayout::Grid { rows, cols } => {
                let across = cols.len() - 1;
                Block::new(at(rows, place / across), at(cols, place % across))
            }
        }
    }

    /// Whether its bounds are of a matrix of that size over so many places.
    ///
    /// # Errors
    /// [`Error::Argument`], of the argument with that name.
    pub(crate) fn check(&self, name: &str, size: [usize; 2], places: usize) -> Result<()> {
        let of = |bounds: &[usize], len: usize| {
            bounds.first() == Some(&0)
                && bounds.last() == Some(&len)
                && bounds.is_sorted()
                && bounds.len() > 1
        };
        let (is_right, parts) = match self {
            ShardLayout::Replicated => (true, places),
            ShardLayout::Rows(bounds) => (of(bounds, size[0]), bounds.len().saturating_sub(1)),
            ShardLayout::Cols(bounds) => (of(bounds, size[1]), bounds.len().saturating_sub(1)),
            ShardLayout::Grid { rows, cols } => {
                let parts = |bounds: &[usize]| bounds.len().saturating_sub(1);
                (of(rows, size[0]) && of(cols, size[1]), parts(rows) * parts(cols))
            }
        };
        if is_right && parts == places {
            return Ok(());
        }
        let [rows, cols] = size;
        let limit = format!("must be of {rows}x{cols} over {places} places: bounds from 0 up");
        Err(Error::argument(name, self, limit))
    }
}

impl fmt::Display for ShardLayout {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let parts = |bounds: &[usize]| {
            let parts = bounds.windows(2).map(|two| format!("{}..{}", two[0], two[1]));
            parts.collect::<Vec<_>>().join(", ")
        };
        match self {
            ShardLayout::Replicated => f.write_str("replicated"),
            ShardLayout::Rows(bounds) => write!(f, "rows {}", parts(bounds)),
            ShardLayout::Cols(bounds) => write!(f, "columns {}", parts(bounds)),
            ShardLayout::Grid { rows, cols } => {
                write!(f, "rows {} by columns {}", parts(rows), parts(cols))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_nearly_equal_and_cover_all() {
        for (len, places) in
            [(0, 1), (1, 8), (63, 2), (64, 3), (1000, 3), (1000, 8), (4096, 4), (usize::MAX, 100)]
        {
            let bounds = bounds(len, places);
            assert_eq!((bounds.len(), bounds[0], bounds[places]), (places + 1, 0, len));
            let lens = bounds.windows(2).map(|two| two[1] - two[0]).collect::<Vec<_>>();
            let most = lens.iter().max().unwrap();
            assert!(
                *most <= len.div_ceil(UNIT).div_ceil(places) * UNIT,
                "{len} {places}: {lens:?}"
            );
            assert!(bounds[..places].iter().all(|bound| bound % UNIT == 0 || *bound == len));
        }
    }

    #[test]
    fn bounds_of_another_matrix_are_refused() {
        let check = |layout: ShardLayout| layout.check("layout", [10, 20], 2);
        for right in [
            ShardLayout::Replicated,
            ShardLayout::Rows(vec![0, 10, 10]),
            ShardLayout::Cols(vec![0, 7, 20]),
            ShardLayout::Grid { rows: vec![0, 10], cols: vec![0, 0, 20] },
        ] {
            check(right).unwrap();
        }
        for wrong in [
            ShardLayout::Rows(vec![0, 20, 20]),
            ShardLayout::Rows(vec![0, 10]),
            ShardLayout::Rows(vec![0, 12, 10]),
            ShardLayout::Rows(vec![]),
            ShardLayout::Cols(vec![1, 7, 20]),
            ShardLayout::Grid { rows: vec![0, 10], cols: vec![] },
            ShardLayout::Grid { rows: vec![0, 5, 10], cols: vec![0, 7, 20] },
        ] {
            let error = check(wrong).unwrap_err().to_string();
            assert!(error.contains("must be of 10x20 over 2 places"), "{error}");
        }
    }
}
