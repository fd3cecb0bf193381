//! The product of two scaled slices of f16: half as many products as of three slices of bf16.
//!
//! ```text
//!   x y = 2^(e + f) (x1 y0 + x0 y1 + x0 y0)       (+ x1 y1: at most 2^-22 |x y|, left out)
//! ```
//!
//! Exponents are those of patches ([`halves`](super::halves)): one of 64 rows and 64 steps of k, and of 64 columns. So a
//! warpgroup multiplies 64 steps of k with two exponents, one for each half of its columns, and promotion is a fused
//! multiply-add: sums are multiplied by a power of two and added to an f32 with one rounding.
//!
//! (This kind of slices, with exponents by rows: H. Ootomo and R. Yokota, "Recovering single precision accuracy from Tensor
//! Cores while surpassing the FP32 theoretical peak performance", 2022.)
//!
//! # Why it is accurate
//! **Small products come first**, as in [`gemm_sliced`](super): what tensor cores cut off of them is 2^-10 of what they cut off of
//! the large ones. **Sums are promoted every 64 steps of k.**
//!
//! **What is cut off is added again, on average**: sums lose bits towards zero alone, whatever their sign; of 64 steps of k of
//! numbers of one sign 1.5 times 2^-23 of the sum, of others less. So the factor that promotes is not the power of two but the
//! next greater f32, which is 1 + 2^-23 times as much, and costs nothing. (In a model of the tensor cores, medians of 256 steps of
//! k: 5.5e-8 in place of 1.8e-7 of numbers from [0, 1), 1.1e-7 in place of 1.4e-7 of normal ones; of fused multiply-adds 1.5e-7
//! and 2.3e-7.) Of integers that are so small that a sum of 64 products is exact nothing is cut off, nor added.
//!
//! What comes out is within `(k / 64 + 55) 2^-24` of the exact sum, relative to the sum of the terms' absolute values:
//!
//! ```text
//!   k / 64         promotion: a rounding for 64 steps, of which the first of all adds to zero
//!   42             cut off: of four instructions 17 addends each by 2^-25 of the greatest, and the sum by 2^-23
//!    0.1           the same of eight instructions of small products
//!    2             added again
//!    4             x1 y1: x0 is the nearest number of 11 bits, so |x1| is at most 2^-11 of x
//!    4             x1 and y1 have 11 bits too: 2^-23 each
//!    2             numbers that are small beside their patch's largest, as far as such a sum is relied on
//! ```
//!
//! f32 that k fused multiply-adds go into is within `k 2^-24`.
//!
//! # Tiles
//! ```text
//!   kernel                      blocks   warpgroups   a warpgroup's part   the ring: one slice of A and of B, 64 steps of k
//!   gemm_sliced_f16x3_256x192     2        2 + 1       64 x 192 or 128       4 x 40 KiB
//!   gemm_sliced_f16x3_256x128     2        2 + 1          64 x 128           6 x 32 KiB
//!   gemm_sliced_f16x3_64x128      1        1 + 1          64 x 128           8 x 24 KiB
//! ```
//!
//! What limits large products is power. Of 192 columns an instruction reads a ninth less from shared memory for each operation, and
//! a block draws a fifth less from the second-level cache; but rounds of such tiles seldom come out even. So the first kernel has
//! tiles of 128 columns, too ([`widths`](super::widths)).
//!
//! The sums of 192 columns are 192 registers of 232. So nothing else may be kept while the tensor cores work: what is behind the
//! main loop makes its numbers of the problem [`anew`], and how far a tile's sums can be relied on is found by warps that have nothing
//! else to do ([`Notes`]), one for each warpgroup, while the tile before is multiplied.
//!
//! # What is computed again
//! What is no number, as in [`gemm_sliced`](super), whose ring and exceptions these are; and what is smaller than 2^23 times what
//! its tile may have lost ([`halves::certain`](super::halves::certain)), where so is the part of it that the last steps of k have: each
//! of both is at most the sum of the terms' absolute values, and it is rare that both are small by chance.

use core::array::from_fn;

use super::{
    super::{
        device::{warpgroup::*, *},
        gemm::epilogue::Epilogue,
        gemm_wgmma::{
            DEPTH,
            operand::{AcrossK, AlongK, GROUP, Operand, PartAcrossK, PartsAlongK},
            output,
        },
    },
    Originals, anew, exceptions,
    halves::{PATCH_ROWS, SLICES, Scales, certain, power},
    place,
    turns::Turns,
    widths::{Alike, Narrow, Tiles, Wide},
};
use crate::problem::Problem;

/// Two to the power of an exponent, as near as a normal number comes to it, and so many of an f32's last digit `more`.
#[inline(always)]
fn factor(exponent: i32, more: u32) -> f32 {
    f32::from_bits(power(exponent.clamp(-126, 127)).to_bits() + more)
}

/// What all tiles are computed of, and where to.
struct Given<'a, S: Scope, const STAGES: usize, const GROUPS: usize, const STAGED: usize> {
    problem: &'a Problem,
    originals: Originals<'a>,
    scales: (&'a In<F16>, &'a In<F16>),
    c: &'a mut Out<f32>,
    bias: &'a In<f32>,
    pipeline: &'a Pipeline<STAGES, S>,
    notes: &'a mut Notes<GROUPS>,
    staged: &'a mut Shared<f32, STAGED, { output::PITCH }>,
}

/// How far the sums of the next tile can be relied on ([`Certain`]), for each warpgroup that multiplies: found by warps that have
/// nothing else to do, while the tile before is multiplied. A ring of one stage for each.
struct Notes<const GROUPS: usize> {
    rings: Pipeline<GROUPS>,
    words: Shared<u32, GROUPS, 2>,
}

/// Writes a warpgroup's notes of all its tiles of `COLS` columns. All lanes of a warp come here.
#[inline(always)]
#[track_caller]
fn note<
    A: Operand,
    B: Operand<Element = A::Element>,
    S: Scope,
    W: Tiles,
    const STAGES: usize,
    const GROUPS: usize,
    const TILE_ROWS: usize,
    const COLS: usize,
>(
    given: &mut Given<S, STAGES, GROUPS, TILE_ROWS>,
    group: usize,
    ring: &mut Producer<1>,
) {
    let (problem, (scales_a, scales_b)) = (given.problem, given.scales);
    let mut walk = W::new(problem);
    while !walk.are_done(problem) {
        let (product, row, col) = walk.place(problem);
        let row = row + (group * GROUP) as u32;
        let number = (product, problem.products);
        let of_a = Scales::new::<A::Layout>(scales_a, number, problem.m, problem.k);
        let of_b = Scales::new::<B::Layout>(scales_b, number, problem.n, problem.k);
        let certain = certain::<A::Layout, B::Layout, COLS>(problem, (of_a, of_b), (row, col));
        ring.acquire_warp();
        if warp::elect() {
            given.notes.words[(group, 0)] = certain.least.to_bits();
            given.notes.words[(group, 1)] = certain.exact.into();
        }
        ring.filled_warp();
        ring.advance();
        walk.advance(problem);
    }
}

/// Prepares the ring of a block with so many warpgroups that multiply, as [`gemm_sliced`](super) does, and waits for the launch that
/// cuts.
#[inline(always)]
#[track_caller]
fn begin<S: Scope, const BLOCKS: usize, const STAGES: usize, const GROUPS: usize>(
    pipeline: &Pipeline<STAGES, S>,
    notes: &Pipeline<GROUPS>,
) {
    const { assert!(STAGES >= 2 * SLICES, "slices are copied while others are multiplied") };
    if thread::thread_idx_x() == 0 {
        pipeline.init(GROUPS as u32);
        // Written by one warp, read by the four of a warpgroup.
        notes.init_for_writers(1, 4);
    }
    match BLOCKS {
        1 => thread::sync_threads(),
        _ => cluster::sync(),
    }
    // Up to here nothing of this launch depends on the ones before it.
    grid::let_next_begin();
    grid::wait_for_earlier();
}

/// A warpgroup's two turns in the ring, of what is begun next and of what has been read; and its turn in its notes'.
type Ring<'p, const STAGES: usize, S> =
    (Consumer<'p, STAGES, S>, Consumer<'p, STAGES, S>, Consumer<'p, 1>);

/// Elements of a stage: of A, and of A and of B.
const fn stage_lens(rows: usize, cols: usize) -> (usize, usize) {
    (rows * DEPTH, (rows + cols) * DEPTH)
}

/// Copies what tiles of `COLS` columns are computed of to the ring, whose stages have place for such of `MOST`. All lanes of a warp
/// come here.
#[inline(always)]
#[track_caller]
fn copy<
    A: Operand,
    B: Operand<Element = A::Element>,
    W: Tiles,
    const BLOCKS: usize,
    const STAGES: usize,
    const COLS: usize,
    const MOST: usize,
>(
    (a, b): (&A, &B),
    problem: &Problem,
    producer: &mut Producer<STAGES>,
) {
    const {
        assert!(B::TILE * BLOCKS == COLS, "a cluster's blocks copy columns for each other");
        assert!(COLS <= MOST, "a stage of the ring has place for it");
    }
    let mut tiles = dynamic_shared![A::Element];
    let (len_a, len) = const { stage_lens(A::TILE, MOST) };
    let bytes = const { stage_lens(A::TILE, COLS).1 * size_of::<A::Element>() };
    let rank = if BLOCKS == 1 { 0 } else { cluster::block_rank() };
    let mut walk = W::new(problem);
    while !walk.are_done(problem) {
        let (product, row, col) = walk.place(problem);
        for stage in 0..problem.k.div_ceil(DEPTH as u32) {
            let p = stage * DEPTH as u32;
            for slice in (0..SLICES as u32).rev() {
                let at = producer.acquire_warp() * len;
                if warp::elect() {
                    let plane = product * SLICES as u32 + slice;
                    producer.announce(bytes as u32);
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
        walk.advance(problem);
    }
}

/// Computes the tiles of `COLS` columns that are a warpgroup's, from a ring whose stages have place for such of `MOST`.
#[inline(always)]
#[track_caller]
fn compute<
    A: Operand,
    B: Operand<Element = A::Element>,
    S: Scope,
    W: Tiles,
    const STAGES: usize,
    const GROUPS: usize,
    const TILE_ROWS: usize,
    const COLS: usize,
    const PATCHES: usize,
    const MOST: usize,
>(
    given: &mut Given<S, STAGES, GROUPS, TILE_ROWS>,
    turns: &Turns,
    (next, read, notes): &mut Ring<STAGES, S>,
) {
    const { assert!(PATCHES * PATCH_ROWS == COLS, "there is an exponent for each 64 columns") };
    let tiles = dynamic_shared![A::Element];
    let (len_a, len) = const { stage_lens(TILE_ROWS, MOST) };
    let (scales_a, scales_b) = given.scales;
    let mut walk = W::new(&anew(given.problem));
    loop {
        let (problem, (group, warp)) = (&anew(given.problem), place());
        if walk.are_done(problem) {
            break;
        }
        let (product, row, col) = walk.place(problem);
        let row = row + (group * GROUP) as u32;
        let number = (product, problem.products);
        let of_a = Scales::new::<A::Layout>(scales_a, number, problem.m, problem.k);
        let of_b = Scales::new::<B::Layout>(scales_b, number, problem.n, problem.k);
        notes.wait_warp();
        let [least, exact] = [0, 1].map(|word| given.notes.words[(group, word)]);
        notes.release_warp();
        notes.advance();
        let least = f32::from_bits(least);
        // By so much the tensor cores' sums are too small on average, where they are not exact.
        let more = 1 - exact;
        let of_rows = of_a.patch::<A::Layout>(row, 0) as u32;
        let of_cols: [u32; PATCHES] =
            from_fn(|i| of_b.patch::<B::Layout>(col + (i * PATCH_ROWS) as u32, 0) as u32);
        // (Of this tile: were they the kernel's, they would take registers while the tile is written.)
        let mut sums = Accumulators::<COLS>::zeroed();
        let mut master = Fragment::<COLS>::zeroed();
        let mut factors = [0.0; PATCHES];
        for stage in 0..problem.k.div_ceil(DEPTH as u32) {
            let mut slice = || {
                let at = next.wait_warp() * len;
                next.advance();
                let rows = tiles.operand::<A::Layout>(at + group * GROUP * DEPTH);
                (rows, tiles.operand::<B::Layout>(at + len_a))
            };
            let ((a1, b1), (a0, b0)) = (slice(), slice());

            turns.begin(group);
            sums.multiply(a1, b0);
            sums.multiply_add(a0, b1);
            commit();
            sums.multiply_add(a0, b0);
            commit();
            turns.end(group);
            // They come from the second-level cache meanwhile.
            let of_row = of_a.exponent::<A::Layout>(of_rows, stage);
            let exponents = of_cols.map(|col| of_row + of_b.exponent::<B::Layout>(col, stage));
            factors = exponents.map(|exponent| factor(exponent, more));

            let mut release = || {
                // The tensor cores have read for all of the warpgroup.
                if warp == 0 {
                    read.release_multiplied();
                }
                read.advance();
            };
            wait::<1>();
            release();
            let sums = sums.wait::<0>();
            release();
            master.update(sums, |part, master, sum| fma(sum, factors[part], master));
        }
        // Of the last steps' part of a sum, which has not been multiplied by its factor.
        let least_of_last = factors.map(|factor| least / factor);
        master.update(sums.wait::<0>(), |part, sum, last| {
            let is_certain = sum.abs() >= least || last.abs() >= least_of_last[part];
            exceptions::doubted(sum, is_certain)
        });
        // The same tile once more, rather than to keep its numbers.
        let (problem, (group, warp)) = (&anew(given.problem), place());
        let (product, row, col) = walk.place(problem);
        walk.advance(problem);
        let row = row + (group * GROUP) as u32;
        let mut epilogue = Epilogue::of_product(problem, product as usize, given.c, given.bias);
        let first = (row as usize, col as usize);
        if exceptions::are_certain(&master) {
            output::store(&master, given.staged, &mut epilogue, first);
        } else {
            let originals = given.originals;
            let again = exceptions::Again { problem, originals, product: product as usize };
            // Made again of what went through a shuffle: kept, it would take registers in the main loop.
            let number = (warp::shuffle(warp::ALL, product, 0), problem.products);
            let of_a = Scales::new::<A::Layout>(scales_a, number, problem.m, problem.k);
            let of_b = Scales::new::<B::Layout>(scales_b, number, problem.n, problem.k);
            let [of_rows] = of_a.filled::<A::Layout, 1>(row, problem.k);
            let of_cols = of_b.filled::<B::Layout, PATCHES>(col, problem.k);
            // (A register has no number that is computed.)
            let (mut rows, mut cols) = (0, 0);
            let lane = thread::lane_id() as usize;
            for j in 0..4 {
                rows = if warp == j { of_rows[j] } else { rows };
                for i in 0..PATCHES {
                    cols = if lane == 4 * i + j { of_cols[i][j] } else { cols };
                }
            }
            let filled = exceptions::Filled { rows, cols };
            again.store(&master, &filled, given.staged, &mut epilogue, first);
        }
    }
}

/// A kernel. Warpgroups of 64 rows each, and the one that copies, have 128 threads. Shared memory holds the ring, sums on their
/// way to C, and the ring's barriers: two of eight bytes a stage.
macro_rules! entry {
    // A block alone waits at one barrier of its own, until the ring is there; those of a cluster at the cluster's.
    ($name:ident: $rows:tt x $cols:tt of 1, $($rest:tt)*) => {
        entry! { @ $name [barriers = 1] pipeline: $rows x $cols [$cols: Alike<$rows, $cols, 1>] of 1, $($rest)* }
    };
    ($name:ident: $rows:tt x $cols:tt of 2, $($rest:tt)*) => {
        entry! {
            @ $name [cluster = (2)] cluster_pipeline: $rows x $cols [$cols: Alike<{ $rows / 2 }, $cols, 2>] of 2, $($rest)*
        }
    };
    ($name:ident: $rows:tt x $cols:tt or $narrow:tt of 2, $($rest:tt)*) => {
        entry! {
            @ $name [cluster = (2)] cluster_pipeline: $rows x $cols [
                $cols: Wide<{ $rows / 2 }, $cols, 2>, $narrow: Narrow<{ $rows / 2 }, $cols, $narrow, 2>
            ] of 2, $($rest)*
        }
    };
    (
        @ $name:ident [$($together:tt)*] $ring:ident: $rows:tt x $most:tt [$($cols:tt: $tiles:ty),+] of $blocks:tt,
        $stages:tt stages, $a:ident, $b:ident
    ) => {
        #[doc = concat!(
            "Tiles of ", $rows, " rows and as many columns: ", $($cols, ", ",)+ "blocks of a cluster for each: ", $blocks,
            "; A lies [`", stringify!($a), "`], B [`", stringify!($b), "`]."
        )]
        #[kernel(
            block = (128 * ($rows / $blocks / GROUP + 1)),
            $($together)*,
            dynamic_shared = $stages * DEPTH * ($rows / $blocks + $most) * size_of::<F16>(),
            shared = $rows / $blocks * output::PITCH * size_of::<f32>() + $stages * 2 * size_of::<u64>()
                + $rows / $blocks / GROUP * (2 * size_of::<u32>() + 2 * size_of::<u64>()),
            min_blocks = 1,
            arch = 90,
            dependent
        )]
        pub fn $name(
            problem: Problem,
            a: TensorMap<F16>,
            b: TensorMap<F16>,
            a_itself: In<f32>,
            b_itself: In<f32>,
            scales_a: In<F16>,
            scales_b: In<F16>,
            mut c: Out<f32>,
            bias: In<f32>,
            board: Out<u32>,
        ) {
            const ROWS: usize = $rows / $blocks;
            const GROUPS: usize = ROWS / GROUP;
            let mut staged = shared![f32; ROWS, output::PITCH];
            let mut notes = Notes { rings: pipeline![GROUPS], words: shared![u32; GROUPS, 2] };
            let mut given = Given {
                problem: &problem,
                originals: Originals { a: &a_itself, b: &b_itself, board: &board },
                scales: (&scales_a, &scales_b),
                c: &mut c,
                bias: &bias,
                pipeline: &$ring![$stages],
                notes: &mut notes,
                staged: &mut staged,
            };
            begin::<_, $blocks, $stages, GROUPS>(given.pipeline, &given.notes.rings);
            let (group, warp) = place();
            if group == GROUPS {
                // With one other warpgroup there are registers enough.
                if GROUPS > 1 {
                    give_registers::<40>();
                }
                if warp > 0 {
                    let group = warp - 1;
                    if group < GROUPS {
                        let rings = given.notes.rings.part::<1>(group);
                        let mut ring = rings.producer();
                        $(
                            note::<$a<F16, ROWS>, $b<F16, { $cols / $blocks }>, _, $tiles, $stages, GROUPS, ROWS, $cols>(
                                &mut given, group, &mut ring,
                            );
                        )+
                    }
                    return;
                }
                let of_a = $a::<_, ROWS>::new(&a);
                let mut producer = given.pipeline.producer();
                $(
                    let of_b = $b::<_, { $cols / $blocks }>::new(&b);
                    copy::<_, _, $tiles, $blocks, $stages, $cols, $most>((&of_a, &of_b), &problem, &mut producer);
                )+
                if $blocks > 1 {
                    producer.drain_warp();
                }
                return;
            }
            if GROUPS > 1 {
                take_registers::<232>();
            }
            let turns = Turns::new(group, GROUPS);
            // What is begun, and what has been read.
            let notes = given.notes.rings.part::<1>(group);
            let mut ring = (given.pipeline.consumer(), given.pipeline.consumer(), notes.consumer());
            $(
                compute::<$a<F16, ROWS>, $b<F16, { $cols / $blocks }>, _, $tiles, $stages, GROUPS, ROWS, $cols, { $cols / PATCH_ROWS }, $most>(
                    &mut given, &turns, &mut ring,
                );
            )+
            turns.finish(place().0);
        }
    };
}

entry! { gemm_sliced_f16x3_256x192_nn: 256 x 192 or 128 of 2, 4 stages, AlongK, PartAcrossK }
entry! { gemm_sliced_f16x3_256x192_nt: 256 x 192 or 128 of 2, 4 stages, AlongK, PartsAlongK }
entry! { gemm_sliced_f16x3_256x192_tn: 256 x 192 or 128 of 2, 4 stages, AcrossK, PartAcrossK }
entry! { gemm_sliced_f16x3_256x192_tt: 256 x 192 or 128 of 2, 4 stages, AcrossK, PartsAlongK }

entry! { gemm_sliced_f16x3_256x128_nn: 256 x 128 of 2, 6 stages, AlongK, AcrossK }
entry! { gemm_sliced_f16x3_256x128_nt: 256 x 128 of 2, 6 stages, AlongK, AlongK }
entry! { gemm_sliced_f16x3_256x128_tn: 256 x 128 of 2, 6 stages, AcrossK, AcrossK }
entry! { gemm_sliced_f16x3_256x128_tt: 256 x 128 of 2, 6 stages, AcrossK, AlongK }

entry! { gemm_sliced_f16x3_64x128_nn: 64 x 128 of 1, 8 stages, AlongK, AcrossK }
entry! { gemm_sliced_f16x3_64x128_nt: 64 x 128 of 1, 8 stages, AlongK, AlongK }
entry! { gemm_sliced_f16x3_64x128_tn: 64 x 128 of 1, 8 stages, AcrossK, AcrossK }
entry! { gemm_sliced_f16x3_64x128_tt: 64 x 128 of 1, 8 stages, AcrossK, AlongK }
