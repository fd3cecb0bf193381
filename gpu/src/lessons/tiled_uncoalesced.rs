//! Tiles in shared memory. A warp reads B down its columns, which shows what coalescing is worth.
//!
//! * **A block** computes a 16 x 16 tile of C, in phases. In each phase it loads one tile of A and
//!   one tile of B.
//! * **A thread** computes one element of C. In each phase it loads one element of each tile.
//!
//! Each element loaded is used 16 times: 16/4 = 4 FLOP a byte, where [`basic`](super::basic) has
//! 1/4.
//!
//! But neighbouring threads of a warp differ in x, and load elements of B that are a whole row of B
//! apart. Global memory is moved in sectors of 32 bytes, eight elements. A warp needs two elements
//! from each of 16 rows of B. So it moves 16 sectors, and [`tiled`](super::tiled) moves 4 for as
//! much data.

use super::{device::*, tile::element_or_zero};

/// C (m x n) = A (m x k) B (k x n) with 16 x 16 tiles, B's read column by column.
#[kernel(
    block = (16, 16),
    shared = 2 * 16 * 16 * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn tiled_uncoalesced(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
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
        // x is the row of B's tile, so a warp reads sixteen rows of B.
        tile_b[(tx, ty)] = element_or_zero(&b, (k, n), (phase * 16 + tx, first_col + ty));

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
