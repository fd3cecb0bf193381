//! The last rounds of a tree of sums are of one warp. Do its lanes still need to wait?
//!
//! Solution: Exchange registers by warp::shuffle_xor(warp::ALL, sum, distance), or use
//! warp::sync_warp(warp::ALL) between a round's reads and writes and after it.

use super::device::*;

const BLOCK: usize = 256;

/// y (m) is the sum of each row of x (m x n). A block has a row.
#[kernel(
    block = (BLOCK),
    shared = BLOCK * size_of::<f32>(),
    len(x = m * n, y = m),
)]
pub fn sums_of_a_warp(m: u32, n: u32, x: In<f32>, mut y: Out<f32>) {
    let (m, n) = (m as usize, n as usize);
    let mut sums = shared![f32; BLOCK];
    let (row, t) = (thread::block_idx_y() as usize, thread::thread_idx_x() as usize);

    let mut sum = 0.0;
    for i in (t..n).step_by(BLOCK) {
        sum += x[row * n + i];
    }
    sums[t] = sum;
    thread::sync_threads();
    for half in [128, 64, 32] {
        if t < half {
            let other = sums[t + half];
            sums[t] += other;
        }
        thread::sync_threads();
    }
    if t < 32 {
        let mut sum = sums[t];
        for distance in [16, 8, 4, 2, 1] {
            sum += warp::shuffle_xor(warp::ALL, sum, distance);
        }
        sums[t] = sum;
    }
    if t == 0 && row < m {
        y[row] = sums[0];
    }
}
