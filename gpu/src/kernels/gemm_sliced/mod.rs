//! The general product of f32 on Hopper's tensor cores, as accurate as f32: factors that are cut into slices of bf16.
//!
//! A number of 24 bits is the sum of three of 8 bits, each rounded to the nearest of what is left:
//!
//! ```text
//!   x = x0 + x1 + x2      |x1| <= 2^-8 |x|      |x2| <= 2^-17 |x|
//!
//!   x y = x0 y2 + x1 y1 + x2 y0     about 2^-16 of it: the first band
//!       + x0 y1 + x1 y0             about 2^-8: the second
//!       + x0 y0                     the third
//!       (+ x1 y2 + x2 y1 + x2 y2    at most 2^-24 |x y| together: left out)
//! ```
//!
//! Six products of bf16, each exact, in place of one of f32, and tensor cores do sixteen times as many. [`slices`] cuts; here
//! is what multiplies.
//!
//! # Why it is accurate
//! The tensor cores cut off what is beyond 25 bits below the greatest of what they add, and what is beyond an f32. That is no
//! rounding: all errors have one sign, and k of them are k times as much. Against this:
//!
//! * **Sums are short**: 64 steps of k, in accumulators that begin at zero. Then they are added to an f32 in another register,
//!   rounded to the nearest (*promotion*; DeepGEMM does so for fp8).
//! * **The small products come first**, so that of the 24 instructions of 64 steps all but the last four cut off where sums
//!   are small.
//!
//! What comes out is within `(k / 64 + 45) 2^-24` of the exact sum, relative to the sum of the terms' absolute values. (An
//! f32 that k fused multiply-adds go into has k in its place.) Of this 1.01 are the products that are left out; k / 64 the
//! promotion; the rest the cutting off: of four instructions 17 addends each by 2^-25 of the greatest, and the sum by 2^-23.
//! What the bands before cut off is 2^-7 of that.
//!
//! What slices cannot hold is told by the result, and computed again ([`exceptions`]).
//!
//! Half as many products are those of two slices of f16, which are scaled ([`f16x3`]).
//!
//! # How it goes
//! Tiles, the producer and the walk are those of [`gemm_wgmma`](super::gemm_wgmma). Other is:
//!
//! ```text
//!   kernel                       blocks   warpgroups   a warpgroup's part   the ring: one slice of A and of B, 64 steps of k
//!   gemm_sliced_bf16x6_256x128     2        2 + 1          64 x 128           6 x 32 KiB
//!   gemm_sliced_bf16x6_64x128      1        1 + 1          64 x 128           8 x 24 KiB
//! ```
//!
//! * **A stage of the ring is one slice** of A and of B. In the order 2, 1, 0 they are needed no longer, each after its band:
//!   the next but one are copied while the others are still multiplied.
//! * **Two sets of 64 x 128 sums** are 128 registers a thread, so a tile is no larger. It need not be: what is read is
//!   multiplied twice, since a band uses each slice with each.
//! * **Two warpgroups multiply in turn** ([`turns`]): while one waits and promotes, the tensor cores work for the other.
//! * **Two blocks of a cluster** have tiles one below the other, and each copies half of their columns of B to both: a block
//!   draws 24 bytes a cycle from the second-level cache, alone 32.
//! * **Clusters keep step** ([`grid::Pace`]): else they drift apart in a long k, and each reads from memory what its neighbours have
//!   read before. (Those of [`f16x3`] do not: there it made no difference.)

pub mod board;
pub mod exceptions;
pub mod f16x3;
pub mod halves;
pub mod range;
pub mod slices;
pub mod turns;
pub mod widths;

use self::{range::Range, turns::Turns};
use super::{
    device::{warpgroup::*, *},
    gemm::epilogue::Epilogue,
    gemm_wgmma::{
        DEPTH,
        operand::{AcrossK, AlongK, GROUP, Operand},
        output,
        walk::Walk,
    },
};
use crate::problem::Problem;

/// Slices of a number: of bf16 three.
pub const SLICES: usize = 3;

/// Columns of a tile, and of a warpgroup's part of it.
const COLS: usize = 128;

/// A and B themselves, for what is computed again; and where that is counted.
#[derive(Clone, Copy)]
pub struct Originals<'a> {
    a: &'a In<f32>,
    b: &'a In<f32>,
    board: &'a Out<u32>,
}

/// A thread's warpgroup, and its warp's number in it: through a shuffle, so that the compiler sees that they are the same for all
/// lanes, and makes them again where they are asked for again. All lanes of a warp come here.
#[inline(always)]
fn place() -> (usize, usize) {
    let warp = warp::shuffle(warp::ALL, thread::thread_idx_x() / 32, 0) as usize;
    (warp / 4, warp % 4)
}

/// The same problem, for what comes behind the main loop: what follows from its numbers would else be computed before it, and
/// take registers there. All lanes of a warp come here.
#[inline(always)]
fn anew(problem: &Problem) -> Problem {
    let word = |number: u32| warp::shuffle(warp::ALL, number, 0);
    let long =
        |number: u64| u64::from(word(number as u32)) | u64::from(word((number >> 32) as u32)) << 32;
    let double = |number: f64| f64::from_bits(long(number.to_bits()));
    Problem {
        m: word(problem.m),
        n: word(problem.n),
        k: word(problem.k),
        bias: word(problem.bias),
        activation: word(problem.activation),
        products: word(problem.products),
        wide: long(problem.wide),
        alpha: double(problem.alpha),
        beta: double(problem.beta),
        a: problem.a.map(long),
        b: problem.b.map(long),
        c: problem.c.map(long),
        batch: problem.batch.map(long),
    }
}

/// Tiles of `TILE_ROWS x 128` elements of C, one after the other, by one warpgroup for each 64 rows and one more. `BLOCKS`
/// blocks of a cluster have tiles one below the other. `STAGED` is the rows of what is on its way to C: 16 for each warp.
#[inline(always)]
#[track_caller]
fn multiply<
    A: Operand,
    B: Operand<Element = A::Element>,
    S: Scope,
    const TILE_ROWS: usize,
    const BLOCKS: usize,
    const STAGES: usize,
    const STAGED: usize,
>(
    problem: &Problem,
    (a, b): (&A, &B),
    originals: Originals,
    ranges: (&In<Bf16>, &In<Bf16>),
    (c, bias): (&mut Out<f32>, &In<f32>),
    pipeline: &Pipeline<STAGES, S>,
    staged: &mut Shared<f32, STAGED, { output::PITCH }>,
) {
    const {
        assert!(A::TILE == TILE_ROWS, "a block copies its own rows");
        assert!(B::TILE * BLOCKS == COLS, "a cluster's blocks copy columns for each other");
        assert!(STAGED == TILE_ROWS, "each row of the tile is that of one warp");
        assert!(STAGES >= 2 * SLICES, "slices are copied while others are multiplied");
    }
    let mut tiles = dynamic_shared![A::Element];
    let (len_a, len_b) = (TILE_ROWS * DEPTH, COLS * DEPTH);
    let t = thread::thread_idx_x() as usize;
    let (group, warp) = place();
    let groups = TILE_ROWS / GROUP;
    let stages = problem.k.div_ceil(DEPTH as u32);
    let rank = if BLOCKS == 1 { 0 } else { cluster::block_rank() };
    let mut walk = Walk::<TILE_ROWS, COLS, BLOCKS>::new(problem, rank);

    if t == 0 {
        pipeline.init(groups as u32);
    }
    match BLOCKS {
        1 => thread::sync_threads(),
        _ => cluster::sync(),
    }
    // Up to here nothing of this launch depends on the ones before it.
    grid::let_next_begin();
    grid::wait_for_earlier();

    if group == groups {
        // With one other warpgroup there are registers enough.
        if groups > 1 {
            give_registers::<40>();
        }
        if warp > 0 {
            return;
        }
        let mut producer = pipeline.producer();
        // One thread of the cluster's: its other block's copies wait for the same readers.
        let sets_pace = BLOCKS > 1 && rank == 0;
        let mut pace = grid::Pace::new(thread::grid_dim_x() / BLOCKS as u32, walk.rounds());
        let mut board = *originals.board;
        let mut arrive = |count: u32| board.atomic_add(board::PACE, count);
        while let Some((product, row, col)) = walk.next() {
            if sets_pace && warp::elect() {
                pace.wait(&mut arrive);
            }
            for stage in 0..stages {
                let p = stage * DEPTH as u32;
                for slice in (0..SLICES as u32).rev() {
                    let at = producer.acquire_warp() * (len_a + len_b);
                    if warp::elect() {
                        let plane = product * SLICES as u32 + slice;
                        producer.announce(((len_a + len_b) * size_of::<A::Element>()) as u32);
                        a.load::<1>(&mut tiles, at, plane, (row, p), producer.full());
                        b.load_part::<BLOCKS>(
                            &mut tiles,
                            at + len_a,
                            plane,
                            (col, p),
                            rank,
                            producer.full(),
                        );
                    }
                    producer.advance();
                }
            }
        }
        if sets_pace && warp::elect() {
            pace.finish(arrive);
        }
        if BLOCKS > 1 {
            producer.drain_warp();
        }
        return;
    }

    if groups > 1 {
        take_registers::<232>();
    }
    let turns = Turns::new(group, groups);
    // What is begun, and what has been read.
    let (mut next, mut read) = (pipeline.consumer(), pipeline.consumer());
    loop {
        let problem = &anew(problem);
        walk = walk.renewed(problem);
        let Some((product, row, col)) = walk.next() else {
            break;
        };
        let certain = Range::certain::<A::Layout, B::Layout, TILE_ROWS, COLS>(
            problem,
            ranges,
            (product, row, col),
        );
        // (Of this tile: were they the kernel's, they would take registers while the tile is written.)
        let mut sums = Accumulators::<COLS>::zeroed();
        let mut master = Fragment::<COLS>::zeroed();
        for _ in 0..stages {
            let mut slice = || {
                let at = next.wait_warp() * (len_a + len_b);
                next.advance();
                let rows = tiles.operand::<A::Layout>(at + group * GROUP * DEPTH);
                (rows, tiles.operand::<B::Layout>(at + len_a))
            };
            let ((a2, b2), (a1, b1), (a0, b0)) = (slice(), slice(), slice());

            turns.begin(group);
            sums.multiply(a0, b2);
            sums.multiply_add(a1, b1);
            sums.multiply_add(a2, b0);
            commit();
            sums.multiply_add(a0, b1);
            sums.multiply_add(a1, b0);
            commit();
            sums.multiply_add(a0, b0);
            commit();
            turns.end(group);

            // After its band nobody reads a slice any more.
            let mut release = || {
                // The tensor cores have read for all of the warpgroup.
                if warp == 0 {
                    read.release_multiplied();
                }
                read.advance();
            };
            wait::<2>();
            release();
            wait::<1>();
            release();
            let sums = sums.wait::<0>();
            release();
            master.add(sums);
        }
        let problem = &anew(problem);
        let mut epilogue = Epilogue::of_product(problem, product as usize, c, bias);
        let first = (row as usize + group * GROUP, col as usize);
        master.map(|sum| exceptions::doubted(sum, sum.abs() >= certain));
        if exceptions::are_certain(&master) {
            output::store(&master, staged, &mut epilogue, first);
        } else {
            let again = exceptions::Again { problem, originals, product: product as usize };
            again.store(&master, &exceptions::Filled::ALL, staged, &mut epilogue, first);
        }
    }
    turns.finish(place().0);
}

/// A kernel. Warpgroups of 64 rows each, and the one that copies, have 128 threads. Shared memory holds the ring, sums on their
/// way to C, and the ring's barriers: two of eight bytes a stage.
macro_rules! entry {
    // A block alone waits at one barrier of its own, until the ring is there; those of a cluster at the cluster's.
    ($name:ident: $rows:tt x 128 of 1, $($rest:tt)*) => {
        entry! { @ $name [barriers = 1] pipeline: $rows x 128 of 1, $($rest)* }
    };
    ($name:ident: $rows:tt x 128 of $blocks:tt, $($rest:tt)*) => {
        entry! { @ $name [cluster = ($blocks)] cluster_pipeline: $rows x 128 of $blocks, $($rest)* }
    };
    (
        @ $name:ident [$($together:tt)*] $ring:ident:
        $rows:tt x 128 of $blocks:tt, $stages:tt stages, $a:ident, $b:ident
    ) => {
        #[doc = concat!(
            "Tiles of ", $rows, " x 128 elements, blocks of a cluster for each: ", $blocks, "; A lies [`", stringify!($a),
            "`], B [`", stringify!($b), "`]."
        )]
        #[kernel(
            block = (128 * ($rows / $blocks / GROUP + 1)),
            $($together)*,
            dynamic_shared = $stages * DEPTH * ($rows / $blocks + COLS) * size_of::<Bf16>(),
            shared = $rows / $blocks * output::PITCH * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            min_blocks = 1,
            arch = 90,
            dependent
        )]
        pub fn $name(
            problem: Problem,
            a: TensorMap<Bf16>,
            b: TensorMap<Bf16>,
            a_itself: In<f32>,
            b_itself: In<f32>,
            ranges_a: In<Bf16>,
            ranges_b: In<Bf16>,
            mut c: Out<f32>,
            bias: In<f32>,
            board: Out<u32>,
        ) {
            const ROWS: usize = $rows / $blocks;
            let operands = (&$a::<_, ROWS>::new(&a), &$b::<_, { COLS / $blocks }>::new(&b));
            let originals = Originals {
                a: &a_itself,
                b: &b_itself,
                board: &board,
            };
            let ranges = (&ranges_a, &ranges_b);
            let (out, ring) = ((&mut c, &bias), $ring![$stages]);
            let mut staged = shared![f32; ROWS, output::PITCH];
            multiply::<_, _, _, ROWS, $blocks, $stages, ROWS>(&problem, operands, originals, ranges, out, &ring, &mut staged);
        }
    };
}

entry! { gemm_sliced_bf16x6_256x128_nn: 256 x 128 of 2, 6 stages, AlongK, AcrossK }
entry! { gemm_sliced_bf16x6_256x128_nt: 256 x 128 of 2, 6 stages, AlongK, AlongK }
entry! { gemm_sliced_bf16x6_256x128_tn: 256 x 128 of 2, 6 stages, AcrossK, AcrossK }
entry! { gemm_sliced_bf16x6_256x128_tt: 256 x 128 of 2, 6 stages, AcrossK, AlongK }

entry! { gemm_sliced_bf16x6_64x128_nn: 64 x 128 of 1, 8 stages, AlongK, AcrossK }
entry! { gemm_sliced_bf16x6_64x128_nt: 64 x 128 of 1, 8 stages, AlongK, AlongK }
entry! { gemm_sliced_bf16x6_64x128_tn: 64 x 128 of 1, 8 stages, AcrossK, AcrossK }
entry! { gemm_sliced_bf16x6_64x128_tt: 64 x 128 of 1, 8 stages, AcrossK, AlongK }
