//! `wgmma` reads shared memory through the async proxy. Does it see what `cp.async` has written?
//!
//! Solution: fence_proxy_async() after the writes (here: after wait_group), before the barrier.

use super::device::{warpgroup::*, *};

/// Rows and columns of a block's tile of C, and k-steps of a stage.
const TILE: usize = 64;
const STAGES: usize = 3;
/// Elements of a stage: A's tile, and B's.
const STAGE: usize = 2 * TILE * TILE;
/// Elements of sixteen bytes.
const GROUP: usize = 8;

/// The place of a group of eight elements in a tile with rows of 64: the 128-byte swizzle, which
/// `wgmma` expects.
fn place(row: usize, group: usize) -> usize {
    row * TILE + (group ^ (row % 8)) * GROUP
}

/// C (m x n) = A (m x k) B (k x n), 64 x 64 elements a block. n and k are multiples of eight.
#[kernel(
    block = (128),
    dynamic_shared = STAGES * STAGE * size_of::<Bf16>(),
    arch = 90,
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn proxy_fence(m: u32, n: u32, k: u32, a: In<Bf16>, b: In<Bf16>, mut c: Out<Bf16>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tiles = dynamic_shared![Bf16];
    let t = thread::thread_idx_x() as usize;
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    // Begins this thread's copies of a phase. Outside A and B zeros are written.
    let begin = |tiles: &mut DynamicShared<Bf16>, phase: usize| {
        let (stage, p) = (phase % STAGES * STAGE, phase * TILE);
        for i in 0..4 {
            let (row, group) = (t / 8 + i * 16, t % 8);
            let (to, at) = (stage + place(row, group), (first_row + row, p + group * GROUP));
            tiles.copy_async::<GROUP>(to, &a, at.0 * k + at.1, at.0 < m && at.1 < k);
            let at = (p + row, first_col + group * GROUP);
            let inside = at.0 < k && at.1 < n;
            tiles.copy_async::<GROUP>(to + TILE * TILE, &b, at.0 * n + at.1, inside);
        }
    };

    for phase in 0..STAGES - 1 {
        begin(&mut tiles, phase);
        copies::commit_group();
    }
    let mut sums = Accumulators::<TILE>::zeroed();
    for phase in 0..k.div_ceil(TILE) {
        // This thread's copies for this phase are done, and visible to the tensor cores; after the
        // barrier, everybody's.
        copies::wait_group::<{ STAGES as u32 - 2 }>();
        fence_proxy_async();
        thread::sync_threads();
        begin(&mut tiles, phase + STAGES - 1);
        copies::commit_group();
        let at = phase % STAGES * STAGE;
        sums.multiply_add(
            tiles.operand::<KMajor<TILE>>(at),
            tiles.operand::<MnMajor<TILE>>(at + TILE * TILE),
        );
        commit();
        wait::<0>();
    }

    sums.wait::<0>().for_each_pair(|row, col, two| {
        let (row, col) = (first_row + row as usize, first_col + col as usize);
        c.store_if(row * n + col, Bf16::from_two_f32(two), row < m && col < n);
    });
}
