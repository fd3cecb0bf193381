//! The bf16x6 scheme: six products of three slices of bf16.

use super::{
    collective::{
        ordered_barrier::OrderedBarrier,
        wgmma_shape::{BLOCK_K, WGMMA_M},
    },
    device::{warpgroup::*, *},
    epilogue,
    recompute::{self, Confidence, NonZeros},
    split_bf16x3::SLICES,
    two_widths::Tiles,
    uniform::{reload, warp_place},
    value_range::Range,
    warp_roles::{Patches, Ring, SplitScheme, TileArguments},
};
use crate::params::GemmParams;

/// Three slices of bf16, which represent an f32.
pub enum Bf16x6 {}

impl SplitScheme for Bf16x6 {
    type Element = Bf16;

    const SLICES: usize = SLICES;
    const IS_PACED: bool = true;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn error_bound<A: Layout, B: Layout, const COLS: usize>(
        problem: &GemmParams,
        ranges: Patches<Self>,
        place: (u32, u32, u32),
    ) -> [u32; 2] {
        [Range::tile_bound::<A, B, WGMMA_M, COLS>(problem, ranges, place).to_bits(), 0]
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
        // Whether the first band is a turn of its own.
        let in_two = const { STAGES < 2 * SLICES };
        let mut scheduler = W::new(&reload(args.problem));
        loop {
            let (problem, (group, warp)) = (&reload(args.problem), warp_place());
            if scheduler.are_done(problem) {
                break;
            }
            // Per tile: accumulators of the whole kernel would take registers while the tile is
            // stored.
            let mut sums = Accumulators::<COLS>::zeroed();
            let mut master = Fragment::<COLS>::zeroed();
            for _ in 0..problem.k.div_ceil(BLOCK_K as u32) {
                let mut slice = || ring.slice::<Bf16, A, B, TILE_ROWS, MOST>(group);
                let ((a2, b2), (a1, b1), (a0, b0)) = (slice(), slice(), slice());

                // After its band nobody reads a slice any more.
                order.wait(group);
                sums.multiply(a0, b2);
                sums.multiply_add(a1, b1);
                sums.multiply_add(a2, b0);
                commit();
                if in_two {
                    order.arrive(group);
                    wait::<0>();
                    ring.release(warp);
                    order.wait(group);
                }
                sums.multiply_add(a0, b1);
                sums.multiply_add(a1, b0);
                commit();
                sums.multiply_add(a0, b0);
                commit();
                order.arrive(group);

                if !in_two {
                    wait::<2>();
                    ring.release(warp);
                }
                wait::<1>();
                ring.release(warp);
                let sums = sums.wait::<0>();
                ring.release(warp);
                master.add(sums);
            }
            let (problem, (group, _)) = (&reload(args.problem), warp_place());
            let (product, row, col) = scheduler.place(problem);
            scheduler.advance(problem);
            let place = (product, row + (group * WGMMA_M) as u32, col);
            let [least, _] = args.bounds.read(group, &mut ring.bounds).map(f32::from_bits);
            let mut confidence = Confidence::ALL;
            master.for_each(|_, _, sum| confidence.include(sum, sum.abs()));
            let are_certain = confidence.on(least);
            if are_certain && epilogue::is_plain(args, product) {
                epilogue::store_plain(args, place, &master);
                continue;
            }
            if !are_certain {
                master.map(|sum| recompute::uncertain(sum, sum.abs() >= least));
            }
            epilogue::store(args, place, &mut master, (are_certain, NonZeros::ALL));
        }
    }
}
