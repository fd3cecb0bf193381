//! Mbarriers, rings of stages between warps, and copies of boxes. x, or y, is a matrix of sixteen
//! columns, and a box has four rows.

use simt::checked::*;

use super::kernel::{Right, kernels, mirrored, right};
use crate::endless::launches::init;

pub(super) static ALL: &[Right] = &[
    right(&all_arrive, 256, |i| mirrored(i) as f32),
    right(&phase_after_phase, 256, |i| i as f32 + 6.0),
    right(&one_arrives_for_its_warp, 256, |i| mirrored(i) as f32),
    right(&polls_before_it_waits, 256, |i| mirrored(i) as f32),
    right(&a_ring_by_hand, 512, |i| (i / 32 * 32 + 31 - i % 32) as f32),
    right(&a_ring_between_warps, 512, |i| (i / 32 * 32 + 31 - i % 32) as f32),
    right(&two_warps_fill_a_ring, 512, |i| mirrored(i) as f32),
    right(&two_rings, 512, |i| i as f32 + 3.0),
    right(&to_and_fro, 256, |i| match i % 64 {
        t if t < 32 => i as f32 + 6.0,
        t => (i / 64 * 64 + 63 - t) as f32 + 5.0,
    }),
    right(&a_box, 256, |i| mirrored(i) as f32),
    right(&two_boxes_of_one_phase, 512, |i| mirrored(i) as f32),
    right(&a_parity_for_each_round, 1024, |i| mirrored(i) as f32),
    right(&boxes_in_a_ring, 1024, |i| mirrored(i) as f32),
    right(&boxes_for_warps, 1024, |i| mirrored(i) as f32),
    right(&boxes_out_in_turns, 1024, |i| mirrored(i) as f32),
    right(&boxes_in_and_out, 1024, |i| mirrored(i) as f32 + 1.0),
];

/// Rows and elements of a box, and bytes.
const ROWS: u32 = 4;
const BOX: usize = 64;
const BYTES: u32 = 256;
/// Boxes of a block that has several.
const ROUNDS: u32 = 4;

kernels! {
    all_arrive(block = (64), shared = 64 * 4 + 8): |t, i, x: In<f32>, y: Out<f32>, _words| {
        let (mut tile, told) = (shared![f32; 64], mbarriers![1]);
        init(&told, [64]);
        tile[t] = x[i];
        told.at(0).arrive();
        told.at(0).wait(0);
        y[i] = tile[63 - t];
    }
    /// Parities alternate, and with two buffers one wait for each phase is enough.
    phase_after_phase(block = (64), shared = 2 * 64 * 4 + 8):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let (mut lines, told) = (shared![f32; 2, 64], mbarriers![1]);
        init(&told, [64]);
        let mut value = x[i];
        for round in 0..6 {
            lines[(round % 2, t)] = value + 1.0;
            told.at(0).arrive();
            told.at(0).wait(round as u32 % 2);
            value = lines[(round % 2, 63 - t)];
        }
        y[i] = value;
    }
    one_arrives_for_its_warp(block = (64), shared = 64 * 4 + 8):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let (mut tile, told) = (shared![f32; 64], mbarriers![1]);
        init(&told, [2]);
        tile[t] = x[i];
        warp::sync_warp(warp::ALL);
        if warp::elect() {
            told.at(0).arrive();
        }
        told.at(0).wait_warp(0);
        y[i] = tile[63 - t];
    }
    /// A warp polls for a count in shared memory. The other warp adds to it before it arrives.
    polls_before_it_waits(block = (64), shared = 64 * 4 + 4 + 8):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let (mut tile, mut count, told) = (shared![f32; 64], shared![u32; 1], mbarriers![1]);
        if t == 0 {
            count[0] = 0;
            told.at(0).init(64);
            mbarrier::fence_init();
        }
        thread::sync_threads();
        tile[t] = x[i];
        if t < 32 {
            while count.atomic_add(0, 0) < 32 {}
        } else {
            count.atomic_add(0, 1);
        }
        told.at(0).arrive();
        told.at(0).wait(0);
        y[i] = tile[63 - t];
    }
    /// A warp fills two stages and another reads them, each lane by itself.
    a_ring_by_hand(block = (64), shared = 2 * 32 * 4 + 2 * 2 * 8):
        |_t, _i, x: In<f32>, y: Out<f32>, _words| {
        let (mut stages, full, empty) = (shared![f32; 2, 32], mbarriers![2], mbarriers![2]);
        let (t, lane) = (thread::thread_idx_x() as usize, thread::lane_id() as usize);
        if t == 0 {
            for stage in 0..2 {
                full.at(stage).init(32);
                empty.at(stage).init(32);
            }
            mbarrier::fence_init();
        }
        thread::sync_threads();
        for round in 0..4 {
            let (stage, parity) = (round % 2, round as u32 / 2 % 2);
            let first = thread::block_idx_x() as usize * 128 + round * 32;
            if t < 32 {
                // The phase before the first counts as ended.
                empty.at(stage).wait(parity ^ 1);
                stages[(stage, lane)] = x[first + lane];
                full.at(stage).arrive();
            } else {
                full.at(stage).wait(parity);
                y[first + lane] = stages[(stage, 31 - lane)];
                empty.at(stage).arrive();
            }
        }
    }
    /// The same as a pipeline of three stages, by whole warps.
    a_ring_between_warps(block = (64), shared = 3 * 32 * 4 + 2 * 3 * 8):
        |_t, _i, x: In<f32>, y: Out<f32>, _words| {
        let (mut stages, pipeline) = (shared![f32; 3, 32], pipeline![3]);
        let (t, lane) = (thread::thread_idx_x() as usize, thread::lane_id() as usize);
        if t == 0 {
            pipeline.init_for_writers(1, 1);
        }
        thread::sync_threads();
        let first = thread::block_idx_x() as usize * 128;
        if t < 32 {
            let mut producer = pipeline.producer();
            for round in 0..4 {
                stages[(producer.acquire_warp(), lane)] = x[first + round * 32 + lane];
                producer.filled_warp();
                producer.advance();
            }
        } else {
            let mut consumer = pipeline.consumer();
            for round in 0..4 {
                y[first + round * 32 + lane] = stages[(consumer.wait_warp(), 31 - lane)];
                consumer.release_warp();
                consumer.advance();
            }
        }
    }
    /// Two warps each fill half of a stage, and a third one reads it.
    two_warps_fill_a_ring(block = (96), shared = 64 * 4 + 2 * 8):
        |_t, _i, x: In<f32>, y: Out<f32>, _words| {
        let (mut stage, pipeline) = (shared![f32; 64], pipeline![1]);
        let (t, lane) = (thread::thread_idx_x() as usize, thread::lane_id() as usize);
        if t == 0 {
            pipeline.init_for_writers(2, 1);
        }
        thread::sync_threads();
        let first = thread::block_idx_x() as usize * 128;
        if t < 64 {
            let mut producer = pipeline.producer();
            for round in 0..2 {
                producer.acquire_warp();
                stage[t] = x[first + round * 64 + t];
                producer.filled_warp();
                producer.advance();
            }
        } else {
            let mut consumer = pipeline.consumer();
            for round in 0..2 {
                consumer.wait_warp();
                for half in [0, 32] {
                    y[first + round * 64 + half + lane] = stage[63 - half - lane];
                }
                consumer.release_warp();
                consumer.advance();
            }
        }
    }
    /// Three warps in a row, each of which adds one and passes it on.
    two_rings(block = (96), shared = 2 * 2 * 32 * 4 + 2 * 2 * 2 * 8):
        |_t, _i, x: In<f32>, y: Out<f32>, _words| {
        let (mut first, mut second) = (shared![f32; 2, 32], shared![f32; 2, 32]);
        let (to_first, to_second) = (pipeline![2], pipeline![2]);
        let (t, lane) = (thread::thread_idx_x() as usize, thread::lane_id() as usize);
        if t == 0 {
            to_first.init_for_writers(1, 1);
            to_second.init_for_writers(1, 1);
        }
        thread::sync_threads();
        let (mut into, mut from) = (to_first.producer(), to_first.consumer());
        let (mut into_second, mut from_second) = (to_second.producer(), to_second.consumer());
        for round in 0..4 {
            let i = thread::block_idx_x() as usize * 128 + round * 32 + lane;
            match t / 32 {
                0 => {
                    first[(into.acquire_warp(), lane)] = x[i] + 1.0;
                    into.filled_warp();
                    into.advance();
                }
                1 => {
                    let value = first[(from.wait_warp(), lane)];
                    from.release_warp();
                    from.advance();
                    second[(into_second.acquire_warp(), lane)] = value + 1.0;
                    into_second.filled_warp();
                    into_second.advance();
                }
                _ => {
                    y[i] = second[(from_second.wait_warp(), lane)] + 1.0;
                    from_second.release_warp();
                    from_second.advance();
                }
            }
        }
    }
    /// Two warps pass a line to each other and back, repeatedly.
    to_and_fro(block = (64), shared = 2 * 32 * 4 + 2 * 8): |t, i, x: In<f32>, y: Out<f32>, _words| {
        let (mut to, mut fro, told) = (shared![f32; 32], shared![f32; 32], mbarriers![2]);
        let lane = t % 32;
        init(&told, [32, 32]);
        let mut value = x[i];
        for parity in [0, 1, 0] {
            if t < 32 {
                to[lane] = value + 1.0;
                told.at(0).arrive();
                told.at(1).wait(parity);
                value = fro[31 - lane];
            } else {
                told.at(0).wait(parity);
                value = to[31 - lane];
                fro[lane] = value + 1.0;
                told.at(1).arrive();
            }
        }
        y[i] = value;
    }
    a_box(block = (64), dynamic_shared = BYTES, shared = 8):
        |t, i, x: TensorMap<f32>, y: Out<f32>, _words| {
        let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
        if t == 0 {
            full.at(0).init(1);
            mbarrier::fence_init();
            full.at(0).arrive_expect(BYTES);
            tile.load_box(0, &boxes, (0, thread::block_idx_x() * ROWS, 0), full.at(0));
        }
        thread::sync_threads();
        full.at(0).wait(0);
        y[i] = tile[63 - t];
    }
    two_boxes_of_one_phase(block = (64), dynamic_shared = 2 * BYTES, shared = 8):
        |t, _i, x: TensorMap<f32>, y: Out<f32>, _words| {
        let (mut tiles, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
        let first = thread::block_idx_x() * 2;
        if t == 0 {
            full.at(0).init(1);
            mbarrier::fence_init();
            full.at(0).arrive_expect(2 * BYTES);
            for i in 0..2 {
                tiles.load_box(i * BOX, &boxes, (0, (first + i as u32) * ROWS, 0), full.at(0));
            }
        }
        thread::sync_threads();
        full.at(0).wait(0);
        for i in 0..2 {
            y[(first as usize + i) * BOX + t] = tiles[i * BOX + 63 - t];
        }
    }
    /// One stage. All have read it, and there are a proxy fence and a barrier before the next copy.
    a_parity_for_each_round(block = (64), dynamic_shared = BYTES, shared = 8):
        |t, _i, x: TensorMap<f32>, y: Out<f32>, _words| {
        let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
        if t == 0 {
            full.at(0).init(1);
            mbarrier::fence_init();
        }
        for round in 0..ROUNDS {
            let number = thread::block_idx_x() * ROUNDS + round;
            fence_proxy_async();
            thread::sync_threads();
            if t == 0 {
                full.at(0).arrive_expect(BYTES);
                tile.load_box(0, &boxes, (0, number * ROWS, 0), full.at(0));
            }
            full.at(0).wait(round % 2);
            y[number as usize * BOX + t] = tile[63 - t];
        }
    }
    /// One thread copies, and 64 read.
    boxes_in_a_ring(block = (96), dynamic_shared = 2 * BYTES, shared = 32):
        |t, _i, x: TensorMap<f32>, y: Out<f32>, _words| {
        let (mut tiles, boxes) = (dynamic_shared![f32], x.boxes::<4, 16, 0>());
        let pipeline = pipeline![2];
        if t == 0 {
            pipeline.init(64);
        }
        thread::sync_threads();
        let first = thread::block_idx_x() * ROUNDS;
        if t == 64 {
            let mut producer = pipeline.producer();
            for number in first..first + ROUNDS {
                let stage = producer.acquire(BYTES);
                tiles.load_box(stage * BOX, &boxes, (0, number * ROWS, 0), producer.full());
                producer.advance();
            }
        } else if t < 64 {
            let mut consumer = pipeline.consumer();
            for number in first..first + ROUNDS {
                let stage = consumer.wait();
                y[number as usize * BOX + t] = tiles[stage * BOX + 63 - t];
                fence_proxy_async();
                consumer.release();
                consumer.advance();
            }
        }
    }
    /// The same by warps.
    boxes_for_warps(block = (96), dynamic_shared = 2 * BYTES, shared = 32):
        |t, _i, x: TensorMap<f32>, y: Out<f32>, _words| {
        let (mut tiles, boxes) = (dynamic_shared![f32], x.boxes::<4, 16, 0>());
        let pipeline = pipeline![2];
        if t == 0 {
            pipeline.init(2);
        }
        thread::sync_threads();
        let first = thread::block_idx_x() * ROUNDS;
        if t >= 64 {
            let mut producer = pipeline.producer();
            for number in first..first + ROUNDS {
                let stage = producer.acquire_warp();
                if warp::elect() {
                    producer.announce(BYTES);
                    tiles.load_box(stage * BOX, &boxes, (0, number * ROWS, 0), producer.full());
                }
                producer.advance();
            }
        } else {
            let mut consumer = pipeline.consumer();
            for number in first..first + ROUNDS {
                let stage = consumer.wait_warp();
                y[number as usize * BOX + t] = tiles[stage * BOX + 63 - t];
                consumer.release_warp();
                consumer.advance();
            }
        }
    }
    /// Two buffers alternate. The copying thread waits for the copy before the last, and a barrier
    /// signals that to the others.
    boxes_out_in_turns(block = (64), dynamic_shared = 2 * BYTES):
        |t, _i, x: In<f32>, y: TensorMapMut<f32>, _words| {
        let (mut tiles, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
        for round in 0..ROUNDS {
            let number = thread::block_idx_x() * ROUNDS + round;
            let tile = round as usize % 2 * BOX;
            if t == 0 {
                bulk::wait_group_read::<1>();
            }
            thread::sync_threads();
            tiles[tile + 63 - t] = x[number as usize * BOX + t];
            fence_proxy_async();
            thread::sync_threads();
            if t == 0 {
                tiles.store_box(tile, &boxes, (0, number * ROWS, 0));
                bulk::commit_group();
            }
        }
        if t == 0 {
            bulk::wait_group_read::<0>();
        }
    }
    /// Lines are copied sixteen bytes at a time, are mirrored in shared memory, and are stored as
    /// boxes.
    boxes_in_and_out(block = (64), dynamic_shared = BYTES, shared = BYTES as usize):
        |t, _i, x: In<f32>, y: TensorMapMut<f32>, _words| {
        let (mut out, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
        let mut line = shared![f32; 64];
        for round in 0..ROUNDS {
            let number = thread::block_idx_x() * ROUNDS + round;
            if t < 16 {
                line.copy_async::<4>(t * 4, &x, number as usize * BOX + t * 4, true);
            }
            copies::commit_group();
            copies::wait_group::<0>();
            if t == 0 {
                bulk::wait_group_read::<0>();
            }
            thread::sync_threads();
            out[63 - t] = line[t] + 1.0;
            fence_proxy_async();
            thread::sync_threads();
            if t == 0 {
                out.store_box(0, &boxes, (0, number * ROWS, 0));
                bulk::commit_group();
            }
        }
        if t == 0 {
            bulk::wait_group_read::<0>();
        }
    }
}
