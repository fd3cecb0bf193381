//! Matrices copied to where their rows begin at multiples of sixteen bytes, for the tensor memory accelerator: as they are
//! ([`pad_rows`]), or turned over, so that columns become rows ([`turn_rows`]).
//!
//! As they are:
//! * **A thread** writes sixteen bytes of a row at once. Where a row begins anywhere, these lie in two such pieces of what it
//!   reads, and it takes them out of both ([`shifted`]); so no access is of fewer bytes.
//! * **A warp** copies 512 neighbouring bytes of two rows: each thread has begun four reads before it waits for one, which
//!   makes 32 KiB on their way to a multiprocessor. The memory's bandwidth takes 15 of them (2 TB/s read for a microsecond).
//! * **A block** of eight warps does so with sixteen rows, and then with those a grid further down.
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

use super::super::device::*;

/// Warps of a block.
const WARPS: usize = 8;
/// Rows that a warp copies at a time: neighbours among a block's are `WARPS` apart.
const EACH: usize = 2;

/// Rows that a block copies at a time.
pub const PAD_ROWS: usize = WARPS * EACH;
/// Bytes of a row that a block copies.
pub const PAD_BYTES: usize = 32 * 16;

/// Elements from one row to the next, and from one matrix to the next.
type Strides = (u64, u64);

/// The `N` elements from index `at` on, sixteen bytes whose address is a multiple of sixteen. Where they reach beyond the
/// view, whose elements are `len`, they are read one by one, and what is outside may be any.
#[inline(always)]
#[track_caller]
pub fn piece<T: Element, const N: usize>(from: &In<T>, at: usize, len: usize) -> [T; N] {
    // What begins before the first element has a huge index.
    if at <= len.wrapping_sub(N) && len >= N {
        return from.load128(at);
    }
    core::array::from_fn(|i| from[at.wrapping_add(i).min(len - 1)])
}

/// `N` elements of two pieces, one behind the other, from the one of that number on: below `N`, and the same for a warp.
///
/// A register has no number that is computed. So all of them move up by half a piece or not, then by a quarter or not, and
/// so on: a choice each.
#[inline(always)]
pub fn shifted<T: Element, const N: usize>(first: [T; N], second: [T; N], by: usize) -> [T; N] {
    let mut both = [first, second];
    let mut move_up = |bit: usize| {
        if bit < N && by & bit != 0 {
            for i in 0..2 * N - bit {
                both[i / N][i % N] = both[(i + bit) / N][(i + bit) % N];
            }
        }
    };
    move_up(4);
    move_up(2);
    move_up(1);
    both[0]
}

/// What [`pad_rows`] does, of any element, of which `N` are sixteen bytes.
#[inline(always)]
#[track_caller]
fn pad<T: Element, const N: usize>(
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
    let col = (thread::block_idx_x() as usize * 32 + thread::thread_idx_x() as usize) * N;
    if col >= cols {
        return;
    }
    let mut first_row = thread::block_idx_y() as usize * PAD_ROWS + thread::thread_idx_y() as usize;
    while first_row < rows {
        let pieces: [_; EACH] = core::array::from_fn(|i| {
            // A row below the last is read as the last one, so that no read depends on whether there is one.
            let row = (first_row + i * WARPS).min(rows - 1);
            let at = from_start + row * from_pitch + col;
            let shift = (from.misalignment128() + at) % N;
            let at = at.wrapping_sub(shift);
            // A row that begins at a multiple of sixteen bytes is in the first piece alone.
            let next = if shift == 0 { at } else { at.wrapping_add(N) };
            (piece::<T, N>(from, at, len), piece::<T, N>(from, next, len), shift)
        });
        for i in 0..EACH {
            let row = first_row + i * WARPS;
            if row < rows {
                // Rows of the copy are whole pieces: at the end of one lies what is behind it in the operand.
                let (first, second, shift) = pieces[i];
                to.store128(to_start + row * to_pitch + col, shifted(first, second, shift));
            }
        }
        first_row += thread::grid_dim_y() as usize * PAD_ROWS;
    }
}

/// `rows x cols` matrices, a layer of blocks each, from rows that are `from_pitch` elements apart, and matrices that are
/// `from_step` apart, to others. `from` has so many elements as that takes and begins anywhere; `to` and its rows and
/// matrices begin at multiples of sixteen bytes, and what lies behind a row there, up to the next multiple, is written too.
#[kernel(block = (32, WARPS), arch = 90, dependent)]
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
    pad::<_, 4>((rows, cols), (from_pitch, from_step), (to_pitch, to_step), &from, &mut to);
}

/// [`pad_rows`] of any elements of two bytes.
#[kernel(block = (32, WARPS), arch = 90, dependent)]
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
    pad::<_, 8>((rows, cols), (from_pitch, from_step), (to_pitch, to_step), &from, &mut to);
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
    // As in `pad`.
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
#[kernel(block = (TILE, WARPS), shared = TILE * (TILE + 1) * size_of::<u16>(), barriers = 2, arch = 90, dependent)]
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
