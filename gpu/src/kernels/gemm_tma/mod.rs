//! The general product of f32 on Hopper: tiles by the tensor memory accelerator, k split over warps and a cluster.
//!
//! What [the other family](super::gemm) leaves on the table is the issue slots: on Hopper every instruction that is no
//! multiply-add takes the place of one. So here
//!
//! * **the accelerator** copies the tiles, a box an instruction, which one thread gives: no addresses, no predicates, no
//!   zeros for the edges; and a thread waits for a stage's mbarrier, not for a barrier of the block;
//! * **a warp** computes 64 x 64 elements of C, **a thread** 8 x 16: 24 reads of 128 bits for 512 multiply-adds
//!   ([`fragment`]), all in an order that neither compiler changes: what is read is there four steps of k later;
//! * **a block** of four warps computes 128 x 128 elements; or 64 x 64, where C is small: then each of its warps takes a
//!   quarter of the steps of k;
//! * **a cluster** shares a tile where there are fewer tiles than multiprocessors: its blocks split k between them. Parts
//!   of a sum are added in a fixed order at the end ([`parts`]).
//!
//! ```text
//!   stage of a 128 x 128 tile         of a 64 x 64 tile
//!   A  128 rows x 16 steps of k       64 rows x 16 steps, four times: one for each warp
//!   B  16 steps x 128 columns         16 steps x 64 columns, four times
//! ```
//!
//! A matrix's elements lie side by side along k or along its outer side, m or n: the accelerator takes both, and for each
//! combination there is a kernel, named as in BLAS: `n` where A lies along k and where B lies along n, else `t`. Rows
//! begin at multiples of sixteen bytes, or the accelerator does not take them.

mod fragment;
mod parts;

pub use self::fragment::SLAB;
use self::fragment::{COLS, Cols, Fragment, Operand, ROWS, Rows};
use super::{
    device::*,
    gemm::{FOUR, epilogue::Epilogue},
};
use crate::problem::Problem;

/// Threads of a block: four warps.
pub const THREADS: usize = 128;
const WARPS: usize = THREADS / 32;
/// Rows and columns of C that a warp computes.
const WARP_TILE: usize = 64;

/// A thread's elements of C.
type Sums = [[f32; COLS]; ROWS];

/// A stage's elements: a slab of each operand for each of the `SLICES` that k is split into within the block.
const fn stage_elements(tile: usize, slices: usize) -> usize {
    2 * tile * SLAB * slices
}

/// A `TILE x TILE` tile of C, in stages of `SLICES` slabs of 16 steps of k, of which each warp takes one.
#[inline(always)]
#[track_caller]
fn multiply<A: Operand, B: Operand, const TILE: usize, const SLICES: usize, const STAGES: usize>(
    problem: &Problem,
    (a, b): (&A, &B),
    (c, bias): (&mut Out<f32>, &In<f32>),
    pipeline: &Pipeline<STAGES>,
) {
    const {
        let tiles = TILE / WARP_TILE;
        assert!(tiles * tiles * SLICES == WARPS, "each warp has a part of the tile, or of k");
    }
    let mut tiles = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    let (warp, lane) = (t / 32, t % 32);
    let across = TILE / WARP_TILE;
    let slice = warp / (across * across);
    let (warp_row, warp_col) = (warp / across % across * WARP_TILE, warp % across * WARP_TILE);
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    // Blocks along z: those of a cluster share a product's tile, and each takes its part of the phases.
    let (rank, blocks) = (cluster::block_rank(), cluster::blocks());
    let product = thread::block_idx_z() / blocks;
    let phases = problem.k.div_ceil((SLAB * SLICES) as u32);
    let (mut next, end) = (phases * rank / blocks, phases * (rank + 1) / blocks);
    let mut left = end - next;

    if t == 0 {
        pipeline.init(WARPS as u32);
    }
    thread::sync_threads();

    let tile_b = TILE * SLAB * SLICES;
    let mut producer = pipeline.producer();
    let mut begin_copies = |tiles: &mut DynamicShared<f32>| {
        let elements = stage_elements(TILE, SLICES);
        let stage = producer.acquire((elements * size_of::<f32>()) as u32) * elements;
        for slab in 0..SLICES {
            let p = next * (SLAB * SLICES) as u32 + (slab * SLAB) as u32;
            let at = stage + slab * TILE * SLAB;
            a.load(tiles, at, product, (first_row as u32, p), producer.full());
            b.load(tiles, at + tile_b, product, (first_col as u32, p), producer.full());
        }
        producer.advance();
        next += 1;
    };
    // The last stage is left free: it is filled in the first phase, like those that follow.
    if t == 0 {
        for _ in 0..left.min(STAGES as u32 - 1) {
            begin_copies(&mut tiles);
        }
    }

    let rows = Rows::<A, TILE>::new(slice * TILE * SLAB, warp_row, lane);
    let cols = Cols::<B, TILE>::new(tile_b + slice * TILE * SLAB, warp_col, lane);
    let mut sums: Sums = [[0.0; COLS]; ROWS];
    let mut consumer = pipeline.consumer();
    if left > 0 {
        let mut stage = consumer.wait() * stage_elements(TILE, SLICES);
        let mut fragment = Fragment::load::<0, A, B, TILE>(&tiles, stage, &rows, &cols);
        loop {
            if t == 0 && left > STAGES as u32 - 1 {
                begin_copies(&mut tiles);
            }
            // Four groups of four steps of k. Each reads the next one's elements before it multiplies its last.
            let next = || Fragment::load::<1, A, B, TILE>(&tiles, stage, &rows, &cols);
            fragment = fragment.multiply_add::<0, B, TILE>(&tiles, stage, &cols, &mut sums, next);
            let next = || Fragment::load::<2, A, B, TILE>(&tiles, stage, &rows, &cols);
            fragment = fragment.multiply_add::<1, B, TILE>(&tiles, stage, &cols, &mut sums, next);
            let next = || Fragment::load::<3, A, B, TILE>(&tiles, stage, &rows, &cols);
            fragment = fragment.multiply_add::<2, B, TILE>(&tiles, stage, &cols, &mut sums, next);
            left -= 1;
            let mut next_stage = stage;
            fragment = fragment.multiply_add::<3, B, TILE>(&tiles, stage, &cols, &mut sums, || {
                if left == 0 {
                    return Fragment::NONE;
                }
                consumer.release_warp();
                consumer.advance();
                next_stage = consumer.wait() * stage_elements(TILE, SLICES);
                Fragment::load::<0, A, B, TILE>(&tiles, next_stage, &rows, &cols)
            });
            stage = next_stage;
            if left == 0 {
                break;
            }
        }
    }

    let mut epilogue = Epilogue::of_product(problem, product as usize, c, bias);
    let is_whole = SLICES == 1 && blocks == 1;
    if is_whole && epilogue.is_scaled_sum() {
        for i in 0..ROWS {
            let row = first_row + rows.outer(i);
            for part in 0..COLS / FOUR {
                let mut four = [0.0; FOUR];
                four.copy_from_slice(&sums[i][part * FOUR..part * FOUR + FOUR]);
                let col = first_col + cols.outer(part * FOUR);
                match B::K_MAJOR {
                    true => epilogue.finish::<true, { fragment::COL_LANES }>((row, col), four),
                    false => epilogue.finish::<true, 1>((row, col), four),
                }
            }
        }
        return;
    }
    // All have read the last stages, whose place the sums take.
    thread::sync_threads();
    parts::store::<A, B, TILE>(&mut tiles, slice, (&rows, &cols), &sums);
    cluster::sync();
    parts::add::<TILE, SLICES>(&tiles, (rank, blocks), (first_row, first_col), &mut epilogue);
    // Others may still read this block's.
    cluster::sync();
}

/// 128 x 128 elements a block; A lies along k, B along n.
#[kernel(block = (THREADS), dynamic_shared = 4 * 128 * 128, barriers = 2, min_blocks = 2, arch = 90, opt_level = 1)]
pub fn gemm_tma_128_nn(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<128, 16, 64>(), b.boxes::<16, 128, 0>());
    multiply::<_, _, 128, 1, 4>(&problem, (&a, &b), (&mut c, &bias), &pipeline![4]);
}

/// 128 x 128 elements a block; A and B lie along k.
#[kernel(block = (THREADS), dynamic_shared = 4 * 128 * 128, barriers = 2, min_blocks = 2, arch = 90, opt_level = 1)]
pub fn gemm_tma_128_nt(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<128, 16, 64>(), b.boxes::<128, 16, 64>());
    multiply::<_, _, 128, 1, 4>(&problem, (&a, &b), (&mut c, &bias), &pipeline![4]);
}

/// 128 x 128 elements a block; A lies along m, B along n.
#[kernel(block = (THREADS), dynamic_shared = 4 * 128 * 128, barriers = 2, min_blocks = 2, arch = 90, opt_level = 1)]
pub fn gemm_tma_128_tn(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<16, 128, 0>(), b.boxes::<16, 128, 0>());
    multiply::<_, _, 128, 1, 4>(&problem, (&a, &b), (&mut c, &bias), &pipeline![4]);
}

/// 128 x 128 elements a block; A lies along m, B along k.
#[kernel(block = (THREADS), dynamic_shared = 4 * 128 * 128, barriers = 2, min_blocks = 2, arch = 90, opt_level = 1)]
pub fn gemm_tma_128_tt(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<16, 128, 0>(), b.boxes::<128, 16, 64>());
    multiply::<_, _, 128, 1, 4>(&problem, (&a, &b), (&mut c, &bias), &pipeline![4]);
}

/// 64 x 64 elements a block; A lies along k, B along n.
#[kernel(block = (THREADS), dynamic_shared = 3 * 128 * 256, barriers = 2, min_blocks = 2, arch = 90, opt_level = 1)]
pub fn gemm_tma_64_nn(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<64, 16, 64>(), b.boxes::<16, 64, 0>());
    multiply::<_, _, 64, 4, 3>(&problem, (&a, &b), (&mut c, &bias), &pipeline![3]);
}

/// 64 x 64 elements a block; A and B lie along k.
#[kernel(block = (THREADS), dynamic_shared = 3 * 128 * 256, barriers = 2, min_blocks = 2, arch = 90, opt_level = 1)]
pub fn gemm_tma_64_nt(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<64, 16, 64>(), b.boxes::<64, 16, 64>());
    multiply::<_, _, 64, 4, 3>(&problem, (&a, &b), (&mut c, &bias), &pipeline![3]);
}

/// 64 x 64 elements a block; A lies along m, B along n.
#[kernel(block = (THREADS), dynamic_shared = 3 * 128 * 256, barriers = 2, min_blocks = 2, arch = 90, opt_level = 1)]
pub fn gemm_tma_64_tn(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<16, 64, 0>(), b.boxes::<16, 64, 0>());
    multiply::<_, _, 64, 4, 3>(&problem, (&a, &b), (&mut c, &bias), &pipeline![3]);
}

/// 64 x 64 elements a block; A lies along m, B along k.
#[kernel(block = (THREADS), dynamic_shared = 3 * 128 * 256, barriers = 2, min_blocks = 2, arch = 90, opt_level = 1)]
pub fn gemm_tma_64_tt(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<16, 64, 0>(), b.boxes::<64, 16, 64>());
    multiply::<_, _, 64, 4, 3>(&problem, (&a, &b), (&mut c, &bias), &pipeline![3]);
}
