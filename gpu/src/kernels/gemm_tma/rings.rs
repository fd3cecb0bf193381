//! One wave of blocks, with producers: for a C with about as many tiles as there are multiprocessors.
//!
//! There a block has a multiprocessor for itself, two warps of it a scheduler multiply, and each of their instructions that
//! is no multiply-add shows. So twelve warps divide the work:
//!
//! ```text
//!   slabs 0, 4, 8, ...     producer: warp 0     consumers: warps 4 and 5
//!   slabs 1, 5, 9, ...               warp 1                warps 6 and 7
//!   slabs 2, 6, 10, ...              warp 2                warps 8 and 9
//!   slabs 3, 7, 11, ...              warp 3                warps 10 and 11
//! ```
//!
//! * **A slab** is 32 steps of k of the tile's rows of A and columns of B. The last one may have fewer steps; then its
//!   consumers multiply as many as there are, to eight.
//! * **A producer** has a ring of two stages, of a slab each. Rings know nothing of each other: no barrier in the loop is the block's.
//! * **Two consumers** each compute half of the tile's columns, 9 x 10 elements a thread.
//! * **The parts** of the sum that the rings have are added up at the end, by all twelve warps ([`parts`](super::parts)).
//!
//! Tiles of 72 x 80 cover 1000 x 700 with 126 blocks for 132 multiprocessors, 96 % of whose elements are C's.

use super::{
    super::{device::*, gemm::epilogue::Epilogue},
    FOUR,
    fragment::{Fragment, Operand, Places, SLAB, STEPS, Shifted, Steps, place_of},
    parts,
};
use crate::problem::Problem;

/// Rows and columns of a block's tile.
const TILE: (usize, usize) = (72, 80);
/// A thread's.
const EACH: (usize, usize) = (9, 10);
/// Lanes of a warp.
const LANES: (usize, usize) = (8, 4);
/// Rings with a producer each, consumers of a ring, and its stages.
const RINGS: usize = 4;
const CONSUMERS: usize = TILE.1 / (LANES.1 * EACH.1);
const STAGES: usize = 2;
const THREADS: usize = 32 * RINGS * (1 + CONSUMERS);
/// Elements of a slab of A, and of a step of B.
const SLAB_A: usize = TILE.0 * SLAB;
const STEP_B: usize = TILE.1;
/// Elements of a stage: of slabs, or of slabs with some steps of B before.
const STAGE: usize = SLAB_A + SLAB * STEP_B;
const SHIFTED_STAGE: usize = (SLAB_A + (SLAB + FOUR) * STEP_B).next_multiple_of(256);

/// A tile of C, through rings of such stages.
#[inline(always)]
#[track_caller]
fn multiply<A: Operand, B: Operand, const STAGE: usize>(
    problem: &Problem,
    (a, b): (&A, &B),
    (c, bias): (&mut Out<f32>, &In<f32>),
    pipeline: &Pipeline<{ RINGS * STAGES }>,
) {
    let mut tiles = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler sees that it is the same for all lanes.
    let (warp, lane) = (warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize, t % 32);
    let (first_row, first_col) =
        (thread::block_idx_y() * TILE.0 as u32, thread::block_idx_x() * TILE.1 as u32);
    let product = thread::block_idx_z();
    if t == 0 {
        pipeline.init(CONSUMERS as u32);
    }
    thread::sync_threads();
    // Up to here nothing of this launch depends on the ones before it.
    grid::let_next_begin();
    grid::wait_for_earlier();

    let consumer = warp.checked_sub(RINGS);
    let number = consumer.map_or(warp, |consumer| consumer / CONSUMERS);
    let (ring, first_stage) = (pipeline.part::<STAGES>(number * STAGES), number * STAGES * STAGE);
    // Steps of k, to the last one of the lanes that are furthest behind, by three; and steps of B that these reach back.
    let (steps, back) = if A::SHIFTED { (problem.k + 3, FOUR) } else { (problem.k, 0) };
    // The first step of the ring's next slab.
    let mut p = (number * SLAB) as u32;
    let further = (RINGS * SLAB) as u32;

    let (lane_row, lane_col) = place_of::<{ LANES.0 }>(lane);
    let shift = if A::SHIFTED { lane_row as u32 % 4 * problem.a[0] as u32 % 4 } else { 0 };
    let first_b = first_stage + SLAB_A + (back - shift as usize) * STEP_B;
    let of_warp = consumer.unwrap_or(0) % CONSUMERS * (LANES.1 * EACH.1);
    let rows = Places::<A, { TILE.0 }, { LANES.0 }>::new(first_stage, 0, lane_row);
    let cols = Places::<B, { TILE.1 }, { LANES.1 }>::new(first_b, of_warp, lane_col);
    let mut sums = [[0.0; EACH.1]; EACH.0];
    if consumer.is_none() {
        let mut producer = ring.producer();
        while p < steps {
            let at = first_stage + producer.acquire_warp() * STAGE;
            if warp::elect() {
                producer.announce(A::BYTES + B::BYTES);
                a.load(&mut tiles, at, product, (first_row, p), producer.full());
                let of_b = (first_col, p.wrapping_sub(back as u32));
                b.load(&mut tiles, at + SLAB_A, product, of_b, producer.full());
            }
            producer.advance();
            p += further;
        }
        // Something here, or the compiler clears the sums in each round of the loop.
        warp::sync_warp(warp::ALL);
    } else if p < steps {
        let mut consumer = ring.consumer();
        let steps_of = |stage, step: u32| Steps::new(&rows, &cols, stage, step as usize);
        let mut stage = consumer.wait_warp() * STAGE;
        let (mut left, mut step, mut ended) = (steps - p, 0, false);
        let mut now = steps_of(stage, step);
        let mut fragment = Fragment::load(&rows, &cols, &tiles, now);
        if A::SHIFTED && p == 0 {
            fragment.clear_before(shift);
        }
        while !ended {
            let mut next = now;
            fragment.multiply_add(&mut tiles, now, &mut sums, |_| {
                step += STEPS as u32;
                if step >= left.min(SLAB as u32) {
                    step = 0;
                    ended = left <= further;
                    if !ended {
                        left -= further;
                        consumer.release_warp();
                        consumer.advance();
                        stage = consumer.wait_warp() * STAGE;
                    }
                }
                next = steps_of(stage, step);
                next
            });
            now = next;
        }
    }

    // All have read the last stages, whose place the sums take.
    thread::sync_threads();
    if consumer.is_some() {
        parts::store::<_, _, _, _, _, _, _, _, RINGS>(&mut tiles, number, &rows, &cols, &sums);
    }
    let mut epilogue = Epilogue::of_product(problem, product as usize, c, bias);
    let first = (first_row as usize, first_col as usize);
    parts::add::<A, { TILE.0 }, { TILE.1 }, RINGS, THREADS, 4>(
        &mut tiles,
        (0, 1),
        first,
        &mut epilogue,
    );
}

/// 72 x 80 elements a block; A lies along k, B along n.
#[kernel(block = (THREADS), dynamic_shared = RINGS * STAGES * STAGE * size_of::<f32>(), barriers = 3, min_blocks = 1, arch = 90, opt_level = 1, dependent)]
pub fn gemm_tma_72x80_nn(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<72, 32, 128>(), b.boxes::<32, 80, 0>());
    multiply::<_, _, STAGE>(&problem, (&a, &b), (&mut c, &bias), &pipeline![8]);
}

/// 72 x 80 elements a block; A lies along k, its rows begin anywhere; B along n. The maps are of every fourth row of A.
#[kernel(block = (THREADS), dynamic_shared = RINGS * STAGES * SHIFTED_STAGE * size_of::<f32>(), barriers = 3, min_blocks = 1, arch = 90, opt_level = 1, dependent)]
pub fn gemm_tma_72x80_on(
    problem: Problem,
    a0: TensorMap<f32>,
    a1: TensorMap<f32>,
    a2: TensorMap<f32>,
    a3: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) =
        (Shifted([a0, a1, a2, a3].map(|a| a.boxes::<18, 32, 128>())), b.boxes::<36, 80, 0>());
    multiply::<_, _, SHIFTED_STAGE>(&problem, (&a, &b), (&mut c, &bias), &pipeline![8]);
}
