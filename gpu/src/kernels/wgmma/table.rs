//! The kernels, one row each.
//!
//! ```text
//!   wgmma_half_f32_256x256x64_c2:   f32,      256 x 256 of 2,         4 stages,    WholeBoxes
//!   name                            type      tile of C, and          stages of    boxes of B
//!                                   of C      blocks that share it    the pipeline
//! ```
//!
//! `split k` stands for tiles of [`split_k`]. A C of i32 is that of A and B of i8. `Fp8 -> f32` has
//! A and B of e4m3 or e5m2, `i8 -> f32` of i8.

use super::{
    collective::{
        background::{NoBackground, PackTail},
        scales::Scaled,
        staged_epilogue,
        stored::Stored,
        tma::{BytesBoxes, HalfBoxes, SPAN, WholeBoxes, mn_span},
        unaligned_a::UnalignedA,
        wgmma_shape::{BLOCK_K, WGMMA_M},
    },
    device::{warpgroup::*, *},
    ldg,
    persistent::multiply,
    scales::Unscaled,
    split_k,
};
use crate::params::{GemmParams, IDENTITY, MatrixBatch, ScaleStrides};

/// A kernel. Each consumer warpgroup has 64 rows and 128 threads, and so has the producer. Shared
/// memory holds the pipeline, staged accumulators of 32 bits, and two 8-byte barriers a stage.
macro_rules! entry {
    ($name:ident: i32, $rows:tt x $cols:tt split k, $($rest:tt)*) => {
        entry! {
            @split $name i8 i32 [] [] [(IDENTITY, &Unscaled)] BytesBoxes [KMajor<SPAN, 1>, KMajor<SPAN, 1>]: $rows x $cols, $($rest)*
        }
    };
    ($name:ident: Fp8 -> f32, $($rest:tt)*) => {
        entry! { @eight $name Fp8 f32 [constants(fp8 = e4m3 | e5m2, scales = 0 | 1 | 2),] scales $($rest)* }
    };
    ($name:ident: Fp8 -> Half, $($rest:tt)*) => {
        entry! { @eight $name Fp8 Half [constants(fp8 = e4m3 | e5m2, half = bf16 | f16, scales = 0 | 1 | 2),] scales $($rest)* }
    };
    ($name:ident: i8 -> f32, $($rest:tt)*) => {
        entry! { @eight $name i8 f32 [constants(scales = 0 | 1),] scales $($rest)* }
    };
    ($name:ident: i8 -> Half, $($rest:tt)*) => {
        entry! { @eight $name i8 Half [constants(half = bf16 | f16, scales = 0 | 1),] scales $($rest)* }
    };
    (@eight $name:ident $t:ident $c:ident $constants:tt $scales:ident $($rest:tt)*) => {
        entry! {
            @scaled $name $t $c $constants
            [, strides: ScaleStrides, scales_a: In<f32>, scales_b: In<f32>]
            [(IDENTITY, &Scaled { kind: $scales, strides, a: &scales_a, b: &scales_b })] $($rest)*
        }
    };
    (@scaled $name:ident $t:ident $c:ident $constants:tt $more:tt $loaded:tt $rows:tt x $cols:tt of $blocks:tt, $($rest:tt)*) => {
        entry! {
            @@ $name $t $c $constants $more $loaded BytesBoxes [KMajor<SPAN, 1>, KMajor<SPAN, 1>]
            [cluster = ($blocks)] cluster_pipeline: $rows x $cols of $blocks, $($rest)*
        }
    };
    (@scaled $name:ident $t:ident $c:ident $constants:tt $more:tt $loaded:tt $rows:tt x $cols:tt split k, $($rest:tt)*) => {
        entry! {
            @split $name $t $c $constants $more $loaded BytesBoxes [KMajor<SPAN, 1>, KMajor<SPAN, 1>]: $rows x $cols, $($rest)*
        }
    };
    // Its sums are not finished in registers.
    ($name:ident: Half, $rows:tt x 16 split k, $($rest:tt)*) => {
        entry! { @split_half $name Half [] IDENTITY: $rows x 16, $($rest)* }
    };
    ($name:ident: Half, $rows:tt x $cols:tt split k, $($rest:tt)*) => {
        entry! { @split_half $name Half [, smooth = 0 | 2 | 3 | 4] smooth: $rows x $cols, $($rest)* }
    };
    ($name:ident: f32, $rows:tt x $cols:tt split k, $($rest:tt)*) => {
        entry! { @split_half $name f32 [] IDENTITY: $rows x $cols, $($rest)* }
    };
    (@split_half $name:ident $c:ident [$($smooth:tt)*] $loaded:ident: $rows:tt x $cols:tt, $($rest:tt)*) => {
        entry! {
            @split $name Half $c [constants(a_mn_major = 0 | 1, b_mn_major = 0 | 1, half = bf16 | f16 $($smooth)*),]
            [] [($loaded, &Unscaled)] WholeBoxes [EitherMajorA<BLOCK_K>, EitherMajorB<BLOCK_K, { mn_span($cols) }>]: $rows x $cols, $($rest)*
        }
    };
    (
        @split $name:ident $t:ident $c:ident [$($constants:tt)*] [$($more:tt)*] [$loaded:expr] $boxes:ident [$a:ty, $b:ty]:
        $rows:tt x $cols:tt, $stages:tt stages $(, as the name $says:ident)?
    ) => {
        #[doc = concat!("A and B of [`", stringify!($t), "`], C of [`", stringify!($c), "`], tiles of ", $rows, " x ", $cols,
            " elements. A cluster may split k.")]
        #[kernel(
            // A warpgroup for 64 rows, and the producer warp.
            block = (128 * ($rows / WGMMA_M) + 32),
            dynamic_shared = $stages * SPAN * ($rows + $cols),
            shared = split_k::staged_rows($rows) * split_k::staged_pitch($rows, $cols) * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            barriers = 1,
            min_blocks = split_k::min_blocks($stages),
            arch = 90,
            $($constants)*
            dependent
        )]
        pub fn $name(
            problem: GemmParams,
            a: TensorMap<$t>,
            b: TensorMap<$t>,
            mut c: Out<$c>,
            bias: In<$c>
            $($more)*
        ) {
            const STAGED: usize = split_k::staged_rows($rows);
            const PITCH: usize = split_k::staged_pitch($rows, $cols);
            let of_a = $boxes::<_, $a, $rows>::new(&a);
            let of_b = $boxes::<_, $b, $cols>::new(&b);
            let (out, ring) = ((&mut c, &bias), pipeline![$stages]);
            let mut staged = shared![<$c as Stored>::Real; STAGED, PITCH];
            split_k::multiply::<_, _, _, _, $rows, $cols, $stages, STAGED, PITCH, { PITCH - split_k::PAD }, { split_k::together(PITCH - split_k::PAD) }, { size_of::<$c>() == 2 }>(&problem, (&of_a, &of_b), out, &ring, &mut staged, $loaded);
        }
    };
    (row $t:ident -> $c:ident, $rows:tt x $cols:tt split k, $stages:tt stages) => {
        entry!(of $t $c [$rows, $cols]).split_k(split_k::MAX_SPLITS as u32)
    };
    (row $t:ident -> $c:ident, $rows:tt x $cols:tt of $blocks:tt, $($rest:tt)*) => {
        entry!(of $t $c [$rows, $cols]).cluster($blocks)
    };
    (of $t:ident $c:ident [$rows:tt, $cols:tt]) => {
        crate::registry::Row::wgmma::<$t, $c>([$rows, $cols, SPAN as u32]).layout(crate::registry::Layout::NT)
    };
    (row $c:ident, $rows:tt x $cols:tt split k, $stages:tt stages) => {
        entry!(of $c [$rows, $cols]).split_k(split_k::MAX_SPLITS as u32)
    };
    (row $c:ident, $rows:tt x $cols:tt split k, $stages:tt stages, as the name says) => {
        entry!(row $c, $rows x $cols split k, $stages stages).stages($stages)
    };
    (row $c:ident, $rows:tt x $cols:tt of $blocks:tt, $($rest:tt)*) => {
        entry!(of $c [$rows, $cols]).cluster($blocks)
    };
    (of i32 [$rows:tt, $cols:tt]) => {
        crate::registry::Row::wgmma::<i8, i32>([$rows, $cols, SPAN as u32]).layout(crate::registry::Layout::NT)
    };
    (of $c:ident [$rows:tt, $cols:tt]) => {
        crate::registry::Row::wgmma::<Half, $c>([$rows, $cols, BLOCK_K as u32])
    };
    // A lone block waits once at a barrier of its own until the pipeline is initialised. Blocks of
    // a cluster wait at that of the cluster.
    ($name:ident: $c:ident, $rows:tt x $cols:tt of 1, $($rest:tt)*) => {
        entry! { @ $c $name [barriers = 1] pipeline: $rows x $cols of 1, $($rest)* }
    };
    ($name:ident: $c:ident, $rows:tt x $cols:tt of $blocks:tt, $($rest:tt)*) => {
        entry! { @ $c $name [cluster = ($blocks)] cluster_pipeline: $rows x $cols of $blocks, $($rest)* }
    };
    (@ i32 $name:ident $($rest:tt)*) => {
        entry! { @@ $name i8 i32 [] [] [(IDENTITY, &Unscaled)] BytesBoxes [KMajor<SPAN, 1>, KMajor<SPAN, 1>] $($rest)* }
    };
    (@ Half $name:ident $($rest:tt)*) => {
        entry! { @half $name Half [, smooth = 0 | 2 | 3 | 4] smooth $($rest)* }
    };
    (@ f32 $name:ident $($rest:tt)*) => {
        entry! { @half $name f32 [] IDENTITY $($rest)* }
    };
    (@half $name:ident $c:ident [$($smooth:tt)*] $loaded:ident $($rest:tt)*) => {
        entry! {
            @@ $name Half $c [constants(a_mn_major = 0 | 1, b_mn_major = 0 | 1, half = bf16 | f16 $($smooth)*),]
            [] [($loaded, &Unscaled)] WholeBoxes [EitherMajorA<BLOCK_K>, EitherMajorB<BLOCK_K>] $($rest)*
        }
    };
    (
        @@ $name:ident $t:ident $c:ident [$($constants:tt)*] [$($more:tt)*] [$loaded:expr] $of_a:ident [$a:ty, $b:ty]
        [$($together:tt)*] $ring:ident: $rows:tt x $cols:tt of $blocks:tt, $stages:tt stages, $boxes:ident
    ) => {
        #[doc = concat!(
            "A and B of [`", stringify!($t), "`], C of [`", stringify!($c), "`]; tiles of ", $rows, " x ", $cols, " elements; blocks that share a tile: ", $blocks, "."
        )]
        #[kernel(
            block = (128 * ($rows / $blocks / WGMMA_M + 1)),
            $($together)*,
            dynamic_shared = $stages * SPAN * ($rows / $blocks + $cols),
            shared = $rows / $blocks * staged_epilogue::PITCH * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            min_blocks = 1,
            arch = 90,
            $($constants)*
            dependent
        )]
        pub fn $name(
            problem: GemmParams,
            a: TensorMap<$t>,
            b: TensorMap<$t>,
            mut c: Out<$c>,
            bias: In<$c>
            $($more)*
        ) {
            // The rows of this block, and the columns that it copies for all.
            const ROWS: usize = $rows / $blocks;
            const COPIED: usize = $cols / $blocks;
            let of_a = $of_a::<_, $a, ROWS>::new(&a);
            let of_b = $boxes::<_, $b, COPIED>::new(&b);
            let operands = (&of_a, &of_b);
            let (out, ring) = ((&mut c, &bias), $ring![$stages]);
            let mut staged = shared![<$c as Stored>::Real; ROWS, staged_epilogue::PITCH];
            multiply::<_, _, _, _, _, _, ROWS, $cols, $blocks, $stages, ROWS, true>(&problem, operands, out, &ring, &mut staged, &mut NoBackground, $loaded);
        }
    };
}

/// A kernel of two blocks a tile with an [`UnalignedA`]. In the background it packs the tail of B
/// ([`PackTail`]): from the rows of `from`, whose sizes are in `last`, to rows in `to` that are
/// `problem.b[0]` elements apart, where `b` reads them. At least one whole tile of columns precedes
/// the tail. If there is a tail, there is one product, and the rows of B do not overlap.
macro_rules! unaligned_entry {
    ($name:ident: Half, $($rest:tt)*) => {
        unaligned_entry! { @ $name [smooth = 0 | 2 | 3 | 4] smooth: Half, $($rest)* }
    };
    ($name:ident: f32, $($rest:tt)*) => {
        unaligned_entry! { @ $name [] IDENTITY: f32, $($rest)* }
    };
    (
        @ $name:ident [$($smooth:tt)*] $loaded:ident: $c:ident,
        $rows:tt x $cols:tt, $stages:tt stages, $classes:tt classes
    ) => {
        #[doc = concat!("A and B of [`Half`], C of [`", stringify!($c), "`], tiles of ", $rows, " x ", $cols,
            " elements of two blocks. A is K-major with unaligned rows, alignment classes: ", $classes, "; B N-major.")]
        #[kernel(
            block = (128 * ($rows / 2 / WGMMA_M + 1)),
            cluster = (2),
            dynamic_shared = $stages * BLOCK_K * ($rows / 2 + $cols) * size_of::<Half>(),
            shared = $rows / 2 * staged_epilogue::PITCH * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            min_blocks = 1,
            arch = 90,
            constants(half = bf16 | f16, $($smooth)*),
            dependent
        )]
        pub fn $name(
            problem: GemmParams,
            a: TensorMaps<Half, $classes>,
            b: TensorMap<Half>,
            last: MatrixBatch,
            from: In<Half>,
            mut to: Out<Half>,
            mut words: Out<u32>,
            mut c: Out<$c>,
            bias: In<$c>,
        ) {
            const ROWS: usize = $rows / 2;
            const COPIED: usize = $cols / 2;
            let (operands, out) = ((&UnalignedA::<_, KMajor<BLOCK_K>, ROWS, BLOCK_K, $classes, 8>::new(&a), &WholeBoxes::<_, MnMajor<BLOCK_K>, COPIED>::new(&b)), (&mut c, &bias));
            let (ring, mut staged) = (cluster_pipeline![$stages], shared![f32; ROWS, staged_epilogue::PITCH]);
            let to_pitch = problem.b[0] as usize;
            let gaps = last.pitch > u64::from(problem.n);
            let mut background = PackTail::<_, { 16 / size_of::<Half>() }> {
                from: &from, matrix: &last, gaps, to: &mut to, to_pitch, words: &mut words
            };
            multiply::<_, _, _, _, _, _, ROWS, $cols, 2, $stages, ROWS, false>(&problem, operands, out, &ring, &mut staged, &mut background, ($loaded, &Unscaled));
        }
    };
    (row $c:ident, $rows:tt x $cols:tt, $stages:tt stages, $classes:tt classes) => {
        entry!(row $c, $rows x $cols of 2, $stages stages).unaligned($classes).packs_tail()
    };
}

/// A kernel of [`ldg`], whose A and B are views.
macro_rules! ldg {
    ($name:ident: Half, $($rest:tt)*) => {
        ldg! { @ $name [smooth = 0 | 2 | 3 | 4] smooth: Half, $($rest)* }
    };
    ($name:ident: f32, $($rest:tt)*) => {
        ldg! { @ $name [] IDENTITY: f32, $($rest)* }
    };
    (@ $name:ident [$($smooth:tt)*] $loaded:ident: $c:ident, $rows:tt x $cols:tt, $stages:tt stages) => {
        #[doc = concat!("A and B of [`Half`] with unaligned rows, C of [`", stringify!($c), "`], tiles of ",
            $rows, " x ", $cols, " elements.")]
        #[kernel(
            block = (128 * ($rows / WGMMA_M) + 32 * ldg::LOAD_WARPS),
            dynamic_shared = $stages * BLOCK_K * ($rows + $cols) * size_of::<Half>(),
            shared = $rows * staged_epilogue::PITCH * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            barriers = 1,
            min_blocks = 1,
            arch = 90,
            constants(a_mn_major = 0 | 1, b_mn_major = 0 | 1, half = bf16 | f16, $($smooth)*),
            dependent
        )]
        pub fn $name(problem: GemmParams, a: In<Half>, b: In<Half>, mut c: Out<$c>, bias: In<$c>) {
            let (out, ring) = ((&mut c, &bias), pipeline![$stages]);
            let mut staged = shared![f32; $rows, staged_epilogue::PITCH];
            ldg::multiply::<_, EitherMajorA<BLOCK_K>, EitherMajorB<BLOCK_K>, _, $rows, $cols, $stages, $rows>(&problem, (&a, &b), out, &ring, &mut staged, $loaded);
        }
    };
    (row $c:ident, $rows:tt x $cols:tt, $stages:tt stages) => {
        crate::registry::Row::wgmma::<Half, $c>([$rows, $cols, BLOCK_K as u32]).ldg()
    };
}

kernels! {
    wgmma;

    // Fitted to 1024³ and 2048³. Larger products are slower, all of them alike, where the power
    // limit slows the card.
    entry! { wgmma_half_128x256x64: Half, 128 x 256 of 1, 4 stages, WholeBoxes }
        gpu { gflops: 6000.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] };
    entry! { wgmma_half_f32_128x256x64: f32, 128 x 256 of 1, 4 stages, WholeBoxes }
        gpu { gflops: 6000.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] };
    entry! { wgmma_half_256x256x64_c2: Half, 256 x 256 of 2, 4 stages, WholeBoxes }
        gpu { gflops: 6100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] };
    entry! { wgmma_half_f32_256x256x64_c2: f32, 256 x 256 of 2, 4 stages, WholeBoxes }
        gpu { gflops: 6100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] };
    // Fitted to 2304³, 3072³ and 4096³, together with the 256 x 256 tiles.
    entry! { wgmma_half_256x192x64_c2: Half, 256 x 192 of 2, 4 stages, HalfBoxes }
        gpu { gflops: 5900.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 1.2] };
    entry! { wgmma_half_f32_256x192x64_c2: f32, 256 x 192 of 2, 4 stages, HalfBoxes }
        gpu { gflops: 5900.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 1.2] };
    // The speed of the aligned kernel of the same tile.
    unaligned_entry! { wgmma_half_256x256x64_c2_ua8_nn: Half, 256 x 256, 4 stages, 8 classes }
        gpu { gflops: 6100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] };
    unaligned_entry! { wgmma_half_f32_256x256x64_c2_ua8_nn: f32, 256 x 256, 4 stages, 8 classes }
        gpu { gflops: 6100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] };
    unaligned_entry! { wgmma_half_256x256x64_c2_ua16_nn: Half, 256 x 256, 4 stages, 16 classes }
        gpu { gflops: 6100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] };
    unaligned_entry! { wgmma_half_f32_256x256x64_c2_ua16_nn: f32, 256 x 256, 4 stages, 16 classes }
        gpu { gflops: 6100.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 3.5] };
    entry! { wgmma_half_128x128x64: Half, 128 x 128 split k, 5 stages }
        gpu { gflops: 5000.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 1.8] };
    entry! { wgmma_half_f32_128x128x64: f32, 128 x 128 split k, 5 stages }
        gpu { gflops: 5000.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 1.8] };
    // Fitted to 512³, 1024³ and 16 x 4096 x 4096.
    entry! { wgmma_half_64x128x64: Half, 64 x 128 split k, 7 stages }
        gpu { gflops: 5900.0, alone: 1.0, fixed_us: 3.6, tile_us: [0.8, 2.2] };
    entry! { wgmma_half_f32_64x128x64: f32, 64 x 128 split k, 7 stages }
        gpu { gflops: 5900.0, alone: 1.0, fixed_us: 3.6, tile_us: [0.8, 2.2] };
    entry! { wgmma_half_128x64x64: Half, 128 x 64 split k, 7 stages }
        gpu { gflops: 5500.0, alone: 1.0, fixed_us: 3.6, tile_us: [0.75, 1.6] };
    entry! { wgmma_half_f32_128x64x64: f32, 128 x 64 split k, 7 stages }
        gpu { gflops: 5500.0, alone: 1.0, fixed_us: 3.6, tile_us: [0.75, 1.6] };
    entry! { wgmma_half_64x64x64: Half, 64 x 64 split k, 3 stages }
        gpu { gflops: 2800.0, alone: 0.5, fixed_us: 2.2, tile_us: [0.45, 0.7] };
    entry! { wgmma_half_f32_64x64x64: f32, 64 x 64 split k, 3 stages }
        gpu { gflops: 2800.0, alone: 0.5, fixed_us: 2.2, tile_us: [0.45, 0.7] };
    // Fitted to random shapes on an H200, single products alone. Pipelines with many stages are for
    // memory-bound products.
    entry! { wgmma_half_64x64x64_s12: Half, 64 x 64 split k, 12 stages, as the name says }
        gpu { gflops: 3300.0, alone: 1.0, fixed_us: 2.0, tile_us: [0.6, 1.45], of: Products::ShorterSide(17) };
    entry! { wgmma_half_f32_64x64x64_s12: f32, 64 x 64 split k, 12 stages, as the name says }
        gpu { gflops: 3300.0, alone: 1.0, fixed_us: 2.0, tile_us: [0.6, 1.45], of: Products::ShorterSide(17) };
    // Fitted to 16 x 4096 x 4096, whole and with a split of two, and to tall products. With 16
    // columns an MMA waits for the end of the one before.
    entry! { wgmma_half_64x16x64: Half, 64 x 16 split k, 20 stages }
        gpu { gflops: 840.0, alone: 1.0, fixed_us: 1.5, tile_us: [1.05, 1.45], of: Products::Columns(64) };
    entry! { wgmma_half_f32_64x16x64: f32, 64 x 16 split k, 20 stages }
        gpu { gflops: 840.0, alone: 1.0, fixed_us: 1.5, tile_us: [1.05, 1.45], of: Products::Columns(64) };
    // Fitted to random shapes on an H100: 1440 and 970 at 1958³, 1630 and 990 with few tiles.
    ldg! { wgmma_half_64x128x64_ldg: Half, 64 x 128, 6 stages }
        gpu { gflops: 1480.0, alone: 1.0, fixed_us: 2.7, tile_us: [0.3, 0.3] };
    ldg! { wgmma_half_f32_64x128x64_ldg: f32, 64 x 128, 6 stages }
        gpu { gflops: 1480.0, alone: 1.0, fixed_us: 2.7, tile_us: [0.3, 0.3] };
    ldg! { wgmma_half_64x64x64_ldg: Half, 64 x 64, 6 stages }
        gpu { gflops: 970.0, alone: 1.0, fixed_us: 2.2, tile_us: [0.5, 0.5] };
    ldg! { wgmma_half_f32_64x64x64_ldg: f32, 64 x 64, 6 stages }
        gpu { gflops: 970.0, alone: 1.0, fixed_us: 2.2, tile_us: [0.5, 0.5] };

    // i8: the tiles of bf16 with as many bytes. Fitted to 4096³ and 8192³ on an H200
    // (docs/results/int8.md); the fixed times are bf16's.
    entry! { wgmma_i8_i32_128x256x128_nt: i32, 128 x 256 of 1, 4 stages, BytesBoxes }
        gpu { gflops: 12000.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] };
    entry! { wgmma_i8_i32_256x256x128_c2_nt: i32, 256 x 256 of 2, 4 stages, BytesBoxes }
        gpu { gflops: 11800.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] };
    entry! { wgmma_i8_i32_128x128x128_nt: i32, 128 x 128 split k, 5 stages }
        gpu { gflops: 9600.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 1.8] };
    entry! { wgmma_i8_i32_64x128x128_nt: i32, 64 x 128 split k, 7 stages }
        gpu { gflops: 8400.0, alone: 1.0, fixed_us: 3.6, tile_us: [0.8, 2.2] };
    entry! { wgmma_i8_i32_64x16x128_nt: i32, 64 x 16 split k, 20 stages }
        gpu { gflops: 1600.0, alone: 1.0, fixed_us: 1.5, tile_us: [1.05, 1.45], of: Products::Columns(64) };

    // The same with a C that sums of i32 are converted to, perhaps with scales.
    entry! { wgmma_i8_f32_256x128x128_c2_nt: i8 -> f32, 256 x 128 of 2, 5 stages, BytesBoxes }
        gpu { gflops: 11500.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] };
    entry! { wgmma_i8_half_256x128x128_c2_nt: i8 -> Half, 256 x 128 of 2, 5 stages, BytesBoxes }
        gpu { gflops: 11500.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] };
    entry! { wgmma_i8_f32_64x128x128_nt: i8 -> f32, 64 x 128 split k, 7 stages }
        gpu { gflops: 8400.0, alone: 1.0, fixed_us: 3.6, tile_us: [0.8, 2.2] }
        cpu { gflops: 1.0, alone: 1.0, fixed_us: 40.0 };
    entry! { wgmma_i8_half_64x128x128_nt: i8 -> Half, 64 x 128 split k, 7 stages }
        gpu { gflops: 8400.0, alone: 1.0, fixed_us: 3.6, tile_us: [0.8, 2.2] }
        cpu { gflops: 1.0, alone: 1.0, fixed_us: 40.0 };
    entry! { wgmma_i8_half_64x16x128_nt: i8 -> Half, 64 x 16 split k, 20 stages }
        gpu { gflops: 1600.0, alone: 1.0, fixed_us: 1.5, tile_us: [1.05, 1.45], of: Products::Columns(64) };

    // e4m3 and e5m2, whose sums of 128 k-steps are added in registers: a second set of sums, so 128
    // columns at most. Fitted to 4096³ and 8192³ on an H200 (docs/log/fp8.md); the fixed times are
    // bf16's. On the CPU device 64 x 64 is for products with scales. The kernel of CUDA cores has
    // none.
    entry! { wgmma_fp8_f32_256x128x128_c2_nt: Fp8 -> f32, 256 x 128 of 2, 5 stages, BytesBoxes }
        gpu { gflops: 11500.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] };
    entry! { wgmma_fp8_half_256x128x128_c2_nt: Fp8 -> Half, 256 x 128 of 2, 5 stages, BytesBoxes }
        gpu { gflops: 11500.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.8, 0.8] };
    entry! { wgmma_fp8_f32_128x64x128_nt: Fp8 -> f32, 128 x 64 split k, 7 stages }
        gpu { gflops: 9000.0, alone: 1.0, fixed_us: 3.6, tile_us: [0.8, 2.2] };
    entry! { wgmma_fp8_f32_64x64x128_nt: Fp8 -> f32, 64 x 64 split k, 12 stages }
        gpu { gflops: 6300.0, alone: 1.0, fixed_us: 2.0, tile_us: [0.8, 2.2] }
        cpu { gflops: 1.0, alone: 1.0, fixed_us: 40.0 };
    entry! { wgmma_fp8_half_128x64x128_nt: Fp8 -> Half, 128 x 64 split k, 7 stages }
        gpu { gflops: 9000.0, alone: 1.0, fixed_us: 3.6, tile_us: [0.8, 2.2] };
    entry! { wgmma_fp8_half_64x64x128_nt: Fp8 -> Half, 64 x 64 split k, 12 stages }
        gpu { gflops: 6300.0, alone: 1.0, fixed_us: 2.0, tile_us: [0.8, 2.2] }
        cpu { gflops: 1.0, alone: 1.0, fixed_us: 40.0 };
}
