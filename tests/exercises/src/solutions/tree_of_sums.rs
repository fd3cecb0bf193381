//! A tree of sums in shared memory: which threads add in each round, and which elements?
//!
//! Solution: In each round the first half of the elements add the second half: `sums[t]` and
//! `sums[t + half]`.

use super::device::*;

const BLOCK: usize = 256;

/// y (m) is the sum of each row of x (m x n). A block has a row.
#[kernel(
    block = (BLOCK),
    shared = BLOCK * size_of::<f32>(),
    len(x = m * n, y = m),
)]
pub fn tree_of_sums(m: u32, n: u32, x: In<f32>, mut y: Out<f32>) {
    let (m, n) = (m as usize, n as usize);
    let mut sums = shared![f32; BLOCK];
    let (row, t) = (thread::block_idx_y() as usize, thread::thread_idx_x() as usize);

    let mut sum = 0.0;
    for i in (t..n).step_by(BLOCK) {
        sum += x[row * n + i];
    }
    sums[t] = sum;
    thread::sync_threads();
    let mut half = BLOCK / 2;
    while half > 0 {
        // The first threads add, so whole warps are idle, and neighbours add neighbours.
        if t < half {
            let other = sums[t + half];
            sums[t] += other;
        }
        thread::sync_threads();
        half /= 2;
    }
    if t == 0 && row < m {
        y[row] = sums[0];
    }
}
