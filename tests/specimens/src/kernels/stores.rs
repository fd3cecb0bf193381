//! Copies of boxes to global memory.
//!
//! All kernels have y as a matrix of sixteen columns. A box is four of its rows, and a block writes
//! `rounds` boxes, one after another. Thread `t` puts the box's element of x at `63 - t`, and
//! thread 0 copies.

use super::{
    device::*,
    tma::{BOX, BYTES, ROWS, boxes_of_block},
};

/// The next box is written to a place where the last one may still be read.
#[kernel(block = (64), dynamic_shared = BYTES, arch = 90, len(x = n))]
pub fn written_under_a_store(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
    let (mut tile, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    for number in first..first + rounds {
        thread::sync_threads();
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

/// The thread that copies has waited, and the others write before they know that.
#[kernel(block = (64), dynamic_shared = BYTES, arch = 90, len(x = n))]
pub fn waited_behind_the_barrier(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
    let (mut tile, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    for number in first..first + rounds {
        thread::sync_threads();
        if t == 0 {
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

/// Two buffers alternate, and one group too many may still be reading.
#[kernel(block = (64), dynamic_shared = 2 * BYTES, arch = 90, len(x = n))]
pub fn one_store_too_few(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
    let (mut tiles, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    for number in first..first + rounds {
        let tile = number as usize % 2 * BOX;
        if t == 0 {
            bulk::wait_group_read::<2>();
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

/// TMA does not see what threads have written, although there is a barrier in between.
#[kernel(block = (64), dynamic_shared = BYTES, arch = 90, len(x = n))]
pub fn stored_without_a_fence(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
    let (mut tile, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let (_, first) = boxes_of_block(n);
    tile[63 - t] = x[first as usize * BOX + t];
    thread::sync_threads();
    if t == 0 {
        tile.store_box(0, &boxes, (0, first * ROWS, 0));
        bulk::commit_group();
        bulk::wait_group_read::<0>();
    }
}

/// No barrier is between the threads' writes and the copy.
#[kernel(block = (64), dynamic_shared = BYTES, arch = 90, len(x = n))]
pub fn stored_before_the_barrier(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
    let (mut tile, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let (_, first) = boxes_of_block(n);
    tile[63 - t] = x[first as usize * BOX + t];
    fence_proxy_async();
    if t == 0 {
        tile.store_box(0, &boxes, (0, first * ROWS, 0));
        bulk::commit_group();
        bulk::wait_group_read::<0>();
    }
}

/// The block may end before its memory has been read.
#[kernel(block = (64), dynamic_shared = BYTES, arch = 90, len(x = n))]
pub fn ends_under_a_store(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
    let (mut tile, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let (_, first) = boxes_of_block(n);
    tile[63 - t] = x[first as usize * BOX + t];
    fence_proxy_async();
    thread::sync_threads();
    if t == 0 {
        tile.store_box(0, &boxes, (0, first * ROWS, 0));
        bulk::commit_group();
    }
}

/// A copy that is in no group is not waited for.
#[kernel(block = (64), dynamic_shared = BYTES, arch = 90, len(x = n))]
pub fn stored_in_no_group(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
    let (mut tile, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let (_, first) = boxes_of_block(n);
    tile[63 - t] = x[first as usize * BOX + t];
    fence_proxy_async();
    thread::sync_threads();
    if t == 0 {
        tile.store_box(0, &boxes, (0, first * ROWS, 0));
        bulk::wait_group_read::<0>();
    }
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

/// A box is written again. That the first copy has read its memory does not mean that it has
/// written.
// The compiler unrolls the loop, with its two barriers.
#[kernel(block = (64), dynamic_shared = BYTES, barriers = 4, arch = 90, len(x = n))]
pub fn stored_again_too_early(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
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
            bulk::wait_group_read::<0>();
        }
        thread::sync_threads();
    }
}

/// A box starts at a column that is eight bytes after a multiple of sixteen: TMA does not copy it.
#[kernel(block = (64), dynamic_shared = BYTES, arch = 90, len(x = n))]
pub fn stored_inside_sixteen_bytes(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
    let (mut tile, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let (_, first) = boxes_of_block(n);
    tile[63 - t] = x[first as usize * BOX + t];
    fence_proxy_async();
    thread::sync_threads();
    if t == 0 {
        tile.store_box(0, &boxes, (0, first * ROWS, 6));
        bulk::commit_group();
        bulk::wait_group_read::<0>();
    }
}

/// Two buffers alternate. The thread that copies waits for the copy before the last, and a barrier
/// signals that to the others.
#[kernel(block = (64), dynamic_shared = 2 * BYTES, arch = 90, len(x = n))]
pub fn stored_in_turns(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
    let (mut tiles, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
    let (rounds, first) = boxes_of_block(n);
    for number in first..first + rounds {
        let tile = number as usize % 2 * BOX;
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

/// A box is written again after the first copy has written.
// The compiler unrolls the loop, with its two barriers.
#[kernel(block = (64), dynamic_shared = BYTES, barriers = 4, arch = 90, len(x = n))]
pub fn stored_again(n: u32, x: In<f32>, y: TensorMapMut<f32>) {
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
            bulk::wait_group::<0>();
        }
        thread::sync_threads();
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
