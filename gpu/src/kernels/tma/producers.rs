//! One wave of blocks, with producer warps: for a C with about as many tiles as there are SMs.
//!
//! * **A block** has an SM for itself, and computes a tile of 72 x 80. Twelve warps divide the
//!   work:
//!
//! ```text
//!   slabs 4, 8, 12, ...    producer: warp 0     consumers: warps 4 and 5
//!   slabs 5, 9, 13, ...              warp 1                warps 6 and 7
//!   slabs 6, 10, 14, ...             warp 2                warps 8 and 9
//!   slabs 7, 11, 15, ...             warp 3                warps 10 and 11
//! ```
//!
//! * **A producer warp** fills a pipeline of two stages. A stage is a slab: 32 k-steps of the
//!   tile's rows of A and columns of B. After the first slabs the four pipelines are independent:
//!   the loop has no barrier of the block.
//! * **Two consumer warps** of a pipeline each compute half of the tile's columns. Of the last slab
//!   they multiply only the steps that there are, rounded up to eight.
//! * **A thread** computes 9 x 10 elements.
//! * **The first four slabs**, one in each pipeline, are for all: the consumers of every pipeline
//!   multiply a quarter of each. All blocks start at once, and L2 takes 1.8 us to deliver four
//!   slabs to each. So multiplying starts when one has arrived.
//! * **The parts** of a sum, one for each pipeline, are stored where its stages were, as soon as
//!   the pipeline is done. At the end all twelve warps add them ([`split_k`]).
//!
//! Only two warps a scheduler multiply, so each of their instructions that is no multiply-add
//! shows. Tiles of 72 x 80 cover 1000 x 700 with 126 blocks on 132 SMs; 96 % of their elements are
//! in C.

use super::{
    collective::{
        epilogue::Epilogue,
        fragment::{Fragment, SLAB, STEPS, Steps, ThreadRows, idle, place_of},
        vector::FOUR,
    },
    device::*,
    operand::Operand,
    split_k,
};
use crate::params::GemmParams;

/// Rows and columns of a block's tile.
pub const TILE: (usize, usize) = (72, 80);
/// Rows and columns of a thread.
const EACH: (usize, usize) = (9, 10);
/// Lanes of a warp: down and across.
const LANES: (usize, usize) = (8, 4);
/// Pipelines, with a producer each.
pub const RINGS: usize = 4;
/// Consumers of a pipeline.
const CONSUMERS: usize = TILE.1 / (LANES.1 * EACH.1);
/// Stages of a pipeline.
pub const STAGES: usize = 2;
/// The last of the first slabs, which are for all; and the last slab of those that follow them in
/// each pipeline.
const FIRST: u32 = RINGS as u32 - 1;
const LAST_AFTER: u32 = FIRST + RINGS as u32;
/// Groups of four steps in a round of the main loop, and rounds of a slab.
const ROUND: u32 = (STEPS / FOUR) as u32;
const ROUNDS: u32 = (SLAB / STEPS) as u32;
/// Threads of a block.
pub const THREADS: usize = 32 * RINGS * (1 + CONSUMERS);
/// Elements of a slab of A, and of a step of B.
const SLAB_A: usize = TILE.0 * SLAB;
const STEP_B: usize = TILE.1;
/// Elements of a stage.
pub const STAGE: usize = SLAB_A + SLAB * STEP_B;
/// Elements of a stage with an unaligned A. B has a few more steps.
pub const UNALIGNED_STAGE: usize = (SLAB_A + (SLAB + FOUR) * STEP_B).next_multiple_of(256);

/// Computes a tile of C, with stages of `STAGE` elements.
#[inline(always)]
#[track_caller]
pub fn multiply<A: Operand, B: Operand, const STAGE: usize>(
    problem: &GemmParams,
    (a, b): (&A, &B),
    (c, bias): (&mut Out<f32>, &In<f32>),
    pipeline: &Pipeline<{ RINGS * STAGES }>,
) {
    let mut tiles = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
    let (warp, lane) = (warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize, t % 32);
    let (first_row, first_col) =
        (thread::block_idx_y() * TILE.0 as u32, thread::block_idx_x() * TILE.1 as u32);
    let product = thread::block_idx_z();
    // Readers of the first slabs: all consumers; and readers of a pipeline.
    let (begun, read) = (mbarriers![1], mbarriers![4]);
    if t == 0 {
        pipeline.init(CONSUMERS as u32);
        begun.at(0).init((32 * RINGS * CONSUMERS) as u32);
        for ring in 0..RINGS {
            read.at(ring).init(32 * CONSUMERS as u32);
        }
        mbarrier::fence_init();
    }
    if t == 32 {
        a.prefetch();
        b.prefetch();
    }
    thread::sync_threads();
    // Nothing before this point depends on earlier launches.
    grid::let_next_begin();
    grid::wait_for_earlier();

    let consumer = warp.checked_sub(RINGS);
    let number = consumer.map_or(warp, |consumer| consumer / CONSUMERS);
    let ring = |number: usize| pipeline.part::<STAGES>(number * STAGES);
    let stage_of = |ring: usize, stage: usize| (ring * STAGES + stage) * STAGE;
    // K-steps, up to the last one of the lanes with the largest shift, three; and the steps of B
    // that these reach back.
    let (steps, back) = if A::UNALIGNED { (problem.k + 3, FOUR) } else { (problem.k, 0) };
    let slabs = steps.div_ceil(SLAB as u32);

    let (lane_row, lane_col) = place_of::<{ LANES.0 }>(lane);
    let shift = if A::UNALIGNED { lane_row as u32 % 4 * problem.a[0] as u32 % 4 } else { 0 };
    let first_b = SLAB_A + (back - shift as usize) * STEP_B;
    let of_warp = consumer.unwrap_or(0) % CONSUMERS * (LANES.1 * EACH.1);
    let rows = ThreadRows::<A, { TILE.0 }, { LANES.0 }>::new(0, 0, lane_row);
    let cols = ThreadRows::<B, { TILE.1 }, { LANES.1 }>::new(first_b, of_warp, lane_col);
    let mut sums = [[0.0; EACH.1]; EACH.0];
    // Each lane arrives for itself: `compute-sanitizer` does not accept one lane's arrival for its
    // warp.
    let tell = || begun.at(0).arrive();
    if consumer.is_none() {
        let load = |tiles: &mut DynamicShared<f32>, at: usize, slab: u32, full: Mbarrier| {
            let p = slab * SLAB as u32;
            a.load(tiles, at, product, (first_row, p), full);
            b.load(tiles, at + SLAB_A, product, (first_col, p.wrapping_sub(back as u32)), full);
        };
        // One lane issues the first two slabs of each pipeline, so that they arrive in this order.
        let first = (RINGS * STAGES) as u32;
        if warp == 0 && warp::elect() {
            for slab in 0..first.min(slabs) {
                let (number, stage) = (slab as usize % RINGS, slab as usize / RINGS);
                let stage_alone = pipeline.part::<1>(number * STAGES + stage);
                let producer = stage_alone.producer();
                producer.announce(A::BYTES + B::BYTES);
                load(&mut tiles, stage_of(number, stage), slab, producer.full());
            }
        }
        let (ring, mut slab) = (ring(number), first + number as u32);
        let mut producer = ring.producer();
        for _ in 0..STAGES {
            producer.advance();
        }
        if slab < slabs {
            begun.at(0).wait_warp(0);
        }
        while slab < slabs {
            let at = stage_of(number, producer.acquire_warp());
            if warp::elect() {
                producer.announce(A::BYTES + B::BYTES);
                load(&mut tiles, at, slab, producer.full());
            }
            producer.advance();
            slab += RINGS as u32;
        }
        // Without an instruction here, the compiler clears the sums in each round of the loop.
        warp::sync_warp(warp::ALL);
    } else {
        let of_all = |slab: u32| pipeline.part::<1>(slab as usize * STAGES);
        let ring = ring(number);
        let mut consumer = ring.consumer();
        let steps_of = |stage, step: u32| Steps::new(&rows, &cols, stage, step as usize);
        // The pipeline's quarter of the first slabs is one round. Further slabs are four rounds.
        let quarter = (number * STEPS) as u32;
        // Counted in groups of four steps. With a shift a few steps may be left over, for which
        // half a round is enough.
        let least = const { if A::UNALIGNED { FOUR } else { STEPS } } as u32;
        let groups_of = |steps: u32, most: u32| {
            let groups = steps.next_multiple_of(least) / FOUR as u32;
            if groups < most { groups } else { most }
        };
        let (mut slab, mut step) = (0, quarter);
        if quarter < steps {
            of_all(slab).consumer().wait_warp();
            let mut stage = stage_of(0, 0);
            let mut groups = groups_of(steps - quarter, ROUND);
            let mut now = steps_of(stage, step);
            let mut fragment = Fragment::load(&rows, &cols, &tiles, now);
            if A::UNALIGNED && number == 0 {
                fragment.clear_before(shift);
            }
            let mut ended = false;
            while !ended {
                let mut next = now;
                let half = A::UNALIGNED && groups == 1;
                ended = half;
                fragment.multiply_add(&mut tiles, now, &mut sums, (half, idle), |_| {
                    step += STEPS as u32;
                    groups -= ROUND;
                    if groups == 0 {
                        slab += match slab {
                            0..FIRST => 1,
                            FIRST => 1 + number as u32,
                            _ => RINGS as u32,
                        };
                        let is_for_all = slab <= FIRST;
                        step = if is_for_all { quarter } else { 0 };
                        let p = slab * SLAB as u32 + step;
                        ended = p >= steps;
                        if is_for_all && !ended {
                            groups = groups_of(steps - p, ROUND);
                            of_all(slab).consumer().wait_warp();
                            stage = stage_of(slab as usize, 0);
                        } else if !ended {
                            groups = groups_of(steps - p, ROUNDS * ROUND);
                            consumer.release_warp();
                            if slab <= LAST_AFTER {
                                tell();
                            }
                            consumer.advance();
                            stage = stage_of(number, consumer.wait_warp());
                        }
                    }
                    next = steps_of(stage, step);
                    next
                });
                now = next;
            }
        }
        if slab <= LAST_AFTER {
            fence_proxy_async();
            tell();
        }
        begun.at(0).wait_warp(0);
        // Everybody has read the first slabs, and then the consumers of the pipeline its stages.
        // Their part takes the place of these.
        read.at(number).arrive();
        read.at(number).wait_warp(0);
        split_k::store::<_, _, _, _, _, _, _, _, RINGS>(
            &mut tiles,
            stage_of(number, 0),
            &rows,
            &cols,
            &sums,
        );
    }
    let mut epilogue = Epilogue::of_product(problem, product as usize, c, bias);
    let first = (first_row as usize, first_col as usize);
    split_k::reduce::<A, { TILE.0 }, { TILE.1 }, RINGS, THREADS, 4>(
        &mut tiles,
        STAGES * STAGE,
        (0, 1),
        first,
        &mut epilogue,
    );
}
