//! Two threads at one element, and nothing between them.

use super::{device::*, here};

/// Reads what the neighbour writes, without a barrier.
#[kernel(block = (64), shared = 64 * 4, len(x = n, y = n))]
pub fn read_too_early(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 64];
    let (t, i) = here(64);
    if i < n as usize {
        line[t] = x[i];
        y[i] = line[63 - t];
    }
}

/// The next round overwrites what the neighbour still reads: the second barrier of a loop is
/// missing.
#[kernel(block = (64), shared = 64 * 4, len(x = n, y = n))]
pub fn written_too_early(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 64];
    let (t, i) = here(64);
    let mut sum = 0.0;
    for round in 0..n as usize / 25 {
        line[t] = x[(i + round) % n as usize];
        thread::sync_threads();
        sum += line[63 - t];
    }
    if i < n as usize {
        y[i] = sum;
    }
}

/// Two threads write each element of a shared array.
#[kernel(block = (64), shared = 32 * 4, len(x = n, y = n))]
pub fn two_writers(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 32];
    let (t, i) = here(64);
    line[t / 2] = x[i % n as usize];
    thread::sync_threads();
    if i < n as usize {
        y[i] = line[t / 2];
    }
}

/// All threads write one value: what remains is right, and nothing orders the writes.
#[kernel(block = (64), shared = 4, len(x = n, y = n))]
pub fn all_write_one_value(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut found = shared![f32; 1];
    let i = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    found[0] = 1.0;
    thread::sync_threads();
    if i < n as usize {
        y[i] = x[i] + found[0];
    }
}

/// One thread writes it for all.
#[kernel(block = (64), shared = 4, len(x = n, y = n))]
pub fn one_writes_for_all(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut found = shared![f32; 1];
    let i = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    if thread::thread_idx_x() == 0 {
        found[0] = 1.0;
    }
    thread::sync_threads();
    if i < n as usize {
        y[i] = x[i] + found[0];
    }
}

/// A race on bytes: each thread's neighbour has another byte of the same word, and the thread reads
/// that one.
#[kernel(block = (64), shared = 64, len(x = n, y = n))]
pub fn bytes_read_too_early(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![u8; 64];
    let (t, i) = here(64);
    if i < n as usize {
        line[t] = x[i] as u8;
        y[i] = line[t ^ 1] as f32;
    }
}

/// Two blocks write each element.
#[kernel(block = (64), len(x = n, y = n))]
pub fn two_blocks_write(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = thread::block_idx_x() as usize / 2 * 64 + thread::thread_idx_x() as usize;
    if i < n as usize {
        y[i] = x[i] + thread::block_idx_x() as f32;
    }
}

/// Reads what another block writes: a barrier waits for one block only.
#[kernel(block = (64), len(x = n, y = n))]
pub fn reads_another_block(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (_, i) = here(64);
    y[i] = x[i];
    thread::sync_threads();
    let before = y[(i + 64) % n as usize];
    thread::sync_threads();
    y[i] = x[i] + before;
}

/// Reads in global memory what another thread of the block writes.
#[kernel(block = (64), len(x = n, y = n))]
pub fn reads_its_neighbour(n: u32, x: In<f32>, mut y: Out<f32>) {
    let t = thread::thread_idx_x() as usize;
    let base = thread::block_idx_x() as usize * 64;
    if base + t < n as usize {
        y[base + t] = x[base + t];
        let other = y[base + (t + 1) % 64];
        y[base + t] += other;
    }
}

/// The counters are set to zero and incremented without a barrier in between.
#[kernel(block = (64), shared = 8 * 4, len(x = n, y = n))]
pub fn counted_too_early(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut counts = shared![u32; 8];
    let (t, i) = here(64);
    if t < 8 {
        counts[t] = 0;
    }
    counts.atomic_add(x[i % n as usize] as usize % 8, 1);
    thread::sync_threads();
    if i < n as usize {
        y[i] = counts[t % 8] as f32;
    }
}

/// The sum is read before all threads have added to it.
#[kernel(block = (64), shared = 4, len(x = n, y = n))]
pub fn sum_read_too_early(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut sum = shared![f32; 1];
    let (t, i) = here(64);
    if t == 0 {
        sum[0] = 0.0;
    }
    thread::sync_threads();
    sum.atomic_add(0, x[i % n as usize]);
    if i < n as usize {
        y[i] = sum[0];
    }
}
