//! Flags and polled words: blocks of the grid that wait for each other, or poll. After its results
//! a kernel has 512 elements of y for intermediate values.

use simt::checked::*;

use super::kernel::{Right, here, right};

pub(super) static ALL: &[Right] = &[
    right(&all_meet, 256, next_doubled),
    right(&each_has_a_word, 256, next_doubled),
    right(&polls_by_votes_and_then_waits, 256, next_doubled),
    right(&warps_of_a_block, 256, |i| match i % 64 {
        0..32 => i as f32,
        t => (i / 64 * 64 + 63 - t) as f32,
    }),
    right(&clusters_meet, 256, |i| (2 * ((i + 128) % 256)) as f32),
    right(&polled_out_of_step, 128, |_| 2.0),
    right(&blocks_take_turns, 128, |_| 2.0),
    right(&polls_for_long, 128, |_| 2.0),
    right(&votes_until_the_last_has_worked, 128, |_| 2.0),
    right(&votes_from_block_to_block, 128, |_| 2.0),
];

/// Blocks of the grid, and the place of intermediate values in y.
const BLOCKS: u32 = 4;
const BEHIND: usize = 512;

fn next_doubled(i: usize) -> f32 {
    (2 * ((i + 64) % 256)) as f32
}

/// The number of the block.
#[inline(always)]
fn block() -> usize {
    thread::block_idx_x() as usize
}

/// A barrier of the grid: each block signals that it has written, and waits for all.
#[kernel(block = (64))]
fn all_meet(x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let (t, i) = here();
    y[BEHIND + i] = 2.0 * x[i];
    thread::sync_threads();
    if t == 0 {
        words.release_add(0, 1);
    }
    words.wait_for_at_least(0, BLOCKS);
    y[i] = y[BEHIND + (i + 64) % 256];
}

#[kernel(block = (64))]
fn each_has_a_word(x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let (t, i) = here();
    y[BEHIND + i] = 2.0 * x[i];
    thread::sync_threads();
    if t == 0 {
        words.release_add(block(), 1);
    }
    words.wait_for_at_least((block() + 1) % 4, 1);
    y[i] = y[BEHIND + (i + 64) % 256];
}

/// One lane of each warp asks, and broadcasts the answer.
#[kernel(block = (64))]
fn polls_by_votes_and_then_waits(x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let (t, i) = here();
    y[BEHIND + i] = 2.0 * x[i];
    thread::sync_threads();
    if t == 0 {
        words.release_add(0, 1);
    }
    loop {
        let come = thread::lane_id() == 0 && words.atomic_add(0, 0) >= BLOCKS;
        if warp::any(warp::ALL, come) {
            break;
        }
    }
    words.wait_for_at_least(0, BLOCKS);
    y[i] = y[BEHIND + (i + 64) % 256];
}

/// A word signals to a warp that another warp of its block has written.
#[kernel(block = (64))]
fn warps_of_a_block(x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let (t, i) = here();
    if t < 32 {
        y[i] = x[i];
        warp::sync_warp(warp::ALL);
        if t == 0 {
            words.release_add(block(), 1);
        }
    } else {
        words.wait_for_at_least(block(), 1);
        y[i] = y[block() * 64 + 63 - t];
    }
}

/// One thread of each cluster signals for both of its blocks.
#[kernel(block = (64), cluster = (2))]
fn clusters_meet(x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let (t, i) = here();
    y[BEHIND + i] = 2.0 * x[i];
    cluster::sync();
    if t == 0 && cluster::block_rank() == 0 {
        words.release_add(0, 1);
    }
    words.wait_for_at_least(0, BLOCKS / 2);
    y[i] = y[BEHIND + (i + 128) % 256];
}

/// Both halves of a warp poll by shuffles, and never ask at the same time.
#[kernel(block = (32))]
fn polled_out_of_step(_x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let lane = thread::lane_id();
    let (mask, first) = if lane < 16 { (0xffff, 0) } else { (0xffff_0000, 16) };
    if lane == 0 {
        words.atomic_add(0, 1);
    }
    if first == 16 {
        for _ in 0..30 {
            words.atomic_add(1, 1);
        }
    }
    loop {
        let come = if lane == first { words.atomic_add(0, 0) } else { 0 };
        if warp::shuffle(mask, come, first) == BLOCKS {
            break;
        }
    }
    y[block() * 32 + lane as usize] = 2.0;
}

/// Blocks wait for the one before by polling, from the last to the first.
#[kernel(block = (32))]
fn blocks_take_turns(_x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let (lane, block) = (thread::lane_id(), thread::block_idx_x());
    if lane == 0 {
        while words.atomic_add(1, 0) != thread::grid_dim_x() - 1 - block {}
    }
    warp::sync_warp(warp::ALL);
    y[(block * 32 + lane) as usize] = 2.0;
    warp::sync_warp(warp::ALL);
    if lane == 0 {
        words.atomic_add(1, 1);
    }
}

/// The first block polls until the others have ended. They make many more accesses than are allowed
/// between two waits.
#[kernel(block = (32))]
fn polls_for_long(_x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let (lane, block) = (thread::lane_id(), thread::block_idx_x());
    if block > 0 {
        for _ in 0..30 {
            for _ in 0..500 {
                y[(block * 32 + lane) as usize] = 1.0;
            }
            warp::sync_warp(warp::ALL);
        }
        if lane == 0 {
            words.atomic_add(1, 1);
        }
    } else if lane == 0 {
        while words.atomic_add(1, 0) < thread::grid_dim_x() - 1 {}
    }
    y[(block * 32 + lane) as usize] = 2.0;
}

/// Three blocks ask by votes, more often than they may wait. The last one signals the answer, and
/// then ends. When they ask again, no block does anything.
#[kernel(block = (32))]
fn votes_until_the_last_has_worked(_x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let lane = thread::lane_id() as usize;
    if block() == 3 {
        works(&mut words);
        if lane == 0 {
            words.release_add(0, 1);
        }
    } else {
        votes(&mut words, 0);
    }
    y[block() * 32 + lane] = 2.0;
}

/// The same, and each block signals to the one before it.
#[kernel(block = (32))]
fn votes_from_block_to_block(_x: In<f32>, mut y: Out<f32>, mut words: Out<u32>) {
    let lane = thread::lane_id() as usize;
    if block() == 3 {
        works(&mut words);
    } else {
        votes(&mut words, block() + 1);
    }
    y[block() * 32 + lane] = 2.0;
    if lane == 0 {
        words.release_add(block(), 1);
    }
}

/// A hundred barriers, with so many atomics in between that each thread lets others run.
fn works(words: &mut Out<u32>) {
    for _ in 0..100 {
        for _ in 0..70 {
            words.atomic_add(8, 1);
        }
        thread::sync_threads();
    }
}

/// Until the word is signalled.
fn votes(words: &mut Out<u32>, word: usize) {
    loop {
        let come = thread::lane_id() == 0 && words.atomic_add(word, 0) > 0;
        if warp::any(warp::ALL, come) {
            break;
        }
    }
}
