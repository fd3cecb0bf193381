//! Coalesced reads of B, and a transposed tile of B in shared memory. This shows what bank
//! conflicts cost.
//!
//! * **A block** computes a 16 x 16 tile of C, in phases. In each phase it loads one tile of A and
//!   one tile of B.
//! * **A thread** computes one element of C. In each phase it loads one element of each tile.
//!
//! Neighbouring threads now read neighbouring elements of B, as in [`tiled`](super::tiled). The
//! ratio is that of every 16 x 16 tile: 4 FLOP a byte.
//!
//! But B's tile is stored column by column. Shared memory has 32 banks of one word: word i is in
//! bank i modulo 32. A bank serves one word at a time. Neighbouring threads access words that are
//! 16 apart. So the 16 columns that a warp accesses are in two banks, eight columns in each.

use super::{device::*, tile::element_or_zero};

/// C (m x n) = A (m x k) B (k x n) with 16 x 16 tiles, B's transposed in shared memory.
#[kernel(
    block = (16, 16),
    shared = 2 * 16 * 16 * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn tiled_conflicts(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tile_a = shared![f32; 16, 16];
    let mut tile_b = shared![f32; 16, 16];

    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let row = thread::block_idx_y() as usize * 16 + ty;
    let col = thread::block_idx_x() as usize * 16 + tx;

    let mut sum = 0.0;
    for phase in 0..k.div_ceil(16) {
        tile_a[(ty, tx)] = element_or_zero(&a, (m, k), (row, phase * 16 + tx));
        // A row of the tile is a column of B. Threads with neighbouring x are 16 words apart.
        tile_b[(tx, ty)] = element_or_zero(&b, (k, n), (phase * 16 + ty, col));

        thread::sync_threads();
        for i in 0..16 {
            sum = fma(tile_a[(ty, i)], tile_b[(tx, i)], sum);
        }
        thread::sync_threads();
    }
    if row < m && col < n {
        c[row * n + col] = sum;
    }
}
