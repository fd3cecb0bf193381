//! Copies by TMA, and one mbarrier for each.
//!
//! All kernels have x as a matrix of sixteen columns. A box is four of its rows, and a block takes
//! `rounds` boxes, one after another. Thread `t` writes element `63 - t` of each box to y.

use super::device::*;

/// Rows and elements of a box, and bytes.
pub(super) const ROWS: u32 = 4;
pub(super) const BOX: usize = 64;
pub(super) const BYTES: u32 = 256;

/// Boxes of a block, and the number of the first.
#[inline(always)]
pub(super) fn boxes_of_block(n: u32) -> (u32, u32) {
    let rounds = n / BOX as u32 / thread::grid_dim_x();
    (rounds, thread::block_idx_x() * rounds)
}

/// Initialises an mbarrier for one arrival. Gives the thread, and the number of the block's first
/// box.
#[inline(always)]
#[track_caller]
fn start(n: u32, full: &Mbarriers<1>) -> (usize, u32) {
    let t = thread::thread_idx_x() as usize;
    let (_, first) = boxes_of_block(n);
    if t == 0 {
        full.at(0).init(1);
        mbarrier::fence_init();
    }
    (t, first)
}

/// Copies a box, and waits for it.
#[inline(always)]
fn copy(
    tile: &mut DynamicShared<f32>,
    boxes: Boxes<f32, 4, 16, 0>,
    full: &Mbarriers<1>,
    first: u32,
) {
    if thread::thread_idx_x() == 0 {
        full.at(0).arrive_expect(BYTES);
        tile.load_box(0, &boxes, (0, first * ROWS, 0), full.at(0));
    }
    full.at(0).wait(0);
}

/// A box starts at a column that is eight bytes after a multiple of sixteen: TMA does not copy it.
#[kernel(block = (64), dynamic_shared = BYTES, shared = 8, arch = 90, len(y = n))]
pub fn begins_inside_sixteen_bytes(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let (t, first) = start(n, &full);
    thread::sync_threads();
    if t == 0 {
        full.at(0).arrive_expect(BYTES);
        tile.load_box(0, &boxes, (0, first * ROWS, 6), full.at(0));
    }
    full.at(0).wait(0);
    y[first as usize * BOX + t] = tile[63 - t];
}

/// More bytes are announced than arrive.
#[kernel(block = (64), dynamic_shared = BYTES, shared = 8, arch = 90, len(y = n))]
pub fn bytes_that_never_come(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let (t, first) = start(n, &full);
    thread::sync_threads();
    if t == 0 {
        full.at(0).arrive_expect(BYTES + 64);
        tile.load_box(0, &boxes, (0, first * ROWS, 0), full.at(0));
    }
    full.at(0).wait(0);
    y[first as usize * BOX + t] = tile[63 - t];
}

/// Fewer bytes are announced than arrive.
#[kernel(block = (64), dynamic_shared = BYTES, shared = 8, arch = 90, len(y = n))]
pub fn bytes_not_announced(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let (t, first) = start(n, &full);
    thread::sync_threads();
    if t == 0 {
        full.at(0).arrive_expect(BYTES - 64);
        tile.load_box(0, &boxes, (0, first * ROWS, 0), full.at(0));
    }
    full.at(0).wait(0);
    y[first as usize * BOX + t] = tile[63 - t];
}

/// Two boxes are copied, and the bytes of one are announced.
#[kernel(block = (64), dynamic_shared = 2 * BYTES, shared = 8, arch = 90, len(y = n))]
pub fn bytes_of_one_box(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let (t, first) = start(n, &full);
    thread::sync_threads();
    if t == 0 {
        full.at(0).arrive_expect(BYTES);
        for i in 0..2 {
            tiles.load_box(i * BOX, &boxes, (0, (first + i as u32) * ROWS, 0), full.at(0));
        }
    }
    full.at(0).wait(0);
    for i in 0..2 {
        y[(first as usize + i) * BOX + t] = tiles[i * BOX + 63 - t];
    }
}

/// Waits for parity 0 in every round: in the second round that phase has already ended.
#[kernel(block = (64), dynamic_shared = BYTES, shared = 8, arch = 90, len(y = n))]
pub fn parity_not_turned(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    if t == 0 {
        full.at(0).init(1);
        mbarrier::fence_init();
    }
    for number in first..first + rounds {
        thread::sync_threads();
        if t == 0 {
            full.at(0).arrive_expect(BYTES);
            tile.load_box(0, &boxes, (0, number * ROWS, 0), full.at(0));
        }
        full.at(0).wait(0);
        y[number as usize * BOX + t] = tile[63 - t];
    }
}

/// Other threads use mbarriers that one thread has initialised, without a barrier in between.
#[kernel(block = (64), dynamic_shared = BYTES, shared = 8, arch = 90, len(y = n))]
pub fn no_barrier_after_init(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let t = thread::thread_idx_x() as usize;
    let (_, first) = boxes_of_block(n);
    if t == 0 {
        full.at(0).init(1);
        mbarrier::fence_init();
        full.at(0).arrive_expect(BYTES);
        tile.load_box(0, &boxes, (0, first * ROWS, 0), full.at(0));
    }
    full.at(0).wait(0);
    y[first as usize * BOX + t] = tile[63 - t];
}

/// Without `fence_init` a copy may not see that its mbarrier is initialised.
#[kernel(block = (64), dynamic_shared = BYTES, shared = 8, arch = 90, len(y = n))]
pub fn no_fence_after_init(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let t = thread::thread_idx_x() as usize;
    let (_, first) = boxes_of_block(n);
    if t == 0 {
        full.at(0).init(1);
    }
    thread::sync_threads();
    copy(&mut tile, boxes, &full, first);
    y[first as usize * BOX + t] = tile[63 - t];
}

/// An mbarrier is initialised in each round, although it already is one.
#[kernel(block = (64), dynamic_shared = BYTES, shared = 8, arch = 90, len(y = n))]
pub fn initialised_again(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    for number in first..first + rounds {
        thread::sync_threads();
        if t == 0 {
            full.at(0).init(1);
            mbarrier::fence_init();
        }
        thread::sync_threads();
        if t == 0 {
            full.at(0).arrive_expect(BYTES);
            tile.load_box(0, &boxes, (0, number * ROWS, 0), full.at(0));
        }
        full.at(0).wait(0);
        y[number as usize * BOX + t] = tile[63 - t];
    }
}

/// A thread writes to a stage that others may still read.
#[kernel(block = (64), dynamic_shared = BYTES, shared = 8, arch = 90, len(y = n))]
pub fn written_before_all_reads(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let (t, first) = start(n, &full);
    thread::sync_threads();
    copy(&mut tile, boxes, &full, first);
    let value = tile[63 - t];
    tile[t] = value + 1.0;
    y[first as usize * BOX + t] = tile[t];
}

/// A copy to a place where a thread has written: TMA does not see that the write came first.
#[kernel(block = (64), dynamic_shared = BYTES, shared = 8, arch = 90, len(y = n))]
pub fn written_before_the_copy(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let t = thread::thread_idx_x() as usize;
    tile[t] = 0.0;
    let (_, first) = start(n, &full);
    thread::sync_threads();
    copy(&mut tile, boxes, &full, first);
    y[first as usize * BOX + t] = tile[63 - t];
}

/// The same with a proxy fence after the write.
#[kernel(block = (64), dynamic_shared = BYTES, shared = 8, arch = 90, len(y = n))]
pub fn fenced_before_the_copy(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let t = thread::thread_idx_x() as usize;
    tile[t] = 0.0;
    fence_proxy_async();
    let (_, first) = start(n, &full);
    thread::sync_threads();
    copy(&mut tile, boxes, &full, first);
    y[first as usize * BOX + t] = tile[63 - t];
}

/// Nobody waits for the last copy: it may arrive after the block has ended.
#[kernel(block = (64), dynamic_shared = 2 * BYTES, shared = 16, arch = 90, len(y = n))]
pub fn ends_before_its_copy(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![2]);
    let t = thread::thread_idx_x() as usize;
    let (_, first) = boxes_of_block(n);
    if t == 0 {
        full.at(0).init(1);
        full.at(1).init(1);
        mbarrier::fence_init();
    }
    thread::sync_threads();
    if t == 0 {
        for i in 0..2 {
            full.at(i).arrive_expect(BYTES);
            tiles.load_box(i * BOX, &boxes, (0, (first + i as u32) * ROWS, 0), full.at(i));
        }
    }
    full.at(0).wait(0);
    y[first as usize * BOX + t] = tiles[63 - t];
}

/// Boxes that start in the middle of a row and end below the last one: what is outside is zero.
#[kernel(block = (64), dynamic_shared = 2 * BYTES, shared = 8, arch = 90, len(y = n))]
pub fn boxes_partly_outside(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let t = thread::thread_idx_x() as usize;
    let row = thread::block_idx_x() * ROWS;
    if t == 0 {
        full.at(0).init(1);
        mbarrier::fence_init();
    }
    thread::sync_threads();
    if t == 0 {
        full.at(0).arrive_expect(2 * BYTES);
        tiles.load_box(0, &boxes, (0, row, 0), full.at(0));
        tiles.load_box(BOX, &boxes, (0, row + 1, 8), full.at(0));
    }
    full.at(0).wait(0);
    let i = row as usize * 16 + t;
    if i < n as usize {
        y[i] = tiles[t] + tiles[BOX + t];
    }
}

/// A stage is written by threads after all have read it, with a barrier in between.
#[kernel(block = (64), dynamic_shared = BYTES, shared = 8, arch = 90, len(y = n))]
pub fn written_after_all_reads(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let (t, first) = start(n, &full);
    thread::sync_threads();
    copy(&mut tile, boxes, &full, first);
    let value = tile[63 - t];
    thread::sync_threads();
    tile[t] = value + 1.0;
    thread::sync_threads();
    y[first as usize * BOX + t] = tile[63 - t];
}
