//! Matrices copied to where their rows begin at multiples of sixteen bytes, for the tensor memory accelerator: as they are
//! ([`pad_rows`]), or turned over, so that columns become rows ([`turn_rows`]).
//!
//! As they are:
//! * **A warp** copies 128 neighbouring elements of a row, a thread every 32nd of them: so that a warp's reads, and its
//!   writes, are of neighbours.
//! * **A block** of eight warps does so with eight rows, and then with those a grid further down.
//!
//! Turned over:
//! * **A warp** reads 32 neighbours of a row, and writes 32 neighbours of what was a column.
//! * **A block** of eight warps takes 32 x 32 elements, which it turns over in shared memory, and then those a grid further
//!   down.
//!
//! Every element is read once and written once, so the floor is `8 rows cols` bytes of f32, half of that of two bytes, over the
//! memory's bandwidth.

use super::super::device::*;

/// Warps of a block, and rows that it copies at once.
const WARPS: usize = 8;
/// Elements of a row that a warp copies.
const RUN: usize = 128;

/// Elements from one row to the next, and from one matrix to the next.
type Strides = (u64, u64);

/// What [`pad_rows`] does, of any element.
#[inline(always)]
#[track_caller]
fn pad<T: Element>(
    (rows, cols): (u32, u32),
    (from_pitch, from_step): Strides,
    (to_pitch, to_step): Strides,
    from: &In<T>,
    to: &mut Out<T>,
) {
    let matrix = thread::block_idx_z() as usize;
    let first = thread::block_idx_x() as usize * RUN + thread::thread_idx_x() as usize;
    let (from_start, to_start) = (matrix * from_step as usize, matrix * to_step as usize);
    let mut row = thread::block_idx_y() as usize * WARPS + thread::thread_idx_y() as usize;
    while row < rows as usize {
        let from_row = from_start + row * from_pitch as usize;
        let to_row = to_start + row * to_pitch as usize;
        for i in 0..RUN / 32 {
            let col = first + i * 32;
            if col < cols as usize {
                to[to_row + col] = from[from_row + col];
            }
        }
        row += thread::grid_dim_y() as usize * WARPS;
    }
}

/// `rows x cols` matrices, a layer of blocks each, from rows that are `from_pitch` elements apart, and matrices that are
/// `from_step` apart, to others.
#[kernel(block = (32, WARPS))]
pub fn pad_rows(
    rows: u32,
    cols: u32,
    from_pitch: u64,
    from_step: u64,
    to_pitch: u64,
    to_step: u64,
    from: In<f32>,
    mut to: Out<f32>,
) {
    pad((rows, cols), (from_pitch, from_step), (to_pitch, to_step), &from, &mut to);
}

/// [`pad_rows`] of any elements of two bytes.
#[kernel(block = (32, WARPS))]
pub fn pad_rows_u16(
    rows: u32,
    cols: u32,
    from_pitch: u64,
    from_step: u64,
    to_pitch: u64,
    to_step: u64,
    from: In<u16>,
    mut to: Out<u16>,
) {
    pad((rows, cols), (from_pitch, from_step), (to_pitch, to_step), &from, &mut to);
}

/// Rows and columns that a block turns over at once: a warp's neighbours on both sides.
const TILE: usize = 32;

/// What [`turn_rows`] does, of any element. A row of the tile is one element longer than it need be: so a column's elements
/// lie in 32 different banks, those of two bytes too, which are 16.5 words apart.
#[inline(always)]
#[track_caller]
fn turn<T: Element>(
    (rows, cols): (u32, u32),
    (from_pitch, from_step): Strides,
    (to_pitch, to_step): Strides,
    from: &In<T>,
    to: &mut Out<T>,
    mut tile: Shared<T, TILE, { TILE + 1 }>,
) {
    let (rows, cols) = (rows as usize, cols as usize);
    let (x, y) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let matrix = thread::block_idx_z() as usize;
    let (from_start, to_start) = (matrix * from_step as usize, matrix * to_step as usize);
    let first_col = thread::block_idx_x() as usize * TILE;
    let mut first_row = thread::block_idx_y() as usize * TILE;
    while first_row < rows {
        for i in 0..TILE / WARPS {
            let (row, col) = (first_row + y + i * WARPS, first_col + x);
            if row < rows && col < cols {
                tile[(y + i * WARPS, x)] = from[from_start + row * from_pitch as usize + col];
            }
        }
        thread::sync_threads();
        for i in 0..TILE / WARPS {
            let (row, col) = (first_row + x, first_col + y + i * WARPS);
            if row < rows && col < cols {
                to[to_start + col * to_pitch as usize + row] = tile[(x, y + i * WARPS)];
            }
        }
        // The tile has been read: the next one may take its place.
        thread::sync_threads();
        first_row += thread::grid_dim_y() as usize * TILE;
    }
}

/// The transposes of `rows x cols` matrices, a layer of blocks each: from rows that are `from_pitch` elements apart, and
/// matrices that are `from_step` apart, to `cols` rows of `rows` elements.
#[kernel(block = (TILE, WARPS), shared = TILE * (TILE + 1) * size_of::<f32>(), barriers = 2)]
pub fn turn_rows(
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
    turn((rows, cols), (from_pitch, from_step), (to_pitch, to_step), &from, &mut to, tile);
}

/// [`turn_rows`] of any elements of two bytes.
#[kernel(block = (TILE, WARPS), shared = TILE * (TILE + 1) * size_of::<u16>(), barriers = 2)]
pub fn turn_rows_u16(
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
    turn((rows, cols), (from_pitch, from_step), (to_pitch, to_step), &from, &mut to, tile);
}
