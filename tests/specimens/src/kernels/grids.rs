//! Kernels that may start before the previous kernel has ended.

use super::{device::*, here};

/// Reads what the previous kernel may not have written yet.
#[kernel(block = (64), arch = 90, dependent, len(x = n, y = n))]
pub fn read_before_the_wait(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (_, i) = here(64);
    let value = x[i % n as usize];
    grid::wait_for_earlier();
    y[i % n as usize] = value;
}

/// Each element plus one, in reverse: what another block has written in the previous launch.
#[kernel(block = (64), arch = 90, dependent, len(x = n, y = n))]
pub fn one_more(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (t, i) = here(64);
    grid::let_next_begin();
    // One thread waits for all.
    if t == 0 {
        grid::wait_for_earlier();
    }
    thread::sync_threads();
    if i < n as usize {
        y[i] = x[n as usize - 1 - i] + 1.0;
    }
}
