//! A block's tile, and what its first and last thread need besides.
//!
//! Solution: Two more elements a block: the one before the first, and the one after the last.
//! Outside x both are 0.

use super::device::*;

const BLOCK: usize = 128;

/// `y[i] = x[i - 1] + x[i] + x[i + 1]` of n elements; outside x there are zeros. `m` is 1.
#[kernel(
    block = (BLOCK),
    shared = (BLOCK + 2) * size_of::<f32>(),
    len(x = n, y = n),
)]
pub fn halo(m: u32, n: u32, x: In<f32>, mut y: Out<f32>) {
    let n = (m * n) as usize;
    // Element i of x is at place i + 1 - first.
    let mut tile = shared![f32; BLOCK + 2];
    let t = thread::thread_idx_x() as usize;
    let first = thread::block_idx_x() as usize * BLOCK;
    let i = first + t;

    tile[t + 1] = if i < n { x[i] } else { 0.0 };
    if t == 0 {
        tile[0] = if first > 0 { x[first - 1] } else { 0.0 };
    }
    if t == BLOCK - 1 {
        tile[BLOCK + 1] = if i + 1 < n { x[i + 1] } else { 0.0 };
    }
    thread::sync_threads();
    if i < n {
        y[i] = tile[t] + tile[t + 1] + tile[t + 2];
    }
}
