//! How many stages: enough to load ahead, and few enough for several blocks on an SM.
//!
//! Solution: 228 KiB / 4, less 1 KiB that each block takes besides: how many stages fit?

use super::device::{mma::Accumulators, *};

/// Rows and columns of a block's tile of C, and k-steps of a stage.
const TILE: usize = 64;
const STAGES: usize = 3;
/// Elements of a stage: A's tile, and B's.
const STAGE: usize = 2 * TILE * TILE;
/// Elements of sixteen bytes.
const GROUP: usize = 8;

/// The place of a group of eight elements in a tile with rows of 64.
fn place(row: usize, group: usize) -> usize {
    row * TILE + (group ^ (row % 8)) * GROUP
}

/// C (m x n) = A (m x k) B (k x n), 64 x 64 elements a block, 32 x 32 a warp. n and k are multiples
/// of eight.
#[kernel(
    block = (128),
    dynamic_shared = STAGES * STAGE * size_of::<Bf16>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn stages_and_blocks(m: u32, n: u32, k: u32, a: In<Bf16>, b: In<Bf16>, mut c: Out<Bf16>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tiles = dynamic_shared![Bf16];
    let t = thread::thread_idx_x() as usize;
    let (warp, lane) = (t / 32, t % 32);
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    let (warp_row, warp_col) = (warp / 2 * 32, warp % 2 * 32);
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
    let mut sums = Accumulators::<2, 2>::zeroed();
    for phase in 0..k.div_ceil(TILE) {
        // This thread's copies for this phase are done; after the barrier, everybody's.
        copies::wait_group::<{ STAGES as u32 - 2 }>();
        thread::sync_threads();
        begin(&mut tiles, phase + STAGES - 1);
        copies::commit_group();
        let (tile_a, tile_b) = (phase % STAGES * STAGE, phase % STAGES * STAGE + TILE * TILE);
        for step in 0..TILE / 16 {
            let rows = [0, 1].map(|i| {
                let row = warp_row + i * 16 + lane % 16;
                tiles.load_fragment(tile_a + place(row, step * 2 + lane / 16))
            });
            let cols = [0, 1].map(|j| {
                let row = step * 16 + lane / 16 * 8 + lane % 8;
                let group = warp_col / GROUP + j * 2 + lane / 8 % 2;
                tiles.load_fragment_either(tile_b + place(row, group), true)
            });
            sums.multiply_add(&rows, &cols);
        }
    }

    let mut store = |part: usize, row: u32, col: u32, two: [f32; 2]| {
        let row = first_row + warp_row + part * 16 + row as usize;
        let col = first_col + warp_col + col as usize;
        c.store_if(row * n + col, Bf16::from_two_f32(two), row < m && col < n);
    };
    sums.for_each_pair_of::<0>(|row, col, two| store(0, row, col, two));
    sums.for_each_pair_of::<1>(|row, col, two| store(1, row, col, two));
}
