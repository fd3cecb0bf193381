//! A sum of vectors: a thread for each element.
//!
//! Solution: The finding names the index and the number of elements. Compare i with n before the
//! first access.

use super::device::*;

const BLOCK: usize = 256;

/// z = x + y, n elements.
#[kernel(block = (BLOCK), shared = 0, len(x = n, y = n, z = n))]
pub fn guard_the_tail(n: u32, x: In<f32>, y: In<f32>, mut z: Out<f32>) {
    let i = thread::block_idx_x() as usize * BLOCK + thread::thread_idx_x() as usize;
    if i < n as usize {
        z[i] = x[i] + y[i];
    }
}
