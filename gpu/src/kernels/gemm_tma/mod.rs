//! The general product of f32 on Hopper: tiles by the tensor memory accelerator, k split over warps and a cluster.
//!
//! What [the other family](super::gemm) leaves on the table is the issue slots: on Hopper every instruction that is no
//! multiply-add takes the place of one. So here
//!
//! * **the accelerator** copies the tiles, a box an instruction, which one lane gives: no addresses, no predicates, no
//!   zeros for the edges; and a warp waits for a stage's mbarrier, not for a barrier of the block. The warps take turns at
//!   filling the stages;
//! * **a thread** computes 8 x 16 elements of C: 24 reads of 128 bits for 512 multiply-adds,
//!   in an order that suits the register banks and that neither compiler changes: what is read is there a step of k later,
//!   or four ([`fragment`]);
//! * **a block** computes a tile. Where C is small or narrow, so is the tile: then warps that compute the same elements
//!   share the steps of k;
//! * **a cluster** shares a tile where there are fewer tiles than multiprocessors: its blocks split k between them. Parts
//!   of a sum are added in a fixed order at the end ([`parts`]);
//! * **a launch** begins while the one before it ends: a block says that the next may begin
//!   ([`let_next_begin`](grid::let_next_begin)) as soon as its mbarriers are there, and waits
//!   ([`wait_for_earlier`](grid::wait_for_earlier)) before its first access to global memory.
//!
//! ```text
//!   kernel                  warps  a warp's part  steps of k          stages  blocks a        a cluster
//!                                                 a stage and a warp          multiprocessor  splits k
//!   tma_f32_128x128x32_nn, _tn      4       64 x 64         32    32           3          2            no
//!   tma_f32_64x64x64_nn, _tn       4       64 x 64         64    16           3          2            by 1 to 8
//!   tma_f32_16x256x32_nn        4       16 x 256        32     8           3          2            by 1 to 8
//!   tma_f32_256x16x32_nn        4      256 x 16         32     8           3          2            by 1 to 8
//! ```
//!
//! For one wave of blocks there is another arrangement, with producers: [`rings`].
//!
//! Elements of B lie side by side along n, those of A along k (`nn`, as in BLAS) or along m (`tn`). What lies otherwise the
//! host puts before a kernel as B^T A^T, or copied and turned over ([`pad`](super::gemm::pad)). Rows begin at multiples of
//! sixteen bytes, or the accelerator does not take them; but there is a way ([`Shifted`](fragment::Shifted)), of which one
//! kernel makes use.
//!
//! Measured, version by version: docs/measurements.md, "By tensor copies".

mod fragment;
mod parts;
mod rings;

use self::fragment::{Fragment, Operand, Places, STEPS, Steps, place_of};
pub use self::{fragment::SLAB, rings::*};
use super::{
    device::*,
    gemm::{FOUR, epilogue::Epilogue},
};
use crate::problem::Problem;

/// A thread's elements of C.
type Sums<const ROWS: usize, const COLS: usize> = [[f32; COLS]; ROWS];

/// Rows of C that a thread computes, where nothing else is said.
const ROWS: usize = 8;

/// A tile of C of so many rows and columns, of which a warp of `ROW_LANES x COL_LANES` lanes computes 8 rows and `COLS`
/// columns a lane. The stages are `SLABS` slabs of 32 steps of k, whose steps the warps share that compute the same
/// elements.
#[inline(always)]
#[track_caller]
fn multiply<
    A: Operand,
    B: Operand,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const ROW_LANES: usize,
    const COL_LANES: usize,
    const COLS: usize,
    const SLABS: usize,
    const SLICES: usize,
    const THREADS: usize,
    const STAGES: usize,
>(
    problem: &Problem,
    (a, b): (&A, &B),
    (c, bias): (&mut Out<f32>, &In<f32>),
    pipeline: &Pipeline<STAGES>,
) {
    let (warps, warp_rows, warp_cols) = (THREADS / 32, ROW_LANES * ROWS, COL_LANES * COLS);
    const {
        let warps = TILE_ROWS / (ROW_LANES * ROWS) * (TILE_COLS / (COL_LANES * COLS));
        assert!(warps * SLICES == THREADS / 32, "each warp has a part of the tile, or of k");
        assert!(SLABS <= SLICES, "a warp's steps are of one slab");
    }
    let mut tiles = dynamic_shared![f32];
    let (slab_a, slab_b) = (TILE_ROWS * SLAB, TILE_COLS * SLAB);
    let stage_elements = (slab_a + slab_b) * SLABS;
    let stage_steps = (SLAB * SLABS) as u32;
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler sees that it is the same for all lanes.
    let (warp, lane) = (warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize, t % 32);
    let (down, across) = (TILE_ROWS / warp_rows, TILE_COLS / warp_cols);
    let (warp_row, warp_col) = (warp / across % down * warp_rows, warp % across * warp_cols);
    let first_row = thread::block_idx_y() as usize * TILE_ROWS;
    let first_col = thread::block_idx_x() as usize * TILE_COLS;
    // Blocks along z: those of a cluster share a product's tile, and each takes its part of the phases.
    let (rank, blocks) = match SLICES {
        1 => (0, 1),
        _ => (cluster::block_rank(), cluster::blocks()),
    };
    let product = thread::block_idx_z() / blocks;
    let phases = problem.k.div_ceil(stage_steps);
    let (mut next, end) = (phases * rank / blocks, phases * (rank + 1) / blocks);
    let mut left = end - next;

    if t == 0 {
        pipeline.init(warps as u32);
    }
    if t == 32 {
        a.prefetch();
        b.prefetch();
    }
    thread::sync_threads();
    // Up to here nothing of this launch depends on the ones before it.
    grid::let_next_begin();
    grid::wait_for_earlier();

    let mut producer = pipeline.producer();
    let mut fill = |tiles: &mut DynamicShared<f32>, by: usize| {
        if warp == by {
            let stage = producer.acquire_warp() * stage_elements;
            if warp::elect() {
                producer.announce((stage_elements * size_of::<f32>()) as u32);
                for slab in 0..SLABS {
                    let p = next * stage_steps + (slab * SLAB) as u32;
                    let at = stage + slab * (slab_a + slab_b);
                    a.load(tiles, at, product, (first_row as u32, p), producer.full());
                    let at = at + slab_a;
                    b.load(tiles, at, product, (first_col as u32, p), producer.full());
                }
            }
        }
        producer.advance();
        next += 1;
    };
    // The last stage is left free: it is filled when the first has been read, and so on.
    for _ in 0..left.min(STAGES as u32 - 1) {
        fill(&mut tiles, 0);
    }

    // The warp's steps of a stage: of a slab those from `first` to `end`.
    let slice = warp / (down * across);
    let (slab, first) = (slice * SLABS / SLICES, slice * SLABS % SLICES * SLAB / SLICES);
    let (first, end) = (first as u32, (first + SLAB * SLABS / SLICES) as u32);
    let slab = slab * (slab_a + slab_b);
    let (lane_row, lane_col) = place_of::<ROW_LANES>(lane);
    let rows = Places::<A, TILE_ROWS, ROW_LANES>::new(slab, warp_row, lane_row);
    let cols = Places::<B, TILE_COLS, COL_LANES>::new(slab + slab_a, warp_col, lane_col);
    let mut sums: Sums<ROWS, COLS> = [[0.0; COLS]; ROWS];
    let mut consumer = pipeline.consumer();
    if left > 0 {
        let steps = |stage, step: u32| Steps::new(&rows, &cols, stage, step as usize);
        let mut stage = consumer.wait_warp() * stage_elements;
        let mut step = first;
        let mut now = steps(stage, step);
        let mut fragment = Fragment::load(&rows, &cols, &tiles, now);
        while left > 0 {
            let mut next = now;
            fragment.multiply_add(&mut tiles, now, &mut sums, false, |tiles| {
                step += STEPS as u32;
                if step == end {
                    step = first;
                    left -= 1;
                    if left > 0 {
                        consumer.release_warp();
                        consumer.advance();
                        // The warps take turns at filling the stages.
                        if left >= STAGES as u32 - 1 {
                            fill(tiles, left as usize % warps);
                        }
                        stage = consumer.wait_warp() * stage_elements;
                    }
                }
                next = steps(stage, step);
                next
            });
            now = next;
        }
    }

    let mut epilogue = Epilogue::of_product(problem, product as usize, c, bias);
    let first = (first_row, first_col);
    if SLICES == 1 && epilogue.is_scaled_tile(first, (TILE_ROWS, TILE_COLS)) {
        match epilogue.is_wide() {
            true => store::<A, B, _, _, _, _, _, true>(&mut epilogue, first, &rows, &cols, &sums),
            false => store::<A, B, _, _, _, _, _, false>(&mut epilogue, first, &rows, &cols, &sums),
        }
        return;
    }
    // All have read the last stages, whose place the sums take.
    thread::sync_threads();
    let part = const { parts::part(TILE_ROWS, TILE_COLS) };
    parts::store::<_, _, _, _, _, _, _, _, SLICES>(&mut tiles, slice * part, &rows, &cols, &sums);
    parts::add::<A, TILE_ROWS, TILE_COLS, SLICES, THREADS, 4>(
        &mut tiles,
        part,
        (rank, blocks),
        first,
        &mut epilogue,
    );
}

/// Stores a thread's elements of a tile that is `alpha A B`.
#[inline(always)]
#[track_caller]
fn store<
    A: Operand,
    B: Operand,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const ROW_LANES: usize,
    const COL_LANES: usize,
    const COLS: usize,
    const WIDE: bool,
>(
    epilogue: &mut Epilogue<f32>,
    (first_row, first_col): (usize, usize),
    rows: &Places<A, TILE_ROWS, ROW_LANES>,
    cols: &Places<B, TILE_COLS, COL_LANES>,
    sums: &Sums<ROWS, COLS>,
) {
    for i in 0..ROWS {
        for j in (0..COLS).step_by(FOUR) {
            let four = [sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]];
            epilogue.store::<WIDE>(
                (first_row + rows.outer::<ROWS>(i), first_col + cols.outer::<COLS>(j)),
                four,
            );
        }
    }
}

/// Bytes of shared memory: for so many of stages, and where these have been for the parts of such a tile, four warps' each.
const fn shared_bytes(stages: usize, rows: usize, cols: usize) -> usize {
    let parts = parts::bytes(rows, cols, 4);
    if parts > stages { parts } else { stages }
}

/// 128 x 128 elements a block; A lies along k, B along n.
#[kernel(block = (128), dynamic_shared = 3 * 128 * 256, barriers = 3, min_blocks = 2, arch = 90, opt_level = 1, dependent)]
pub fn tma_f32_128x128x32_nn(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<128, 32, 128>(), b.boxes::<32, 128, 0>());
    multiply::<_, _, 128, 128, 8, 4, 16, 1, 1, 128, 3>(
        &problem,
        (&a, &b),
        (&mut c, &bias),
        &pipeline![3],
    );
}

/// 128 x 128 elements a block; A lies along m, B along n.
#[kernel(block = (128), dynamic_shared = 3 * 128 * 256, barriers = 3, min_blocks = 2, arch = 90, opt_level = 1, dependent)]
pub fn tma_f32_128x128x32_tn(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<32, 128, 0>(), b.boxes::<32, 128, 0>());
    multiply::<_, _, 128, 128, 8, 4, 16, 1, 1, 128, 3>(
        &problem,
        (&a, &b),
        (&mut c, &bias),
        &pipeline![3],
    );
}

/// 64 x 64 elements a block; A lies along k, B along n.
#[kernel(block = (128), dynamic_shared = shared_bytes(3 * 128 * 256, 64, 64), barriers = 3, min_blocks = 2, arch = 90, opt_level = 1, dependent)]
pub fn tma_f32_64x64x64_nn(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<64, 32, 128>(), b.boxes::<32, 64, 0>());
    multiply::<_, _, 64, 64, 8, 4, 16, 2, 4, 128, 3>(
        &problem,
        (&a, &b),
        (&mut c, &bias),
        &pipeline![3],
    );
}

/// 64 x 64 elements a block; A lies along m, B along n.
#[kernel(block = (128), dynamic_shared = shared_bytes(3 * 128 * 256, 64, 64), barriers = 3, min_blocks = 2, arch = 90, opt_level = 1, dependent)]
pub fn tma_f32_64x64x64_tn(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<32, 64, 0>(), b.boxes::<32, 64, 0>());
    multiply::<_, _, 64, 64, 8, 4, 16, 2, 4, 128, 3>(
        &problem,
        (&a, &b),
        (&mut c, &bias),
        &pipeline![3],
    );
}

/// 16 x 256 elements a block; A lies along k, B along n.
#[kernel(block = (128), dynamic_shared = shared_bytes(3 * 128 * 272, 16, 256), barriers = 3, min_blocks = 2, arch = 90, opt_level = 1, dependent)]
pub fn tma_f32_16x256x32_nn(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<16, 32, 128>(), b.boxes::<32, 256, 0>());
    multiply::<_, _, 16, 256, 2, 16, 16, 1, 4, 128, 3>(
        &problem,
        (&a, &b),
        (&mut c, &bias),
        &pipeline![3],
    );
}

/// 256 x 16 elements a block; A lies along k, B along n.
#[kernel(block = (128), dynamic_shared = shared_bytes(3 * 128 * 272, 256, 16), barriers = 3, min_blocks = 2, arch = 90, opt_level = 1, dependent)]
pub fn tma_f32_256x16x32_nn(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<256, 32, 128>(), b.boxes::<32, 16, 0>());
    multiply::<_, _, 256, 16, 32, 1, 16, 1, 4, 128, 3>(
        &problem,
        (&a, &b),
        (&mut c, &bias),
        &pipeline![3],
    );
}
