//! Rows are read and columns are written: one of the two is a row apart.
//!
//! Solution: Store `tile[(ty, tx)]` as it is read. After a barrier thread (tx, ty) writes element
//! (tx, ty) of the tile to row ty of the tile of y. A column of the tile must not be in one bank.

use super::device::*;

const TILE: usize = 32;

/// y (n x m) is x (m x n), transposed.
#[kernel(
    block = (TILE, TILE),
    shared = TILE * (TILE + 1) * size_of::<f32>(),
    len(x = m * n, y = m * n),
)]
pub fn transpose_by_a_tile(m: u32, n: u32, x: In<f32>, mut y: Out<f32>) {
    let (m, n) = (m as usize, n as usize);
    let mut tile = shared![f32; TILE, TILE + 1];
    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    // The block's tile of y is in the rows of its x, and so its tile of x in the columns.
    let first_col = thread::block_idx_y() as usize * TILE;
    let first_row = thread::block_idx_x() as usize * TILE;
    if first_row + ty < m && first_col + tx < n {
        tile[(ty, tx)] = x[(first_row + ty) * n + first_col + tx];
    }
    thread::sync_threads();
    if first_col + ty < n && first_row + tx < m {
        y[(first_col + ty) * m + first_row + tx] = tile[(tx, ty)];
    }
}
