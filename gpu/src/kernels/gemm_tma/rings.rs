//! One wave of blocks whose operands come from producers: for a C with about as many tiles as there are multiprocessors.
//!
//! There a block has a multiprocessor for itself, with two warps a scheduler that multiply, and every instruction of theirs
//! that is no multiply-add shows. So twelve warps divide the work:
//!
//! ```text
//!   ring 0   slabs 0, 4, 8, ...    producer: warp 8     consumers: warps 0 and 1
//!   ring 1   slabs 1, 5, 9, ...              warp 9                warps 2 and 3
//!   ring 2   slabs 2, 6, 10, ...             warp 10               warps 4 and 5
//!   ring 3   slabs 3, 7, 11, ...             warp 11               warps 6 and 7
//! ```
//!
//! * **A slab** is 32 steps of k of the tile's rows of A and columns of B. The last one may have fewer; then its ring's
//!   consumers multiply as many steps as there are, to eight.
//! * **A ring** has two stages, of a slab each. Rings know nothing of each other: nobody waits for a whole block.
//! * **Two consumers** each compute half of the tile's columns, 9 x 10 elements a thread.
//! * **The parts** of the sum that the rings have are added up at the end, by all twelve warps ([`parts`](super::parts)).
//!
//! Tiles of 72 x 80 cover 1000 x 700 with 126 blocks for 132 multiprocessors, 98 % of whose elements are C's.
//!
//! # Rows that begin anywhere
//!
//! The accelerator takes rows at multiples of sixteen bytes. Others a producer copies itself, element by element, 32
//! neighbours an instruction ([`Elements`]): 2.5 % of the scheduler's instructions for A, and no copy of the operand before.

use super::{
    super::{device::*, gemm::epilogue::Epilogue},
    fragment::{Fragment, Operand, Places, SLAB, STEPS, Steps, place_of},
    parts,
};
use crate::problem::Problem;

/// Rows and columns of a block's tile.
const TILE: (usize, usize) = (72, 80);
/// A thread's.
const EACH: (usize, usize) = (9, 10);
/// Lanes of a warp.
const LANES: (usize, usize) = (8, 4);
/// Rings, and the consumers of each.
const RINGS: usize = 4;
const CONSUMERS: usize = TILE.1 / (LANES.1 * EACH.1);
/// Stages, of a slab each.
const STAGES: usize = 11;
const THREADS: usize = 32 * RINGS * (CONSUMERS + 1);
/// Elements of a stage.
const SLAB_A: usize = TILE.0 * SLAB;
const STAGE: usize = SLAB_A + TILE.1 * SLAB;

/// An operand whose elements a producer copies itself: `LEN` rows (columns) a tile, along k or along the outer side.
pub struct Elements<'a, const LEN: usize, const K_MAJOR: bool> {
    matrix: &'a In<f32>,
    /// Elements from one row, and from one product's matrix, to the next.
    pitch: usize,
    step: usize,
    /// Rows (columns), and steps of k.
    count: u32,
    k: u32,
}

impl<const LEN: usize, const K_MAJOR: bool> Elements<'_, LEN, K_MAJOR> {
    /// Rows of A, side by side along k. Rows past the last one are the last one again: nobody stores what comes of them.
    #[inline(always)]
    #[track_caller]
    fn load_rows<const WHOLE: bool>(
        &self,
        tiles: &mut DynamicShared<f32>,
        at: usize,
        matrix: usize,
        (first, p): (u32, u32),
    ) {
        let lane = thread::thread_idx_x() % 32;
        let inside = WHOLE || p + lane < self.k;
        let last = self.count - 1;
        let start = self.matrix.after(matrix + (p + lane) as usize);
        for row in 0..stays(8) {
            // The swizzle of the accelerator's boxes.
            let to = at + row as usize * SLAB + (lane ^ (row * 4)) as usize;
            let outer = first + row;
            let mut from = start.after(outer as usize * self.pitch);
            for i in 0..LEN / 8 {
                if !WHOLE {
                    from = start.after(last.min(outer + i as u32 * 8) as usize * self.pitch);
                }
                tiles.copy_async::<1>(to + i * 8 * SLAB, &from, 0, inside);
                from = from.after(8 * self.pitch);
            }
        }
    }

    /// Rows of B, side by side along n.
    #[inline(always)]
    #[track_caller]
    fn load_steps<const WHOLE: bool>(
        &self,
        tiles: &mut DynamicShared<f32>,
        at: usize,
        matrix: usize,
        (first, p): (u32, u32),
    ) {
        let lane = thread::thread_idx_x() % 32;
        let first = first + lane;
        let mut to = at + lane as usize;
        let start = matrix + p as usize * self.pitch + first as usize;
        let (mut from, mut p) = (self.matrix.after(start), p);
        for _ in 0..stays(SLAB / 4) {
            for _ in 0..4 {
                for i in (0..LEN).step_by(32) {
                    if i + 32 <= LEN || lane < (LEN - i) as u32 {
                        let inside = WHOLE || (first + (i as u32) < self.count && p < self.k);
                        tiles.copy_async::<1>(to + i, &from, i, inside);
                    }
                }
                to += LEN;
                from = from.after(self.pitch);
                p += 1;
            }
        }
    }
}

/// So many rounds of a loop, unknown to the compiler: else it works out the addresses of all rounds before the first, more
/// than there are registers.
#[inline(always)]
fn stays(rounds: usize) -> u32 {
    warp::shuffle(warp::ALL, rounds as u32, 0)
}

impl<const LEN: usize, const K_MAJOR: bool> Operand for Elements<'_, LEN, K_MAJOR> {
    const K_MAJOR: bool = K_MAJOR;
    const BYTES: u32 = 0;

    #[inline(always)]
    #[track_caller]
    fn load(
        &self,
        tiles: &mut DynamicShared<f32>,
        at: usize,
        product: u32,
        first: (u32, u32),
        _: Mbarrier,
    ) {
        let matrix = product as usize * self.step;
        let whole = first.0 + LEN as u32 <= self.count && first.1 + SLAB as u32 <= self.k;
        match (K_MAJOR, whole) {
            (true, true) => self.load_rows::<true>(tiles, at, matrix, first),
            (true, false) => self.load_rows::<false>(tiles, at, matrix, first),
            (false, true) => self.load_steps::<true>(tiles, at, matrix, first),
            (false, false) => self.load_steps::<false>(tiles, at, matrix, first),
        }
    }
}

/// A tile of C.
#[inline(always)]
#[track_caller]
fn multiply<A: Operand, B: Operand, const V: u32>(
    problem: &Problem,
    (a, b): (&A, &B),
    (c, bias): (&mut Out<f32>, &In<f32>),
    pipeline: &Pipeline<STAGES>,
) {
    let mut tiles = dynamic_shared![f32];
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler sees that it is the same for all lanes.
    let (warp, lane) = (warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize, t % 32);
    let first_row = thread::block_idx_y() as usize * TILE.0;
    let first_col = thread::block_idx_x() as usize * TILE.1;
    let product = thread::block_idx_z();
    let by_elements = A::BYTES == 0 || B::BYTES == 0;
    let by_boxes = A::BYTES + B::BYTES > 0;
    if t == 0 {
        // Of a producer each lane, when its elements have come, and the one that announces boxes.
        let arrivals = if by_elements { 32 } else { 0 } + u32::from(by_boxes);
        pipeline.init_for(arrivals, CONSUMERS as u32);
    }
    thread::sync_threads();
    // Up to here nothing of this launch depends on the ones before it.
    grid::let_next_begin();
    grid::wait_for_earlier();

    let is_producer = warp < RINGS;
    let ring = if V == 0 || is_producer { warp % RINGS } else { (warp - RINGS) / CONSUMERS };
    let half = if V == 0 { warp / RINGS - 1 } else { (warp - RINGS) % CONSUMERS };
    // The first step of the ring's next slab.
    let mut p = (ring * SLAB) as u32;
    let further = (RINGS * SLAB) as u32;

    let (lane_row, lane_col) = place_of::<{ LANES.0 }>(lane);
    let warp_col = half * (LANES.1 * EACH.1);
    let rows = Places::<A, { TILE.0 }, { LANES.0 }>::new(0, 0, lane_row);
    let cols = Places::<B, { TILE.1 }, { LANES.1 }>::new(SLAB_A, warp_col, lane_col);
    let mut sums = [[0.0; EACH.1]; EACH.0];
    if is_producer {
        let mut producer = pipeline.producer_of(ring);
        while p < problem.k {
            let at = producer.acquire_warp() * STAGE;
            let full = producer.full();
            let (of_a, of_b) = ((first_row as u32, p), (first_col as u32, p));
            if by_boxes && warp::elect() {
                producer.announce(A::BYTES + B::BYTES);
                if A::BYTES > 0 {
                    a.load(&mut tiles, at, product, of_a, full);
                }
                if B::BYTES > 0 {
                    b.load(&mut tiles, at + SLAB_A, product, of_b, full);
                }
            }
            if A::BYTES == 0 {
                a.load(&mut tiles, at, product, of_a, full);
            }
            if B::BYTES == 0 {
                b.load(&mut tiles, at + SLAB_A, product, of_b, full);
            }
            if by_elements {
                full.arrive_after_copies();
            }
            producer.advance_by(RINGS);
            p += further;
        }
        // Something here, or the compiler clears the sums in each round of the loop.
        warp::sync_warp(warp::ALL);
    } else if p < problem.k {
        let mut consumer = pipeline.consumer_of(ring);
        let steps = |stage, step: u32| Steps::new(&rows, &cols, stage, step as usize);
        let mut stage = consumer.wait_warp() * STAGE;
        let mut left = problem.k - p;
        let mut step = 0;
        let mut now = steps(stage, step);
        let mut fragment = Fragment::load(&rows, &cols, &tiles, now);
        loop {
            let (mut next, mut ended) = (now, false);
            fragment.multiply_add(&mut tiles, now, &mut sums, |_| {
                step += STEPS as u32;
                if step >= left.min(SLAB as u32) {
                    step = 0;
                    ended = left <= further;
                    if !ended {
                        left -= further;
                        consumer.release_warp();
                        consumer.advance_by(RINGS);
                        stage = consumer.wait_warp() * STAGE;
                    }
                }
                next = steps(stage, step);
                next
            });
            now = next;
            if ended {
                break;
            }
        }
    }

    // All have read the last stages, whose place the sums take.
    thread::sync_threads();
    if !is_producer {
        parts::store(&mut tiles, ring, &rows, &cols, &sums);
    }
    let mut epilogue = Epilogue::of_product(problem, product as usize, c, bias);
    let first = (first_row, first_col);
    parts::add::<{ TILE.0 }, { TILE.1 }, RINGS, THREADS>(&mut tiles, (0, 1), first, &mut epilogue);
}

/// 72 x 80 elements a block; A and B row by row.
#[kernel(block = (THREADS), dynamic_shared = STAGES * STAGE * size_of::<f32>(), barriers = 3, min_blocks = 1, arch = 90, opt_level = 1, dependent)]
pub fn gemm_tma_72x80_nn(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<72, 32, 128>(), b.boxes::<32, 80, 0>());
    multiply::<_, _, 0>(&problem, (&a, &b), (&mut c, &bias), &pipeline![11]);
}

/// 72 x 80 elements a block; A and B row by row, A's rows wherever they begin.
#[kernel(block = (THREADS), dynamic_shared = STAGES * STAGE * size_of::<f32>(), barriers = 3, min_blocks = 1, arch = 90, opt_level = 1, dependent)]
pub fn gemm_tma_72x80_on(
    problem: Problem,
    a: In<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let a = rows_of_a(&problem, &a);
    multiply::<_, _, 0>(&problem, (&a, &b.boxes::<32, 80, 0>()), (&mut c, &bias), &pipeline![11]);
}

/// 72 x 80 elements a block; A and B row by row, their rows wherever they begin.
#[kernel(block = (THREADS), dynamic_shared = STAGES * STAGE * size_of::<f32>(), barriers = 3, min_blocks = 1, arch = 90, opt_level = 1, dependent)]
pub fn gemm_tma_72x80_oo(problem: Problem, a: In<f32>, b: In<f32>, mut c: Out<f32>, bias: In<f32>) {
    let (a, b) = (rows_of_a(&problem, &a), rows_of_b(&problem, &b));
    multiply::<_, _, 0>(&problem, (&a, &b), (&mut c, &bias), &pipeline![11]);
}

#[inline(always)]
fn rows_of_a<'a>(problem: &Problem, matrix: &'a In<f32>) -> Elements<'a, { TILE.0 }, true> {
    let (pitch, step) = (problem.a[0] as usize, problem.batch[0] as usize);
    Elements { matrix, pitch, step, count: problem.m, k: problem.k }
}

#[inline(always)]
fn rows_of_b<'a>(problem: &Problem, matrix: &'a In<f32>) -> Elements<'a, { TILE.1 }, false> {
    let (pitch, step) = (problem.b[0] as usize, problem.batch[1] as usize);
    Elements { matrix, pitch, step, count: problem.n, k: problem.k }
}
/// 72 x 80 elements a block; A and B row by row, A's rows wherever they begin.
#[kernel(block = (THREADS), dynamic_shared = STAGES * STAGE * size_of::<f32>(), barriers = 3, min_blocks = 1, arch = 90, opt_level = 1, dependent)]
pub fn gemm_tma_72x80_on1(
    problem: Problem,
    a: In<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let a = rows_of_a(&problem, &a);
    multiply::<_, _, 1>(&problem, (&a, &b.boxes::<32, 80, 0>()), (&mut c, &bias), &pipeline![11]);
}

/// 72 x 80 elements a block; A and B row by row.
#[kernel(block = (THREADS), dynamic_shared = STAGES * STAGE * size_of::<f32>(), barriers = 3, min_blocks = 1, arch = 90, opt_level = 1, dependent)]
pub fn gemm_tma_72x80_nn1(
    problem: Problem,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<72, 32, 128>(), b.boxes::<32, 80, 0>());
    multiply::<_, _, 1>(&problem, (&a, &b), (&mut c, &bias), &pipeline![11]);
}
