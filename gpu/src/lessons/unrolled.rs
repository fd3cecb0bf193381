//! The loop over a phase's 16 k-steps unrolled.
//!
//! * **A block** of 64 threads computes a 16 x 64 tile of C, in phases of 16 k-steps, as in
//!   [`outer_product`](super::outer_product).
//! * **A thread** computes a column of 16 elements of it.
//!
//! The ratio is the same, 6.4 FLOP a byte. The loop's own arithmetic is gone: a comparison, an
//! addition and a branch for every 16 multiply-adds. Every address within the tile becomes a
//! constant in its instruction. And the sixteen reads of B no longer wait for each other.

use super::{
    device::*,
    outer_product::{COLS, DEPTH, PITCH, ROWS},
    tile::element_or_zero,
};

/// C (m x n) = A (m x k) B (k x n) by outer products, unrolled.
#[kernel(
    block = (COLS),
    shared = DEPTH * PITCH * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn unrolled(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tile_a = shared![f32; DEPTH, PITCH];

    let tx = thread::thread_idx_x() as usize;
    let first_row = thread::block_idx_y() as usize * ROWS;
    let col = thread::block_idx_x() as usize * COLS + tx;

    let mut column = [0.0; ROWS];
    for phase in 0..k.div_ceil(DEPTH) {
        for i in 0..ROWS * DEPTH / COLS {
            let (row, p) = (tx / DEPTH + i * COLS / DEPTH, tx % DEPTH);
            tile_a[(p, row)] = element_or_zero(&a, (m, k), (first_row + row, phase * DEPTH + p));
        }
        thread::sync_threads();
        // The compiler knows the number, 16, and writes the body sixteen times.
        for p in 0..DEPTH {
            let b = element_or_zero(&b, (k, n), (phase * DEPTH + p, col));
            for i in 0..ROWS {
                column[i] = fma(tile_a[(p, i)], b, column[i]);
            }
        }
        thread::sync_threads();
    }
    for i in 0..ROWS {
        if first_row + i < m && col < n {
            c[(first_row + i) * n + col] = column[i];
        }
    }
}
