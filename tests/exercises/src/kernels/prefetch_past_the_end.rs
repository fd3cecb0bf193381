//! Double buffering.

use super::device::*;

const TILE: usize = 16;

/// C (m x n) = A (m x k) B (k x n) for sizes that are multiples of TILE. The next tiles are fetched
/// while the current ones are multiplied.
#[kernel(
    block = (TILE, TILE),
    shared = 4 * TILE * TILE * size_of::<f32>(),
    barriers = 2,
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn prefetch_past_the_end(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    // Two tiles of each operand: tile `s` of A is in the rows from `s * TILE` on.
    let mut tile_a = shared![f32; 2 * TILE, TILE];
    let mut tile_b = shared![f32; 2 * TILE, TILE];
    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let row = thread::block_idx_y() as usize * TILE + ty;
    let col = thread::block_idx_x() as usize * TILE + tx;
    let phases = k / TILE;

    tile_a[(ty, tx)] = a[row * k + tx];
    tile_b[(ty, tx)] = b[ty * n + col];
    thread::sync_threads();

    let mut sum = 0.0;
    for phase in 0..phases {
        let (this, next) = (phase % 2 * TILE, (phase + 1) % 2 * TILE);
        tile_a[(next + ty, tx)] = a[row * k + (phase + 1) * TILE + tx];
        tile_b[(next + ty, tx)] = b[((phase + 1) * TILE + ty) * n + col];
        for i in 0..TILE {
            sum = fma(tile_a[(this + ty, i)], tile_b[(this + i, tx)], sum);
        }
        thread::sync_threads();
    }
    if row < m && col < n {
        c[row * n + col] = sum;
    }
}
