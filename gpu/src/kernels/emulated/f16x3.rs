//! The product of two scaled slices of f16: half as many products as of three slices of bf16.
//!
//! ```text
//!   x y = 2^(e + f) (x1 y0 + x0 y1 + x0 y0)       (+ x1 y1: at most 2^-22 |x y|, left out)
//! ```
//!
//! Exponents are those of patches ([`halves`]): one of 64 rows and 64 steps of k, and of 64 columns. So a
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
//!   wgmma_f16x3_256x192x64_c2     2        2 + 1       64 x 192 or 128       5 x 40 KiB
//!   wgmma_f16x3_256x128x64_c2     2        2 + 1          64 x 128           6 x 32 KiB
//!   wgmma_f16x3_64x128x64      1        1 + 1          64 x 128           8 x 24 KiB
//! ```
//!
//! What limits large products is power. Of 192 columns an instruction reads a ninth less from shared memory for each operation, and
//! a block draws a fifth less from the second-level cache; but rounds of such tiles seldom come out even. So the first kernel has
//! tiles of 128 columns, too ([`widths`](super::widths)).
//!
//! The sums of 192 columns are 192 registers of 232. So nothing else may be kept while the tensor cores work: what is behind the
//! main loop makes its numbers of the problem [`anew`], and how far a tile's sums can be relied on is found by warps that have nothing
//! else to do ([`ErrorBounds`]), one for each warpgroup, while the tile before is multiplied.
//!
//! **The next tile's first products are begun before a tile is written** ([`output`]): they take 1.4 us for both
//! warpgroups, in which the tensor cores would be idle while C is written. So the loop over tiles is open in the middle:
//!
//! ```text
//!   tile 0   begin | .. promote, begin | .. promote: can all be relied on?
//!   tile 1                                           begin | write tile 0 | promote, begin | ..
//! ```
//!
//! (But not narrow tiles' behind the last wide one.) Sums that are written meanwhile are 96 registers, and those under way 96. What
//! is not [plain](super::output::is_plain), or computed again, finds no room beside both, and is written before the next tile is begun.
//!
//! # What is computed again
//! What is no number, as in [`gemm_sliced`](super), whose ring and exceptions these are; and what is smaller than 2^23 times what
//! its tile may have lost ([`halves::certain`]), where so is the part of it that the last steps of k have: each
//! of both is at most the sum of the terms' absolute values, and it is rare that both are small by chance.

use core::array::from_fn;

use super::{
    collective::{
        ordered_barrier::OrderedBarrier,
        wgmma_shape::{BLOCK_K, WGMMA_M},
    },
    device::{warpgroup::*, *},
    epilogue,
    recompute::{self, Confidence, NonZeros},
    scales::{PATCH_ROWS, SLICES, Scales, power, tile_bound},
    two_widths::Tiles,
    uniform::{reload, warp_place},
    warp_roles::{Patches, Ring, SplitScheme, TileArguments},
};
use crate::params::GemmParams;

/// Slices of f16, scaled.
pub enum F16x3 {}

/// Two to the power of an exponent, as near as a normal number comes to it, and so many of an f32's last digit `more`.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn factor(exponent: i32, more: u32) -> f32 {
    f32::from_bits(power(exponent.clamp(-126, 127)).to_bits() + more)
}

impl SplitScheme for F16x3 {
    type Element = F16;

    const SLICES: usize = SLICES;
    // It made no difference.
    const IS_PACED: bool = false;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn error_bound<A: Layout, B: Layout, const COLS: usize>(
        problem: &GemmParams,
        (scales_a, scales_b): Patches<Self>,
        (product, row, col): (u32, u32, u32),
    ) -> [u32; 2] {
        let number = (product, problem.products);
        let of_a = Scales::new::<A>(scales_a, number, problem.m, problem.k);
        let of_b = Scales::new::<B>(scales_b, number, problem.n, problem.k);
        let bound = tile_bound::<COLS>(problem, (of_a, of_b), (row, col));
        [bound.least.to_bits(), bound.exact.into()]
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn compute<
        A: Layout,
        B: Layout,
        S: Scope,
        W: Tiles,
        const STAGES: usize,
        const GROUPS: usize,
        const TILE_ROWS: usize,
        const COLS: usize,
        const MOST: usize,
    >(
        args: &mut TileArguments<Self, S, STAGES, GROUPS, TILE_ROWS>,
        order: &OrderedBarrier,
        ring: &mut Ring<STAGES, S>,
    ) {
        // There is an exponent for each 64 columns.
        match COLS / PATCH_ROWS {
            3 => compute::<A, B, S, W, STAGES, GROUPS, TILE_ROWS, COLS, 3, MOST>(args, order, ring),
            _ => compute::<A, B, S, W, STAGES, GROUPS, TILE_ROWS, COLS, 2, MOST>(args, order, ring),
        }
    }
}

/// Computes the tiles of `COLS` columns that are a warpgroup's, from a ring whose stages have place for such of `MOST`.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn compute<
    A: Layout,
    B: Layout,
    S: Scope,
    W: Tiles,
    const STAGES: usize,
    const GROUPS: usize,
    const TILE_ROWS: usize,
    const COLS: usize,
    const PATCHES: usize,
    const MOST: usize,
>(
    args: &mut TileArguments<F16x3, S, STAGES, GROUPS, TILE_ROWS>,
    order: &OrderedBarrier,
    ring: &mut Ring<STAGES, S>,
) {
    let (scales_a, scales_b) = args.patches;
    let mut scheduler = W::new(&reload(args.problem));
    let mut master = Fragment::<COLS>::zeroed();
    // The tile before: is it still to be written?
    let (mut before, mut is_left) = (scheduler, false);
    loop {
        let (problem, (group, warp)) = (&reload(args.problem), warp_place());
        if scheduler.are_done(problem) {
            break;
        }
        // (Of this tile: were they the kernel's, they would take registers while what is doubted is computed again.)
        let mut sums = Accumulators::<COLS>::zeroed();
        begin::<A, B, _, _, TILE_ROWS, _, MOST>(&mut sums, ring, order, group);
        if is_left {
            let (problem, (group, _)) = (&reload(args.problem), warp_place());
            let place = part(before, group, problem);
            epilogue::store_plain(args, place, &master);
        }
        before = scheduler;
        let problem = &reload(args.problem);
        let (product, row, col) = part(scheduler, group, problem);
        scheduler.advance(problem);
        let number = (product, problem.products);
        let of_a = Scales::new::<A>(scales_a, number, problem.m, problem.k);
        let of_b = Scales::new::<B>(scales_b, number, problem.n, problem.k);
        let [least, exact] = args.bounds.read(group, &mut ring.bounds);
        let least = f32::from_bits(least);
        // By so much the tensor cores' sums are too small on average, where they are not exact.
        let more = 1 - exact;
        let of_rows = of_a.patch(row, 0) as u32;
        let of_cols: [u32; PATCHES] =
            from_fn(|i| of_b.patch(col + (i * PATCH_ROWS) as u32, 0) as u32);
        // They come from the second-level cache while products are under way.
        let factors_of = |stage: u32| {
            let of_row = of_a.exponent(of_rows, stage);
            let exponents = of_cols.map(|col| of_row + of_b.exponent(col, stage));
            exponents.map(|exponent| factor(exponent, more))
        };
        let mut factors: [f32; PATCHES] = factors_of(0);
        let done = end(&mut sums, ring, warp);
        master.update(done, |part, _, sum| fma(sum, factors[part], 0.0));
        for stage in 1..problem.k.div_ceil(BLOCK_K as u32) {
            begin::<A, B, _, _, TILE_ROWS, _, MOST>(&mut sums, ring, order, group);
            factors = factors_of(stage);
            let done = end(&mut sums, ring, warp);
            master.update(done, |part, master, sum| fma(sum, factors[part], master));
        }
        let last = sums.wait::<0>();
        // What speaks for a sum: itself, or the last steps' part of it, which has not been multiplied by its factor.
        let size = |part: usize, sum: f32, last: f32| sum.abs().max((last * factors[part]).abs());
        let mut confidence = Confidence::ALL;
        master.update(last, |part, sum, last| {
            confidence.include(sum, size(part, sum, last));
            sum
        });
        let are_certain = confidence.on(least);
        is_left = are_certain && epilogue::is_plain(args, product);
        if is_left {
            continue;
        }
        if !are_certain {
            master.update(last, |part, sum, last| {
                recompute::uncertain(sum, size(part, sum, last) >= least)
            });
        }
        // The same tile once more, rather than to keep its numbers.
        let (problem, (group, warp)) = (&reload(args.problem), warp_place());
        let (product, row, col) = part(before, group, problem);
        let mut non_zeros = NonZeros::ALL;
        if !are_certain {
            // Made again of what went through a shuffle: kept, it would take registers in the main loop.
            let number = (warp::shuffle(warp::ALL, product, 0), problem.products);
            let of_a = Scales::new::<A>(scales_a, number, problem.m, problem.k);
            let of_b = Scales::new::<B>(scales_b, number, problem.n, problem.k);
            let [of_rows] = of_a.non_zeros::<1>(row, problem.k);
            let of_cols = of_b.non_zeros::<PATCHES>(col, problem.k);
            // (A register has no number that is computed.)
            non_zeros = NonZeros { rows: 0, cols: 0 };
            let lane = thread::lane_id() as usize;
            for j in 0..4 {
                non_zeros.rows = if warp == j { of_rows[j] } else { non_zeros.rows };
                for i in 0..PATCHES {
                    non_zeros.cols = if lane == 4 * i + j { of_cols[i][j] } else { non_zeros.cols };
                }
            }
        }
        epilogue::store(args, (product, row, col), &mut master, (are_certain, non_zeros));
        // They are not read again; else they would be kept while they are written.
        master = Fragment::unspecified();
    }
    if is_left {
        let (problem, (group, _)) = (&reload(args.problem), warp_place());
        epilogue::store_plain(args, part(before, group, problem), &master);
    }
}

/// The first element of a warpgroup's part of a tile: product, row and column.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn part(tile: impl Tiles, group: usize, problem: &GemmParams) -> (u32, u32, u32) {
    let (product, row, col) = tile.place(problem);
    (product, row + (group * WGMMA_M) as u32, col)
}

/// Begins the three products of the next 64 steps of k, small ones first.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn begin<
    A: Layout,
    B: Layout,
    S: Scope,
    const STAGES: usize,
    const TILE_ROWS: usize,
    const COLS: usize,
    const MOST: usize,
>(
    sums: &mut Accumulators<COLS>,
    ring: &mut Ring<STAGES, S>,
    order: &OrderedBarrier,
    group: usize,
) {
    let mut slice = || ring.slice::<F16, A, B, TILE_ROWS, MOST>(group);
    let ((a1, b1), (a0, b0)) = (slice(), slice());
    order.wait(group);
    sums.multiply(a1, b0);
    sums.multiply_add(a0, b1);
    commit();
    sums.multiply_add(a0, b0);
    commit();
    order.arrive(group);
}

/// Waits for these, and gives their sums. A warp says its number.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn end<'a, S: Scope, const STAGES: usize, const COLS: usize>(
    sums: &'a mut Accumulators<COLS>,
    ring: &mut Ring<STAGES, S>,
    warp: usize,
) -> &'a Fragment<COLS> {
    wait::<1>();
    ring.release(warp);
    let sums = sums.wait::<0>();
    ring.release(warp);
    sums
}
