//! The kernels, one row each.
//!
//! ```text
//!   tma_f32_64x64x64_tn:   64 x 64,     8 x 4 lanes,      2 slabs,     by 4 warps,           TN
//!   name                   tile of C    a warp's lanes    k-steps      warps that split k    layout
//!                                                         of a stage   (then clusters, too)
//! ```
//!
//! Each has three stages. B is N-major. Row starts are 16-byte aligned, but for `producers` with
//! alignment classes of A.

use super::{
    collective::fragment::SLAB, device::*, main_loop::multiply, operand::UnalignedA, producers,
    split_k,
};
use crate::params::GemmParams;

/// Bytes of shared memory: those of `stages`, or more if the parts of a tile, one of each warp that
/// splits k, take more. The parts replace the stages.
const fn shared_bytes(stages: usize, [rows, cols]: [usize; 2], warps: usize) -> usize {
    let parts = if warps > 1 { split_k::bytes(rows, cols, warps) } else { 0 };
    if parts > stages { parts } else { stages }
}

/// A kernel of [`multiply`], whose warps all multiply.
macro_rules! entry {
    (
        $name:ident: $rows:literal x $cols:literal, $down:literal x $across:literal lanes, $slabs:literal slabs,
        by $warps:literal warps, $layout:ident
    ) => {
        #[doc = concat!("Tiles of ", $rows, " x ", $cols, " elements, layout ", stringify!($layout), ".")]
        #[kernel(
            block = (128),
            dynamic_shared = shared_bytes(3 * $slabs * SLAB * ($rows + $cols) * size_of::<f32>(), [$rows, $cols], $warps),
            barriers = 4,
            min_blocks = 2,
            arch = 90,
            opt_level = 1,
            dependent
        )]
        pub fn $name(
            problem: GemmParams,
            a: TensorMap<f32>,
            b: TensorMap<f32>,
            mut c: Out<f32>,
            bias: In<f32>,
        ) {
            let (a, b) = (a_boxes!($layout a $rows), b.boxes::<SLAB, $cols, 0>());
            multiply::<_, _, $rows, $cols, $down, $across, 16, $slabs, $warps, 128, 3>(
                &problem,
                (&a, &b),
                (&mut c, &bias),
                &pipeline![3],
            );
        }
    };
    (
        row $rows:literal x $cols:literal, $down:literal x $across:literal lanes, $slabs:literal slabs,
        by $warps:literal warps, $layout:ident
    ) => {
        crate::registry::Row::tma([$rows, $cols, $slabs * SLAB as u32], crate::registry::Layout::$layout)
            .split_k(if $warps > 1 { split_k::MAX_SPLITS as u32 } else { 1 })
    };
}

/// The boxes of A: K-major, or M-major.
macro_rules! a_boxes {
    (NN $a:ident $rows:literal) => {
        $a.boxes::<$rows, SLAB, 128>()
    };
    (TN $a:ident $rows:literal) => {
        $a.boxes::<SLAB, $rows, 0>()
    };
}

/// A kernel with [`producers`]. Without alignment classes rows of A are aligned. With four there is
/// a tensor map for every fourth row of A.
macro_rules! producers {
    ($name:ident: 1 class) => {
        producers! { @ $name [TensorMap<f32>] producers::STAGE, 32, |a| a.boxes::<72, 32, 128>() }
    };
    ($name:ident: 4 classes) => {
        producers! {
            @ $name [TensorMaps<f32, 4>] producers::UNALIGNED_STAGE, 36, |a| UnalignedA::<18>(a)
        }
    };
    (@ $name:ident [$($maps:tt)+] $stage:expr, $steps:literal, |$a:ident| $boxes:expr) => {
        /// 72 x 80 elements a block; A K-major, B N-major.
        #[kernel(
            block = (producers::THREADS),
            dynamic_shared = producers::RINGS * producers::STAGES * $stage * size_of::<f32>(),
            barriers = 3,
            min_blocks = 1,
            arch = 90,
            opt_level = 1,
            dependent
        )]
        pub fn $name(
            problem: GemmParams,
            $a: $($maps)+,
            b: TensorMap<f32>,
            mut c: Out<f32>,
            bias: In<f32>,
        ) {
            let (a, b) = ($boxes, b.boxes::<$steps, 80, 0>());
            producers::multiply::<_, _, { $stage }>(
                &problem,
                (&a, &b),
                (&mut c, &bias),
                &pipeline![8],
            );
        }
    };
    (row 1 class) => {
        crate::registry::Row::tma(
            [producers::TILE.0 as u32, producers::TILE.1 as u32, super::collective::fragment::STEPS as u32],
            crate::registry::Layout::NN,
        )
    };
    (row 4 classes) => {
        producers!(row 1 class).unaligned(4)
    };
}

kernels! {
    tma;

    entry! { tma_f32_128x128x32_nn: 128 x 128, 8 x 4 lanes, 1 slabs, by 1 warps, NN }
        gpu { gflops: 410.0, alone: 0.87, fixed_us: 6.0, tile_us: [1.2, 6.5] };
    entry! { tma_f32_128x128x32_tn: 128 x 128, 8 x 4 lanes, 1 slabs, by 1 warps, TN }
        gpu { gflops: 410.0, alone: 0.87, fixed_us: 6.0, tile_us: [1.2, 6.5] };
    entry! { tma_f32_64x64x64_nn: 64 x 64, 8 x 4 lanes, 2 slabs, by 4 warps, NN }
        gpu { gflops: 385.0, alone: 0.87, fixed_us: 4.5, tile_us: [0.3, 2.6] };
    entry! { tma_f32_64x64x64_tn: 64 x 64, 8 x 4 lanes, 2 slabs, by 4 warps, TN }
        gpu { gflops: 385.0, alone: 0.87, fixed_us: 4.5, tile_us: [0.3, 2.6] };
    producers! { tma_f32_72x80x8_nn: 1 class }
        gpu { gflops: 392.0, alone: 1.0, fixed_us: 3.9, tile_us: [1.4, 3.2] };
    producers! { tma_f32_72x80x8_ua4_nn: 4 classes }
        gpu { gflops: 389.0, alone: 1.0, fixed_us: 4.5, tile_us: [1.4, 3.7] };
    entry! { tma_f32_16x256x32_nn: 16 x 256, 2 x 16 lanes, 1 slabs, by 4 warps, NN }
        gpu { gflops: 360.0, alone: 0.87, fixed_us: 4.3, tile_us: [1.5, 1.9] };
    entry! { tma_f32_256x16x32_nn: 256 x 16, 32 x 1 lanes, 1 slabs, by 4 warps, NN }
        gpu { gflops: 360.0, alone: 0.87, fixed_us: 4.3, tile_us: [1.8, 1.8] };
}
