//! Within a block: barriers for all and for some, warps, atomics, copies in groups.

use simt::checked::*;

use super::kernel::{Right, kernels, mirrored, right};

pub(super) static ALL: &[Right] = &[
    right(&turned_round, 256, |i| mirrored(i) as f32),
    right(&begins_before_the_one_before_ends, 256, |i| mirrored(i) as f32),
    right(&two_buffers_in_turn, 256, four_rounds),
    right(&added_up_in_a_tree, 256, |i| (i / 64 * 64 * 64 + 2016) as f32),
    right(&halves_by_themselves, 512, |i| mirrored(i) as f32 + 3.0),
    right(&handed_to_the_other_half, 512, |i| mirrored(i) as f32),
    right(&exchanged_within_a_warp, 256, |i| (i ^ 31) as f32),
    right(&a_warp_adds_up, 256, |i| (i / 32 * 32 * 32 + 496) as f32),
    right(&sums_so_far, 256, |i| (i / 64 * 64..=i).sum::<usize>() as f32),
    right(&votes, 256, |_| 11.0 + 1.0),
    right(&counted_in_shared, 256, |_| 16.0),
    right(&copied_in_two_groups, 256, four_rounds),
    right(&copied_two_rounds_ahead, 256, four_rounds),
    right(&copied_or_zeros, 256, |i| if i % 2 == 0 { i as f32 } else { 0.0 }),
    right(&one_after_another, 128, |_| 2.0),
    right(&many_counts, 128, |_| 2.0),
];

/// The sum over four rounds, in which a block has each part once.
fn four_rounds(i: usize) -> f32 {
    (0..4).map(|round| (mirrored(i) + round * 64) % 256).sum::<usize>() as f32
}

kernels! {
    turned_round(block = (64), shared = 64 * 4): |t, i, x: In<f32>, y: Out<f32>, _words| {
        let mut tile = shared![f32; 64];
        tile[t] = x[i];
        thread::sync_threads();
        y[i] = tile[63 - t];
    }
    /// It waits for the previous kernel, although there is none, and lets the next one start.
    begins_before_the_one_before_ends(block = (64), shared = 64 * 4, dependent):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let mut tile = shared![f32; 64];
        grid::wait_for_earlier();
        tile[t] = x[i];
        grid::let_next_begin();
        thread::sync_threads();
        y[i] = tile[63 - t];
    }
    /// With two buffers one barrier for each round is enough.
    two_buffers_in_turn(block = (64), shared = 2 * 64 * 4):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let mut lines = shared![f32; 2, 64];
        let mut sum = 0.0;
        for round in 0..4 {
            lines[(round % 2, t)] = x[(i + round * 64) % 256];
            thread::sync_threads();
            sum += lines[(round % 2, 63 - t)];
        }
        y[i] = sum;
    }
    added_up_in_a_tree(block = (64), shared = 64 * 4): |t, i, x: In<f32>, y: Out<f32>, _words| {
        let mut tile = shared![f32; 64];
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
    /// Each half has a barrier of its own.
    halves_by_themselves(block = (128), shared = 128 * 4):
        |t, _i, x: In<f32>, y: Out<f32>, _words| {
        let (mut line, halves) = (shared![f32; 128], named_barriers![1, 2; 64]);
        let i = thread::block_idx_x() as usize * 128 + t;
        let half = halves.at(t / 64);
        line[t] = x[i];
        for _ in 0..3 {
            half.sync();
            let other = line[mirrored(t)];
            half.sync();
            line[t] = other + 1.0;
        }
        y[i] = line[t];
    }
    /// The first half arrives and continues, the second waits. After the read it is the other way
    /// round.
    handed_to_the_other_half(block = (128), shared = 64 * 4):
        |t, _i, x: In<f32>, y: Out<f32>, _words| {
        let (mut line, turns) = (shared![f32; 64], named_barriers![1, 2; 128]);
        let (full, empty) = (turns.at(0), turns.at(1));
        for first in (thread::block_idx_x() as usize * 64..512).step_by(256) {
            let i = first + t % 64;
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
    exchanged_within_a_warp(block = (64), shared = 64 * 4):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let mut line = shared![f32; 64];
        let mut value = x[i];
        for _ in 0..3 {
            line[t] = value;
            warp::sync_warp(warp::ALL);
            value = line[t ^ 31];
            warp::sync_warp(warp::ALL);
        }
        y[i] = value;
    }
    a_warp_adds_up(block = (64)): |_t, i, x: In<f32>, y: Out<f32>, _words| {
        let mut sum = x[i];
        for lanes in [16, 8, 4, 2, 1] {
            sum += warp::shuffle_xor(warp::ALL, sum, lanes);
        }
        y[i] = sum;
    }
    /// Sums within warps by shuffles, and between warps by shared memory.
    sums_so_far(block = (64), shared = 2 * 4): |t, i, x: In<f32>, y: Out<f32>, _words| {
        let mut totals = shared![f32; 2];
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
    votes(block = (64)): |t, i, _x: In<f32>, y: Out<f32>, _words| {
        let thirds = warp::ballot(warp::ALL, t.is_multiple_of(3)).count_ones();
        let elected = warp::ballot(warp::ALL, warp::elect()).count_ones();
        let some = warp::any(warp::ALL, t == 5 || t == 50);
        let some = some && !warp::all(warp::ALL, t > 0 && t < 63);
        y[i] = if some { (thirds + elected) as f32 } else { 0.0 };
    }
    counted_in_shared(block = (64), shared = 4 * 4): |t, i, _x: In<f32>, y: Out<f32>, _words| {
        let mut bins = shared![u32; 4];
        if t < 4 {
            bins[t] = 0;
        }
        thread::sync_threads();
        bins.atomic_add(t * 7 % 4, 1);
        thread::sync_threads();
        y[i] = bins[t % 4] as f32;
    }
    /// One group is copied while the previous one is added.
    copied_in_two_groups(block = (64), shared = 2 * 64 * 4):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let mut tile = shared![f32; 2, 64];
        tile.copy_async::<1>(t, &x, i, true);
        copies::commit_group();
        let mut sum = 0.0;
        for round in 0..4 {
            if round < 3 {
                let next = round + 1;
                tile.copy_async::<1>(next % 2 * 64 + t, &x, (i + next * 64) % 256, true);
            }
            // The last one is empty, and keeps the count.
            copies::commit_group();
            copies::wait_group::<1>();
            thread::sync_threads();
            sum += tile[(round % 2, 63 - t)];
            thread::sync_threads();
        }
        y[i] = sum;
    }
    /// Three buffers, copies of sixteen bytes by some of the threads, and one barrier for each
    /// round.
    copied_two_rounds_ahead(block = (64), shared = 3 * 64 * 4):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let mut tiles = shared![f32; 3, 64];
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
    copied_or_zeros(block = (64), shared = 64 * 4): |t, i, x: In<f32>, y: Out<f32>, _words| {
        let mut tile = shared![f32; 64];
        // The address of an empty copy may be any.
        let from = if t.is_multiple_of(2) { i } else { 1 << 20 };
        tile.copy_async::<1>(t, &x, from, t.is_multiple_of(2));
        copies::commit_group();
        copies::wait_group::<0>();
        y[i] = tile[t];
    }
    /// Lanes take turns by an atomic that all of them poll.
    one_after_another(block = (32), shared = 4): |_t, _i, _x: In<f32>, y: Out<f32>, words| {
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
    many_counts(block = (32)): |_t, _i, _x: In<f32>, y: Out<f32>, words| {
        let (lane, block) = (thread::lane_id(), thread::block_idx_x());
        for i in 0..1000 {
            words.atomic_add((2 + (i + lane) % 6) as usize, 1);
        }
        y[(block * 32 + lane) as usize] = 2.0;
    }
}
