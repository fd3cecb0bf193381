//! Copies of matrices with 16-byte aligned rows.
//!
//! * **A block** of eight warps copies a part of eight rows, and goes on with the rows a grid
//!   further down.
//! * **A warp** copies 2 KiB of a row ([`copy_rows`](super::collective::copy_rows)).
//! * **A thread** copies four pieces of sixteen bytes. An SM has six blocks: without that limit the
//!   ends of rows, which are read element by element, would take half as many registers again.
//!
//! Every element is read once and written once. So the time is at least `8 rows cols` bytes over
//! the memory bandwidth, with 16-bit elements half of that, with 8 bits a quarter, with f64 twice.
//!
//! [`pack_rows_u8`] is for every GPU, the others are for Hopper.
//!
//! The copy is launched before the product. Both are `dependent`: the product's blocks start while
//! the copy runs.

use super::{collective::copy_rows::copy_stretch, device::*};

/// Warps of a block.
const WARPS: usize = 8;
/// Pieces that a thread copies at a time. They are 512 bytes of the row apart.
const EACH: usize = 4;

/// Rows that a block copies at a time.
pub const PACK_ROWS: usize = WARPS;
/// Bytes of a row that a warp copies by one instruction. A shorter row leaves lanes idle.
pub const WARP_BYTES: usize = 32 * 16;
/// Bytes of a row that a block copies.
pub const PACK_BYTES: usize = EACH * WARP_BYTES;

/// Elements from one row to the next, and from one matrix to the next.
type Strides = (u64, u64);

/// [`pack_rows`] for elements of any type. `N` of them are a piece.
#[inline(always)]
#[track_caller]
fn pack<T: Element, const N: usize>(
    (rows, cols): (u32, u32),
    (from_pitch, from_step): Strides,
    (to_pitch, to_step): Strides,
    from: &In<T>,
    to: &mut Out<T>,
) {
    // Nothing before this point depends on earlier launches.
    grid::let_next_begin();
    grid::wait_for_earlier();
    let (rows, cols) = (rows as usize, cols as usize);
    let (from_pitch, to_pitch) = (from_pitch as usize, to_pitch as usize);
    let matrix = thread::block_idx_z() as usize;
    let (from_start, to_start) = (matrix * from_step as usize, matrix * to_step as usize);
    let matrix = (from_start, from_start + (rows - 1) * from_pitch + cols);
    let gaps = from_pitch > cols;
    let first = thread::block_idx_x() as usize * (EACH * 32);
    let mut row = thread::block_idx_y() as usize * PACK_ROWS + thread::thread_idx_y() as usize;
    while row < rows {
        let (at, to_row) = (from_start + row * from_pitch, to_start + row * to_pitch);
        copy_stretch::<_, N, EACH>((from, at), (to, to_row), (cols, gaps), matrix, first);
        row += thread::grid_dim_y() as usize * PACK_ROWS;
    }
}

/// Packs `rows x cols` matrices; blocks along z take one each. Rows of the source are `from_pitch`
/// elements apart, matrices `from_step`; those of the copy `to_pitch` and `to_step`. `from` may be
/// unaligned, and has exactly the elements that these sizes need. What is between rows and between
/// matrices is not read. `to`, its rows and its matrices are 16-byte aligned. What follows a row of
/// the copy, up to the next multiple of sixteen bytes, is overwritten.
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
#[kernel(block = (32, WARPS), min_blocks = 6, arch = 90, dependent)]
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

/// [`pack_rows`] for elements of 16 bits.
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
#[kernel(block = (32, WARPS), min_blocks = 6, arch = 90, dependent)]
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

/// [`pack_rows`] for elements of 8 bits.
#[kernel(block = (32, WARPS), min_blocks = 5, dependent)]
pub fn pack_rows_u8(
    rows: u32,
    cols: u32,
    from_pitch: u64,
    from_step: u64,
    to_pitch: u64,
    to_step: u64,
    from: In<u8>,
    mut to: Out<u8>,
) {
    pack::<_, 16>((rows, cols), (from_pitch, from_step), (to_pitch, to_step), &from, &mut to);
}

/// [`pack_rows`] for f64.
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
#[kernel(block = (32, WARPS), min_blocks = 6, arch = 90, dependent)]
pub fn pack_rows_f64(
    rows: u32,
    cols: u32,
    from_pitch: u64,
    from_step: u64,
    to_pitch: u64,
    to_step: u64,
    from: In<f64>,
    mut to: Out<f64>,
) {
    pack::<_, 2>((rows, cols), (from_pitch, from_step), (to_pitch, to_step), &from, &mut to);
}
