//! Copies of boxes to global memory.
//!
//! All kernels have y as a matrix of sixteen columns. A box is four of its rows, and a block writes
//! `rounds` boxes, one after another. Thread `t` puts the box's element of x at `63 - t`, and
//! thread 0 copies.

use super::{
    device::*,
    tma::{BOX, BYTES, ROWS, boxes_of_block},
};

/// How a block's boxes are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Right,
    NotFenced,
    NoBarrier,
    NotCommitted,
    NotWaited,
    InsideSixteenBytes,
    WaitedTooLate,
}

/// The block's first box.
#[inline(always)]
fn first_box(n: u32, x: In<f32>, y: TensorMapMut<f32>, way: Way) {
    let (mut tile, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let (_, first) = boxes_of_block(n);
    let col = if way == Way::InsideSixteenBytes { 6 } else { 0 };
    tile[63 - t] = x[first as usize * BOX + t];
    if way != Way::NotFenced {
        fence_proxy_async();
    }
    if way != Way::NoBarrier {
        thread::sync_threads();
    }
    if t == 0 {
        tile.store_box(0, &boxes, (0, first * ROWS, col));
        if way != Way::NotCommitted {
            bulk::commit_group();
        }
        if way != Way::NotWaited {
            bulk::wait_group_read::<0>();
        }
    }
}

/// All boxes, from one place.
#[inline(always)]
fn all_boxes(n: u32, x: In<f32>, y: TensorMapMut<f32>, way: Way) {
    let (mut tile, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    for number in first..first + rounds {
        thread::sync_threads();
        if way == Way::WaitedTooLate && t == 0 {
            bulk::wait_group_read::<0>();
        }
        tile[63 - t] = x[number as usize * BOX + t];
        fence_proxy_async();
        thread::sync_threads();
        if t == 0 {
            tile.store_box(0, &boxes, (0, number * ROWS, 0));
            bulk::commit_group();
        }
    }
    if t == 0 {
        bulk::wait_group_read::<0>();
    }
}

/// All boxes, from two places in turn.
#[inline(always)]
fn in_turns(n: u32, x: In<f32>, y: TensorMapMut<f32>, way: Way) {
    let (mut tiles, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    for number in first..first + rounds {
        let tile = number as usize % 2 * BOX;
        if t == 0 {
            match way {
                Way::WaitedTooLate => bulk::wait_group_read::<2>(),
                _ => bulk::wait_group_read::<1>(),
            }
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

/// The first box twice.
#[inline(always)]
fn twice(n: u32, x: In<f32>, y: TensorMapMut<f32>, way: Way) {
    let (mut tile, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let (_, first) = boxes_of_block(n);
    for round in 0..2 {
        tile[63 - t] = x[first as usize * BOX + t] * round as f32;
        fence_proxy_async();
        thread::sync_threads();
        if t == 0 {
            tile.store_box(0, &boxes, (0, first * ROWS, 0));
            bulk::commit_group();
            match way {
                Way::NotWaited => bulk::wait_group_read::<0>(),
                _ => bulk::wait_group::<0>(),
            }
        }
        thread::sync_threads();
    }
}

/// Kernels with that number of places for boxes, and of barriers.
macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident: $boxes:ident($way:ident), $places:tt, $barriers:tt;)*) => {$(
        $(#[$doc])*
        #[kernel(block = (64), dynamic_shared = $places * BYTES, barriers = $barriers, arch = 90, len(x = n))]
        pub fn $name(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
            $boxes(n, x, y, Way::$way);
        }
    )*};
}

kernels! {
    /// The next box is written to a place where the last one may still be read.
    written_under_a_store: all_boxes(NotWaited), 1, 2;
    /// The thread that copies has waited, and the others write before they know that.
    waited_behind_the_barrier: all_boxes(WaitedTooLate), 1, 2;
    /// Two buffers alternate, and one group too many may still be reading.
    one_store_too_few: in_turns(WaitedTooLate), 2, 2;
    /// TMA does not see what threads have written, although there is a barrier in between.
    stored_without_a_fence: first_box(NotFenced), 1, 1;
    /// No barrier is between the threads' writes and the copy.
    stored_before_the_barrier: first_box(NoBarrier), 1, 0;
    /// The block may end before its memory has been read.
    ends_under_a_store: first_box(NotWaited), 1, 1;
    /// A copy that is in no group is not waited for.
    stored_in_no_group: first_box(NotCommitted), 1, 1;
    /// A box starts at a column that is eight bytes after a multiple of sixteen: TMA does not copy
    /// it.
    stored_inside_sixteen_bytes: first_box(InsideSixteenBytes), 1, 1;
    /// A box is written again. That the first copy has read its memory does not mean that it has
    /// written. (The compiler unrolls the loop, with its two barriers.)
    stored_again_too_early: twice(NotWaited), 1, 4;
    /// A box is written again after the first copy has written.
    stored_again: twice(Right), 1, 4;
    /// Two buffers alternate. The thread that copies waits for the copy before the last, and a
    /// barrier signals that to the others.
    stored_in_turns: in_turns(Right), 2, 2;
}

/// Two blocks write a box.
#[kernel(block = (64), dynamic_shared = BYTES, arch = 90, len(x = n))]
pub fn two_blocks_store(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
    let (mut tile, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let number = thread::block_idx_x() / 2;
    tile[63 - t] = x[(number as usize * BOX + t) % n as usize];
    fence_proxy_async();
    thread::sync_threads();
    if t == 0 {
        tile.store_box(0, &boxes, (0, number * ROWS, 0));
        bulk::commit_group();
        bulk::wait_group_read::<0>();
    }
}

/// Boxes that end below the last row: what is outside is not written.
#[kernel(block = (64), dynamic_shared = BYTES, arch = 90, len(x = n))]
pub fn stored_partly_outside(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
    let (mut tile, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let number = thread::block_idx_x();
    tile[t] = x[(number as usize * BOX + t) % n as usize];
    fence_proxy_async();
    thread::sync_threads();
    if t == 0 {
        tile.store_box(0, &boxes, (0, number * ROWS, 0));
        bulk::commit_group();
        bulk::wait_group_read::<0>();
    }
}
