//! Pipelines: rings of stages that a producer fills by TMA and consumers read. Operands and boxes
//! are those of [`tma`](super::tma).

use core::ops::Range;

use super::{
    device::*,
    tma::{BOX, BYTES, ROWS, boxes_of_block},
};

/// Starts a pipeline whose stages have so many readers. Gives the thread, and the numbers of the
/// block's boxes.
#[inline(always)]
#[track_caller]
fn start(n: u32, pipeline: &Pipeline<2>, readers: u32) -> (usize, Range<u32>) {
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    if t == 0 {
        pipeline.init(readers);
    }
    (t, first..first + rounds)
}

/// Fills the stages with boxes.
#[inline(always)]
fn fill(
    tiles: &mut DynamicShared<f32>,
    boxes: Boxes<f32, 4, 16, 0>,
    pipeline: &Pipeline<2>,
    numbers: Range<u32>,
) {
    let mut producer = pipeline.producer();
    for number in numbers {
        let stage = producer.acquire(BYTES);
        tiles.load_box(stage * BOX, &boxes, (0, number * ROWS, 0), producer.full());
        producer.advance();
    }
}

/// A consumer reads a stage without waiting for it.
#[kernel(block = (96), dynamic_shared = 2 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn read_without_a_wait(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let (t, numbers) = start(n, &pipeline, 64);
    thread::sync_threads();
    if t == 64 {
        fill(&mut tiles, boxes, &pipeline, numbers);
    } else if t < 64 {
        let mut consumer = pipeline.consumer();
        for number in numbers.map(|number| number as usize) {
            let stage = number % 2;
            y[number * BOX + t] = tiles[stage * BOX + 63 - t];
            fence_proxy_async();
            consumer.release();
            consumer.advance();
        }
    }
}

/// A consumer waits for one stage and reads the other.
#[kernel(block = (96), dynamic_shared = 2 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn waits_for_another_stage(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let (t, numbers) = start(n, &pipeline, 64);
    thread::sync_threads();
    if t == 64 {
        fill(&mut tiles, boxes, &pipeline, numbers);
    } else if t < 64 {
        let mut consumer = pipeline.consumer();
        for number in numbers.map(|number| number as usize) {
            let stage = 1 - consumer.wait();
            y[number * BOX + t] = tiles[stage * BOX + 63 - t];
            fence_proxy_async();
            consumer.release();
            consumer.advance();
        }
    }
}

/// A stage is released before it has been read.
#[kernel(block = (96), dynamic_shared = 2 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn released_before_the_read(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let (t, numbers) = start(n, &pipeline, 64);
    thread::sync_threads();
    if t == 64 {
        fill(&mut tiles, boxes, &pipeline, numbers);
    } else if t < 64 {
        let mut consumer = pipeline.consumer();
        for number in numbers.map(|number| number as usize) {
            let stage = consumer.wait();
            consumer.release();
            y[number * BOX + t] = tiles[stage * BOX + 63 - t];
            consumer.advance();
        }
    }
}

/// A lane releases a stage for its warp without waiting for the warp.
#[kernel(block = (96), dynamic_shared = 2 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn released_for_the_warp(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let (t, numbers) = start(n, &pipeline, 2);
    thread::sync_threads();
    if t == 64 {
        fill(&mut tiles, boxes, &pipeline, numbers);
    } else if t < 64 {
        let mut consumer = pipeline.consumer();
        for number in numbers.map(|number| number as usize) {
            let stage = consumer.wait();
            y[number * BOX + t] = tiles[stage * BOX + 63 - t];
            fence_proxy_async();
            if t.is_multiple_of(32) {
                consumer.release();
            }
            consumer.advance();
        }
    }
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

/// One of 64 readers is not counted, so a stage is filled before the last one has read it.
#[kernel(block = (96), dynamic_shared = 2 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn one_reader_too_few(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let (t, numbers) = start(n, &pipeline, 63);
    thread::sync_threads();
    if t == 64 {
        fill(&mut tiles, boxes, &pipeline, numbers);
    } else if t < 64 {
        let mut consumer = pipeline.consumer();
        for number in numbers.map(|number| number as usize) {
            let stage = consumer.wait();
            // Every reader reads all of it.
            let mut sum = 0.0;
            for i in 0..BOX {
                sum += tiles[stage * BOX + i];
            }
            y[number * BOX + t] = sum;
            fence_proxy_async();
            consumer.release();
            consumer.advance();
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

/// A reader is counted that does not exist, and the producer waits for it in vain.
#[kernel(block = (96), dynamic_shared = 2 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn one_reader_too_many(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let (t, numbers) = start(n, &pipeline, 65);
    thread::sync_threads();
    if t == 64 {
        fill(&mut tiles, boxes, &pipeline, numbers);
    } else if t < 64 {
        let mut consumer = pipeline.consumer();
        for number in numbers.map(|number| number as usize) {
            let stage = consumer.wait();
            y[number * BOX + t] = tiles[stage * BOX + 63 - t];
            fence_proxy_async();
            consumer.release();
            consumer.advance();
        }
    }
}

/// The distance of stages is less than a box: the next one overwrites half of the last one.
#[kernel(block = (96), dynamic_shared = 2 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn overlapping_stages(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let (t, numbers) = start(n, &pipeline, 64);
    thread::sync_threads();
    let mut producer = pipeline.producer();
    let mut consumer = pipeline.consumer();
    for number in numbers {
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

/// A stage is released without a proxy fence after the reads: TMA does not see that they came
/// first.
#[kernel(block = (96), dynamic_shared = 2 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn released_without_a_fence(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let (t, numbers) = start(n, &pipeline, 64);
    thread::sync_threads();
    if t == 64 {
        fill(&mut tiles, boxes, &pipeline, numbers);
    } else if t < 64 {
        let mut consumer = pipeline.consumer();
        for number in numbers.map(|number| number as usize) {
            let stage = consumer.wait();
            y[number * BOX + t] = tiles[stage * BOX + 63 - t];
            consumer.release();
            consumer.advance();
        }
    }
}

/// The same as [`released_without_a_fence`], but the producer's thread fences after it has waited.
#[kernel(block = (96), dynamic_shared = 2 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn fenced_by_the_producer(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let (t, numbers) = start(n, &pipeline, 64);
    thread::sync_threads();
    if t == 64 {
        let mut producer = pipeline.producer();
        for number in numbers {
            let stage = producer.acquire(BYTES);
            fence_proxy_async();
            tiles.load_box(stage * BOX, &boxes, (0, number * ROWS, 0), producer.full());
            producer.advance();
        }
    } else if t < 64 {
        let mut consumer = pipeline.consumer();
        for number in numbers.map(|number| number as usize) {
            let stage = consumer.wait();
            y[number * BOX + t] = tiles[stage * BOX + 63 - t];
            consumer.release();
            consumer.advance();
        }
    }
}

/// A warp fills a ring of two stages, and two others read it.
#[kernel(block = (96), dynamic_shared = 2 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn producer_and_consumers(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let (t, numbers) = start(n, &pipeline, 64);
    thread::sync_threads();
    if t == 64 {
        fill(&mut tiles, boxes, &pipeline, numbers);
    } else if t < 64 {
        let mut consumer = pipeline.consumer();
        for number in numbers.map(|number| number as usize) {
            let stage = consumer.wait();
            y[number * BOX + t] = tiles[stage * BOX + 63 - t];
            fence_proxy_async();
            consumer.release();
            consumer.advance();
        }
    }
}

/// A lane waits and releases for its warp, and the warp waits for the lane. The first lane of all
/// also fills the ring.
#[kernel(block = (64), dynamic_shared = 2 * BYTES, shared = 32, arch = 90, len(y = n))]
pub fn one_lane_for_its_warp(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, pipeline) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), pipeline![2]);
    let (t, numbers) = start(n, &pipeline, 2);
    thread::sync_threads();
    let (first, rounds) = (numbers.start, numbers.len() as u32);
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
