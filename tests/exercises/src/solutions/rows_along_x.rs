//! Neighbouring threads of a warp differ in x, and neighbouring elements of a row are contiguous.
//! So x counts columns.

use super::device::*;

const BLOCK: usize = 16;

/// C (n x n) = A B, one thread for each element.
#[kernel(block = (BLOCK, BLOCK), shared = 0, len(a = m * k, b = k * n, c = m * n))]
pub fn rows_along_x(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let x = thread::block_idx_x() as usize * BLOCK + thread::thread_idx_x() as usize;
    let y = thread::block_idx_y() as usize * BLOCK + thread::thread_idx_y() as usize;
    let (row, col) = (y, x);
    if row < m && col < n {
        let mut sum = 0.0;
        for p in 0..k {
            sum = fma(a[row * k + p], b[p * n + col], sum);
        }
        c[row * n + col] = sum;
    }
}
