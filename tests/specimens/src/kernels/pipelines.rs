//! Pipelines: rings of stages that a producer fills by TMA and consumers read. Operands and boxes
//! are those of [`tma`](super::tma).

use super::{
    device::*,
    tma::{BOX, BYTES, ROWS, boxes_of_block},
};

/// What the readers or the producer of [`ring`] do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Right,
    NotWaited,
    OtherStage,
    ReleasedFirst,
    ReleasedByALane,
    ReadsAll,
    NotFenced,
    FencedByTheProducer,
}

/// A thread fills a ring of two stages, and 64 others read it. A stage waits for `readers` of them.
#[inline(always)]
fn ring(n: u32, x: TensorMap<f32>, mut y: Out<f32>, readers: u32, way: Way) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    if t == 0 {
        pipeline.init(readers);
    }
    thread::sync_threads();
    if t == 64 {
        let mut producer = pipeline.producer();
        for number in first..first + rounds {
            let stage = producer.acquire(BYTES);
            if way == Way::FencedByTheProducer {
                fence_proxy_async();
            }
            tiles.load_box(stage * BOX, &boxes, (0, number * ROWS, 0), producer.full());
            producer.advance();
        }
    } else if t < 64 {
        let mut consumer = pipeline.consumer();
        for number in (first..first + rounds).map(|number| number as usize) {
            let stage = match way {
                Way::NotWaited => number % 2,
                Way::OtherStage => 1 - consumer.wait(),
                _ => consumer.wait(),
            };
            if way == Way::ReleasedFirst {
                consumer.release();
            }
            if way == Way::ReadsAll {
                let mut sum = 0.0;
                for i in 0..BOX {
                    sum += tiles[stage * BOX + i];
                }
                y[number * BOX + t] = sum;
            } else {
                y[number * BOX + t] = tiles[stage * BOX + 63 - t];
            }
            match way {
                Way::NotFenced | Way::FencedByTheProducer | Way::ReleasedFirst => {}
                _ => fence_proxy_async(),
            }
            match way {
                Way::ReleasedFirst => {}
                Way::ReleasedByALane if !t.is_multiple_of(32) => {}
                _ => consumer.release(),
            }
            consumer.advance();
        }
    }
}

/// Kernels with such a ring: the readers that a stage waits for, and the way.
macro_rules! rings {
    ($($(#[$doc:meta])* $name:ident: $readers:literal, $way:ident;)*) => {$(
        $(#[$doc])*
        #[kernel(block = (96), dynamic_shared = 2 * BYTES, shared = 32, barriers = 1, arch = 90, len(y = n))]
        pub fn $name(n: u32, x: TensorMap<f32>, y: Out<f32>) {
            ring(n, x, y, $readers, Way::$way);
        }
    )*};
}

rings! {
    /// A consumer reads a stage without waiting for it.
    read_without_a_wait: 64, NotWaited;
    /// A consumer waits for one stage and reads the other.
    waits_for_another_stage: 64, OtherStage;
    /// A stage is released before it has been read.
    released_before_the_read: 64, ReleasedFirst;
    /// A lane releases a stage for its warp without waiting for the warp.
    released_for_the_warp: 2, ReleasedByALane;
    /// One of 64 readers is not counted, so a stage is filled before the last one has read it.
    one_reader_too_few: 63, ReadsAll;
    /// A reader is counted that does not exist, and the producer waits for it in vain.
    one_reader_too_many: 65, Right;
    /// A stage is released without a proxy fence after the reads: TMA does not see that they came
    /// first.
    released_without_a_fence: 64, NotFenced;
    /// The same, but the producer's thread fences after it has waited.
    fenced_by_the_producer: 64, FencedByTheProducer;
    /// A ring as it should be.
    producer_and_consumers: 64, Right;
}

/// The producer does not wait until a stage has been read.
#[kernel(block = (96), dynamic_shared = 2 * BYTES, shared = 16, arch = 90, len(y = n))]
pub fn filled_without_a_wait(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![2]);
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    if t == 0 {
        full.at(0).init(1);
        full.at(1).init(1);
        mbarrier::fence_init();
    }
    thread::sync_threads();
    for round in 0..rounds {
        let (stage, parity) = (round as usize % 2, round / 2 % 2);
        if t == 64 {
            full.at(stage).arrive_expect(BYTES);
            tiles.load_box(stage * BOX, &boxes, (0, (first + round) * ROWS, 0), full.at(stage));
        }
        full.at(stage).wait(parity);
        if t < 64 {
            y[(first + round) as usize * BOX + t] = tiles[stage * BOX + 63 - t];
        }
    }
}

/// One of 64 threads that add to a sum is not counted, so it is read before the last one has added.
#[kernel(block = (96), shared = 12, arch = 90, len(y = n))]
pub fn one_addition_too_few(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut sum, added) = (shared![u32; 1], mbarriers![1]);
    let _ = x;
    let t = thread::thread_idx_x() as usize;
    if t == 0 {
        sum[0] = 0;
        added.at(0).init(63);
    }
    thread::sync_threads();
    let (rounds, first) = boxes_of_block(n);
    if t < 64 {
        sum.atomic_add(0, 1);
        added.at(0).arrive();
    } else if t == 64 {
        added.at(0).wait(0);
        for i in first as usize * BOX..(first + rounds) as usize * BOX {
            y[i] = sum[0] as f32;
        }
    }
}

/// The distance of stages is less than a box: the next one overwrites half of the last one.
#[kernel(block = (96), dynamic_shared = 2 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn overlapping_stages(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    if t == 0 {
        pipeline.init(64);
    }
    thread::sync_threads();
    let mut producer = pipeline.producer();
    let mut consumer = pipeline.consumer();
    for number in first..first + rounds {
        if t == 64 {
            let stage = producer.acquire(BYTES);
            tiles.load_box(stage * BOX / 2, &boxes, (0, number * ROWS, 0), producer.full());
            producer.advance();
        }
        let stage = consumer.wait();
        if t < 64 {
            y[number as usize * BOX + t] = tiles[stage * BOX / 2 + 63 - t];
            fence_proxy_async();
            consumer.release();
        }
        consumer.advance();
    }
}

/// A lane waits and releases for its warp, and the warp waits for the lane. The first lane of all
/// also fills the ring.
#[kernel(block = (64), dynamic_shared = 2 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn one_lane_for_its_warp(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    if t == 0 {
        pipeline.init(2);
    }
    thread::sync_threads();
    let (mut producer, mut consumer) = (pipeline.producer(), pipeline.consumer());
    for round in 0..rounds {
        if t == 0 {
            // One box ahead.
            for ahead in
                if round == 0 { 0..rounds.min(2) } else { round + 1..rounds.min(round + 2) }
            {
                let stage = producer.acquire(BYTES);
                let row = (first + ahead) * ROWS;
                tiles.load_box(stage * BOX, &boxes, (0, row, 0), producer.full());
                producer.advance();
            }
        }
        if t.is_multiple_of(32) {
            consumer.wait();
        }
        warp::sync_warp(warp::ALL);
        let stage = round as usize % 2;
        y[(first + round) as usize * BOX + t] = tiles[stage * BOX + 63 - t];
        fence_proxy_async();
        warp::sync_warp(warp::ALL);
        if t.is_multiple_of(32) {
            consumer.release();
        }
        consumer.advance();
    }
}
