//! The tiled kernel without boundary checks: every tile is whole.
//!
//! * **A block** computes a 16 x 16 tile of C, in phases, as [`tiled`](super::tiled) does.
//! * **A thread** computes one element of the tile. In each phase it loads one element of A and one
//!   element of B.
//!
//! m, n and k must be multiples of 16. The host pads other matrices with zeros, which add nothing
//! to a sum, and removes the padding of C afterwards. That takes memory, time to copy, and work on
//! elements that nobody asked for. The host measures both ways (`host::padding`).

use super::device::*;

/// The sizes must be multiples of this.
pub const TILE: usize = 16;

/// C (m x n) = A (m x k) B (k x n), all three sizes multiples of 16.
#[kernel(
    block = (TILE, TILE),
    shared = 2 * TILE * TILE * size_of::<f32>(),
    barriers = 2,
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn padded16(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    // `m` stands in `len` alone: the grid has a row of threads for each row of C, and no more.
    let (n, k) = (n as usize, k as usize);
    let mut tile_a = shared![f32; TILE, TILE];
    let mut tile_b = shared![f32; TILE, TILE];

    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let row = thread::block_idx_y() as usize * TILE + ty;
    let col = thread::block_idx_x() as usize * TILE + tx;

    let mut sum = 0.0;
    for phase in 0..k / TILE {
        tile_a[(ty, tx)] = a[row * k + (phase * TILE + tx)];
        tile_b[(ty, tx)] = b[(phase * TILE + ty) * n + col];
        thread::sync_threads();
        for i in 0..TILE {
            sum = fma(tile_a[(ty, i)], tile_b[(i, tx)], sum);
        }
        thread::sync_threads();
    }
    c[row * n + col] = sum;
}
