//! Copies to both blocks of a cluster.
//!
//! All kernels have x as a matrix of sixteen columns. A box is four of its rows. A cluster of two
//! blocks takes two boxes for each round, of which each block copies one to both. Thread `t` writes
//! element `63 - t` of the other block's box and element `t` of its own to y.

use super::{
    device::*,
    tma::{BOX, BYTES, ROWS},
};

/// Both blocks.
const BOTH: u16 = 0b11;

/// Rounds of a cluster, and the number of its first box.
#[inline(always)]
fn rounds_of_cluster(n: u32) -> (u32, u32) {
    let rounds = n / BOX as u32 / thread::grid_dim_x();
    (rounds, thread::block_idx_x() / 2 * rounds * 2)
}

/// The place of that block's box in a stage.
#[inline(always)]
fn place_of(stage: usize, rank: u32) -> usize {
    (stage * 2 + rank as usize) * BOX
}

/// The numbers of the boxes that a block copies to both.
#[inline(always)]
fn numbers(n: u32) -> impl Iterator<Item = u32> {
    let (rounds, first) = rounds_of_cluster(n);
    (0..rounds).map(move |round| first + 2 * round + cluster::block_rank())
}

/// Copies the block's boxes to both blocks, and announces so many bytes of each stage.
#[inline(always)]
fn send(
    tiles: &mut DynamicShared<f32>,
    boxes: Boxes<f32, 4, 16, 0>,
    producer: &mut Producer<2>,
    n: u32,
    bytes: u32,
) {
    for number in numbers(n) {
        let at = place_of(producer.acquire(bytes), cluster::block_rank());
        tiles.load_box_multicast(at, &boxes, (0, number * ROWS, 0), producer.full(), BOTH);
        producer.advance();
    }
}

/// Reads both blocks' boxes, as one of 64 threads.
#[inline(always)]
fn read<S: Scope>(
    tiles: &DynamicShared<f32>,
    y: &mut Out<f32>,
    mut consumer: Consumer<2, S>,
    n: u32,
) {
    let (t, rank) = (thread::thread_idx_x() as usize, cluster::block_rank());
    for number in numbers(n) {
        let stage = consumer.wait();
        let (own, other) = (place_of(stage, rank), place_of(stage, 1 - rank));
        y[number as usize * BOX + t] = tiles[other + 63 - t] + 100.0 * tiles[own + t];
        fence_proxy_async();
        consumer.release();
        consumer.advance();
    }
}

/// What the blocks do before they send, and before they end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Right,
    OwnBytesAlone,
    BarrierOfTheBlock,
    NotDrained,
}

/// Each block copies half of the boxes to both.
#[inline(always)]
fn each_sends_half(n: u32, x: TensorMap<f32>, mut y: Out<f32>, way: Way) {
    let (mut tiles, boxes) = (dynamic_shared![f32], x.boxes::<4, 16, 0>());
    let pipeline = cluster_pipeline![2];
    let t = thread::thread_idx_x();
    if t == 0 {
        pipeline.init(64);
    }
    match way {
        Way::BarrierOfTheBlock => thread::sync_threads(),
        _ => cluster::sync(),
    }
    if t == 64 {
        let mut producer = pipeline.producer();
        let bytes = if way == Way::OwnBytesAlone { BYTES } else { 2 * BYTES };
        send(&mut tiles, boxes, &mut producer, n, bytes);
        if way != Way::NotDrained {
            producer.drain();
        }
    } else if t < 64 {
        read(&tiles, &mut y, pipeline.consumer(), n);
    }
}

/// Kernels of it, with that number of barriers of the block.
macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident: $way:ident, $barriers:tt;)*) => {$(
        $(#[$doc])*
        #[kernel(
            block = (96), cluster = (2), dynamic_shared = 4 * BYTES, shared = 32,
            barriers = $barriers, arch = 90, len(y = n)
        )]
        pub fn $name(n: u32, x: TensorMap<f32>, y: Out<f32>) {
            each_sends_half(n, x, y, Way::$way);
        }
    )*};
}

kernels! {
    /// A block announces what it copies, but not what the other sends it.
    announces_its_own_copy_alone: OwnBytesAlone, 0;
    /// The other block's mbarriers may not be initialised yet.
    sent_before_the_init: BarrierOfTheBlock, 1;
    /// A block may end before the other's readers signal that they have read.
    ends_without_a_drain: NotDrained, 0;
    /// All blocks get the signal that a stage has been read, and wait for it before they end.
    each_block_sends_half: Right, 0;
}

/// A reader signals only to its own block that it has read a stage, and the other block fills it.
#[kernel(block = (96), cluster = (2), dynamic_shared = 4 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn released_to_its_block_alone(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let t = thread::thread_idx_x();
    if t == 0 {
        pipeline.init(64);
    }
    cluster::sync();
    if t == 64 {
        let mut producer = pipeline.producer();
        send(&mut tiles, boxes, &mut producer, n, 2 * BYTES);
        producer.drain();
    } else if t < 64 {
        read(&tiles, &mut y, pipeline.consumer(), n);
    }
}

/// The first block waits for the copies, the second does not: they may arrive after it has ended.
#[kernel(block = (64), cluster = (2), dynamic_shared = BYTES, shared = 8, arch = 90, len(y = n))]
pub fn sent_to_an_ended_block(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let (t, rank) = (thread::thread_idx_x() as usize, cluster::block_rank());
    let (_, first) = rounds_of_cluster(n);
    if t == 0 {
        full.at(0).init(1);
        mbarrier::fence_init();
        full.at(0).arrive_expect(BYTES);
    }
    cluster::sync();
    if rank == 0 {
        if t == 0 {
            tile.load_box_multicast(0, &boxes, (0, first * ROWS, 0), full.at(0), BOTH);
        }
        full.at(0).wait(0);
        y[first as usize * BOX + t] = tile[63 - t];
    }
}

/// Each block sends half by whole warps: one lane of each signals to one of the blocks.
#[kernel(block = (96), cluster = (2), dynamic_shared = 4 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn warps_of_both_blocks(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes) = (dynamic_shared![f32], x.boxes::<4, 16, 0>());
    let pipeline = cluster_pipeline![2];
    let (t, rank) = (thread::thread_idx_x() as usize, cluster::block_rank());
    if t == 0 {
        pipeline.init(2);
    }
    cluster::sync();
    if t >= 64 {
        let mut producer = pipeline.producer();
        for number in numbers(n) {
            let at = place_of(producer.acquire_warp(), rank);
            if warp::elect() {
                producer.announce(2 * BYTES);
                tiles.load_box_multicast(at, &boxes, (0, number * ROWS, 0), producer.full(), BOTH);
            }
            producer.advance();
        }
        producer.drain_warp();
    } else {
        let mut consumer = pipeline.consumer();
        for number in numbers(n) {
            let stage = consumer.wait_warp();
            let (own, other) = (place_of(stage, rank), place_of(stage, 1 - rank));
            y[number as usize * BOX + t] = tiles[other + 63 - t] + 100.0 * tiles[own + t];
            consumer.release_warp();
            consumer.advance();
        }
    }
}
