//! MatrixBatch copied to where their rows begin at multiples of sixteen bytes, for the tensor memory accelerator: as they are
//! ([`pack_rows`]), or turned over, so that columns become rows ([`transpose_rows`]).
//!
//! As they are:
//! * **A warp** copies 2 KiB of a row ([`rows`](super::rows)).
//! * **A block** of eight warps does so with eight rows, and then with those a grid further down.
//!
//! Turned over:
//! * **A warp** reads 32 neighbours of a row, and writes 32 neighbours of what was a column.
//! * **A block** of eight warps takes 32 x 32 elements, which it turns over in shared memory, and then those a grid further
//!   down.
//!
//! Every element is read once and written once, so the floor is `8 rows cols` bytes of f32, half of that of two bytes, over the
//! memory's bandwidth.
//!
//! A copy is a launch before the product, and both are `dependent`: the product's blocks get ready while the copy runs.

use super::{collective::copy_rows::copy_stretch, device::*};

/// Warps of a block.
const WARPS: usize = 8;
/// Pieces that a thread copies at a time, 512 bytes of the row from one to the next.
const EACH: usize = 4;

/// Rows that a block copies at a time.
pub const PACK_ROWS: usize = WARPS;
/// Bytes of a row that a block copies.
pub const PACK_BYTES: usize = EACH * 32 * 16;

/// Elements from one row to the next, and from one matrix to the next.
type Strides = (u64, u64);

/// What [`pack_rows`] does, of any element, of which `N` are a piece.
#[inline(always)]
#[track_caller]
fn pack<T: Element, const N: usize>(
    (rows, cols): (u32, u32),
    (from_pitch, from_step): Strides,
    (to_pitch, to_step): Strides,
    from: &In<T>,
    to: &mut Out<T>,
) {
    // Up to here nothing of this launch depends on the ones before it.
    grid::let_next_begin();
    grid::wait_for_earlier();
    let (rows, cols) = (rows as usize, cols as usize);
    let (from_pitch, to_pitch) = (from_pitch as usize, to_pitch as usize);
    let matrix = thread::block_idx_z() as usize;
    let (from_start, to_start) = (matrix * from_step as usize, matrix * to_step as usize);
    let last = (thread::grid_dim_z() as usize - 1) * from_step as usize + (rows - 1) * from_pitch;
    let len = last + cols;
    let first = thread::block_idx_x() as usize * (EACH * 32);
    let mut row = thread::block_idx_y() as usize * PACK_ROWS + thread::thread_idx_y() as usize;
    while row < rows {
        let (at, to_row) = (from_start + row * from_pitch, to_start + row * to_pitch);
        copy_stretch::<_, N, EACH>((from, at), (to, to_row), cols, len, first);
        row += thread::grid_dim_y() as usize * PACK_ROWS;
    }
}

/// `rows x cols` matrices, a layer of blocks each, from rows that are `from_pitch` elements apart, and matrices that are
/// `from_step` apart, to others. `from` has so many elements as that takes and begins anywhere; `to` and its rows and
/// matrices begin at multiples of sixteen bytes, and what lies behind a row there, up to the next multiple, is written too.
#[kernel(block = (32, WARPS), arch = 90, dependent)]
pub fn pack_rows(
    rows: u32,
    cols: u32,
    from_pitch: u64,
    from_step: u64,
    to_pitch: u64,
    to_step: u64,
    from: In<f32>,
    mut to: Out<f32>,
) {
    pack::<_, 4>((rows, cols), (from_pitch, from_step), (to_pitch, to_step), &from, &mut to);
}

/// [`pack_rows`] of any elements of two bytes.
#[kernel(block = (32, WARPS), arch = 90, dependent)]
pub fn pack_rows_u16(
    rows: u32,
    cols: u32,
    from_pitch: u64,
    from_step: u64,
    to_pitch: u64,
    to_step: u64,
    from: In<u16>,
    mut to: Out<u16>,
) {
    pack::<_, 8>((rows, cols), (from_pitch, from_step), (to_pitch, to_step), &from, &mut to);
}

/// Rows and columns that a block turns over at once: a warp's neighbours on both sides.
const TILE: usize = 32;

/// What [`transpose_rows`] does, of any element. A row of the tile is one element longer than it need be: so a column's elements
/// lie in 32 different banks, those of two bytes too, which are 16.5 words apart.
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
    // As in `pack`.
    grid::let_next_begin();
    grid::wait_for_earlier();
    let (rows, cols) = (rows as usize, cols as usize);
    let (x, y) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let matrix = thread::block_idx_z() as usize;
    let (from_start, to_start) = (matrix * from_step as usize, matrix * to_step as usize);
    let first_col = thread::block_idx_x() as usize * TILE;
    let mut first_row = thread::block_idx_y() as usize * TILE;
    while first_row < rows {
        // All reads are begun before one is waited for. Outside, they are of the last row and column.
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
        // The tile has been read: the next one may take its place.
        thread::sync_threads();
        first_row += thread::grid_dim_y() as usize * TILE;
    }
}

/// The transposes of `rows x cols` matrices, a layer of blocks each: from rows that are `from_pitch` elements apart, and
/// matrices that are `from_step` apart, to `cols` rows of `rows` elements.
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

/// [`transpose_rows`] of any elements of two bytes.
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
