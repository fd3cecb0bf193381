//! Matrices transposed for TMA, with 16-byte aligned rows. Those of bytes:
//! [`transpose_bytes`](super::transpose_bytes).
//!
//! * **A block** of eight warps transposes 32 x 32 elements in shared memory, and goes on with
//!   those a grid further down.
//! * **A warp** reads 32 neighbours of a row, and writes 32 neighbours of what was a column.
//! * **A thread** moves four elements.
//!
//! Time and launch are as of a [copy](super::pack).

use super::device::*;

/// Elements from one row to the next, and from one matrix to the next.
type Strides = (u64, u64);

/// Warps of a block.
const WARPS: usize = 8;
/// Rows and columns that a block transposes at once.
const TILE: usize = 32;

/// [`transpose_rows`] for elements of any type. A row of the tile has one element of padding. So a
/// column's elements are in 32 different banks, those of 16 bits too, which are 16.5 words apart.
#[inline(always)]
#[track_caller]
fn transpose<T: Element>(
    (rows, cols): (u32, u32),
    (from_pitch, from_step): Strides,
    (to_pitch, to_step): Strides,
    from: &In<T>,
    to: &mut Out<T>,
    mut tile: Shared<T, TILE, { TILE + 1 }>,
) {
    // Nothing before this point depends on earlier launches.
    grid::let_next_begin();
    grid::wait_for_earlier();
    let (rows, cols) = (rows as usize, cols as usize);
    let (x, y) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let matrix = thread::block_idx_z() as usize;
    let (from_start, to_start) = (matrix * from_step as usize, matrix * to_step as usize);
    let first_col = thread::block_idx_x() as usize * TILE;
    let mut first_row = thread::block_idx_y() as usize * TILE;
    while first_row < rows {
        // All loads are issued before one is awaited. Outside the matrix they read the last row or
        // column.
        let read: [_; TILE / WARPS] = core::array::from_fn(|i| {
            let row = (first_row + y + i * WARPS).min(rows - 1);
            from[from_start + row * from_pitch as usize + (first_col + x).min(cols - 1)]
        });
        for i in 0..TILE / WARPS {
            tile[(y + i * WARPS, x)] = read[i];
        }
        thread::sync_threads();
        for i in 0..TILE / WARPS {
            let (row, col) = (first_row + x, first_col + y + i * WARPS);
            if row < rows && col < cols {
                to[to_start + col * to_pitch as usize + row] = tile[(x, y + i * WARPS)];
            }
        }
        // The tile has been read. The next one may take its place.
        thread::sync_threads();
        first_row += thread::grid_dim_y() as usize * TILE;
    }
}

/// Transposes `rows x cols` matrices; blocks along z take one each. Rows of the source are
/// `from_pitch` elements apart, matrices `from_step`. The result has `cols` rows of `rows`
/// elements, with `to_pitch` and `to_step`.
#[kernel(block = (TILE, WARPS), shared = TILE * (TILE + 1) * size_of::<f32>(), barriers = 2, arch = 90, dependent)]
pub fn transpose_rows(
    rows: u32,
    cols: u32,
    from_pitch: u64,
    from_step: u64,
    to_pitch: u64,
    to_step: u64,
    from: In<f32>,
    mut to: Out<f32>,
) {
    let tile = shared![f32; TILE, TILE + 1];
    transpose((rows, cols), (from_pitch, from_step), (to_pitch, to_step), &from, &mut to, tile);
}

/// [`transpose_rows`] for elements of 16 bits.
#[kernel(block = (TILE, WARPS), shared = TILE * (TILE + 1) * size_of::<u16>(), barriers = 2, arch = 90, dependent)]
pub fn transpose_rows_u16(
    rows: u32,
    cols: u32,
    from_pitch: u64,
    from_step: u64,
    to_pitch: u64,
    to_step: u64,
    from: In<u16>,
    mut to: Out<u16>,
) {
    let tile = shared![u16; TILE, TILE + 1];
    transpose((rows, cols), (from_pitch, from_step), (to_pitch, to_step), &from, &mut to, tile);
}
