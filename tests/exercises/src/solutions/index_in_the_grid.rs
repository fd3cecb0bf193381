//! A sum of vectors: which element is a thread's own?
//!
//! Solution: thread_idx_x counts from 0 in each block. The first element of a block is block_idx_x
//! times the threads of a block.

use super::device::*;

const BLOCK: usize = 256;

/// z = x + y, n elements.
#[kernel(block = (BLOCK), shared = 0, len(x = n, y = n, z = n))]
pub fn index_in_the_grid(n: u32, x: In<f32>, y: In<f32>, mut z: Out<f32>) {
    let i = thread::block_idx_x() as usize * BLOCK + thread::thread_idx_x() as usize;
    if i < n as usize {
        z[i] = x[i] + y[i];
    }
}
