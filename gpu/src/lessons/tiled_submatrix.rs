//! The tiled kernel in terms of matrices: `width`, `height`, `stride` and `elements`, and a sub-matrix of a
//! matrix is a matrix.
//!
//! * **A block** computes one TILE x TILE sub-matrix of C: the sum of products of a sub-matrix of A, from the
//!   same rows, and one of B, from the same columns.
//! * **A thread** computes one element of that sub-matrix, and copies one element of each sub-matrix of A and B
//!   to shared memory.
//!
//! A sub-matrix shares its parent's elements. Its rows lie as far apart as the parent's do, whatever its own
//! width: that distance is the stride. What is computed, and from where it is loaded, is as in
//! [`tiled`](super::tiled); the boundary checks have moved into `Matrix::get` and `Matrix::set`.

use core::ops::{Index, IndexMut};

use super::device::*;

const TILE: usize = 16;

/// A row-major matrix in global memory: element (row, col) stands `row * stride + col` elements after the
/// first, which is `elements[start]`. (A view has its buffer's own first element, so a sub-matrix has to say
/// where it begins.)
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

    /// The sub-matrix that lies `row` tiles down and `col` tiles to the right. Where the matrix ends within the
    /// tile, it is so much smaller.
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

// `track_caller`: a profile or a finding then points to the line that gets or sets, not to these.
impl<View: Copy + Index<usize, Output = f32>> Matrix<View> {
    /// Element (row, col); 0 outside of the matrix, which adds nothing to a sum.
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
        // Both sub-matrices are complete before anyone reads them,
        thread::sync_threads();
        for i in 0..TILE {
            sum = fma(tile_a[(row, i)], tile_b[(i, col)], sum);
        }
        // and everyone has read them before the next phase overwrites them.
        thread::sync_threads();
    }
    c.sub_matrix(block_row, block_col).set(row, col, sum);
}
