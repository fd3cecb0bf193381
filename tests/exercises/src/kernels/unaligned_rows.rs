//! A warp adds up a row, four elements an access.

use super::device::*;

/// y (m) is the sum of each row of x (m x n). A warp has a row.
#[kernel(block = (32), shared = 0, len(x = m * n, y = m))]
pub fn unaligned_rows(m: u32, n: u32, x: In<f32>, mut y: Out<f32>) {
    let (row, n) = (thread::block_idx_y() as usize, n as usize);
    let lane = thread::thread_idx_x() as usize;

    let mut sum = 0.0;
    for first in (lane * 4..n).step_by(32 * 4) {
        let four = x.load128::<4>(row * n + first);
        sum += four[0] + four[1] + four[2] + four[3];
    }
    for distance in [16, 8, 4, 2, 1] {
        sum += warp::shuffle_xor(warp::ALL, sum, distance);
    }
    if lane == 0 && row < m as usize {
        y[row] = sum;
    }
}
