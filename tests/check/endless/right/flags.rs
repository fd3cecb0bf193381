//! Flags and polled words: blocks of the grid that wait for each other, or poll. After its results
//! a kernel has 512 elements of y for intermediate values.

use simt::checked::*;

use super::kernel::{Right, kernels, mirrored, right};

pub(super) static ALL: &[Right] = &[
    right(&all_meet, 256, next_doubled),
    right(&one_thread_waits_for_its_block, 256, next_doubled),
    right(&each_has_a_word, 256, next_doubled),
    right(&polls_and_then_waits, 256, next_doubled),
    right(&polls_by_votes_and_then_waits, 256, next_doubled),
    right(&meet_again_and_again, 256, |i| i as f32 + 4.0),
    right(&parts_given_out, 512, |i| (2 * i + 2 * ((i + 64) % 512)) as f32),
    right(&boxes_given_out, 512, |i| mirrored(i) as f32),
    right(&the_last_one_writes, 256, |i| (2 * i + 1) as f32),
    right(&one_block_after_another, 256, |i| {
        (0..=i / 64).map(|block| block * 64 + i % 64).sum::<usize>() as f32
    }),
    right(&looks_back_at_the_one_before, 256, |i| (i + i / 64 * 64) as f32),
    right(&a_ring_between_blocks, 512, |i| mirrored(i) as f32),
    right(&a_lock_by_tickets, 320, |i| match i {
        0..256 => 2.0 * i as f32,
        _ => (384 + 4 * (i - 256)) as f32,
    }),
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

#[inline(always)]
fn block() -> usize {
    thread::block_idx_x() as usize
}

kernels! {
    /// A barrier of the grid: each block signals that it has written, and waits for all.
    all_meet(block = (64)): |t, i, x: In<f32>, y: Out<f32>, words| {
        y[BEHIND + i] = 2.0 * x[i];
        told(&mut words, 0);
        words.wait_for_at_least(0, BLOCKS);
        y[i] = y[BEHIND + (i + 64) % 256];
    }
    one_thread_waits_for_its_block(block = (64)): |t, i, x: In<f32>, y: Out<f32>, words| {
        y[BEHIND + i] = 2.0 * x[i];
        thread::sync_threads();
        if t == 0 {
            words.release_add(0, 1);
            words.wait_for_at_least(0, BLOCKS);
        }
        thread::sync_threads();
        y[i] = y[BEHIND + (i + 64) % 256];
    }
    each_has_a_word(block = (64)): |t, i, x: In<f32>, y: Out<f32>, words| {
        y[BEHIND + i] = 2.0 * x[i];
        told(&mut words, block());
        words.wait_for_at_least((block() + 1) % 4, 1);
        y[i] = y[BEHIND + (i + 64) % 256];
    }
    /// A polled atomic orders nothing. The wait after it does.
    polls_and_then_waits(block = (64)): |t, i, x: In<f32>, y: Out<f32>, words| {
        y[BEHIND + i] = 2.0 * x[i];
        thread::sync_threads();
        if t == 0 {
            words.release_add(0, 1);
            while words.atomic_add(0, 0) < BLOCKS {}
        }
        thread::sync_threads();
        words.wait_for_at_least(0, BLOCKS);
        y[i] = y[BEHIND + (i + 64) % 256];
    }
    /// One lane of each warp asks, and broadcasts the answer.
    polls_by_votes_and_then_waits(block = (64)): |t, i, x: In<f32>, y: Out<f32>, words| {
        y[BEHIND + i] = 2.0 * x[i];
        told(&mut words, 0);
        loop {
            let come = thread::lane_id() == 0 && words.atomic_add(0, 0) >= BLOCKS;
            if warp::any(warp::ALL, come) {
                break;
            }
        }
        words.wait_for_at_least(0, BLOCKS);
        y[i] = y[BEHIND + (i + 64) % 256];
    }
    /// Four times, with two buffers.
    meet_again_and_again(block = (64)): |t, i, x: In<f32>, y: Out<f32>, words| {
        let mut value = x[i];
        for round in 0..4 {
            let buffer = BEHIND + round % 2 * 256;
            y[buffer + i] = value + 1.0;
            told(&mut words, 0);
            words.wait_for_at_least(0, (round as u32 + 1) * BLOCKS);
            value = y[buffer + (i + 64) % 256];
        }
        y[i] = value;
    }
    /// Eight parts are claimed one by one. When all have been doubled, each block adds to its own
    /// parts the ones after them.
    parts_given_out(block = (64), shared = 4): |t, _i, x: In<f32>, y: Out<f32>, words| {
        let mut given = shared![u32; 1];
        let mut mine = [false; 8];
        loop {
            if t == 0 {
                given[0] = words.atomic_add(0, 1);
            }
            thread::sync_threads();
            let part = given[0] as usize;
            if part >= 8 {
                break;
            }
            mine[part] = true;
            y[BEHIND + part * 64 + t] = 2.0 * x[part * 64 + t];
            told(&mut words, 1);
        }
        words.wait_for_at_least(1, 8);
        for part in (0..8).filter(|&part| mine[part]) {
            let next = (part + 1) % 8;
            y[part * 64 + t] = y[BEHIND + part * 64 + t] + y[BEHIND + next * 64 + t];
        }
    }
    /// The same with boxes, which are copied one after the other to one place.
    boxes_given_out(block = (64), dynamic_shared = 256, shared = 4 + 8):
        |t, _i, x: TensorMap<f32>, y: Out<f32>, words| {
        let (mut tile, boxes) = (dynamic_shared![f32], x.boxes::<4, 16, 0>());
        let (mut given, full) = (shared![u32; 1], mbarriers![1]);
        if t == 0 {
            full.at(0).init(1);
            mbarrier::fence_init();
        }
        let mut parity = 0;
        loop {
            fence_proxy_async();
            thread::sync_threads();
            if t == 0 {
                given[0] = words.atomic_add(0, 1);
                if given[0] < 8 {
                    full.at(0).arrive_expect(256);
                    tile.load_box(0, &boxes, (0, given[0] * 4, 0), full.at(0));
                }
            }
            thread::sync_threads();
            let part = given[0] as usize;
            if part >= 8 {
                break;
            }
            full.at(0).wait(parity);
            parity ^= 1;
            y[part * 64 + t] = tile[63 - t];
        }
    }
    /// The block that counts itself last sees everything that the others signalled before they
    /// counted.
    the_last_one_writes(block = (64), shared = 4): |t, i, x: In<f32>, y: Out<f32>, words| {
        let mut before = shared![u32; 1];
        y[BEHIND + i] = 2.0 * x[i];
        thread::sync_threads();
        if t == 0 {
            words.release_add(0, 1);
            before[0] = words.atomic_add(1, 1);
        }
        thread::sync_threads();
        if before[0] == BLOCKS - 1 {
            words.wait_for_at_least(0, BLOCKS);
            for i in (t..256).step_by(64) {
                y[i] = y[BEHIND + i] + 1.0;
            }
        }
    }
    /// Each block adds to the previous block's result.
    one_block_after_another(block = (64)): |t, i, x: In<f32>, y: Out<f32>, words| {
        words.wait_for_at_least(0, block() as u32);
        let before = if block() == 0 { 0.0 } else { y[i - 64] };
        y[i] = before + x[i];
        told(&mut words, 0);
    }
    /// Parts are claimed as blocks start. So a block waits only for blocks that have started.
    looks_back_at_the_one_before(block = (64), shared = 4):
        |t, _i, x: In<f32>, y: Out<f32>, words| {
        let mut given = shared![u32; 1];
        if t == 0 {
            given[0] = words.atomic_add(0, 1);
        }
        thread::sync_threads();
        let part = given[0] as usize;
        let mut before = 0.0;
        if part > 0 {
            words.wait_for_at_least(part, 1);
            before = y[BEHIND + part - 1];
        }
        y[part * 64 + t] = x[part * 64 + t] + before;
        if t == 63 {
            y[BEHIND + part] = before + 64.0;
            words.release_add(part + 1, 1);
        }
    }
    /// The first of two blocks fills two slots in turn, and the second reads them. Two words count
    /// how often each has done so.
    a_ring_between_blocks(block = (64)): |t, _i, x: In<f32>, y: Out<f32>, words| {
        let pair = block() / 2;
        let (filled, emptied) = (pair * 2, pair * 2 + 1);
        let fills = block() == pair * 2;
        for round in 0..4 {
            let slot = BEHIND + (pair * 2 + round % 2) * 64;
            let i = pair * 256 + round * 64 + t;
            if fills {
                words.wait_for_at_least(emptied, (round as u32).saturating_sub(1));
                y[slot + t] = x[i];
            } else {
                words.wait_for_at_least(filled, round as u32 + 1);
                y[i] = y[slot + 63 - t];
            }
            told(&mut words, if fills { filled } else { emptied });
        }
    }
    /// The block with the lock adds to a line. The last one copies the line.
    a_lock_by_tickets(block = (64), shared = 4): |t, i, x: In<f32>, y: Out<f32>, words| {
        let mut given = shared![u32; 1];
        if t == 0 {
            given[0] = words.atomic_add(0, 1);
            words.wait_for_at_least(1, given[0]);
        }
        thread::sync_threads();
        let sum = y[BEHIND + t] + x[i];
        y[BEHIND + t] = sum;
        if given[0] == BLOCKS - 1 {
            y[256 + t] = sum;
        }
        told(&mut words, 1);
        y[i] = 2.0 * x[i];
    }
    /// A word signals to a warp that another warp of its block has written.
    warps_of_a_block(block = (64)): |t, i, x: In<f32>, y: Out<f32>, words| {
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
    clusters_meet(block = (64), cluster = (2)): |t, i, x: In<f32>, y: Out<f32>, words| {
        y[BEHIND + i] = 2.0 * x[i];
        cluster::sync();
        if t == 0 && cluster::block_rank() == 0 {
            words.release_add(0, 1);
        }
        words.wait_for_at_least(0, BLOCKS / 2);
        y[i] = y[BEHIND + (i + 128) % 256];
    }
    /// Both halves of a warp poll by shuffles, and never ask at the same time.
    polled_out_of_step(block = (32)): |_t, _i, _x: In<f32>, y: Out<f32>, words| {
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
    blocks_take_turns(block = (32)): |_t, _i, _x: In<f32>, y: Out<f32>, words| {
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
    /// The first block polls until the others have ended. They make many more accesses than are
    /// allowed between two waits.
    polls_for_long(block = (32)): |_t, _i, _x: In<f32>, y: Out<f32>, words| {
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
    /// Three blocks ask by votes, more often than they may wait. The last one signals the answer,
    /// and then ends. When they ask again, no block does anything.
    votes_until_the_last_has_worked(block = (32)): |_t, _i, _x: In<f32>, y: Out<f32>, words| {
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
    votes_from_block_to_block(block = (32)): |_t, _i, _x: In<f32>, y: Out<f32>, words| {
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
}

/// When all threads of the block are there, one signals it.
fn told(words: &mut Out<u32>, word: usize) {
    thread::sync_threads();
    if thread::thread_idx_x() == 0 {
        words.release_add(word, 1);
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
