//! A thread without an element of C leaves at once.
//!
//! Solution: Let every thread load and come to every barrier. Only the store to C is for threads
//! inside.

use super::device::*;

const TILE: usize = 16;

/// C (m x n) = A (m x k) B (k x n) with tiles of 16 x 16.
#[kernel(
    block = (TILE, TILE),
    shared = 2 * TILE * TILE * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn early_return(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tile_a = shared![f32; TILE, TILE];
    let mut tile_b = shared![f32; TILE, TILE];
    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let row = thread::block_idx_y() as usize * TILE + ty;
    let col = thread::block_idx_x() as usize * TILE + tx;

    let mut sum = 0.0;
    for phase in 0..k.div_ceil(TILE) {
        let (a_col, b_row) = (phase * TILE + tx, phase * TILE + ty);
        tile_a[(ty, tx)] = if row < m && a_col < k { a[row * k + a_col] } else { 0.0 };
        tile_b[(ty, tx)] = if b_row < k && col < n { b[b_row * n + col] } else { 0.0 };
        thread::sync_threads();
        for i in 0..TILE {
            sum = fma(tile_a[(ty, i)], tile_b[(i, tx)], sum);
        }
        thread::sync_threads();
    }
    if row < m && col < n {
        c[row * n + col] = sum;
    }
}
