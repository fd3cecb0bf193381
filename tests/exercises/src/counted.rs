//! Small kernels for the questions, to be counted.

use super::device::*;

/// Stores to y (n x n) with x along its rows: each thread of a 16 x 16 block stores one element.
#[kernel(block = (16, 16), len(y = n * n))]
pub fn stores_a_column(n: u32, mut y: Out<f32>) {
    let row = thread::block_idx_x() * 16 + thread::thread_idx_x();
    let col = thread::block_idx_y() * 16 + thread::thread_idx_y();
    y[(row * n + col) as usize] = 1.0;
}

/// Reads the tile of a 16 x 16 block with x along its rows, and sums each row.
#[kernel(block = (16, 16), shared = 16 * 16 * size_of::<f32>(), barriers = 1, len(y = n * n))]
pub fn reads_a_column(n: u32, mut y: Out<f32>) {
    let mut tile = shared![f32; 16, 16];
    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    tile[(ty, tx)] = 1.0;
    thread::sync_threads();
    let mut sum = 0.0;
    for i in 0..16 {
        sum += tile[(tx, i)];
    }
    y[tx * n as usize + ty] = sum;
}
