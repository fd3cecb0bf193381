//! A thread computes 4 x 4 elements of C. Which ones?
//!
//! Solution: Neighbouring threads should have neighbouring columns. The next of a thread's columns
//! is then 16 further.

use super::device::*;

/// Rows and columns of a block's tile of C, and k-steps of a phase.
const TILE: usize = 64;
const DEPTH: usize = 16;

/// C (m x n) = A (m x k) B (k x n), 4 x 4 elements a thread.
#[kernel(
    block = (16, 16),
    shared = 2 * TILE * DEPTH * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn places_of_a_thread(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tile_a = shared![f32; TILE, DEPTH];
    let mut tile_b = shared![f32; DEPTH, TILE];
    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    // The thread's i-th row and column in the tile of C.
    let (row, col) = (|i: usize| ty + 16 * i, |j: usize| tx + 16 * j);

    let mut sums = [[0.0; 4]; 4];
    for phase in 0..k.div_ceil(DEPTH) {
        let p = phase * DEPTH;
        for i in 0..4 {
            let (at, of) = ((ty + 16 * i, tx), (first_row + ty + 16 * i, p + tx));
            tile_a[at] = if of.0 < m && of.1 < k { a[of.0 * k + of.1] } else { 0.0 };
            let (at, of) = ((ty, tx + 16 * i), (p + ty, first_col + tx + 16 * i));
            tile_b[at] = if of.0 < k && of.1 < n { b[of.0 * n + of.1] } else { 0.0 };
        }
        thread::sync_threads();
        for p in 0..DEPTH {
            let rows = [0, 1, 2, 3].map(|i| tile_a[(row(i), p)]);
            let cols = [0, 1, 2, 3].map(|j| tile_b[(p, col(j))]);
            for i in 0..4 {
                for j in 0..4 {
                    sums[i][j] = fma(rows[i], cols[j], sums[i][j]);
                }
            }
        }
        thread::sync_threads();
    }
    for i in 0..4 {
        for j in 0..4 {
            let (row, col) = (first_row + row(i), first_col + col(j));
            if row < m && col < n {
                c[row * n + col] = sums[i][j];
            }
        }
    }
}
