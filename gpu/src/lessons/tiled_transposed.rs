//! The tiled kernel for a B that the CPU has transposed.
//!
//! * **A block** computes a 16 x 16 tile of C, in phases. In each phase it loads one tile of A and
//!   one tile of B.
//! * **A thread** computes one element of C. In each phase it loads one element of each tile.
//!
//! As in [`tiled_uncoalesced`](super::tiled_uncoalesced) x is the k-step for both tiles. In the
//! transposed B, neighbouring k-steps are neighbours in a row. So the read is coalesced: 4 sectors
//! for a warp. But a warp stores columns of the tile, an eight-way bank conflict.

use super::{device::*, tile::element_or_zero};

/// C (m x n) = A (m x k) B (k x n) with 16 x 16 tiles, where `bt` (n x k) is B transposed.
#[kernel(
    block = (16, 16),
    shared = 2 * 16 * 16 * size_of::<f32>(),
    len(a = m * k, bt = n * k, c = m * n),
)]
pub fn tiled_transposed(m: u32, n: u32, k: u32, a: In<f32>, bt: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tile_a = shared![f32; 16, 16];
    let mut tile_b = shared![f32; 16, 16];

    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let first_col = thread::block_idx_x() as usize * 16;
    let row = thread::block_idx_y() as usize * 16 + ty;
    let col = first_col + tx;

    let mut sum = 0.0;
    for phase in 0..k.div_ceil(16) {
        tile_a[(ty, tx)] = element_or_zero(&a, (m, k), (row, phase * 16 + tx));
        // Column `first_col + ty` of B is a row here.
        tile_b[(tx, ty)] = element_or_zero(&bt, (n, k), (first_col + ty, phase * 16 + tx));

        thread::sync_threads();
        for i in 0..16 {
            sum = fma(tile_a[(ty, i)], tile_b[(i, tx)], sum);
        }
        thread::sync_threads();
    }
    if row < m && col < n {
        c[row * n + col] = sum;
    }
}
