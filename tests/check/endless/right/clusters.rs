//! Blocks of a cluster that access each other's shared memory.

use simt::checked::*;

use super::kernel::{Right, here, right};

pub(super) static ALL: &[Right] = &[
    right(&read_each_other, 256, |i| (((i ^ 64) / 4 * 4) * 4 + 6) as f32),
    right(&begun_in_halves, 256, |i| ((i ^ 64) / 4 * 4) as f32),
    right(&boxes_for_both_blocks, 1024, |i| {
        let (number, t) = (i / 64, i % 64);
        ((number ^ 1) * 64 + 63 - t) as f32 + 100.0 * i as f32
    }),
];

/// Elements and bytes of a box of x, which has sixteen columns.
const BOX: usize = 64;
const BYTES: u32 = 256;
/// Both blocks.
const BOTH: u16 = 0b11;

/// The blocks wait for each other before they read, and before they end.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256)]
fn read_each_other(x: In<f32>, mut y: Out<f32>, _words: Out<u32>) {
    let mut line = dynamic_shared![f32];
    let (t, i) = here();
    line[t] = x[i];
    cluster::sync();
    let four: [f32; 4] = line.remote(1 - cluster::block_rank()).load128(t / 4 * 4);
    y[i] = four.iter().sum();
    cluster::sync();
}

/// A block writes to the other after it knows that it has started.
#[kernel(block = (64), cluster = (2), dynamic_shared = 256)]
fn begun_in_halves(x: In<f32>, mut y: Out<f32>, _words: Out<u32>) {
    let line = dynamic_shared![f32];
    let (t, i) = here();
    cluster::arrive_relaxed();
    let value = x[i];
    cluster::wait();
    if t.is_multiple_of(4) {
        line.remote(1 - cluster::block_rank()).store128(t, [value; 4]);
    }
    cluster::sync();
    y[i] = line[t];
}

/// Each block copies every other box, to both blocks.
#[kernel(block = (96), cluster = (2), dynamic_shared = 4 * BYTES, shared = 32)]
fn boxes_for_both_blocks(x: TensorMap<f32>, mut y: Out<f32>, _words: Out<u32>) {
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
