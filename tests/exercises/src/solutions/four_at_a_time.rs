//! A thread adds four neighbours. By how many accesses?
//!
//! Solution: load128::<4>(first) gives [f32; 4], and store128(first, four) takes it.

use super::device::*;

const BLOCK: usize = 128;

/// z = x + y, n elements. n is a multiple of four, and the vectors begin at multiples of sixteen
/// bytes.
#[kernel(block = (BLOCK), shared = 0, len(x = n, y = n, z = n))]
pub fn four_at_a_time(n: u32, x: In<f32>, y: In<f32>, mut z: Out<f32>) {
    let first = (thread::block_idx_x() as usize * BLOCK + thread::thread_idx_x() as usize) * 4;
    if first < n as usize {
        let (x, y) = (x.load128::<4>(first), y.load128::<4>(first));
        z.store128(first, [x[0] + y[0], x[1] + y[1], x[2] + y[2], x[3] + y[3]]);
    }
}
