//! Registers that warpgroups give and take.

use super::device::*;

/// One warpgroup leaves `LEFT` registers a thread, and two take `TAKEN`.
#[inline(always)]
fn doubled<const LEFT: u32, const TAKEN: u32>(x: In<f32>, mut y: Out<f32>) {
    let (block, t) = (thread::block_idx_x() as usize, thread::thread_idx_x() as usize);
    if t < 128 {
        warpgroup::give_registers::<LEFT>();
        return;
    }
    warpgroup::take_registers::<TAKEN>();
    let i = block * 256 + t - 128;
    y[i] = 2.0 * x[i];
}

/// 40 and twice 232 are 504 of 512.
#[kernel(block = (384), arch = 90, min_blocks = 1, len(x = n, y = n))]
pub fn registers_that_there_are(n: u32, x: In<f32>, y: Out<f32>) {
    doubled::<40, 232>(x, y);
}

/// 40 and twice 240 are 520 of 512: the last warpgroup waits for ever.
#[kernel(block = (384), arch = 90, min_blocks = 1, len(x = n, y = n))]
pub fn more_registers_than_there_are(n: u32, x: In<f32>, y: Out<f32>) {
    doubled::<40, 240>(x, y);
}
