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

/// How a block's boxes are copied and read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    InsideSixteenBytes,
    MoreBytes,
    FewerBytes,
    NoBarrier,
    NoFenceAfterInit,
    WrittenBefore,
    WrittenBeforeAFence,
    WrittenBehindReads,
    WrittenBehindABarrier,
    InitialisedOnce,
    InitialisedAgain,
}

/// The block's first box.
#[inline(always)]
fn first_box(n: u32, x: TensorMap<f32>, mut y: Out<f32>, way: Way) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let t = thread::thread_idx_x() as usize;
    let (_, first) = boxes_of_block(n);
    let col = if way == Way::InsideSixteenBytes { 6 } else { 0 };
    let bytes = match way {
        Way::MoreBytes => BYTES + 64,
        Way::FewerBytes => BYTES - 64,
        _ => BYTES,
    };
    if matches!(way, Way::WrittenBefore | Way::WrittenBeforeAFence) {
        tile[t] = 0.0;
    }
    if way == Way::WrittenBeforeAFence {
        fence_proxy_async();
    }
    if t == 0 {
        full.at(0).init(1);
        if way != Way::NoFenceAfterInit {
            mbarrier::fence_init();
        }
    }
    if way != Way::NoBarrier {
        thread::sync_threads();
    }
    if t == 0 {
        full.at(0).arrive_expect(bytes);
        tile.load_box(0, &boxes, (0, first * ROWS, col), full.at(0));
    }
    full.at(0).wait(0);
    if matches!(way, Way::WrittenBehindReads | Way::WrittenBehindABarrier) {
        let value = tile[63 - t];
        if way == Way::WrittenBehindABarrier {
            thread::sync_threads();
        }
        tile[t] = value + 1.0;
        if way == Way::WrittenBehindReads {
            y[first as usize * BOX + t] = tile[t];
            return;
        }
        thread::sync_threads();
    }
    y[first as usize * BOX + t] = tile[63 - t];
}

/// All boxes, each of which is waited for by parity 0.
#[inline(always)]
fn all_boxes(n: u32, x: TensorMap<f32>, mut y: Out<f32>, way: Way) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    if way == Way::InitialisedOnce && t == 0 {
        full.at(0).init(1);
        mbarrier::fence_init();
    }
    for number in first..first + rounds {
        thread::sync_threads();
        if way == Way::InitialisedAgain {
            if t == 0 {
                full.at(0).init(1);
                mbarrier::fence_init();
            }
            thread::sync_threads();
        }
        if t == 0 {
            full.at(0).arrive_expect(BYTES);
            tile.load_box(0, &boxes, (0, number * ROWS, 0), full.at(0));
        }
        full.at(0).wait(0);
        y[number as usize * BOX + t] = tile[63 - t];
    }
}

/// Kernels with that number of barriers.
macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident: $boxes:ident($way:ident), $barriers:tt;)*) => {$(
        $(#[$doc])*
        #[kernel(block = (64), dynamic_shared = BYTES, shared = 8, barriers = $barriers, arch = 90, len(y = n))]
        pub fn $name(n: u32, x: TensorMap<f32>, y: Out<f32>) {
            $boxes(n, x, y, Way::$way);
        }
    )*};
}

kernels! {
    /// A box starts at a column that is eight bytes after a multiple of sixteen: TMA does not copy
    /// it.
    begins_inside_sixteen_bytes: first_box(InsideSixteenBytes), 1;
    /// More bytes are announced than arrive.
    bytes_that_never_come: first_box(MoreBytes), 1;
    /// Fewer bytes are announced than arrive.
    bytes_not_announced: first_box(FewerBytes), 1;
    /// Other threads use mbarriers that one thread has initialised, without a barrier in between.
    no_barrier_after_init: first_box(NoBarrier), 0;
    /// Without `fence_init` a copy may not see that its mbarrier is initialised.
    no_fence_after_init: first_box(NoFenceAfterInit), 1;
    /// A thread writes to a stage that others may still read.
    written_before_all_reads: first_box(WrittenBehindReads), 1;
    /// A stage is written by threads after all have read it, with a barrier in between.
    written_after_all_reads: first_box(WrittenBehindABarrier), 3;
    /// A copy to a place where a thread has written: TMA does not see that the write came first.
    written_before_the_copy: first_box(WrittenBefore), 1;
    /// The same with a proxy fence after the write.
    fenced_before_the_copy: first_box(WrittenBeforeAFence), 1;
    /// Waits for parity 0 in every round: in the second round that phase has already ended.
    parity_not_turned: all_boxes(InitialisedOnce), 1;
    /// An mbarrier is initialised in each round, although it already is one.
    initialised_again: all_boxes(InitialisedAgain), 2;
}

/// Two boxes are copied, and the bytes of one are announced.
#[kernel(block = (64), dynamic_shared = 2 * BYTES, shared = 8, arch = 90, len(y = n))]
pub fn bytes_of_one_box(n: u32, x: TensorMap<f32>, mut y: Out<f32>) {
    let (mut tiles, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let t = thread::thread_idx_x() as usize;
    let (_, first) = boxes_of_block(n);
    if t == 0 {
        full.at(0).init(1);
        mbarrier::fence_init();
    }
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
