//! Barriers that not all threads of the block reach.

use super::{device::*, here};

/// Threads without an element return before the barrier.
#[kernel(block = (64), shared = 64 * 4, len(x = n, y = n))]
pub fn skipped_barrier(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 64];
    let (t, i) = here(64);
    if i >= n as usize {
        return;
    }
    line[t] = x[i];
    thread::sync_threads();
    y[i] = line[t];
}

/// The barrier is in both branches, and the threads of a block take both.
#[kernel(block = (64), shared = 64 * 4, barriers = 2, len(x = n, y = n))]
pub fn two_barriers(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 64];
    let (t, i) = here(64);
    if t < 40 {
        line[t] = x[i % n as usize];
        thread::sync_threads();
    } else {
        line[t] = -x[i % n as usize];
        thread::sync_threads();
    }
    if i < n as usize {
        y[i] = line[63 - t];
    }
}
