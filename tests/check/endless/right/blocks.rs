//! Within a block: a barrier, and atomics that lanes poll.

use simt::checked::*;

use super::kernel::{Right, here, mirrored, right};

pub(super) static ALL: &[Right] = &[
    right(&begins_before_the_one_before_ends, 256, |i| mirrored(i) as f32),
    right(&one_after_another, 128, |_| 2.0),
    right(&many_counts, 128, |_| 2.0),
];

/// It waits for the previous kernel, although there is none, and lets the next one start.
#[kernel(block = (64), shared = 64 * 4, dependent)]
fn begins_before_the_one_before_ends(x: In<f32>, mut y: Out<f32>, _words: Out<u32>) {
    let mut tile = shared![f32; 64];
    let (t, i) = here();
    grid::wait_for_earlier();
    tile[t] = x[i];
    grid::let_next_begin();
    thread::sync_threads();
    y[i] = tile[63 - t];
}

/// Lanes take turns by an atomic that all of them poll.
#[kernel(block = (32), shared = 4)]
fn one_after_another(_x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let lane = thread::lane_id();
    let mut turn = shared![u32; 1];
    if lane == 0 {
        turn[0] = 0;
    }
    warp::sync_warp(warp::ALL);
    while turn.atomic_add(0, 0) != lane {}
    y[(thread::block_idx_x() * 32 + lane) as usize] = 2.0;
    words.atomic_add(0, 1);
    turn.atomic_add(0, 1);
}

/// More atomic operations than a thread makes before it lets other threads run.
#[kernel(block = (32))]
fn many_counts(_x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let (lane, block) = (thread::lane_id(), thread::block_idx_x());
    for i in 0..1000 {
        words.atomic_add((2 + (i + lane) % 6) as usize, 1);
    }
    y[(block * 32 + lane) as usize] = 2.0;
}
