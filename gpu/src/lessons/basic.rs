//! `C = A B`, one thread an element, everything from global memory.
//!
//! * **A block** computes a 16 x 16 patch of C.
//! * **A thread** computes one element: row `row` of A times column `col` of B.
//!
//! Each multiply-add (2 FLOP) reads two floats (8 bytes) from global memory: 1/4 FLOP a byte. Every
//! row of A is read n times, and every column of B m times. [`tiled`](super::tiled) reads them into
//! shared memory first.

use super::device::*;

/// Threads of a block along each axis.
pub const BLOCK: usize = 16;

/// C (m x n) = A (m x k) B (k x n), one thread an element.
#[kernel(block = (BLOCK, BLOCK), shared = 0, len(a = m * k, b = k * n, c = m * n))]
pub fn basic(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);

    // Neighbouring threads of a warp differ in x. They take neighbouring columns. So a warp reads
    // neighbouring elements of B and writes neighbouring elements of C.
    let row = (thread::block_idx_y() * thread::block_dim_y() + thread::thread_idx_y()) as usize;
    let col = (thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x()) as usize;

    // The last block of a row or column of blocks may stick out over the edge of C.
    if row < m && col < n {
        let mut sum = 0.0;
        for p in 0..k {
            sum = fma(a[row * k + p], b[p * n + col], sum);
        }
        c[row * n + col] = sum;
    }
}
