//! The kernels, one row each.
//!
//! ```text
//!   wgmma_f16x3_256x192x64_c2:    F16x3 of F16,    256 x 192 or 128 of 2,     5 stages,    HalfBoxes
//!   name                          split scheme     tile of C, in two widths,  stages of    boxes of B
//!                                                  and blocks that share it   the pipeline
//! ```

use super::{
    bf16x6::Bf16x6,
    collective::{
        ordered_barrier::OrderedBarrier,
        tma::{HalfBoxes, WholeBoxes},
        wgmma_shape::{BLOCK_K, WGMMA_M},
    },
    device::{warpgroup::*, *},
    f16x3::F16x3,
    recompute::{Originals, PITCH},
    two_widths::{Narrow, OneWidth, Wide},
    uniform::warp_place,
    warp_roles::{ErrorBounds, Ring, SplitScheme, TileArguments, begin, copy, find_bounds},
};
use crate::params::GemmParams;

/// A kernel. Each consumer warpgroup has 64 rows and 128 threads, and so has the producer. Shared
/// memory holds the pipeline, staged sums, error bounds, and two 8-byte barriers for each stage of
/// either.
macro_rules! entry {
    // A lone block waits once at a barrier of its own until the pipeline is initialised. Blocks of
    // a cluster wait at that of the cluster.
    ($name:ident: $kind:ident of $element:ident, $rows:tt x $cols:tt of 1, $($rest:tt)*) => {
        entry! {
            @ $name $kind $element [barriers = 1] pipeline: $rows x $cols [$cols: OneWidth<$rows, $cols, 1>] of 1, $($rest)*
        }
    };
    ($name:ident: $kind:ident of $element:ident, $rows:tt x $cols:tt of 2, $($rest:tt)*) => {
        entry! {
            @ $name $kind $element [cluster = (2)] cluster_pipeline: $rows x $cols [
                $cols: OneWidth<{ $rows / 2 }, $cols, 2>
            ] of 2, $($rest)*
        }
    };
    ($name:ident: $kind:ident of $element:ident, $rows:tt x $cols:tt or $narrow:tt of 2, $($rest:tt)*) => {
        entry! {
            @ $name $kind $element [cluster = (2)] cluster_pipeline: $rows x $cols [
                $cols: Wide<{ $rows / 2 }, $cols, 2>, $narrow: Narrow<{ $rows / 2 }, $cols, $narrow, 2>
            ] of 2, $($rest)*
        }
    };
    (
        @ $name:ident $kind:ident $element:ident [$($together:tt)*] $ring:ident:
        $rows:tt x $most:tt [$($cols:tt: $tiles:ty),+] of $blocks:tt, $stages:tt stages, $boxes:ident
    ) => {
        #[doc = concat!(
            "Tiles of ", $rows, " rows; columns: ", $($cols, ", ",)+ "blocks that share a tile: ", $blocks,
            "."
        )]
        #[kernel(
            block = (128 * ($rows / $blocks / WGMMA_M + 1)),
            $($together)*,
            dynamic_shared = $stages * BLOCK_K * ($rows / $blocks + $most) * size_of::<$element>(),
            shared = $rows / $blocks * PITCH * size_of::<f32>() + $stages * 2 * size_of::<u64>()
                + $rows / $blocks / WGMMA_M * (2 * size_of::<u32>() + 2 * size_of::<u64>()),
            min_blocks = 1,
            arch = 90,
            constants(a_mn_major = 0 | 1, b_mn_major = 0 | 1),
            dependent
        )]
        pub fn $name(
            problem: GemmParams,
            a: TensorMap<$element>,
            b: TensorMap<$element>,
            a_itself: In<f32>,
            b_itself: In<f32>,
            patches_a: In<$element>,
            patches_b: In<$element>,
            mut c: Out<f32>,
            bias: In<f32>,
            board: Out<u32>,
        ) {
            const ROWS: usize = $rows / $blocks;
            const GROUPS: usize = ROWS / WGMMA_M;
            const { assert!($stages > $kind::SLICES, "slices are copied while others are multiplied") };
            let mut staged = shared![f32; ROWS, PITCH];
            let mut bounds = ErrorBounds { rings: pipeline![GROUPS], words: shared![u32; GROUPS, 2] };
            let mut args = TileArguments::<$kind, _, $stages, GROUPS, ROWS> {
                problem: &problem,
                originals: Originals { a: &a_itself, b: &b_itself, counters: &board },
                patches: (&patches_a, &patches_b),
                c: &mut c,
                bias: &bias,
                pipeline: &$ring![$stages],
                bounds: &mut bounds,
                staged: &mut staged,
            };
            begin::<_, $blocks, $stages, GROUPS>(args.pipeline, &args.bounds.rings);
            let (group, warp) = warp_place();
            if group == GROUPS {
                // With one consumer warpgroup the registers suffice.
                if GROUPS > 1 {
                    give_registers::<40>();
                }
                if warp > 0 {
                    let group = warp - 1;
                    if group < GROUPS {
                        let rings = args.bounds.rings.part::<1>(group);
                        let mut ring = rings.producer();
                        $(
                            find_bounds::<_, EitherMajorA<BLOCK_K>, EitherMajorB<BLOCK_K>, _, $tiles, $stages, GROUPS, ROWS, $cols>(
                                &mut args, group, &mut ring,
                            );
                        )+
                    }
                    return;
                }
                let of_a = WholeBoxes::<_, EitherMajorA<BLOCK_K>, ROWS>::new(&a);
                let mut producer = args.pipeline.producer();
                $(
                    let of_b = $boxes::<_, EitherMajorB<BLOCK_K>, { $cols / $blocks }>::new(&b);
                    copy::<$kind, _, _, $tiles, $blocks, $stages, $cols, $most>(
                        (&of_a, &of_b), &problem, board, &mut producer,
                    );
                )+
                if $blocks > 1 {
                    producer.drain_warp();
                }
                return;
            }
            if GROUPS > 1 {
                take_registers::<232>();
            }
            let order = OrderedBarrier::new(group, GROUPS);
            let bounds = args.bounds.rings.part::<1>(group);
            let mut ring = Ring {
                next: args.pipeline.consumer(),
                read: args.pipeline.consumer(),
                bounds: bounds.consumer(),
            };
            $(
                $kind::compute::<EitherMajorA<BLOCK_K>, EitherMajorB<BLOCK_K>, _, $tiles, $stages, GROUPS, ROWS, $cols, $most>(
                    &mut args, &order, &mut ring,
                );
            )+
            order.finish(warp_place().0);
        }
    };
    (row $kind:ident of $element:ident, $rows:tt x $cols:tt of $blocks:tt, $($rest:tt)*) => {
        crate::registry::Row::emulated(crate::registry::Scheme::$kind, [$rows, $cols, BLOCK_K as u32])
            .cluster($blocks)
    };
    (row $kind:ident of $element:ident, $rows:tt x $cols:tt or $narrow:tt of $blocks:tt, $($rest:tt)*) => {
        entry!(row $kind of $element, $rows x $cols of $blocks, $($rest)*).or($narrow)
    };
}

kernels! {
    emulated;

    // 256 x 128 was fitted to 1024³, 2048³ and 4096³. In sustained mode 256 x 192 is faster by 1, 3
    // and 0.4 % at 4096³, 8192³ and 16384³.
    entry! { wgmma_bf16x6_256x192x64_c2: Bf16x6 of Bf16, 256 x 192 or 128 of 2, 5 stages, HalfBoxes }
        gpu { gflops: 1040.0, alone: 1.0, fixed_us: 5.0, tile_us: [0.8, 0.8] };
    entry! { wgmma_bf16x6_256x128x64_c2: Bf16x6 of Bf16, 256 x 128 of 2, 6 stages, WholeBoxes }
        gpu { gflops: 1020.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] };
    entry! { wgmma_bf16x6_64x128x64: Bf16x6 of Bf16, 64 x 128 of 1, 8 stages, WholeBoxes }
        gpu { gflops: 780.0, alone: 1.0, fixed_us: 4.0, tile_us: [0.8, 0.8] };
    // Measured in one burst each: 256 x 192 at 8192³, 256 x 128 at 4096³ and 8192³. The value of 64
    // x 128 is a guess. In sustained mode the wider tiles are faster by 4 to 7 %; in short bursts
    // at 4096³ they are slower by 2 %.
    entry! { wgmma_f16x3_256x192x64_c2: F16x3 of F16, 256 x 192 or 128 of 2, 5 stages, HalfBoxes }
        gpu { gflops: 1930.0, alone: 1.0, fixed_us: 5.0, tile_us: [0.8, 0.8] };
    entry! { wgmma_f16x3_256x128x64_c2: F16x3 of F16, 256 x 128 of 2, 6 stages, WholeBoxes }
        gpu { gflops: 1900.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] };
    entry! { wgmma_f16x3_64x128x64: F16x3 of F16, 64 x 128 of 1, 8 stages, WholeBoxes }
        gpu { gflops: 1450.0, alone: 1.0, fixed_us: 4.0, tile_us: [0.8, 0.8] };
}
