//! The kernels, one row each.

use super::{
    device::*,
    main_loop::multiply,
    split_k,
    tile::{BLOCK_K, TmaA, TmaB, TmaUnalignedA, WGMMA_M},
};
use crate::params::GemmParams;

/// A kernel of [`multiply`]: the tile of a block, the blocks of a cluster, consumer warpgroups,
/// stages, staged rows, and how A is loaded. Shared memory holds the pipeline, staged accumulators,
/// and two 8-byte barriers a stage.
macro_rules! persistent {
    // A lone block waits once at a barrier of its own until the pipeline is initialised. Blocks of
    // a cluster wait at that of the cluster.
    ($name:ident: $rows:tt x $cols:tt of 1, $($rest:tt)*) => {
        persistent! { @ $name [barriers = 1] pipeline: $rows x $cols of 1, $($rest)* }
    };
    ($name:ident: $rows:tt x $cols:tt of $blocks:tt, $($rest:tt)*) => {
        persistent! { @ $name [cluster = ($blocks)] cluster_pipeline: $rows x $cols of $blocks, $($rest)* }
    };
    (
        @ $name:ident [$($together:tt)*] $ring:ident: $rows:tt x $cols:tt of $blocks:tt, $groups:tt of $stages:tt stages,
        by $staged:tt rows, $kind:ident of $($maps:tt)*
    ) => {
        #[doc = concat!(
            $rows, " x ", $cols, " elements a tile, blocks of a cluster: ", $blocks, "; A is K-major, a [`", stringify!($kind),
            "`], B N-major."
        )]
        #[kernel(
            block = (128 * ($groups + 1)),
            $($together)*,
            dynamic_shared = $stages * BLOCK_K * ($rows + $cols) * size_of::<Tf32>(),
            shared = $groups * $staged * WGMMA_M * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            min_blocks = 1,
            arch = 90,
            dependent
        )]
        pub fn $name(
            problem: GemmParams,
            a: $($maps)*,
            b: TensorMap<Tf32>,
            mut c: Out<f32>,
            bias: In<f32>,
        ) {
            const PART: usize = $rows / $blocks;
            const ACROSS: usize = $cols * $blocks;
            let operands = (&$kind::<PART>::new(&a), &TmaB::<$cols>::new(&b));
            let (out, ring) = ((&mut c, &bias), $ring![$stages]);
            let mut staged = shared![f32; $groups * $staged, WGMMA_M];
            let barriers = named_barriers![1, $groups; 128];
            let together = named_barriers![1 + $groups, 1; 128 * $groups].at(0);
            multiply::<_, _, _, $rows, $cols, $blocks, PART, ACROSS, _, $staged, _, _, _>(
                &problem, operands, out, &ring, &mut staged, (&barriers, together),
            );
        }
    };
    (
        row $rows:tt x $cols:tt of $blocks:tt, $groups:tt of $stages:tt stages,
        by $staged:tt rows, TmaA of TensorMap<Tf32>
    ) => {
        crate::registry::Row::wgmma_tf32([$rows, $cols * $blocks, BLOCK_K as u32]).cluster($blocks)
    };
    (
        row $rows:tt x $cols:tt of $blocks:tt, $groups:tt of $stages:tt stages,
        by $staged:tt rows, TmaUnalignedA of TensorMaps<Tf32, $classes:literal>
    ) => {
        crate::registry::Row::wgmma_tf32([$rows, $cols * $blocks, BLOCK_K as u32])
            .cluster($blocks)
            .unaligned($classes)
    };
}

/// A kernel of [`split_k::multiply`].
macro_rules! split_k {
    ($name:ident: $rows:literal x $cols:literal, $stages:literal stages) => {
        #[doc = concat!(
            $rows, " x ", $cols, " elements a tile; a cluster may split k. A is K-major, B N-major."
        )]
        #[kernel(
            block = (split_k::THREADS),
            dynamic_shared = $stages * BLOCK_K * ($rows + $cols) * size_of::<Tf32>(),
            shared = split_k::staged_rows($rows) * $cols * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            barriers = 1,
            min_blocks = 1,
            arch = 90,
            dependent
        )]
        pub fn $name(
            problem: GemmParams,
            a: TensorMap<Tf32>,
            b: TensorMap<Tf32>,
            mut c: Out<f32>,
            bias: In<f32>,
        ) {
            let operands = (&TmaA::<$rows>::new(&a), &TmaB::<$cols>::new(&b));
            let (out, ring) = ((&mut c, &bias), pipeline![$stages]);
            let mut staged = shared![f32; split_k::staged_rows($rows), $cols];
            let together = named_barriers![1, 1; split_k::MULTIPLYING];
            split_k::multiply::<$rows, $cols, _, _>(&problem, operands, out, &ring, &mut staged, together.at(0));
        }
    };
    (row $rows:literal x $cols:literal, $stages:literal stages) => {
        crate::registry::Row::wgmma_tf32([$rows, $cols, BLOCK_K as u32])
            .split_k(split_k::MAX_SPLITS as u32)
    };
}

kernels! {
    wgmma_tf32;

    // Faster than CTAs without a cluster by 0.2 to 1 %.
    persistent! { wgmma_tf32_256x256x32_c2_nn: 256 x 128 of 2, 2 of 4 stages, by 64 rows, TmaA of TensorMap<Tf32> }
        gpu { gflops: 3120.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] };
    // At 3072³ a wave of these tiles takes 0.777 of the time of a wave of 256 x 256.
    persistent! { wgmma_tf32_192x256x32_c2_nn: 192 x 128 of 2, 2 of 5 stages, by 32 rows, TmaA of TensorMap<Tf32> }
        gpu { gflops: 3010.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] };
    // Fitted to 1024³ and 2048³.
    persistent! { wgmma_tf32_256x128x32_nn: 256 x 128 of 1, 2 of 4 stages, by 64 rows, TmaA of TensorMap<Tf32> }
        gpu { gflops: 3100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 2.0] };
    persistent! { wgmma_tf32_128x128x32_nn: 128 x 128 of 1, 2 of 6 stages, by 64 rows, TmaA of TensorMap<Tf32> }
        gpu { gflops: 2700.0, alone: 1.0, fixed_us: 3.5, tile_us: [0.8, 2.3] };
    persistent! { wgmma_tf32_128x64x32_nn: 128 x 64 of 1, 1 of 8 stages, by 64 rows, TmaA of TensorMap<Tf32> }
        gpu { gflops: 1950.0, alone: 1.0, fixed_us: 3.5, tile_us: [0.6, 1.9] };
    // The speed of the aligned kernel of the same tile.
    // With 64 staged rows, registers spill.
    persistent! { wgmma_tf32_256x256x32_c2_ua8_nn: 256 x 128 of 2, 2 of 4 stages, by 32 rows, TmaUnalignedA of TensorMaps<Tf32, 8> }
        gpu { gflops: 3120.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] };
    persistent! { wgmma_tf32_128x64x32_ua8_nn: 128 x 64 of 1, 1 of 8 stages, by 64 rows, TmaUnalignedA of TensorMaps<Tf32, 8> }
        gpu { gflops: 1950.0, alone: 1.0, fixed_us: 3.5, tile_us: [0.6, 1.9] };
    // The rate that 80 bytes a nanosecond allow. An SM draws as much from L2 for tiles of 128 x 64.
    // 512³ and 16 x 4096 x 4096 take as long as this predicts.
    split_k! { wgmma_tf32_32x32x32_nn: 32 x 32, 20 stages }
        gpu { gflops: 640.0, alone: 1.0, fixed_us: 4.0, tile_us: [1.0, 1.5] };
    split_k! { wgmma_tf32_64x32x32_nn: 64 x 32, 16 stages }
        gpu { gflops: 850.0, alone: 1.0, fixed_us: 4.5, tile_us: [1.2, 1.9] };
}
