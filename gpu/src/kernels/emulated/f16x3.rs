//! The f16x3 scheme: three products of two scaled slices of f16. That is half as many as with bf16.
//!
//! ```text
//!   x y = 2^(e + f) (x1 y0 + x0 y1 + x0 y0)       (+ x1 y1: at most 2^-22 |x y|, left out)
//! ```
//!
//! A patch has one exponent ([`scales`](super::scales)): 64 rows and 64 k-steps, and 64 columns.
//! So for 64 k-steps a warpgroup has one exponent for each 64 of its columns. Promotion is a
//! fused multiply-add: sums are multiplied by a power of two and added to an f32 with one rounding.
//!
//! (Slices of this kind, with exponents by rows: H. Ootomo and R. Yokota, "Recovering single
//! precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance",
//! 2022.)
//!
//! # Why it is accurate
//! **Small products come first**, as in [bf16x6](super): truncation costs them 2^-10 of what it
//! costs the large ones. **Sums are promoted every 64 k-steps.**
//!
//! **The average truncation is added back.** Truncation always reduces the absolute value of a sum:
//! by 1.5 times 2^-23 for 64 steps of numbers of one sign, otherwise by less. So the factor of
//! promotion is not the power of two but the next greater f32, which is 1 + 2^-23 times as much,
//! and costs nothing. (In a model of the tensor cores, medians for 256 k-steps: 5.5e-8 in place
//! of 1.8e-7 with numbers from [0, 1), 1.1e-7 in place of 1.4e-7 with normally distributed ones.
//! Fused multiply-adds have 1.5e-7 and 2.3e-7.) If integers are so small that a sum of 64 products
//! is exact, nothing is truncated and nothing added back.
//!
//! The result is within `(k / 64 + 55) 2^-24` of the exact sum, relative to the sum of the absolute
//! values of the terms:
//!
//! ```text
//!   k / 64         promotion: a rounding for 64 steps, of which the first of all adds to zero
//!   42             truncation: in four MMAs 17 addends by 2^-25 of the greatest each, and the sum by 2^-23
//!    0.1           the same in eight MMAs of small products
//!    2             what is added back
//!    4             x1 y1: x0 is the nearest number of 11 bits, so |x1| is at most 2^-11 of x
//!    4             x1 and y1 have 11 bits too: 2^-23 each
//!    2             numbers that are small compared with the largest of their patch, if the sum passes the error bound
//! ```
//!
//! A sum of k fused multiply-adds is within `k 2^-24`.
//!
//! # Tiles
//! ```text
//!   kernel                     blocks    warpgroups    part of a warpgroup    stages: a slice of A and of B, 64 k-steps
//!   wgmma_f16x3_256x192x64_c2    2         2 + 1         64 x 192 or 128        5 x 40 KiB
//!   wgmma_f16x3_256x128x64_c2    2         2 + 1         64 x 128               6 x 32 KiB
//!   wgmma_f16x3_64x128x64        1         1 + 1         64 x 128               8 x 24 KiB
//! ```
//!
//! Power limits large products. With 192 columns, an MMA reads a ninth less from shared memory for
//! each operation, and a block a fifth less from L2. But waves of such tiles seldom end together.
//! So the first kernel has tiles of 128 columns, too ([`two_widths`](super::two_widths)).
//!
//! With 192 columns the sums are 192 of 232 registers. So nothing else may be kept while the tensor
//! cores work: code after the main loop [reloads](reload) the parameters, and idle warps compute
//! the error bound of a tile while the one before is multiplied
//! ([`ErrorBounds`](super::warp_roles::ErrorBounds)).
//!
//! **The MMAs of the next tile start before a tile is stored** ([`epilogue`]). They take 1.4 us for
//! both warpgroups, and the tensor cores would idle while C is stored. So the loop over tiles is
//! open in the middle:
//!
//! ```text
//!   tile 0   begin | .. promote, begin | .. promote: are all sums certain?
//!   tile 1                                           begin | store tile 0 | promote, begin | ..
//! ```
//!
//! (Not if a narrow tile follows the last wide one.) The sums that are stored meanwhile are 96
//! registers, and those being computed 96. A tile whose C is not
//! [plain](super::epilogue::is_plain), or that is recomputed, has no room next to both. It is
//! stored before the next one starts.
//!
//! # What is recomputed
//! Infinity and NaN, as in [bf16x6](super), and *uncertain* sums. A sum is uncertain if it is less
//! than 2^23 times what its tile may have lost ([`tile_bound`]), and so is the part of it that the
//! last k-steps have. Each of the two is at most the sum of the absolute values of the terms,
//! and both are rarely small by chance.

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

/// Two scaled slices of f16.
pub enum F16x3 {}

/// 2^exponent, clamped to normal numbers, plus `more` units in the last place.
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
        // Each 64 columns have an exponent.
        match COLS / PATCH_ROWS {
            3 => compute::<A, B, S, W, STAGES, GROUPS, TILE_ROWS, COLS, 3, MOST>(args, order, ring),
            _ => compute::<A, B, S, W, STAGES, GROUPS, TILE_ROWS, COLS, 2, MOST>(args, order, ring),
        }
    }
}

/// Computes a warpgroup's tiles of `COLS` columns. A stage has room for `MOST` columns.
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
    // The tile before, and whether it has still to be stored.
    let (mut before, mut is_left) = (scheduler, false);
    loop {
        let (problem, (group, warp)) = (&reload(args.problem), warp_place());
        if scheduler.are_done(problem) {
            break;
        }
        // Per tile: accumulators of the whole kernel would take registers while sums are
        // recomputed.
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
        // The average truncation, if sums are not exact.
        let more = 1 - exact;
        let of_rows = of_a.patch(row, 0) as u32;
        let of_cols: [u32; PATCHES] =
            from_fn(|i| of_b.patch(col + (i * PATCH_ROWS) as u32, 0) as u32);
        // They are loaded from L2 while MMAs are in flight.
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
        // The size of a sum: its own, or that of the part of the last steps, which has not been
        // multiplied by its factor.
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
        // The same tile once more, which is better than to keep its numbers.
        let (problem, (group, warp)) = (&reload(args.problem), warp_place());
        let (product, row, col) = part(before, group, problem);
        let mut non_zeros = NonZeros::ALL;
        if !are_certain {
            // Recomputed from a shuffled number: if it were kept, it would take registers in the
            // main loop.
            let number = (warp::shuffle(warp::ALL, product, 0), problem.products);
            let of_a = Scales::new::<A>(scales_a, number, problem.m, problem.k);
            let of_b = Scales::new::<B>(scales_b, number, problem.n, problem.k);
            let [of_rows] = of_a.non_zeros::<1>(row, problem.k);
            let of_cols = of_b.non_zeros::<PATCHES>(col, problem.k);
            // Registers cannot be indexed by a computed number.
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
        // They are not read again. Otherwise they would be kept while they are stored.
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

/// Issues the three products of the next 64 k-steps, small ones first.
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

/// Waits for these, and returns their sums. `warp` is the number of the warp.
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
