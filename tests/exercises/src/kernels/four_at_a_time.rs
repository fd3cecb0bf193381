//! A thread adds four neighbours. By how many accesses?

use super::device::*;

const BLOCK: usize = 128;

/// z = x + y, n elements. n is a multiple of four, and the vectors begin at multiples of sixteen
/// bytes.
#[kernel(block = (BLOCK), shared = 0, len(x = n, y = n, z = n))]
pub fn four_at_a_time(n: u32, x: In<f32>, y: In<f32>, mut z: Out<f32>) {
    let first = (thread::block_idx_x() as usize * BLOCK + thread::thread_idx_x() as usize) * 4;
    if first < n as usize {
        for i in first..first + 4 {
            z[i] = x[i] + y[i];
        }
    }
}
