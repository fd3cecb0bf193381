//! Mbarriers, rings of stages between warps, and copies of boxes. x, or y, is a matrix of sixteen
//! columns, and a box has four rows.

use simt::checked::*;

use super::kernel::{Right, here, mirrored, right};

pub(super) static ALL: &[Right] = &[
    right(&phase_after_phase, 256, |i| i as f32 + 6.0),
    right(&polls_before_it_waits, 256, |i| mirrored(i) as f32),
    right(&a_parity_for_each_round, 1024, |i| mirrored(i) as f32),
    right(&boxes_out_in_turns, 1024, |i| mirrored(i) as f32),
];

/// Rows and elements of a box, and bytes.
const ROWS: u32 = 4;
const BOX: usize = 64;
const BYTES: u32 = 256;
/// Boxes of a block that has several.
const ROUNDS: u32 = 4;

/// Parities alternate, and with two buffers one wait for each phase is enough.
#[kernel(block = (64), shared = 2 * 64 * 4 + 8)]
fn phase_after_phase(x: In<f32>, mut y: Out<f32>, _words: Out<u32>) {
    let (mut lines, told) = (shared![f32; 2, 64], mbarriers![1]);
    let (t, i) = here();
    if t == 0 {
        told.at(0).init(64);
        mbarrier::fence_init();
    }
    thread::sync_threads();
    let mut value = x[i];
    for round in 0..6 {
        lines[(round % 2, t)] = value + 1.0;
        told.at(0).arrive();
        told.at(0).wait(round as u32 % 2);
        value = lines[(round % 2, 63 - t)];
    }
    y[i] = value;
}

/// A warp polls for a count in shared memory. The other warp adds to it before it arrives.
#[kernel(block = (64), shared = 64 * 4 + 4 + 8)]
fn polls_before_it_waits(x: In<f32>, mut y: Out<f32>, _words: Out<u32>) {
    let (mut tile, mut count, told) = (shared![f32; 64], shared![u32; 1], mbarriers![1]);
    let (t, i) = here();
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

/// One stage. All have read it, and there are a proxy fence and a barrier before the next copy.
#[kernel(block = (64), dynamic_shared = BYTES, shared = 8)]
fn a_parity_for_each_round(x: TensorMap<f32>, mut y: Out<f32>, _words: Out<u32>) {
    let (mut tile, boxes, full) = (dynamic_shared![f32], x.boxes::<4, 16, 0>(), mbarriers![1]);
    let t = thread::thread_idx_x() as usize;
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

/// Two buffers alternate. The copying thread waits for the copy before the last, and a barrier
/// signals that to the others.
#[kernel(block = (64), dynamic_shared = 2 * BYTES)]
fn boxes_out_in_turns(x: In<f32>, y: TensorMapMut<f32>, _words: Out<u32>) {
    let (mut tiles, boxes) = (dynamic_shared![f32], y.boxes::<4, 16, 0>());
    let t = thread::thread_idx_x() as usize;
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
