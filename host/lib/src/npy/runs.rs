//! A block of a matrix as runs of contiguous elements in its file.

use std::ops::Range;

use crate::{
    error::{Error, Result},
    matrix::Layout,
};

/// The runs of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Runs {
    /// The first element's index in the file.
    pub(super) start: u64,
    /// Elements from the start of one run to the start of the next.
    pub(super) stride: u64,
    /// The number of runs.
    pub(super) count: usize,
    /// Elements of a run.
    pub(super) len: usize,
}

impl Runs {
    /// The runs of a block of a `rows x cols` matrix. `len`: the number of values that the caller
    /// has for it. Runs without gaps are joined.
    ///
    /// # Errors
    /// [`Error::Argument`] for a block beyond the matrix, and for another number of values than it
    /// has.
    pub(super) fn of(
        layout: Layout,
        [rows, cols]: [usize; 2],
        block_rows: &Range<usize>,
        block_cols: &Range<usize>,
        len: usize,
    ) -> Result<Self> {
        for (name, range, size) in [("rows", block_rows, rows), ("cols", block_cols, cols)] {
            if range.start > range.end || range.end > size {
                let limit = format!("the matrix has {size}");
                return Err(Error::argument(name, format!("{range:?}"), limit));
            }
        }
        // This does not overflow: the block is inside the matrix.
        if len != block_rows.len() * block_cols.len() {
            let limit = format!("must be {} x {}", block_rows.len(), block_cols.len());
            return Err(Error::argument("values.len()", len, limit));
        }
        let (outer, inner, stride) = match layout {
            Layout::RowMajor => (block_rows, block_cols, cols),
            Layout::ColMajor => (block_cols, block_rows, rows),
        };
        let start = outer.start as u64 * stride as u64 + inner.start as u64;
        let (count, len, stride) = (outer.len(), inner.len(), stride as u64);
        Ok(match len as u64 == stride {
            true => Runs { start, stride: 0, count: 1, len: count * len },
            false => Runs { start, stride, count, len },
        })
    }

    /// The index in the file of each run's first element.
    pub(super) fn starts(self) -> impl Iterator<Item = u64> {
        (0..self.count as u64).map(move |run| self.start + run * self.stride)
    }
}
