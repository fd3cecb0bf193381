//! The next tiles are loaded while this phase is multiplied. When do the loads begin?
//!
//! Solution: Move the call of `load` up. It only reads global memory, so no barrier is needed for
//! it.

use super::device::*;

const TILE: usize = 16;

/// C (m x n) = A (m x k) B (k x n) with tiles of 16 x 16, two of each operand.
#[kernel(
    block = (TILE, TILE),
    shared = 4 * TILE * TILE * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn load_before_use(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    // Tile 0 in the first TILE rows, tile 1 below.
    let mut tile_a = shared![f32; 2 * TILE, TILE];
    let mut tile_b = shared![f32; 2 * TILE, TILE];
    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let row = thread::block_idx_y() as usize * TILE + ty;
    let col = thread::block_idx_x() as usize * TILE + tx;
    // This thread's elements of a phase: of A and of B. Zeros outside.
    let load = |phase: usize| {
        let (a_col, b_row) = (phase * TILE + tx, phase * TILE + ty);
        let of_a = if row < m && a_col < k { a[row * k + a_col] } else { 0.0 };
        let of_b = if b_row < k && col < n { b[b_row * n + col] } else { 0.0 };
        (of_a, of_b)
    };

    (tile_a[(ty, tx)], tile_b[(ty, tx)]) = load(0);
    thread::sync_threads();
    let mut sum = 0.0;
    for phase in 0..k.div_ceil(TILE) {
        let (this, next) = (phase % 2 * TILE, (phase + 1) % 2 * TILE);
        // In flight while this phase is multiplied.
        let (of_a, of_b) = load(phase + 1);
        for i in 0..TILE {
            sum = fma(tile_a[(this + ty, i)], tile_b[(this + i, tx)], sum);
        }
        tile_a[(next + ty, tx)] = of_a;
        tile_b[(next + ty, tx)] = of_b;
        thread::sync_threads();
    }
    if row < m && col < n {
        c[row * n + col] = sum;
    }
}
