//! A thread has a column of C in registers: in which order does it multiply?
//!
//! Solution: With p outside, the element of B is the same for all 16 rows: read it once, before the
//! inner loop.

use super::device::*;

/// Rows and columns of a block's tile of C, and k-steps of a phase.
const ROWS: usize = 16;
const COLS: usize = 64;
const DEPTH: usize = 16;

/// C (m x n) = A (m x k) B (k x n), a column of 16 elements a thread.
#[kernel(
    block = (COLS),
    shared = (ROWS * DEPTH + DEPTH * COLS) * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn column_in_registers(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tile_a = shared![f32; ROWS, DEPTH];
    let mut tile_b = shared![f32; DEPTH, COLS];
    let t = thread::thread_idx_x() as usize;
    let first_row = thread::block_idx_y() as usize * ROWS;
    let col = thread::block_idx_x() as usize * COLS + t;

    let mut sums = [0.0; ROWS];
    for phase in 0..k.div_ceil(DEPTH) {
        let first = phase * DEPTH;
        for i in 0..ROWS * DEPTH / COLS {
            let (row, p) = (t / DEPTH + i * COLS / DEPTH, t % DEPTH);
            let inside = first_row + row < m && first + p < k;
            tile_a[(row, p)] = if inside { a[(first_row + row) * k + first + p] } else { 0.0 };
        }
        for p in 0..DEPTH {
            let inside = first + p < k && col < n;
            tile_b[(p, t)] = if inside { b[(first + p) * n + col] } else { 0.0 };
        }
        thread::sync_threads();
        for p in 0..DEPTH {
            let b = tile_b[(p, t)];
            for i in 0..ROWS {
                sums[i] = fma(tile_a[(i, p)], b, sums[i]);
            }
        }
        thread::sync_threads();
    }
    for (i, sum) in sums.into_iter().enumerate() {
        if first_row + i < m && col < n {
            c[(first_row + i) * n + col] = sum;
        }
    }
}
