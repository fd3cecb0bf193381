//! Within a block: barriers for all and for some, warps, atomics, copies in groups.

use simt::checked::*;

use super::kernel::{Right, here, mirrored, right};

pub(super) static ALL: &[Right] = &[
    right(&added_up_in_a_tree, 256, |i| (i / 64 * 64 * 64 + 2016) as f32),
    right(&sums_so_far, 256, |i| (i / 64 * 64..=i).sum::<usize>() as f32),
    right(&votes, 256, |_| 11.0 + 1.0),
    right(&copied_two_rounds_ahead, 256, four_rounds),
    right(&copied_or_zeros, 256, |i| if i % 2 == 0 { i as f32 } else { 0.0 }),
    right(&one_after_another, 128, |_| 2.0),
    right(&many_counts, 128, |_| 2.0),
];

/// The sum over four rounds, in which a block has each part once.
fn four_rounds(i: usize) -> f32 {
    (0..4).map(|round| (mirrored(i) + round * 64) % 256).sum::<usize>() as f32
}

#[kernel(block = (64), shared = 64 * 4)]
fn added_up_in_a_tree(x: In<f32>, mut y: Out<f32>, _words: Out<u32>) {
    let mut tile = shared![f32; 64];
    let (t, i) = here();
    tile[t] = x[i];
    for half in [32, 16, 8, 4, 2, 1] {
        thread::sync_threads();
        if t < half {
            // (`+=` would count as a write only.)
            let sum = tile[t] + tile[t + half];
            tile[t] = sum;
        }
    }
    thread::sync_threads();
    y[i] = tile[0];
}

/// Sums within warps by shuffles, and between warps by shared memory.
#[kernel(block = (64), shared = 2 * 4)]
fn sums_so_far(x: In<f32>, mut y: Out<f32>, _words: Out<u32>) {
    let mut totals = shared![f32; 2];
    let (t, i) = here();
    let mut sum = x[i];
    for delta in [1, 2, 4, 8, 16] {
        let below = warp::shuffle_up(warp::ALL, sum, delta);
        if thread::lane_id() >= delta {
            sum += below;
        }
    }
    if thread::lane_id() == 31 {
        totals[t / 32] = sum;
    }
    thread::sync_threads();
    if t >= 32 {
        sum += totals[0];
    }
    y[i] = sum;
}

#[kernel(block = (64))]
fn votes(_x: In<f32>, mut y: Out<f32>, _words: Out<u32>) {
    let (t, i) = here();
    let thirds = warp::ballot(warp::ALL, t.is_multiple_of(3)).count_ones();
    let elected = warp::ballot(warp::ALL, warp::elect()).count_ones();
    let some = warp::any(warp::ALL, t == 5 || t == 50) && !warp::all(warp::ALL, t > 0 && t < 63);
    y[i] = if some { (thirds + elected) as f32 } else { 0.0 };
}

/// Three buffers, copies of sixteen bytes by some of the threads, and one barrier for each round.
#[kernel(block = (64), shared = 3 * 64 * 4)]
fn copied_two_rounds_ahead(x: In<f32>, mut y: Out<f32>, _words: Out<u32>) {
    let mut tiles = shared![f32; 3, 64];
    let (t, i) = here();
    let first = i - t;
    let mut sum = 0.0;
    // The first two rounds have nothing to add.
    for round in 0..6 {
        if round >= 2 {
            copies::wait_group::<1>();
            thread::sync_threads();
        }
        if t < 16 && round < 4 {
            let from = (first + round * 64) % 256 + t * 4;
            tiles.copy_async::<4>(round % 3 * 64 + t * 4, &x, from, true);
        }
        copies::commit_group();
        if round >= 2 {
            sum += tiles[((round - 2) % 3, 63 - t)];
        }
    }
    y[i] = sum;
}

/// Zeros where there is nothing to copy.
#[kernel(block = (64), shared = 64 * 4)]
fn copied_or_zeros(x: In<f32>, mut y: Out<f32>, _words: Out<u32>) {
    let mut tile = shared![f32; 64];
    let (t, i) = here();
    // The address of an empty copy may be any.
    let from = if t.is_multiple_of(2) { i } else { 1 << 20 };
    tile.copy_async::<1>(t, &x, from, t.is_multiple_of(2));
    copies::commit_group();
    copies::wait_group::<0>();
    y[i] = tile[t];
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
