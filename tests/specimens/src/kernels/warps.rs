//! Lanes of a warp that do not run together.

use super::{device::*, here};

/// Exchanges through shared memory within a warp, and relies on its lanes running in step.
#[kernel(block = (32), shared = 32 * 4, len(x = n, y = n))]
pub fn warp_without_sync(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 32];
    let (t, i) = here(32);
    line[t] = x[i % n as usize];
    if i < n as usize {
        y[i] = line[31 - t];
    }
}

/// `sync_warp` for half of the warp does not order what the other half wrote.
#[kernel(block = (32), shared = 32 * 4, len(x = n, y = n))]
pub fn half_a_sync(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 32];
    let (t, i) = here(32);
    line[t] = x[i % n as usize];
    warp::sync_warp(if t < 16 { 0xffff } else { 0xffff_0000 });
    if i < n as usize {
        y[i] = line[31 - t];
    }
}

/// A shuffle that names all lanes when some have ended.
#[kernel(block = (32), len(x = n, y = n))]
pub fn exited_lanes(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 32 + thread::thread_idx_x()) as usize;
    if i >= n as usize {
        return;
    }
    y[i] = warp::shuffle_xor(warp::ALL, x[i], 1);
}

/// A vote of the lower half under a mask that names all lanes.
#[kernel(block = (32), len(x = n, y = n))]
pub fn wrong_mask(n: u32, x: In<f32>, mut y: Out<f32>) {
    let t = thread::thread_idx_x();
    let i = (thread::block_idx_x() * 32 + t) as usize;
    let mut votes = 0;
    if t < 16 {
        votes = warp::ballot(warp::ALL, x[i % n as usize] > 0.0);
    }
    thread::sync_threads();
    if i < n as usize {
        y[i] = votes as f32;
    }
}

/// Reads a lane that takes no part.
#[kernel(block = (32), len(x = n, y = n))]
pub fn lane_outside_the_mask(n: u32, x: In<f32>, mut y: Out<f32>) {
    let t = thread::thread_idx_x();
    let i = (thread::block_idx_x() * 32 + t) as usize;
    let mask = if t < 16 { 0xffff } else { 0xffff_0000 };
    let value = warp::shuffle(mask, x[i % n as usize], 31 - t);
    if i < n as usize {
        y[i] = value;
    }
}

/// One warp waits for its own lanes and then overwrites what the other warp still reads.
#[kernel(block = (64), shared = 4, len(x = n, y = n))]
pub fn written_after_half_of_the_reads(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut value = shared![f32; 1];
    let (t, i) = here(64);
    if t == 0 {
        value[0] = 1.0;
    }
    thread::sync_threads();
    let read = value[0];
    if t < 32 {
        warp::sync_warp(warp::ALL);
    }
    if t == 0 {
        value[0] = 2.0;
    }
    if i < n as usize {
        y[i] = read * x[i];
    }
}
