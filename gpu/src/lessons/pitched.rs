//! Pitched memory: rows begin `pitch` bytes apart, which may be more than the bytes of a row. So
//! each row begins at an address that the device loads quickly.
//!
//! The pitch counts bytes, as CUDA's does: element (row, col) is `row * pitch` bytes and `col`
//! elements after the first element. The bytes between a row's end and the next row are not used.

use super::device::*;

/// Threads of a block of [`row_sums`].
pub const ROWS: usize = 64;
/// Threads of a block of [`scale_box`], along x and y.
pub const BOX: [usize; 2] = [32, 4];

/// The sum of each row of a `height x width` array.
///
/// * **A block** sums up 64 rows.
/// * **A thread** sums up one row, from left to right. So the sum is the same on every device.
#[kernel(
    block = (ROWS),
    shared = 0,
    len(data = (height - 1) * (pitch / 4) + width, sums = height),
)]
pub fn row_sums(width: u32, height: u32, pitch: u64, data: In<f32>, mut sums: Out<f32>) {
    let row = (thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x()) as usize;
    if row < height as usize {
        let start = row * (pitch as usize / size_of::<f32>());
        let mut sum = 0.0;
        for col in 0..width as usize {
            sum += data[start + col];
        }
        sums[row] = sum;
    }
}

/// Every element of a `depth x height x width` array times `factor`, in place.
///
/// `slice_pitch` is the number of bytes from one slice to the next: the pitch times the rows of a
/// slice.
///
/// * **A block** scales a 32 x 4 patch of one slice. A warp takes neighbours in a row.
/// * **A thread** scales one element.
#[kernel(
    block = (BOX[0], BOX[1]),
    shared = 0,
    len(data = (depth - 1) * (slice_pitch / 4) + (height - 1) * (pitch / 4) + width),
)]
pub fn scale_box(
    width: u32,
    height: u32,
    depth: u32,
    pitch: u64,
    slice_pitch: u64,
    factor: f32,
    mut data: Out<f32>,
) {
    let x = thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x();
    let y = thread::block_idx_y() * thread::block_dim_y() + thread::thread_idx_y();
    let z = thread::block_idx_z();
    if x < width && y < height && z < depth {
        let slice = z as usize * (slice_pitch as usize / size_of::<f32>());
        let row = slice + y as usize * (pitch as usize / size_of::<f32>());
        let scaled = factor * data[row + x as usize];
        data[row + x as usize] = scaled;
    }
}
