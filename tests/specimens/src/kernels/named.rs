//! Barriers for some of the warps: blocks of 128 threads, whose halves are two warps each.

use super::{device::*, here};

/// A half does not wait for the other, and reads what the other has written.
#[kernel(block = (128), shared = 128 * 4, len(x = n, y = n))]
pub fn barrier_of_its_half_alone(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut line, halves) = (shared![f32; 128], named_barriers![1, 2; 64]);
    let (t, i) = here(128);
    line[t] = x[i % n as usize];
    halves.at(t / 64).sync();
    y[i % n as usize] = line[127 - t];
}

/// Both halves reach one barrier for half of the threads: it is undefined which warps wait for each
/// other.
#[kernel(block = (128), shared = 128 * 4, len(x = n, y = n))]
pub fn one_barrier_for_both_halves(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut line, barriers) = (shared![f32; 128], named_barriers![1, 1; 64]);
    let (t, i) = here(128);
    line[t] = x[i % n as usize];
    barriers.at(0).sync();
    y[i % n as usize] = line[t / 64 * 64 + 63 - t % 64];
}

/// The barrier waits for a warp that does not exist.
#[kernel(block = (128), shared = 128 * 4, len(x = n, y = n))]
pub fn one_warp_too_many(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut line, halves) = (shared![f32; 128], named_barriers![1, 2; 96]);
    let (t, i) = here(128);
    line[t] = x[i % n as usize];
    halves.at(t / 64).sync();
    y[i % n as usize] = line[t / 64 * 64 + 63 - t % 64];
}

/// Some lanes of a warp do not arrive.
#[kernel(block = (128), shared = 128 * 4, len(x = n, y = n))]
pub fn half_a_warp_comes(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut line, barriers) = (shared![f32; 128], named_barriers![1, 1; 128]);
    let (t, i) = here(128);
    line[t] = x[i % n as usize];
    if t < 112 {
        barriers.at(0).sync();
    }
    y[i % n as usize] = line[t];
}

/// The first half signals that it has written, and writes afterwards.
#[kernel(block = (128), shared = 64 * 4, len(x = n, y = n))]
pub fn arrives_before_it_writes(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut line, full) = (shared![f32; 64], named_barriers![1, 1; 128]);
    let t = thread::thread_idx_x() as usize;
    let i = (thread::block_idx_x() as usize * 64 + t % 64) % n as usize;
    if t < 64 {
        full.at(0).arrive();
        line[t] = x[i];
    } else {
        full.at(0).sync();
        y[i] = line[127 - t];
    }
}

/// The second half also arrives, instead of waiting.
#[kernel(block = (128), shared = 64 * 4, len(x = n, y = n))]
pub fn arrives_and_does_not_wait(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut line, full) = (shared![f32; 64], named_barriers![1, 1; 128]);
    let t = thread::thread_idx_x() as usize;
    let i = (thread::block_idx_x() as usize * 64 + t % 64) % n as usize;
    if t < 64 {
        line[t] = x[i];
        full.at(0).arrive();
    } else {
        full.at(0).arrive();
        y[i] = line[127 - t];
    }
}

/// A warp arrives a second time before the others have arrived.
#[kernel(block = (128), shared = 64 * 4, len(x = n, y = n))]
pub fn arrives_again(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut line, full) = (shared![f32; 64], named_barriers![1, 1; 128]);
    let t = thread::thread_idx_x() as usize;
    let i = (thread::block_idx_x() as usize * 64 + t % 64) % n as usize;
    if t < 64 {
        full.at(0).arrive();
        line[t] = x[i];
        full.at(0).arrive();
    } else {
        full.at(0).sync();
        y[i] = line[127 - t];
    }
}

/// Two barriers with one id.
#[kernel(block = (128), shared = 128 * 4, len(x = n, y = n))]
pub fn one_id_for_two(n: u32, x: In<f32>, mut y: Out<f32>) {
    let mut line = shared![f32; 128];
    let (first, second) = (named_barriers![1, 1; 64], named_barriers![1, 1; 64]);
    let (t, i) = here(128);
    line[t] = x[i % n as usize];
    if t < 64 {
        first.at(0).sync();
    } else {
        second.at(0).sync();
    }
    y[i % n as usize] = line[t / 64 * 64 + 63 - t % 64];
}

/// Each half has a barrier of its own.
#[kernel(block = (128), shared = 128 * 4, len(x = n, y = n))]
pub fn halves_by_themselves(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut line, halves) = (shared![f32; 128], named_barriers![1, 2; 64]);
    let (t, i) = here(128);
    let half = halves.at(t / 64);
    line[t] = x[i % n as usize];
    for _ in 0..thread::grid_dim_x() {
        half.sync();
        let other = line[t / 64 * 64 + 63 - t % 64];
        half.sync();
        line[t] = other + 1.0;
    }
    y[i % n as usize] = line[t];
}

/// The first half writes and the second reads, in every round. Each signals it, and waits for the
/// other.
#[kernel(block = (128), shared = 64 * 4, len(x = n, y = n))]
pub fn written_and_read_in_turns(n: u32, x: In<f32>, mut y: Out<f32>) {
    let (mut line, turns) = (shared![f32; 64], named_barriers![1, 2; 128]);
    let (full, empty) = (turns.at(0), turns.at(1));
    let t = thread::thread_idx_x() as usize;
    for first in (thread::block_idx_x() * 64..n).step_by(64 * thread::grid_dim_x() as usize) {
        let i = first as usize + t % 64;
        if t < 64 {
            line[t] = x[i];
            full.arrive();
            empty.sync();
        } else {
            full.sync();
            y[i] = line[127 - t];
            empty.arrive();
        }
    }
}
