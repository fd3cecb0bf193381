//! TMA: one thread copies whole boxes, and an mbarrier counts their bytes.
//!
//! * **A block** of one warpgroup computes a 64 x 256 tile of C, in stages of 64 k-steps, as
//!   before.
//! * **A warp** waits for a stage at its *mbarrier*, and multiplies it with the others.
//! * **A thread** copies nothing, except thread 0. It announces the bytes of a stage at the
//!   mbarrier and issues five copies: a box of 64 rows of A, and four of 64 columns of B.
//!
//! A *tensor map* describes a matrix and the shape of its boxes. The host makes it. The TMA unit
//! computes all addresses, writes the swizzle, and fills in zeros outside the matrix: that is the
//! boundary check of A and B. Its writes are in the async proxy, so no proxy fence is needed.
//!
//! ```text
//!   thread 0     announce 40 KiB at full[s], issue five copies     (four stages ahead)
//!   TMA          copies; counts the bytes at full[s]
//!   all          wait for full[s]; multiply; barrier               then stage s is filled again
//! ```
//!
//! TMA reads rows that begin at multiples of sixteen bytes. Matrices with other rows are packed
//! first, by a launch of its own.
//!
//! A stage is used again and again. So an mbarrier has phases, and a waiting thread says for which
//! of two *parities* it waits: 0 in the first round of the stages, 1 in the second, and so on.

use super::device::{warpgroup::*, *};

/// Rows and columns of a block's tile of C.
const ROWS: usize = 64;
const COLS: usize = 256;
/// K-steps of a stage.
const DEPTH: usize = 64;
const STAGES: u32 = 4;
/// Elements of a box, and of a stage: a box of A and four of B.
const BOX: usize = 64 * DEPTH;
const STAGE: usize = (ROWS + COLS) * DEPTH;

/// C (m x n) = A (m x k) B (k x n), tiles of 64 x 256, four stages by TMA.
#[kernel(
    block = (128),
    dynamic_shared = STAGES as usize * STAGE * size_of::<Bf16>(),
    shared = STAGES as usize * size_of::<u64>(),
    barriers = 2,
    min_blocks = 1,
    arch = 90,
    len(c = m * n),
)]
pub fn tensor_tma(
    m: u32,
    n: u32,
    k: u32,
    a: TensorMap<Bf16>,
    b: TensorMap<Bf16>,
    mut c: Out<Bf16>,
) {
    let full = mbarriers![STAGES as usize];
    let mut tiles = dynamic_shared![Bf16];
    let t = thread::thread_idx_x();
    let (row, col) = (thread::block_idx_y() * ROWS as u32, thread::block_idx_x() * COLS as u32);
    let (of_a, of_b) = (a.boxes::<64, DEPTH, 128>(), b.boxes::<DEPTH, 64, 128>());

    let phases = k.div_ceil(DEPTH as u32);
    // Fills the stage of a phase. One thread does this.
    let begin = |tiles: &mut DynamicShared<Bf16>, phase: u32| {
        let stage = (phase % STAGES) as usize;
        let (at, full, p) = (stage * STAGE, full.at(stage), phase * DEPTH as u32);
        full.arrive_expect((STAGE * size_of::<Bf16>()) as u32);
        tiles.load_box(at, &of_a, (0, row, p), full);
        for j in 0..4 {
            tiles.load_box(at + (1 + j) * BOX, &of_b, (0, p, col + j as u32 * 64), full);
        }
    };
    if t == 0 {
        for stage in 0..STAGES as usize {
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
    let mut sums = Accumulators::<COLS>::zeroed();
    for phase in 0..phases {
        let stage = (phase % STAGES) as usize;
        full.at(stage).wait_warp(phase / STAGES % 2);
        sums.multiply_add(
            tiles.operand::<KMajor<DEPTH>>(stage * STAGE),
            tiles.operand::<MnMajor<DEPTH>>(stage * STAGE + BOX),
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
    let pairs = n % 2 == 0 && c.misalignment::<4>() == 0;
    sums.wait::<0>().for_each_pair(|of_row, of_col, two| {
        let (row, col) = ((row + of_row) as usize, (col + of_col) as usize);
        let (at, two) = (row * n + col, Bf16::from_two_f32(two));
        if pairs {
            c.store_if(at, two, row < m && col < n);
        } else {
            c.store_if(at, [two[0]], row < m && col < n);
            c.store_if(at + 1, [two[1]], row < m && col + 1 < n);
        }
    });
}
