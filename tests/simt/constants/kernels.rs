//! A kernel with constants, compiled fast and checked.

use super::device::*;

/// y[i] = factor x[step i], for either 16-bit type.
#[kernel(
    block = (32),
    len(x = 4 * n, y = n),
    constants(step = 1 | 2 | 4, half = bf16 | f16)
)]
pub fn every_step(n: u32, factor: f32, x: In<Half>, mut y: Out<Half>) {
    let i = (thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x()) as usize;
    if i < n as usize {
        y[i] = Half::from_f32(factor * x[step as usize * i].to_f32());
    }
}
