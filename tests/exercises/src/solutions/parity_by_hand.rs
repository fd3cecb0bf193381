//! A ring with mbarriers by hand: for which parity does the producer wait?
//!
//! Solution: The phase before phase 0 counts as ended, and it has parity 1. The consumers' first
//! arrival ends phase 0, for which the producer waits in its second round.

use super::device::{warpgroup::*, *};

/// Rows and columns of a block's tile of C, and k-steps of a stage.
const TILE: usize = 64;
const STAGES: usize = 2;
/// Elements of a box of 64 x 64, and of a stage: one of A and one of B.
const BOX: usize = TILE * TILE;
const STAGE: usize = 2 * BOX;
const BYTES: u32 = (STAGE * size_of::<Bf16>()) as u32;

/// C (m x n) = A (m x k) B (k x n), 64 x 64 elements a block: a producer warp beside a warpgroup of
/// consumers.
#[kernel(
    block = (128 + 32),
    dynamic_shared = STAGES * STAGE * size_of::<Bf16>(),
    shared = STAGES * 2 * size_of::<u64>(),
    arch = 90,
    len(c = m * n),
)]
pub fn parity_by_hand(
    m: u32,
    n: u32,
    k: u32,
    a: TensorMap<Bf16>,
    b: TensorMap<Bf16>,
    mut c: Out<Bf16>,
) {
    let full = mbarriers![STAGES];
    let empty = mbarriers![STAGES];
    let mut tiles = dynamic_shared![Bf16];
    let t = thread::thread_idx_x();
    let warp = warp::shuffle(warp::ALL, t / 32, 0);
    let (row, col) = (thread::block_idx_y() * TILE as u32, thread::block_idx_x() * TILE as u32);
    let phases = k.div_ceil(TILE as u32) as usize;
    if t == 0 {
        for stage in 0..STAGES {
            full.at(stage).init(1);
            empty.at(stage).init(1);
        }
        mbarrier::fence_init();
    }
    thread::sync_threads();

    if warp == 4 {
        let (of_a, of_b) = (a.boxes::<TILE, TILE, 128>(), b.boxes::<TILE, TILE, 128>());
        for phase in 0..phases {
            let (stage, round) = (phase % STAGES, (phase / STAGES) as u32);
            let (at, p) = (stage * STAGE, (phase * TILE) as u32);
            // In round 0 there is nothing to wait for: the phase before the first counts as ended,
            // and has parity 1.
            empty.at(stage).wait_warp((round + 1) % 2);
            if warp::elect() {
                full.at(stage).arrive_expect(BYTES);
                tiles.load_box(at, &of_a, (0, row, p), full.at(stage));
                tiles.load_box(at + BOX, &of_b, (0, p, col), full.at(stage));
            }
        }
        return;
    }

    let mut sums = Accumulators::<TILE>::zeroed();
    for phase in 0..phases {
        let (stage, round) = (phase % STAGES, (phase / STAGES) as u32);
        let at = stage * STAGE;
        full.at(stage).wait_warp(round % 2);
        sums.multiply_add(
            tiles.operand::<KMajor<TILE>>(at),
            tiles.operand::<MnMajor<TILE>>(at + BOX),
        );
        commit();
        wait::<0>();
        if t == 0 {
            empty.at(stage).arrive();
        }
    }

    let (m, n) = (m as usize, n as usize);
    sums.wait::<0>().for_each_pair(|of_row, of_col, two| {
        let (row, col) = ((row + of_row) as usize, (col + of_col) as usize);
        c.store_if(row * n + col, Bf16::from_two_f32(two), row < m && col < n);
    });
}
