//! The tiled kernel in terms of matrices. A matrix has `width`, `height`, `stride` and `elements`.
//! A sub-matrix is a matrix too.
//!
//! * **A block** computes one TILE x TILE sub-matrix of C: a sum of products. Each product
//!   multiplies a sub-matrix of A, from the same rows, by a sub-matrix of B, from the same columns.
//! * **A thread** computes one element of that sub-matrix, and copies one element of each
//!   sub-matrix of A and B to shared memory.
//!
//! A sub-matrix shares its parent's elements, and has its parent's stride: the distance from one
//! row to the next, whatever the sub-matrix's width. The arithmetic and the loads are those of
//! [`tiled`](super::tiled). The boundary checks are in `Matrix::get` and `Matrix::set`.

use core::ops::{Index, IndexMut};

use super::device::*;

const TILE: usize = 16;

/// A row-major matrix in global memory. Its first element is `elements[start]`, and element (row,
/// col) is `row * stride + col` elements after the first. (A view starts at its buffer's first
/// element, so a sub-matrix needs `start`.)
#[derive(Clone, Copy)]
struct Matrix<View> {
    width: usize,
    height: usize,
    stride: usize,
    start: usize,
    elements: View,
}

impl<View: Copy> Matrix<View> {
    /// All of a buffer: rows follow one another without a gap.
    #[inline(always)]
    fn new(height: u32, width: u32, elements: View) -> Self {
        let (width, height) = (width as usize, height as usize);
        Matrix { width, height, stride: width, start: 0, elements }
    }

    /// The sub-matrix `row` tiles down and `col` tiles to the right. It ends where the matrix ends,
    /// so it may be smaller than a tile.
    #[inline(always)]
    fn sub_matrix(&self, row: usize, col: usize) -> Self {
        let (first_row, first_col) = (row * TILE, col * TILE);
        Matrix {
            width: TILE.min(self.width - first_col),
            height: TILE.min(self.height - first_row),
            start: self.start + first_row * self.stride + first_col,
            ..*self
        }
    }

    #[inline(always)]
    fn contains(&self, row: usize, col: usize) -> bool {
        row < self.height && col < self.width
    }
}

// `track_caller`: a profile or a finding then names the line that calls `get` or `set`.
impl<View: Copy + Index<usize, Output = f32>> Matrix<View> {
    /// Element (row, col). Outside the matrix it is 0, which adds nothing to a sum.
    #[inline(always)]
    #[track_caller]
    fn get(&self, row: usize, col: usize) -> f32 {
        match self.contains(row, col) {
            true => self.elements[self.start + row * self.stride + col],
            false => 0.0,
        }
    }
}

impl<View: Copy + IndexMut<usize, Output = f32>> Matrix<View> {
    /// Sets element (row, col), where the matrix has one.
    #[inline(always)]
    #[track_caller]
    fn set(&mut self, row: usize, col: usize, value: f32) {
        if self.contains(row, col) {
            self.elements[self.start + row * self.stride + col] = value;
        }
    }
}

/// C (m x n) = A (m x k) B (k x n), by sub-matrices of 16 x 16.
#[kernel(
    block = (TILE, TILE),
    shared = 2 * TILE * TILE * size_of::<f32>(),
    barriers = 2,
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn tiled_submatrix(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, c: Out<f32>) {
    let (a, b, c) = (Matrix::new(m, k, a), Matrix::new(k, n, b), Matrix::new(m, n, c));
    let mut tile_a = shared![f32; TILE, TILE];
    let mut tile_b = shared![f32; TILE, TILE];

    let (block_row, block_col) = (thread::block_idx_y() as usize, thread::block_idx_x() as usize);
    let (row, col) = (thread::thread_idx_y() as usize, thread::thread_idx_x() as usize);

    let mut sum = 0.0;
    for phase in 0..a.width.div_ceil(TILE) {
        tile_a[(row, col)] = a.sub_matrix(block_row, phase).get(row, col);
        tile_b[(row, col)] = b.sub_matrix(phase, block_col).get(row, col);
        // No thread reads the sub-matrices before both are complete.
        thread::sync_threads();
        for i in 0..TILE {
            sum = fma(tile_a[(row, i)], tile_b[(i, col)], sum);
        }
        // The next phase overwrites no sub-matrix before all threads have read it.
        thread::sync_threads();
    }
    c.sub_matrix(block_row, block_col).set(row, col, sum);
}
