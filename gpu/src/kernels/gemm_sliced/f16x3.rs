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
//!   gemm_sliced_f16x3_256x192     2        2 + 1          64 x 192           4 x 40 KiB
//!   gemm_sliced_f16x3_256x128     2        2 + 1          64 x 128           6 x 32 KiB
//!   gemm_sliced_f16x3_64x128      1        1 + 1          64 x 128           8 x 24 KiB
//! ```
//!
//! What limits large products is power. Of 192 columns an instruction reads a ninth less from shared memory for each operation, and
//! a block draws a fifth less from the second-level cache; but its sums are 192 registers of 232. So nothing else may be kept while the
//! tensor cores work: what is behind the main loop makes its numbers of the problem [`anew`].
//!
//! # What is computed again
//! What is no number, as in [`gemm_sliced`](super), whose tiles, ring and walk these are; and what is smaller than 2^23 times what
//! its tile may have lost ([`halves::certain`](super::halves::certain)), where so is the part of it that the last steps of k have: each
//! of both is at most the sum of the terms' absolute values, and it is rare that both are small by chance.

use core::array::from_fn;

use super::{
    super::{
        device::{warpgroup::*, *},
        gemm::epilogue::Epilogue,
        gemm_wgmma::{
            DEPTH,
            operand::{AcrossK, AlongK, GROUP, Operand, PartAcrossK},
            output,
            walk::Walk,
        },
    },
    Originals, anew, exceptions,
    halves::{PATCH_ROWS, SLICES, Scales, certain, power},
    place,
    turns::Turns,
};
use crate::problem::Problem;

/// Two to the power of an exponent, as near as a normal number comes to it, and so many of an f32's last digit `more`.
#[inline(always)]
fn factor(exponent: i32, more: u32) -> f32 {
    f32::from_bits(power(exponent.clamp(-126, 127)).to_bits() + more)
}

/// As that of [`gemm_sliced`](super).
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
    const COLS: usize,
    const PATCHES: usize,
>(
    problem: &Problem,
    (a, b): (&A, &B),
    originals: Originals,
    (scales_a, scales_b): (&In<F16>, &In<F16>),
    (c, bias): (&mut Out<f32>, &In<f32>),
    pipeline: &Pipeline<STAGES, S>,
    staged: &mut Shared<f32, STAGED, { output::PITCH }>,
) {
    const {
        assert!(A::TILE == TILE_ROWS, "a block copies its own rows");
        assert!(B::TILE * BLOCKS == COLS, "a cluster's blocks copy columns for each other");
        assert!(PATCHES * PATCH_ROWS == COLS, "there is an exponent for each 64 columns");
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
        while let Some((product, row, col)) = walk.next() {
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
        let (problem, (group, warp)) = (&anew(problem), place());
        let Some((product, row, col)) = walk.renewed(problem).next() else {
            break;
        };
        let row = row + (group * GROUP) as u32;
        let number = (product, problem.products);
        let of_a = Scales::new::<A::Layout>(scales_a, number, problem.m, problem.k);
        let of_b = Scales::new::<B::Layout>(scales_b, number, problem.n, problem.k);
        let certain = certain::<A::Layout, B::Layout, COLS>(problem, (of_a, of_b), (row, col));
        // By so much the tensor cores' sums are too small on average, where they are not exact.
        let more = u32::from(!certain.exact);
        let of_rows = of_a.patch::<A::Layout>(row, 0) as u32;
        let of_cols: [u32; PATCHES] =
            from_fn(|i| of_b.patch::<B::Layout>(col + (i * PATCH_ROWS) as u32, 0) as u32);
        // (Of this tile: were they the kernel's, they would take registers while the tile is written.)
        let mut sums = Accumulators::<COLS>::zeroed();
        let mut master = Fragment::<COLS>::zeroed();
        let mut factors = [0.0; PATCHES];
        for stage in 0..stages {
            let mut slice = || {
                let at = next.wait_warp() * (len_a + len_b);
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
        let least_of_last = factors.map(|factor| certain.least / factor);
        master.update(sums.wait::<0>(), |part, sum, last| {
            let is_certain = sum.abs() >= certain.least || last.abs() >= least_of_last[part];
            exceptions::doubted(sum, is_certain)
        });
        // The same tile once more, rather than to keep its numbers.
        let (problem, (group, warp)) = (&anew(problem), place());
        walk = walk.renewed(problem);
        let Some((product, row, col)) = walk.next() else {
            break;
        };
        let row = row + (group * GROUP) as u32;
        let mut epilogue = Epilogue::of_product(problem, product as usize, c, bias);
        let first = (row as usize, col as usize);
        if exceptions::are_certain(&master) {
            output::store(&master, staged, &mut epilogue, first);
        } else {
            let again = exceptions::Again { problem, originals, product: product as usize };
            // Made again of what went through a shuffle: kept, it would take registers in the main loop.
            let number = (warp::shuffle(warp::ALL, product, 0), problem.products);
            let of_a = Scales::new::<A::Layout>(scales_a, number, problem.m, problem.k);
            let of_b = Scales::new::<B::Layout>(scales_b, number, problem.n, problem.k);
            let [of_rows] = of_a.filled::<A::Layout, 1>(row, problem.k);
            let of_cols = of_b.filled::<B::Layout, PATCHES>(col, problem.k);
            // (A register has no number that is computed.)
            let (mut rows, mut cols) = (0, 0);
            for j in 0..4 {
                rows = if warp == j { of_rows[j] } else { rows };
                for i in 0..PATCHES {
                    cols = if t % 32 == 4 * i + j { of_cols[i][j] } else { cols };
                }
            }
            let filled = exceptions::Filled { rows, cols };
            again.store(&master, &filled, staged, &mut epilogue, first);
        }
    }
    turns.finish(place().0);
}

/// A kernel. Warpgroups of 64 rows each, and the one that copies, have 128 threads. Shared memory holds the ring, sums on their
/// way to C, and the ring's barriers: two of eight bytes a stage.
macro_rules! entry {
    // A block alone waits at one barrier of its own, until the ring is there; those of a cluster at the cluster's.
    ($name:ident: $rows:tt x $cols:tt of 1, $($rest:tt)*) => {
        entry! { @ $name [barriers = 1] pipeline: $rows x $cols of 1, $($rest)* }
    };
    ($name:ident: $rows:tt x $cols:tt of $blocks:tt, $($rest:tt)*) => {
        entry! { @ $name [cluster = ($blocks)] cluster_pipeline: $rows x $cols of $blocks, $($rest)* }
    };
    (
        @ $name:ident [$($together:tt)*] $ring:ident:
        $rows:tt x $cols:tt of $blocks:tt, $stages:tt stages, $a:ident, $b:ident
    ) => {
        #[doc = concat!(
            "Tiles of ", $rows, " x ", $cols, " elements, blocks of a cluster for each: ", $blocks, "; A lies [`", stringify!($a),
            "`], B [`", stringify!($b), "`]."
        )]
        #[kernel(
            block = (128 * ($rows / $blocks / GROUP + 1)),
            $($together)*,
            dynamic_shared = $stages * DEPTH * ($rows / $blocks + $cols) * size_of::<F16>(),
            shared = $rows / $blocks * output::PITCH * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
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
            let operands = (&$a::<_, ROWS>::new(&a), &$b::<_, { $cols / $blocks }>::new(&b));
            let originals = Originals {
                a: &a_itself,
                b: &b_itself,
                board: &board,
            };
            let scales = (&scales_a, &scales_b);
            let (out, ring) = ((&mut c, &bias), $ring![$stages]);
            let mut staged = shared![f32; ROWS, output::PITCH];
            multiply::<_, _, _, ROWS, $blocks, $stages, ROWS, $cols, { $cols / PATCH_ROWS }>(&problem, operands, originals, scales, out, &ring, &mut staged);
        }
    };
}

entry! { gemm_sliced_f16x3_256x192_nn: 256 x 192 of 2, 4 stages, AlongK, PartAcrossK }
entry! { gemm_sliced_f16x3_256x192_nt: 256 x 192 of 2, 4 stages, AlongK, AlongK }
entry! { gemm_sliced_f16x3_256x192_tn: 256 x 192 of 2, 4 stages, AcrossK, PartAcrossK }
entry! { gemm_sliced_f16x3_256x192_tt: 256 x 192 of 2, 4 stages, AcrossK, AlongK }

entry! { gemm_sliced_f16x3_256x128_nn: 256 x 128 of 2, 6 stages, AlongK, AcrossK }
entry! { gemm_sliced_f16x3_256x128_nt: 256 x 128 of 2, 6 stages, AlongK, AlongK }
entry! { gemm_sliced_f16x3_256x128_tn: 256 x 128 of 2, 6 stages, AcrossK, AcrossK }
entry! { gemm_sliced_f16x3_256x128_tt: 256 x 128 of 2, 6 stages, AcrossK, AlongK }

entry! { gemm_sliced_f16x3_64x128_nn: 64 x 128 of 1, 8 stages, AlongK, AcrossK }
entry! { gemm_sliced_f16x3_64x128_nt: 64 x 128 of 1, 8 stages, AlongK, AlongK }
entry! { gemm_sliced_f16x3_64x128_tn: 64 x 128 of 1, 8 stages, AcrossK, AcrossK }
entry! { gemm_sliced_f16x3_64x128_tt: 64 x 128 of 1, 8 stages, AcrossK, AlongK }
