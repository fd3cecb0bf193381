//! Image blur: every pixel becomes the mean of the (2 radius + 1) x (2 radius + 1) box around it.
//!
//! An image is a row-major matrix of bytes. A row has `width` pixels of `channels` bytes each.
//! Channels do not mix, so the left neighbour of a byte is `channels` bytes before it. One kernel
//! serves gray, gray with alpha, RGB and RGBA.
//!
//! * **A block** computes 32 rows of 32 bytes.
//! * **A thread** computes one byte. Neighbouring lanes of a warp take neighbouring bytes. So they
//!   load neighbouring bytes, whatever the number of channels.
//!
//! # The edge
//! At the edge of the image a part of the box is outside. The mean is that of the pixels inside:
//! their sum over their number. It is computed in integers and rounded to the nearest whole number,
//! half up. So every device and the reference give the same bytes.
//!
//! # Shared memory
//! Every byte is in the boxes of (2 radius + 1)² threads. In [`blur`] each of these threads reads
//! it from global memory. In [`blur_shared`] a block first copies all bytes of its boxes to shared
//! memory: its tile, and a *halo* of `radius` rows and `radius` pixels around the tile.

use super::device::*;

/// Rows and columns of bytes that a block computes.
pub const TILE: u32 = 32;

/// The largest radius of [`blur`]. The sum of (2 radius + 1)² bytes, plus half their number for
/// rounding, fits in 32 bits.
pub const MAX_RADIUS: u32 = 2047;

const _: () = {
    let count = (2 * MAX_RADIUS as u64 + 1) * (2 * MAX_RADIUS as u64 + 1);
    assert!(count * 255 + count / 2 <= u32::MAX as u64, "a box of white pixels overflows its sum");
};

/// The largest radius of [`blur_shared`]. A tile with the halo of four channels takes 27 KiB. So an
/// SM's threads limit its number of blocks, and its shared memory does not.
pub const MAX_RADIUS_SHARED: u32 = 32;

/// The most bytes that a row has: indices up to a tile and a halo beyond it stay below 2^32.
pub const MAX_COLS: u32 = i32::MAX as u32;

/// The most channels: RGBA.
pub const MAX_CHANNELS: u32 = 4;

/// Rows and columns of [`blur_shared`]'s tile with the largest halo.
const HALO_ROWS: usize = (TILE + 2 * MAX_RADIUS_SHARED) as usize;
const HALO_COLS: usize = (TILE + 2 * MAX_RADIUS_SHARED * MAX_CHANNELS) as usize;

const _: () = assert!(HALO_ROWS * HALO_COLS <= 48 << 10, "a static array has at most 48 KiB");

/// A mean, rounded to the nearest whole number, half up.
#[inline(always)]
fn mean(sum: u32, count: u32) -> u8 {
    ((sum + count / 2) / count) as u8
}

/// The indices within `radius` steps of `step` around `index`, at least 0 and below `end`: the
/// first index, and their number.
#[inline(always)]
fn around(index: u32, radius: u32, step: u32, end: u32) -> (u32, u32) {
    // The steps down and up that stay in range.
    let below = radius.min(index / step);
    let above = radius.min((end - 1 - index) / step);
    (index - below * step, below + 1 + above)
}

/// The index of a byte of the image. It has 64 bits, since an image may have more than 2^32 bytes.
#[inline(always)]
fn at(row: u32, col: u32, cols: u32) -> usize {
    row as usize * cols as usize + col as usize
}

/// Blurs each channel of an image, everything from global memory.
#[kernel(
    block = (TILE, TILE),
    shared = 0,
    barriers = 0,
    len(input = width * height * channels, output = width * height * channels),
)]
pub fn blur(
    width: u32,
    height: u32,
    channels: u32,
    radius: u32,
    input: In<u8>,
    mut output: Out<u8>,
) {
    let (rows, cols) = (height, width * channels);
    let row = thread::block_idx_y() * TILE + thread::thread_idx_y();
    let col = thread::block_idx_x() * TILE + thread::thread_idx_x();

    if row < rows && col < cols {
        let (first_row, box_rows) = around(row, radius, 1, rows);
        let (first_col, box_cols) = around(col, radius, channels, cols);
        let mut sum = 0;
        for i in 0..box_rows {
            for j in 0..box_cols {
                sum += input[at(first_row + i, first_col + j * channels, cols)] as u32;
            }
        }
        output[at(row, col, cols)] = mean(sum, box_rows * box_cols);
    }
}

/// Blurs each channel of an image, a block's tile and its halo in shared memory; `radius` is at
/// most [`MAX_RADIUS_SHARED`] and `channels` at most [`MAX_CHANNELS`].
#[kernel(
    block = (TILE, TILE),
    shared = HALO_ROWS * HALO_COLS,
    barriers = 1,
    len(input = width * height * channels, output = width * height * channels),
)]
pub fn blur_shared(
    width: u32,
    height: u32,
    channels: u32,
    radius: u32,
    input: In<u8>,
    mut output: Out<u8>,
) {
    let mut tile = shared![u8; HALO_ROWS, HALO_COLS];
    let (rows, cols) = (height, width * channels);
    let (tx, ty) = (thread::thread_idx_x(), thread::thread_idx_y());
    let (tile_row, tile_col) = (thread::block_idx_y() * TILE, thread::block_idx_x() * TILE);

    // The bytes of the boxes of the tile that are inside the image.
    let halo = radius * channels;
    let (first_row, first_col) = (tile_row.saturating_sub(radius), tile_col.saturating_sub(halo));
    let (end_row, end_col) = (rows.min(tile_row + TILE + radius), cols.min(tile_col + TILE + halo));

    // They are more than a block's threads: each thread copies every TILE-th byte of every TILE-th
    // row.
    for row in (first_row + ty..end_row).step_by(TILE as usize) {
        for col in (first_col + tx..end_col).step_by(TILE as usize) {
            let place = ((row - first_row) as usize, (col - first_col) as usize);
            tile[place] = input[at(row, col, cols)];
        }
    }
    // No thread reads the copy before it is complete.
    thread::sync_threads();

    let (row, col) = (tile_row + ty, tile_col + tx);
    if row < rows && col < cols {
        let (box_row, box_rows) = around(row, radius, 1, rows);
        let (box_col, box_cols) = around(col, radius, channels, cols);
        let mut sum = 0;
        for i in box_row - first_row..box_row - first_row + box_rows {
            for j in 0..box_cols {
                sum += tile[(i as usize, (box_col - first_col + j * channels) as usize)] as u32;
            }
        }
        output[at(row, col, cols)] = mean(sum, box_rows * box_cols);
    }
}
