//! Blocks of a cluster that access each other's shared memory.

use simt::checked::*;

use super::kernel::{Right, kernels, right};

pub(super) static ALL: &[Right] = &[
    right(&read_each_other, 256, |i| (((i ^ 64) / 4 * 4) * 4 + 6) as f32),
    right(&told_by_arrivals, 256, |i| (((i ^ 64) / 4 * 4) * 4 + 6) as f32),
    right(&begun_in_halves, 256, |i| ((i ^ 64) / 4 * 4) as f32),
    right(&a_cluster_adds_up, 256, |_| 32640.0),
    right(&handed_from_block_to_block, 256, |i| (i % 64 + i / 64 + 1) as f32),
    right(&phases_of_both_blocks, 256, |i| i as f32 + 4.0),
    right(&boxes_for_both_blocks, 1024, |i| {
        let (number, t) = (i / 64, i % 64);
        ((number ^ 1) * 64 + 63 - t) as f32 + 100.0 * i as f32
    }),
];

/// Elements and bytes of a box of x, which has sixteen columns.
const BOX: usize = 64;
const BYTES: u32 = 256;
const BOTH: u16 = 0b11;

kernels! {
    /// The blocks wait for each other before they read, and before they end.
    read_each_other(block = (64), cluster = (2), dynamic_shared = 256):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let mut line = dynamic_shared![f32];
        line[t] = x[i];
        cluster::sync();
        let four: [f32; 4] = line.remote(1 - cluster::block_rank()).load128(t / 4 * 4);
        y[i] = four.iter().sum();
        cluster::sync();
    }
    /// Mbarriers signal that the other block has written, and that it has read.
    told_by_arrivals(block = (64), cluster = (2), dynamic_shared = 256, shared = 16):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let (mut line, told) = (dynamic_shared![f32], mbarriers![2]);
        if t == 0 {
            told.at(0).init(64);
            told.at(1).init(64);
            mbarrier::fence_init();
        }
        cluster::sync();
        let other = 1 - cluster::block_rank();
        line[t] = x[i];
        told.at(0).arrive_remote(other);
        told.at(0).wait(0);
        let four: [f32; 4] = line.remote(other).load128(t / 4 * 4);
        y[i] = four.iter().sum();
        told.at(1).arrive_remote_after_reads(other);
        told.at(1).wait(0);
    }
    /// A block writes to the other after it knows that it has started.
    begun_in_halves(block = (64), cluster = (2), dynamic_shared = 256):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let line = dynamic_shared![f32];
        cluster::arrive_relaxed();
        let value = x[i];
        cluster::wait();
        if t.is_multiple_of(4) {
            line.remote(1 - cluster::block_rank()).store128(t, [value; 4]);
        }
        cluster::sync();
        y[i] = line[t];
    }
    /// Sums of warps by shuffles, and of blocks and of the cluster by shared memory.
    a_cluster_adds_up(block = (64), cluster = (4), shared = 4 * 4):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let mut sums = shared![f32; 4];
        let mut sum = x[i];
        for lanes in [16, 8, 4, 2, 1] {
            sum += warp::shuffle_xor(warp::ALL, sum, lanes);
        }
        if t < 4 {
            sums[t] = 0.0;
        }
        thread::sync_threads();
        if thread::lane_id() == 0 {
            sums.atomic_add(0, sum);
        }
        cluster::sync();
        let mut total = 0.0;
        for rank in 0..cluster::blocks() {
            let [of_block, ..]: [f32; 4] = sums.remote(rank).load128(0);
            total += of_block;
        }
        y[i] = total;
        cluster::sync();
    }
    /// A line goes from block to block. Each adds one, writes it to the next, and signals that.
    handed_from_block_to_block(block = (64), cluster = (4), shared = 64 * 4 + 8):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let (line, told) = (shared![f32; 64], mbarriers![1]);
        let rank = cluster::block_rank();
        if t == 0 {
            told.at(0).init(16);
            mbarrier::fence_init();
        }
        cluster::sync();
        if t.is_multiple_of(4) {
            let values: [f32; 4] = match rank {
                0 => x.load128(i),
                _ => {
                    told.at(0).wait(0);
                    line.load128(t)
                }
            };
            let values = values.map(|value| value + 1.0);
            y.store128(i, values);
            if rank + 1 < cluster::blocks() {
                line.remote(rank + 1).store128(t, values);
                told.at(0).arrive_remote(rank + 1);
            }
        }
        cluster::sync();
    }
    /// Threads of both blocks arrive at the mbarriers of both, in every phase.
    phases_of_both_blocks(block = (64), cluster = (2), shared = 2 * 64 * 4 + 8):
        |t, i, x: In<f32>, y: Out<f32>, _words| {
        let (mut lines, told) = (shared![f32; 2, 64], mbarriers![1]);
        let other = 1 - cluster::block_rank();
        if t == 0 {
            told.at(0).init(128);
            mbarrier::fence_init();
        }
        cluster::sync();
        let mut value = x[i];
        for round in 0..4 {
            lines[(round % 2, t)] = value + 1.0;
            told.at(0).arrive();
            told.at(0).arrive_remote(other);
            told.at(0).wait(round as u32 % 2);
            let four: [f32; 4] = lines.remote(other).load128(round % 2 * 64 + t / 4 * 4);
            value = four[t % 4];
        }
        y[i] = value;
        cluster::sync();
    }
    /// Each block copies every other box, to both blocks.
    boxes_for_both_blocks(block = (96), cluster = (2), dynamic_shared = 4 * BYTES, shared = 32):
        |_t, _i, x: TensorMap<f32>, y: Out<f32>, _words| {
        let (mut tiles, boxes) = (dynamic_shared![f32], x.boxes::<4, 16, 0>());
        let pipeline = cluster_pipeline![2];
        let (t, rank) = (thread::thread_idx_x() as usize, cluster::block_rank());
        let (first, place) =
            (thread::block_idx_x() / 2 * 8, |stage, rank| (stage * 2 + rank as usize) * BOX);
        if t == 0 {
            pipeline.init(64);
        }
        cluster::sync();
        if t == 64 {
            let mut producer = pipeline.producer();
            for number in (0..4).map(|round| first + 2 * round + rank) {
                let at = place(producer.acquire(2 * BYTES), rank);
                tiles.load_box_multicast(at, &boxes, (0, number * 4, 0), producer.full(), BOTH);
                producer.advance();
            }
            // No block ends while the other has something to signal to it.
            producer.drain();
        } else if t < 64 {
            let mut consumer = pipeline.consumer();
            for number in (0..4).map(|round| first + 2 * round + rank) {
                let stage = consumer.wait();
                let (own, other) = (place(stage, rank), place(stage, 1 - rank));
                y[number as usize * BOX + t] = tiles[other + 63 - t] + 100.0 * tiles[own + t];
                fence_proxy_async();
                consumer.release();
                consumer.advance();
            }
        }
    }
}
