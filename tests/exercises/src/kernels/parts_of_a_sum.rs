//! Four blocks add to one element of C.

use super::device::*;

const BLOCK: usize = 16;

/// C (m x n) += A (m x k) B (k x n). The blocks along z have a part of k each.
#[kernel(block = (BLOCK, BLOCK), shared = 0, len(a = m * k, b = k * n, c = m * n))]
pub fn parts_of_a_sum(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let row = thread::block_idx_y() as usize * BLOCK + thread::thread_idx_y() as usize;
    let col = thread::block_idx_x() as usize * BLOCK + thread::thread_idx_x() as usize;
    let (part, parts) = (thread::block_idx_z() as usize, thread::grid_dim_z() as usize);
    let length = k.div_ceil(parts);
    if row < m && col < n {
        let mut sum = 0.0;
        for p in part * length..k.min((part + 1) * length) {
            sum = fma(a[row * k + p], b[p * n + col], sum);
        }
        c[row * n + col] += sum;
    }
}
