//! A stage is filled again and again. For which of its rounds does a thread wait?
//!
//! Solution: With two stages phase p is in round p / 2, and the parity is that of the round.

use super::device::{warpgroup::*, *};

/// Rows and columns of a block's tile of C, and k-steps of a stage.
const TILE: usize = 64;
const STAGES: usize = 2;
/// Elements of a box of 64 x 64, and of a stage: one of A and one of B.
const BOX: usize = TILE * TILE;
const STAGE: usize = 2 * BOX;
const BYTES: u32 = (STAGE * size_of::<Bf16>()) as u32;

/// C (m x n) = A (m x k) B (k x n), 64 x 64 elements a block, stages by TMA.
#[kernel(
    block = (128),
    dynamic_shared = STAGES * STAGE * size_of::<Bf16>(),
    shared = STAGES * size_of::<u64>(),
    arch = 90,
    len(c = m * n),
)]
pub fn parity_of_a_round(
    m: u32,
    n: u32,
    k: u32,
    a: TensorMap<Bf16>,
    b: TensorMap<Bf16>,
    mut c: Out<Bf16>,
) {
    let full = mbarriers![STAGES];
    let mut tiles = dynamic_shared![Bf16];
    let t = thread::thread_idx_x();
    let (row, col) = (thread::block_idx_y() * TILE as u32, thread::block_idx_x() * TILE as u32);
    let (of_a, of_b) = (a.boxes::<TILE, TILE, 128>(), b.boxes::<TILE, TILE, 128>());
    let phases = k.div_ceil(TILE as u32) as usize;
    // Fills the stage of a phase. One thread does this.
    let begin = |tiles: &mut DynamicShared<Bf16>, phase: usize| {
        let (at, full) = (phase % STAGES * STAGE, full.at(phase % STAGES));
        let p = (phase * TILE) as u32;
        full.arrive_expect(BYTES);
        tiles.load_box(at, &of_a, (0, row, p), full);
        tiles.load_box(at + BOX, &of_b, (0, p, col), full);
    };

    if t == 0 {
        for stage in 0..STAGES {
            full.at(stage).init(1);
        }
        mbarrier::fence_init();
    }
    // Nobody waits or copies before the mbarriers are initialised.
    thread::sync_threads();
    if t == 0 {
        for phase in 0..STAGES.min(phases) {
            begin(&mut tiles, phase);
        }
    }
    let mut sums = Accumulators::<TILE>::zeroed();
    for phase in 0..phases {
        let at = phase % STAGES * STAGE;
        full.at(phase % STAGES).wait_warp((phase / STAGES % 2) as u32);
        sums.multiply_add(
            tiles.operand::<KMajor<TILE>>(at),
            tiles.operand::<MnMajor<TILE>>(at + BOX),
        );
        commit();
        wait::<0>();
        // The MMAs of all warps have read the stage.
        thread::sync_threads();
        if t == 0 && phase + STAGES < phases {
            begin(&mut tiles, phase + STAGES);
        }
    }

    let (m, n) = (m as usize, n as usize);
    sums.wait::<0>().for_each_pair(|of_row, of_col, two| {
        let (row, col) = ((row + of_row) as usize, (col + of_col) as usize);
        c.store_if(row * n + col, Bf16::from_two_f32(two), row < m && col < n);
    });
}
