//! A thread for each element of C: which threads have none?
//!
//! Solution: Element (0, n) has the index of element (1, 0). A row and a column need a bound each.

use super::device::*;

const BLOCK: usize = 16;

/// C (m x n) = A (m x k) B (k x n), one thread an element.
#[kernel(block = (BLOCK, BLOCK), shared = 0, len(a = m * k, b = k * n, c = m * n))]
pub fn both_bounds(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let row = thread::block_idx_y() as usize * BLOCK + thread::thread_idx_y() as usize;
    let col = thread::block_idx_x() as usize * BLOCK + thread::thread_idx_x() as usize;
    if row < m && col < n {
        let mut sum = 0.0;
        for p in 0..k {
            sum = fma(a[row * k + p], b[p * n + col], sum);
        }
        c[row * n + col] = sum;
    }
}
