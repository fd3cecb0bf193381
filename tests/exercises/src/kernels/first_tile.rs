//! From global memory to tiles in shared memory.
//!
//! Unfinished: every thread reads its row of A and its column of B from global memory. The block's
//! threads need the same rows and columns sixteen times.

use super::device::*;

const TILE: usize = 16;

/// C (m x n) = A (m x k) B (k x n). To be done in phases of 16 k-steps, with tiles of 16 x 16.
#[kernel(
    block = (TILE, TILE),
    // Two tiles will take 2 * TILE * TILE * size_of::<f32>() bytes. `shared![f32; TILE, TILE]`
    // declares one.
    shared = 0,
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn first_tile(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let row = thread::block_idx_y() as usize * TILE + ty;
    let col = thread::block_idx_x() as usize * TILE + tx;

    let mut sum = 0.0;
    if row < m && col < n {
        for p in 0..k {
            sum = fma(a[row * k + p], b[p * n + col], sum);
        }
        c[row * n + col] = sum;
    }
}
