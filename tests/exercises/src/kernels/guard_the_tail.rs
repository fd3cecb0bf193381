//! A sum of vectors: a thread for each element.

use super::device::*;

const BLOCK: usize = 256;

/// z = x + y, n elements.
#[kernel(block = (BLOCK), shared = 0, len(x = n, y = n, z = n))]
pub fn guard_the_tail(n: u32, x: In<f32>, y: In<f32>, mut z: Out<f32>) {
    let _ = n; // the number of elements
    let i = thread::block_idx_x() as usize * BLOCK + thread::thread_idx_x() as usize;
    z[i] = x[i] + y[i];
}
