//! A warp adds up a row, four elements an access.
//!
//! Solution: All rows are aligned if n % 4 == 0 and x.is_aligned128(). Elsewhere the last group of
//! a row may have fewer than four elements.

use super::device::*;

/// y (m) is the sum of each row of x (m x n). A warp has a row.
#[kernel(block = (32), shared = 0, len(x = m * n, y = m))]
pub fn unaligned_rows(m: u32, n: u32, x: In<f32>, mut y: Out<f32>) {
    let (row, n) = (thread::block_idx_y() as usize, n as usize);
    let lane = thread::thread_idx_x() as usize;
    let wide = n % 4 == 0 && x.is_aligned128();

    let mut sum = 0.0;
    for first in (lane * 4..n).step_by(32 * 4) {
        if wide {
            let four = x.load128::<4>(row * n + first);
            sum += four[0] + four[1] + four[2] + four[3];
        } else {
            for i in first..n.min(first + 4) {
                sum += x[row * n + i];
            }
        }
    }
    for distance in [16, 8, 4, 2, 1] {
        sum += warp::shuffle_xor(warp::ALL, sum, distance);
    }
    if lane == 0 && row < m as usize {
        y[row] = sum;
    }
}
