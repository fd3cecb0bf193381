//! `c = a + b`: the first kernel of all.
//!
//! * **A block** adds 256 neighbouring elements.
//! * **A thread** adds one element.
//!
//! n need not be a multiple of 256. The last block may have threads without an element.

use super::device::*;

/// Threads of a block.
pub const BLOCK: usize = 256;

/// c = a + b, n elements, one thread an element.
#[kernel(block = (BLOCK), shared = 0, barriers = 0, len(a = n, b = n, c = n))]
pub fn vec_add(n: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let i = (thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x()) as usize;
    // Blocks are whole, so up to 255 threads have no element.
    if i < n as usize {
        c[i] = a[i] + b[i];
    }
}
