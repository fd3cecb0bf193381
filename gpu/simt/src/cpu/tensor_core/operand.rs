//! The operand B of a step, decoded, in the order in which threads read it.

use std::array;

use super::fragment;

/// Columns of B that are computed with at once: a vector of the processor.
pub(super) const LANES: usize = 8;

/// For every k what these columns have there.
pub(super) type Block<const K: usize> = [[f32; LANES]; K];

/// K rows of N columns.
///
/// A thread's part of D has two neighbours in every eight columns. What it multiplies lies together
/// here; four kinds of threads share B.
#[derive(Clone, Debug)]
pub struct OperandB<const K: usize> {
    columns: usize,
    blocks: [Vec<Block<K>>; 4],
}

impl<const K: usize> OperandB<K> {
    /// Zeros.
    ///
    /// # Panics
    /// If no instruction has that many columns.
    pub fn new(columns: usize) -> Self {
        assert!(columns.is_multiple_of(8) && (8..=256).contains(&columns), "N is {columns}");
        // Where a thread's columns do not fill the last block, its last lanes are idle.
        let blocks = (columns / 4).div_ceil(LANES);
        OperandB { columns, blocks: array::from_fn(|_| vec![[[0.0; LANES]; K]; blocks]) }
    }

    /// N.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Sets the element in row `k` of column `column`.
    #[inline]
    pub fn set(&mut self, k: usize, column: usize, value: f32) {
        assert!(column < self.columns, "column {column} of {}", self.columns);
        let of_thread = column / 8 * 2 + column % 2;
        self.blocks[column / 2 % 4][of_thread / LANES][k][of_thread % LANES] = value;
    }

    /// The columns of thread `thread`, from left to right.
    #[inline(always)]
    pub(super) fn of_thread(&self, thread: usize) -> &[Block<K>] {
        let (_, first) = fragment::accumulator(thread, 0);
        &self.blocks[first / 2]
    }
}
