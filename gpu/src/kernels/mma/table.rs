//! The kernels, one row each.
//!
//! ```text
//!   mma_half_f32_64x64x64:   Half -> f32,    64 x 64,     2 x 2 a warp,       4 stages of 64,     rows anywhere
//!   name                     A, B -> C       tile of C    16 x 16 parts of    k-steps in       alignment of
//!                                                         the tile            shared memory       A and B
//! ```

#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
use super::by_tma;
use super::{device::*, main_loop, stream, tile::threads};
use crate::params::GemmParams;

/// A kernel of four warps, with two blocks an SM on Hopper and an A100. Shared memory holds the
/// stages, and then the staged sums. Barriers: one for the first stage, one in the loop, one before
/// the sums. Hopper takes these kernels from the PTX for every GPU.
macro_rules! entry {
    ($name:ident: Half -> $($rest:tt)*) => {
        entry! { @ $name [half = bf16 | f16] Half -> $($rest)* }
    };
    ($name:ident: f32 -> $($rest:tt)*) => {
        entry! { @ $name [] f32 -> $($rest)* }
    };
    (
        @ $name:ident [$($($constants:tt)+)?] $t:ident -> $c:ident, $rows:tt x $cols:tt, $m:tt x $n:tt a warp,
        $stages:tt stages of $depth:tt, rows anywhere
    ) => {
        #[cfg(not(target_feature = "sm_90a"))]
        #[doc = concat!(
            "A and B of [`", stringify!($t), "`], C of [`", stringify!($c), "`]; tiles of ", $rows, " x ", $cols, " elements."
        )]
        #[kernel(
            block = (threads([$rows, $cols], [$m, $n])),
            dynamic_shared = $stages * main_loop::stage_len::<$t>($rows, $cols, $depth, true) * size_of::<$t>(),
            barriers = 3,
            min_blocks = 2,
            constants(a_mn_major = 0 | 1, b_mn_major = 1 | 0 $(, $($constants)+)?),
        )]
        pub fn $name(problem: GemmParams, a: In<$t>, b: In<$t>, mut c: Out<$c>, bias: In<$c>) {
            main_loop::multiply::<_, _, $rows, $cols, $m, $n, $stages, $depth, { threads([$rows, $cols], [$m, $n]) }>(
                &problem,
                (&a, &b),
                (&mut c, &bias),
                [a_mn_major == 0, b_mn_major == 0],
            );
        }
    };
    (row f32 -> $c:ident, $rows:tt x $cols:tt, $m:tt x $n:tt a warp, $stages:tt stages of $depth:tt, $($rest:tt)*) => {
        crate::registry::Row::mma::<f32, $c>([$rows, $cols, $depth]).scheme(crate::registry::Scheme::Tf32)
    };
    (row $t:ident -> $c:ident, $rows:tt x $cols:tt, $m:tt x $n:tt a warp, $stages:tt stages of $depth:tt, $($rest:tt)*) => {
        crate::registry::Row::mma::<$t, $c>([$rows, $cols, $depth])
    };
}

/// A kernel whose copies, loads and products overlap. A warp has sixteen parts. Of 16-bit types it
/// is for aligned rows. Barriers: those of two main loops, or three, two each, and one before the
/// sums.
macro_rules! streamed {
    ($name:ident: Half -> $($rest:tt)*) => {
        streamed! { @ $name [half = bf16 | f16] [multiply_in_pieces, 5] [] Half -> $($rest)* }
    };
    ($name:ident: f32 -> $($rest:tt)*) => {
        streamed! { @ $name [] [multiply, 7] [4, false,] f32 -> $($rest)* }
    };
    (
        @ $name:ident [$($($constants:tt)+)?] [$multiply:ident, $barriers:tt] [$($copies:tt)*] $t:ident -> $c:ident, $rows:tt x $cols:tt,
        $stages:tt stages of 32, $blocks:tt an SM
    ) => {
        #[cfg(not(target_feature = "sm_90a"))]
        #[doc = concat!(
            "A and B of [`", stringify!($t), "`], C of [`", stringify!($c), "`]; tiles of ", $rows, " x ", $cols, " elements."
        )]
        #[kernel(
            block = (threads([$rows, $cols], [4, 4])),
            dynamic_shared = $stages * main_loop::stage_len::<$t>($rows, $cols, 32, false) * size_of::<$t>(),
            barriers = $barriers,
            min_blocks = $blocks,
            constants(a_mn_major = 0 | 1, b_mn_major = 1 | 0 $(, $($constants)+)?),
        )]
        pub fn $name(problem: GemmParams, a: In<$t>, b: In<$t>, mut c: Out<$c>, bias: In<$c>) {
            stream::$multiply::<_, _, $rows, $cols, 4, 4, $stages, 32, $($copies)* { threads([$rows, $cols], [4, 4]) }>(
                &problem,
                (&a, &b),
                (&mut c, &bias),
                [a_mn_major == 0, b_mn_major == 0],
            );
        }
    };
    (row f32 -> $c:ident, $rows:tt x $cols:tt, $($rest:tt)*) => {
        crate::registry::Row::mma::<f32, $c>([$rows, $cols, 32]).scheme(crate::registry::Scheme::Tf32)
    };
    (row $t:ident -> $c:ident, $rows:tt x $cols:tt, $($rest:tt)*) => {
        crate::registry::Row::mma::<$t, $c>([$rows, $cols, 32])
    };
}

/// A kernel of i8, for K-major operands with 16-byte aligned rows. Barriers: two of the main loop,
/// two of the ends of rows, and one before the sums.
macro_rules! integers {
    ($name:ident: i32, $($rest:tt)*) => { integers! { @ $name i32 [] [] [None] $($rest)* } };
    ($name:ident: f32, $($rest:tt)*) => {
        integers! { @scaled $name f32 [constants(scales = 0 | 1),] scales $($rest)* }
    };
    ($name:ident: Half, $($rest:tt)*) => {
        integers! { @scaled $name Half [constants(half = bf16 | f16, scales = 0 | 1),] scales $($rest)* }
    };
    (@scaled $name:ident $c:ident $constants:tt $scales:ident $($rest:tt)*) => {
        integers! {
            @ $name $c $constants [, strides: crate::params::ScaleStrides, scales_a: In<f32>, scales_b: In<f32>]
            [Some(&super::collective::scales::Scaled { kind: $scales, strides, a: &scales_a, b: &scales_b })] $($rest)*
        }
    };
    (
        @ $name:ident $c:ident [$($constants:tt)*] [$($more:tt)*] [$scales:expr] $rows:tt x $cols:tt, $m:tt x $n:tt a warp,
        $stages:tt stages of $depth:tt, $blocks:tt an SM
    ) => {
        #[cfg(not(target_feature = "sm_90a"))]
        #[doc = concat!("A and B of [`i8`], C of [`", stringify!($c), "`]; tiles of ", $rows, " x ", $cols, " elements.")]
        #[kernel(
            block = (threads([$rows, $cols], [$m, $n])),
            dynamic_shared = $stages * main_loop::stage_len::<i8>($rows, $cols, $depth, false),
            barriers = 5,
            min_blocks = $blocks,
            $($constants)*
        )]
        pub fn $name(problem: GemmParams, a: In<i8>, b: In<i8>, mut c: Out<$c>, bias: In<$c> $($more)*) {
            stream::multiply_rows::<_, _, $rows, $cols, $m, $n, $stages, $depth, { threads([$rows, $cols], [$m, $n]) }>(
                &problem,
                (&a, &b),
                (&mut c, &bias),
                $scales,
            );
        }
    };
    (row $c:ident, $rows:tt x $cols:tt, $m:tt x $n:tt a warp, $stages:tt stages of $depth:tt, $($rest:tt)*) => {
        crate::registry::Row::mma::<i8, $c>([$rows, $cols, $depth]).in_pieces()
    };
}

/// A kernel of f64, for each target, since Hopper has other instructions, or for Hopper alone.
/// Barriers: those of three main loops, two each, and one before the sums.
macro_rules! entry_f64 {
    ($name:ident: for each target, $($rest:tt)*) => {
        entry_f64! { @ #[cfg(true)] [] $name: $($rest)* }
    };
    ($name:ident: for Hopper, $($rest:tt)*) => {
        entry_f64! { @ #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))] [arch = 90,] $name: $($rest)* }
    };
    (
        @ #[$only:meta] [$($arch:tt)*] $name:ident: $rows:tt x $cols:tt, $m:tt x $n:tt a warp,
        $stages:tt stages of $depth:tt, $blocks:tt an SM
    ) => {
        #[$only]
        #[doc = concat!("A, B and C of [`f64`]; tiles of ", $rows, " x ", $cols, " elements.")]
        #[kernel(
            block = (threads([$rows, $cols], [$m, $n])),
            dynamic_shared = $stages * main_loop::stage_len::<f64>($rows, $cols, $depth, true) * size_of::<f64>(),
            barriers = 7,
            min_blocks = $blocks,
            $($arch)*
            constants(a_mn_major = 0 | 1, b_mn_major = 1 | 0),
        )]
        pub fn $name(problem: GemmParams, a: In<f64>, b: In<f64>, mut c: Out<f64>, bias: In<f64>) {
            stream::multiply::<_, _, $rows, $cols, $m, $n, $stages, $depth, 8, true, { threads([$rows, $cols], [$m, $n]) }>(
                &problem,
                (&a, &b),
                (&mut c, &bias),
                [a_mn_major == 0, b_mn_major == 0],
            );
        }
    };
    (row for each target, $($rest:tt)*) => {
        entry_f64!(row $($rest)*).for_each_target()
    };
    (row for Hopper, $($rest:tt)*) => {
        entry_f64!(row $($rest)*)
    };
    (row $rows:tt x $cols:tt, $m:tt x $n:tt a warp, $stages:tt stages of $depth:tt, $blocks:tt an SM) => {
        crate::registry::Row::mma::<f64, f64>([$rows, $cols, $depth])
    };
}

/// A kernel of f64 whose operands TMA copies.
macro_rules! boxes_f64 {
    (
        $name:ident: $rows:tt x $cols:tt, $m:tt x 2 a warp, $slabs:tt slabs, $blocks:tt an SM
    ) => {
        #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
        #[doc = concat!("A, B and C of [`f64`], by TMA; tiles of ", $rows, " x ", $cols, " elements.")]
        #[kernel(
            block = (by_tma::WARPS * 32),
            dynamic_shared = by_tma::STAGES * $slabs * by_tma::slab_len($rows, $cols) * size_of::<f64>(),
            barriers = 2,
            min_blocks = $blocks,
            arch = 90,
            constants(a_mn_major = 0 | 1, b_mn_major = 1 | 0),
            dependent,
        )]
        pub fn $name(
            problem: GemmParams,
            a: TensorMap<f64>,
            b: TensorMap<f64>,
            mut c: Out<f64>,
            bias: In<f64>,
        ) {
            by_tma::multiply::<$rows, $cols, $m, $slabs>(
                &problem,
                (&a, &b),
                (&mut c, &bias),
                &pipeline![4],
                [a_mn_major == 0, b_mn_major == 0],
            );
        }
    };
    (row $rows:tt x $cols:tt, $m:tt x 2 a warp, $slabs:tt slabs, $blocks:tt an SM) => {
        crate::registry::Row::mma::<f64, f64>([$rows, $cols, $slabs * by_tma::DEPTH as u32]).by_tma()
    };
}

kernels! {
    mma;

    // Not measured on the GPUs that they are for. Derived from the time that an SM takes to read a
    // stage from shared memory, or to multiply it. (On an H200: 1446 and 2075 at 2048³.)
    entry! { mma_half_64x64x64: Half -> Half, 64 x 64, 2 x 2 a warp, 4 stages of 64, rows anywhere }
        gpu { gflops: 1500.0, alone: 0.5, fixed_us: 4.0, tile_us: [0.8, 0.8], of: Products::OtherGpus };
    entry! { mma_half_f32_64x64x64: Half -> f32, 64 x 64, 2 x 2 a warp, 4 stages of 64, rows anywhere }
        gpu { gflops: 1500.0, alone: 0.5, fixed_us: 4.0, tile_us: [0.8, 0.8], of: Products::OtherGpus };
    streamed! { mma_half_128x128x32: Half -> Half, 128 x 128, 3 stages of 32, 2 an SM }
        gpu { gflops: 3150.0, alone: 0.7, fixed_us: 4.5, tile_us: [0.8, 0.8], of: Products::OtherGpusInPieces };
    streamed! { mma_half_f32_128x128x32: Half -> f32, 128 x 128, 3 stages of 32, 2 an SM }
        gpu { gflops: 3150.0, alone: 0.7, fixed_us: 4.5, tile_us: [0.8, 0.8], of: Products::OtherGpusInPieces };
    // Both at 2048³ to 8192³ on an H200 (docs/log/mma.md).
    streamed! { mma_half_128x256x32: Half -> Half, 128 x 256, 4 stages of 32, 1 an SM }
        gpu { gflops: 3300.0, alone: 1.0, fixed_us: 5.5, tile_us: [1.6, 1.6], of: Products::OtherGpusInPieces };
    streamed! { mma_half_f32_128x256x32: Half -> f32, 128 x 256, 4 stages of 32, 1 an SM }
        gpu { gflops: 3300.0, alone: 1.0, fixed_us: 5.5, tile_us: [1.6, 1.6], of: Products::OtherGpusInPieces };
    // Fitted to random shapes on an H100, for operands that `wgmma` cannot read as they are.
    entry! { mma_tf32_64x64x32: f32 -> f32, 64 x 64, 2 x 2 a warp, 4 stages of 32, rows anywhere }
        gpu { gflops: 711.0, alone: 0.35, fixed_us: 6.0, tile_us: [1.6, 2.0] };
    // At 1024³ to 4096³ on an H200 (docs/log/mma.md).
    streamed! { mma_tf32_128x128x32: f32 -> f32, 128 x 128, 2 stages of 32, 2 an SM }
        gpu { gflops: 1190.0, alone: 0.78, fixed_us: 6.0, tile_us: [0.8, 0.8], of: Products::OtherGpus };
    // Not timed. As many bytes a stage as 16-bit types, and twice the multiply-adds of a byte:
    // their tiles' figures, with the products at twice the speed (docs/log/int8.md).
    integers! { mma_i8_i32_128x128x64_nt: i32, 128 x 128, 4 x 4 a warp, 3 stages of 64, 2 an SM }
        gpu { gflops: 6300.0, alone: 0.7, fixed_us: 4.5, tile_us: [0.8, 0.8], of: Products::OtherGpus };
    integers! { mma_i8_i32_64x64x64_nt: i32, 64 x 64, 2 x 2 a warp, 4 stages of 64, 3 an SM }
        gpu { gflops: 3000.0, alone: 0.4, fixed_us: 4.0, tile_us: [0.8, 0.8], of: Products::OtherGpus };
    integers! { mma_i8_f32_64x64x64_nt: f32, 64 x 64, 2 x 2 a warp, 4 stages of 64, 3 an SM }
        gpu { gflops: 3000.0, alone: 0.4, fixed_us: 4.0, tile_us: [0.8, 0.8], of: Products::OtherGpus };
    integers! { mma_i8_half_128x128x64_nt: Half, 128 x 128, 4 x 4 a warp, 3 stages of 64, 2 an SM }
        gpu { gflops: 6300.0, alone: 0.7, fixed_us: 4.5, tile_us: [0.8, 0.8], of: Products::OtherGpus };
    integers! { mma_i8_half_64x64x64_nt: Half, 64 x 64, 2 x 2 a warp, 4 stages of 64, 3 an SM }
        gpu { gflops: 3000.0, alone: 0.4, fixed_us: 4.0, tile_us: [0.8, 0.8], of: Products::OtherGpus };
    // Fitted on an H200 to cubes, to 64x64x100000 and to 4096x4096x16 (docs/log/mma.md, "f64"). The
    // next two are for unaligned rows, and the first for operands of any strides.
    entry_f64! { mma_f64_64x64x32: for each target, 64 x 64, 2 x 2 a warp, 2 stages of 32, 2 an SM }
        gpu { gflops: 365.0, alone: 0.66, fixed_us: 5.0, tile_us: [1.6, 1.6] };
    entry_f64! { mma_f64_128x128x32: for Hopper, 128 x 128, 4 x 2 a warp, 3 stages of 32, 1 an SM }
        gpu { gflops: 403.0, alone: 1.0, fixed_us: 5.5, tile_us: [8.0, 8.0] };
    // Fitted to the same and to 16x4096x4096 ("By TMA"). 64 x 32 alone is slower than it would be
    // on cubes: few rows of a wide operand come in pieces of 256 bytes.
    boxes_f64! { mma_f64_128x64x16: 128 x 64, 4 x 2 a warp, 1 slabs, 2 an SM }
        gpu { gflops: 410.0, alone: 0.93, fixed_us: 5.5, tile_us: [2.6, 2.6] };
    boxes_f64! { mma_f64_64x64x16: 64 x 64, 2 x 2 a warp, 1 slabs, 3 an SM }
        gpu { gflops: 415.0, alone: 0.45, fixed_us: 5.0, tile_us: [0.9, 0.9] };
    boxes_f64! { mma_f64_64x32x32: 64 x 32, 1 x 2 a warp, 2 slabs, 2 an SM }
        gpu { gflops: 395.0, alone: 0.55, fixed_us: 4.5, tile_us: [0.7, 0.7] };
    boxes_f64! { mma_f64_32x64x32: 32 x 64, 1 x 2 a warp, 2 slabs, 2 an SM }
        gpu { gflops: 380.0, alone: 0.8, fixed_us: 4.5, tile_us: [0.7, 0.7] };
}
