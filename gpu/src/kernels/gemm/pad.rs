//! Matrices copied to where their rows begin at multiples of sixteen bytes, for the tensor memory accelerator: as they are
//! ([`pad_rows`]), or turned over, so that columns become rows ([`turn_rows`]).
//!
//! As they are:
//! * **A thread** writes sixteen bytes of a row at once. Where a row begins anywhere, these lie in two such *pieces* of what is
//!   read: its own, and the one of the next lane, which hands it over ([`warp::shuffle`]). So no access is of fewer bytes,
//!   and every piece is read once.
//! * **A warp** copies 2 KiB of a row: each thread has begun four reads before it waits for one, and one more brings the
//!   piece behind the last.
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

use super::{
    super::device::*,
    pieces::{Piece, shifted},
};
use crate::problem::Matrices;

/// Warps of a block.
const WARPS: usize = 8;
/// Pieces that a thread copies at a time, 512 bytes of the row from one to the next.
const EACH: usize = 4;

/// Rows that a block copies at a time.
pub const PAD_ROWS: usize = WARPS;
/// Bytes of a row that a block copies.
pub const PAD_BYTES: usize = EACH * 32 * 16;

/// Elements from one row to the next, and from one matrix to the next.
type Strides = (u64, u64);

/// What [`pad_rows`] does, of any element, of which `N` are a piece.
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
    let first = thread::block_idx_x() as usize * (EACH * 32);
    let mut row = thread::block_idx_y() as usize * PAD_ROWS + thread::thread_idx_y() as usize;
    while row < rows {
        let (at, to_row) = (from_start + row * from_pitch, to_start + row * to_pitch);
        copy_part::<_, N, EACH>((from, at), (to, to_row), cols, len, first);
        row += thread::grid_dim_y() as usize * PAD_ROWS;
    }
}

/// Copies as many pieces of a row of `cols` elements as a warp has at a time, from the `first`th on. The view ends after `len`
/// elements.
#[inline(always)]
#[track_caller]
fn copy_part<T: Element, const N: usize, const EACH: usize>(
    (from, at): (&In<T>, usize),
    (to, to_row): (&mut Out<T>, usize),
    cols: usize,
    len: usize,
    first: usize,
) {
    let lane = thread::lane_id() as usize;
    if at < N || at + cols + N > len {
        // Whole pieces may reach beyond the view. So elements come one by one.
        let end = cols.min((first + EACH * 32) * N);
        copy_elements((from, at), (to, to_row), first * N + lane, end);
        return;
    }
    // The row begins as many elements behind its first piece.
    let shift = (from.misalignment::<16>() + at) % N;
    let last = (shift + cols - 1) / N;
    // Behind the row's last piece that one is read again, so that no read depends on whether there is one.
    let read = |number: usize| to_words::<T, N>(from.load128(at - shift + number.min(last) * N));
    let own: [Piece; EACH] = core::array::from_fn(|i| read(first + 32 * i + lane));
    let behind = read(first + 32 * EACH);
    for i in 0..EACH {
        // The last lane's next piece is the first one's of the next 512 bytes.
        let further = if i + 1 < EACH { own[i + 1] } else { behind };
        let handed = if lane == 0 { further } else { own[i] };
        let next = handed.map(|word| warp::shuffle(warp::ALL, word, lane as u32 + 1));
        let col = (first + 32 * i + lane) * N;
        if col < cols {
            // Rows of the copy are whole pieces: at the end of one lies what is behind it in the operand.
            let piece = shifted(own[i], next, shift * size_of::<T>());
            to.store128::<N>(to_row + col, from_words::<T, N>(piece));
        }
    }
}

/// Copies a row of a matrix to where rows are `to_pitch` elements apart, by a warp that a product has left. It has half of the pieces
/// under way that [`pad_rows`]' have, for it has few registers.
#[inline(always)]
#[track_caller]
pub fn copy_row<T: Element, const N: usize>(
    (from, matrix): (&In<T>, &Matrices),
    (to, to_pitch): (&mut Out<T>, usize),
    row: usize,
) {
    const EACH: usize = self::EACH / 2;
    let (rows, cols, pitch) = (matrix.rows, matrix.cols as usize, matrix.pitch as usize);
    let len = (rows as usize * pitch + cols).saturating_sub(pitch);
    for first in (0..cols.div_ceil(N)).step_by(EACH * 32) {
        copy_part::<_, N, EACH>((from, row * pitch), (to, row * to_pitch), cols, len, first);
    }
}

/// Copies every 32nd element of a row, from `col` to before `end`.
#[inline(always)]
#[track_caller]
fn copy_elements<T: Element>(
    (from, from_row): (&In<T>, usize),
    (to, to_row): (&mut Out<T>, usize),
    mut col: usize,
    end: usize,
) {
    while col < end {
        // No read depends on whether there is an element, so that all are begun before one is waited for.
        let read: [T; 4] = core::array::from_fn(|i| from[from_row + (col + 32 * i).min(end - 1)]);
        for i in 0..4 {
            if col + 32 * i < end {
                to[to_row + col + 32 * i] = read[i];
            }
        }
        col += 4 * 32;
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
