//! The kernels, a line each: all that they differ in.
//!
//! ```text
//!   gemm_wgmma_f32_256x256_nt:   Bf16 -> f32,   256 x 256 of 2,   4 stages,   AlongK, AlongK
//!   the name                     A, B -> C      C's tile, and     of the      how A lies, and B
//!                                               of how many blocks ring
//! ```
//!
//! `in parts`, in place of so many blocks: of [small tiles](parts), whose k a cluster may split.

use super::{
    super::device::*,
    DEPTH,
    beside::{LastColumns, Nothing},
    multiply,
    operand::{AcrossK, AlongK, GROUP, NarrowAcrossK, PartAcrossK, PartsAlongK},
    output, parts,
    shifted::Shifted,
};
use crate::problem::{Matrices, Problem};

/// A kernel. Warpgroups of 64 rows each, and the one that copies, have 128 threads. Shared memory holds the ring,
/// 32-bit sums on their way to C, and the ring's barriers: two of eight bytes a stage.
macro_rules! entry {
    ($name:ident: $t:ident -> $c:ident, $rows:tt x $cols:tt in parts, $stages:tt stages, $a:ident, $b:ident) => {
        #[doc = concat!("A and B of [`", stringify!($t), "`], C of [`", stringify!($c), "`], tiles of ", $rows, " x ", $cols,
            " elements, whose k a cluster may split; A lies [`", stringify!($a), "`], B [`", stringify!($b), "`].")]
        #[kernel(
            // A warpgroup for 64 rows, and the warp that copies.
            block = (128 * ($rows / GROUP) + 32),
            dynamic_shared = $stages * DEPTH * ($rows + $cols) * size_of::<$t>(),
            shared = parts::rows($rows) * parts::pitch($rows, $cols) * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            barriers = 1,
            min_blocks = parts::blocks($stages),
            arch = 90,
            dependent
        )]
        pub fn $name(
            problem: Problem,
            a: TensorMap<$t>,
            b: TensorMap<$t>,
            mut c: Out<$c>,
            bias: In<$c>,
        ) {
            const STAGED: usize = parts::rows($rows);
            const PITCH: usize = parts::pitch($rows, $cols);
            let operands = (&$a::<_, $rows>::new(&a), &$b::<_, $cols>::new(&b));
            let (out, ring) = ((&mut c, &bias), pipeline![$stages]);
            let mut staged = shared![f32; STAGED, PITCH];
            parts::multiply::<_, _, _, $rows, $cols, $stages, STAGED, PITCH>(&problem, operands, out, &ring, &mut staged);
        }
    };
    // A block alone waits at one barrier of its own, until the ring is there; those of a cluster at the cluster's.
    ($name:ident: $t:ident -> $c:ident, $rows:tt x $cols:tt of 1, $($rest:tt)*) => {
        entry! { @ $name [barriers = 1] pipeline: $t -> $c, $rows x $cols of 1, $($rest)* }
    };
    ($name:ident: $t:ident -> $c:ident, $rows:tt x $cols:tt of $blocks:tt, $($rest:tt)*) => {
        entry! { @ $name [cluster = ($blocks)] cluster_pipeline: $t -> $c, $rows x $cols of $blocks, $($rest)* }
    };
    (
        @ $name:ident [$($together:tt)*] $ring:ident: $t:ident -> $c:ident,
        $rows:tt x $cols:tt of $blocks:tt, $stages:tt stages, $a:ident, $b:ident
    ) => {
        #[doc = concat!(
            "A and B of [`", stringify!($t), "`], C of [`", stringify!($c), "`]; A lies [`", stringify!($a), "`], B [`",
            stringify!($b), "`]; tiles of ", $rows, " x ", $cols, " elements, blocks of a cluster for each: ", $blocks, "."
        )]
        #[kernel(
            block = (128 * ($rows / $blocks / GROUP + 1)),
            $($together)*,
            dynamic_shared = $stages * DEPTH * ($rows / $blocks + $cols) * size_of::<$t>(),
            shared = $rows / $blocks * output::PITCH * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            min_blocks = 1,
            arch = 90,
            dependent
        )]
        pub fn $name(
            problem: Problem,
            a: TensorMap<$t>,
            b: TensorMap<$t>,
            mut c: Out<$c>,
            bias: In<$c>,
        ) {
            // Of a block: its own rows, and the columns that it copies for all.
            const ROWS: usize = $rows / $blocks;
            const COPIED: usize = $cols / $blocks;
            let operands = (&$a::<_, ROWS>::new(&a), &$b::<_, COPIED>::new(&b));
            let (out, ring) = ((&mut c, &bias), $ring![$stages]);
            let mut staged = shared![f32; ROWS, output::PITCH];
            multiply::<_, _, _, _, _, ROWS, $cols, $blocks, $stages, ROWS>(&problem, operands, out, &ring, &mut staged, &mut Nothing);
        }
    };
}

/// A kernel of two blocks a tile whose A is [`Shifted`]. Beside the product of B's other columns it copies the last ones, `last`,
/// `from` rows that begin anywhere `to` rows that are `problem.b[0]` elements apart, where `b` has them ([`LastColumns`]). Before them
/// lie whole tiles, one at least; and where there are any, there is one product, and no row of B begins before another ends.
macro_rules! shifted_entry {
    ($name:ident: $t:ident -> $c:ident, $rows:tt x $cols:tt, $stages:tt stages, $classes:tt classes) => {
        #[doc = concat!("A and B of [`", stringify!($t), "`], C of [`", stringify!($c), "`], tiles of ", $rows, " x ", $cols,
            " elements of two blocks; A lies along k, in rows that begin anywhere ([`Shifted`]), in classes: ", $classes, "; B [`AcrossK`].")]
        #[kernel(
            block = (128 * ($rows / 2 / GROUP + 1)),
            cluster = (2),
            dynamic_shared = $stages * DEPTH * ($rows / 2 + $cols) * size_of::<$t>(),
            shared = $rows / 2 * output::PITCH * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            min_blocks = 1,
            arch = 90,
            dependent
        )]
        pub fn $name(
            problem: Problem,
            a: TensorMaps<$t, $classes>,
            b: TensorMap<$t>,
            last: Matrices,
            from: In<$t>,
            mut to: Out<$t>,
            mut words: Out<u32>,
            mut c: Out<$c>,
            bias: In<$c>,
        ) {
            const ROWS: usize = $rows / 2;
            const COPIED: usize = $cols / 2;
            let (operands, out) = ((&Shifted::<_, ROWS, $classes>::new(&a), &AcrossK::<_, COPIED>::new(&b)), (&mut c, &bias));
            let (ring, mut staged) = (cluster_pipeline![$stages], shared![f32; ROWS, output::PITCH]);
            let to_pitch = problem.b[0] as usize;
            let mut beside = LastColumns::<_, { 16 / size_of::<$t>() }> {
                from: &from, matrix: &last, to: &mut to, to_pitch, words: &mut words
            };
            multiply::<_, _, _, _, _, ROWS, $cols, 2, $stages, ROWS>(&problem, operands, out, &ring, &mut staged, &mut beside);
        }
    };
}

entry! { gemm_wgmma_128x256_nn:           Bf16 -> Bf16, 128 x 256 of 1, 4 stages, AlongK, AcrossK }
entry! { gemm_wgmma_128x256_nt:           Bf16 -> Bf16, 128 x 256 of 1, 4 stages, AlongK, AlongK }
entry! { gemm_wgmma_128x256_tn:           Bf16 -> Bf16, 128 x 256 of 1, 4 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_128x256_tt:           Bf16 -> Bf16, 128 x 256 of 1, 4 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f32_128x256_nn:       Bf16 -> f32,  128 x 256 of 1, 4 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f32_128x256_nt:       Bf16 -> f32,  128 x 256 of 1, 4 stages, AlongK, AlongK }
entry! { gemm_wgmma_f32_128x256_tn:       Bf16 -> f32,  128 x 256 of 1, 4 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f32_128x256_tt:       Bf16 -> f32,  128 x 256 of 1, 4 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_128x256_nn:       F16 -> F16,   128 x 256 of 1, 4 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_128x256_nt:       F16 -> F16,   128 x 256 of 1, 4 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_128x256_tn:       F16 -> F16,   128 x 256 of 1, 4 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_128x256_tt:       F16 -> F16,   128 x 256 of 1, 4 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_f32_128x256_nn:   F16 -> f32,   128 x 256 of 1, 4 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_f32_128x256_nt:   F16 -> f32,   128 x 256 of 1, 4 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_f32_128x256_tn:   F16 -> f32,   128 x 256 of 1, 4 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_f32_128x256_tt:   F16 -> f32,   128 x 256 of 1, 4 stages, AcrossK, AlongK }

entry! { gemm_wgmma_256x256_nn:           Bf16 -> Bf16, 256 x 256 of 2, 4 stages, AlongK, AcrossK }
entry! { gemm_wgmma_256x256_nt:           Bf16 -> Bf16, 256 x 256 of 2, 4 stages, AlongK, AlongK }
entry! { gemm_wgmma_256x256_tn:           Bf16 -> Bf16, 256 x 256 of 2, 4 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_256x256_tt:           Bf16 -> Bf16, 256 x 256 of 2, 4 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f32_256x256_nn:       Bf16 -> f32,  256 x 256 of 2, 4 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f32_256x256_nt:       Bf16 -> f32,  256 x 256 of 2, 4 stages, AlongK, AlongK }
entry! { gemm_wgmma_f32_256x256_tn:       Bf16 -> f32,  256 x 256 of 2, 4 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f32_256x256_tt:       Bf16 -> f32,  256 x 256 of 2, 4 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_256x256_nn:       F16 -> F16,   256 x 256 of 2, 4 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_256x256_nt:       F16 -> F16,   256 x 256 of 2, 4 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_256x256_tn:       F16 -> F16,   256 x 256 of 2, 4 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_256x256_tt:       F16 -> F16,   256 x 256 of 2, 4 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_f32_256x256_nn:   F16 -> f32,   256 x 256 of 2, 4 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_f32_256x256_nt:   F16 -> f32,   256 x 256 of 2, 4 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_f32_256x256_tn:   F16 -> f32,   256 x 256 of 2, 4 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_f32_256x256_tt:   F16 -> f32,   256 x 256 of 2, 4 stages, AcrossK, AlongK }

entry! { gemm_wgmma_256x192_nn:            Bf16 -> Bf16, 256 x 192 of 2, 4 stages, AlongK, PartAcrossK }
entry! { gemm_wgmma_256x192_nt:            Bf16 -> Bf16, 256 x 192 of 2, 4 stages, AlongK, PartsAlongK }
entry! { gemm_wgmma_256x192_tn:            Bf16 -> Bf16, 256 x 192 of 2, 4 stages, AcrossK, PartAcrossK }
entry! { gemm_wgmma_256x192_tt:            Bf16 -> Bf16, 256 x 192 of 2, 4 stages, AcrossK, PartsAlongK }
entry! { gemm_wgmma_f32_256x192_nn:        Bf16 -> f32,  256 x 192 of 2, 4 stages, AlongK, PartAcrossK }
entry! { gemm_wgmma_f32_256x192_nt:        Bf16 -> f32,  256 x 192 of 2, 4 stages, AlongK, PartsAlongK }
entry! { gemm_wgmma_f32_256x192_tn:        Bf16 -> f32,  256 x 192 of 2, 4 stages, AcrossK, PartAcrossK }
entry! { gemm_wgmma_f32_256x192_tt:        Bf16 -> f32,  256 x 192 of 2, 4 stages, AcrossK, PartsAlongK }
entry! { gemm_wgmma_f16_256x192_nn:        F16 -> F16,   256 x 192 of 2, 4 stages, AlongK, PartAcrossK }
entry! { gemm_wgmma_f16_256x192_nt:        F16 -> F16,   256 x 192 of 2, 4 stages, AlongK, PartsAlongK }
entry! { gemm_wgmma_f16_256x192_tn:        F16 -> F16,   256 x 192 of 2, 4 stages, AcrossK, PartAcrossK }
entry! { gemm_wgmma_f16_256x192_tt:        F16 -> F16,   256 x 192 of 2, 4 stages, AcrossK, PartsAlongK }
entry! { gemm_wgmma_f16_f32_256x192_nn:    F16 -> f32,   256 x 192 of 2, 4 stages, AlongK, PartAcrossK }
entry! { gemm_wgmma_f16_f32_256x192_nt:    F16 -> f32,   256 x 192 of 2, 4 stages, AlongK, PartsAlongK }
entry! { gemm_wgmma_f16_f32_256x192_tn:    F16 -> f32,   256 x 192 of 2, 4 stages, AcrossK, PartAcrossK }
entry! { gemm_wgmma_f16_f32_256x192_tt:    F16 -> f32,   256 x 192 of 2, 4 stages, AcrossK, PartsAlongK }

entry! { gemm_wgmma_128x128_nn:           Bf16 -> Bf16, 128 x 128 in parts, 5 stages, AlongK, AcrossK }
entry! { gemm_wgmma_128x128_nt:           Bf16 -> Bf16, 128 x 128 in parts, 5 stages, AlongK, AlongK }
entry! { gemm_wgmma_128x128_tn:           Bf16 -> Bf16, 128 x 128 in parts, 5 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_128x128_tt:           Bf16 -> Bf16, 128 x 128 in parts, 5 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f32_128x128_nn:       Bf16 -> f32,  128 x 128 in parts, 5 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f32_128x128_nt:       Bf16 -> f32,  128 x 128 in parts, 5 stages, AlongK, AlongK }
entry! { gemm_wgmma_f32_128x128_tn:       Bf16 -> f32,  128 x 128 in parts, 5 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f32_128x128_tt:       Bf16 -> f32,  128 x 128 in parts, 5 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_128x128_nn:       F16 -> F16,   128 x 128 in parts, 5 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_128x128_nt:       F16 -> F16,   128 x 128 in parts, 5 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_128x128_tn:       F16 -> F16,   128 x 128 in parts, 5 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_128x128_tt:       F16 -> F16,   128 x 128 in parts, 5 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_f32_128x128_nn:   F16 -> f32,   128 x 128 in parts, 5 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_f32_128x128_nt:   F16 -> f32,   128 x 128 in parts, 5 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_f32_128x128_tn:   F16 -> f32,   128 x 128 in parts, 5 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_f32_128x128_tt:   F16 -> f32,   128 x 128 in parts, 5 stages, AcrossK, AlongK }

entry! { gemm_wgmma_64x128_nn:           Bf16 -> Bf16, 64 x 128 in parts, 7 stages, AlongK, AcrossK }
entry! { gemm_wgmma_64x128_nt:           Bf16 -> Bf16, 64 x 128 in parts, 7 stages, AlongK, AlongK }
entry! { gemm_wgmma_64x128_tn:           Bf16 -> Bf16, 64 x 128 in parts, 7 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_64x128_tt:           Bf16 -> Bf16, 64 x 128 in parts, 7 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f32_64x128_nn:       Bf16 -> f32,  64 x 128 in parts, 7 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f32_64x128_nt:       Bf16 -> f32,  64 x 128 in parts, 7 stages, AlongK, AlongK }
entry! { gemm_wgmma_f32_64x128_tn:       Bf16 -> f32,  64 x 128 in parts, 7 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f32_64x128_tt:       Bf16 -> f32,  64 x 128 in parts, 7 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_64x128_nn:       F16 -> F16,   64 x 128 in parts, 7 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_64x128_nt:       F16 -> F16,   64 x 128 in parts, 7 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_64x128_tn:       F16 -> F16,   64 x 128 in parts, 7 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_64x128_tt:       F16 -> F16,   64 x 128 in parts, 7 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_f32_64x128_nn:   F16 -> f32,   64 x 128 in parts, 7 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_f32_64x128_nt:   F16 -> f32,   64 x 128 in parts, 7 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_f32_64x128_tn:   F16 -> f32,   64 x 128 in parts, 7 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_f32_64x128_tt:   F16 -> f32,   64 x 128 in parts, 7 stages, AcrossK, AlongK }

entry! { gemm_wgmma_128x64_nn:           Bf16 -> Bf16, 128 x 64 in parts, 7 stages, AlongK, AcrossK }
entry! { gemm_wgmma_128x64_nt:           Bf16 -> Bf16, 128 x 64 in parts, 7 stages, AlongK, AlongK }
entry! { gemm_wgmma_128x64_tn:           Bf16 -> Bf16, 128 x 64 in parts, 7 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_128x64_tt:           Bf16 -> Bf16, 128 x 64 in parts, 7 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f32_128x64_nn:       Bf16 -> f32,  128 x 64 in parts, 7 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f32_128x64_nt:       Bf16 -> f32,  128 x 64 in parts, 7 stages, AlongK, AlongK }
entry! { gemm_wgmma_f32_128x64_tn:       Bf16 -> f32,  128 x 64 in parts, 7 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f32_128x64_tt:       Bf16 -> f32,  128 x 64 in parts, 7 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_128x64_nn:       F16 -> F16,   128 x 64 in parts, 7 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_128x64_nt:       F16 -> F16,   128 x 64 in parts, 7 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_128x64_tn:       F16 -> F16,   128 x 64 in parts, 7 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_128x64_tt:       F16 -> F16,   128 x 64 in parts, 7 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_f32_128x64_nn:   F16 -> f32,   128 x 64 in parts, 7 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_f32_128x64_nt:   F16 -> f32,   128 x 64 in parts, 7 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_f32_128x64_tn:   F16 -> f32,   128 x 64 in parts, 7 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_f32_128x64_tt:   F16 -> f32,   128 x 64 in parts, 7 stages, AcrossK, AlongK }

entry! { gemm_wgmma_64x64_nn:            Bf16 -> Bf16, 64 x 64 in parts, 3 stages, AlongK, AcrossK }
entry! { gemm_wgmma_64x64_nt:            Bf16 -> Bf16, 64 x 64 in parts, 3 stages, AlongK, AlongK }
entry! { gemm_wgmma_64x64_tn:            Bf16 -> Bf16, 64 x 64 in parts, 3 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_64x64_tt:            Bf16 -> Bf16, 64 x 64 in parts, 3 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f32_64x64_nn:        Bf16 -> f32,  64 x 64 in parts, 3 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f32_64x64_nt:        Bf16 -> f32,  64 x 64 in parts, 3 stages, AlongK, AlongK }
entry! { gemm_wgmma_f32_64x64_tn:        Bf16 -> f32,  64 x 64 in parts, 3 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f32_64x64_tt:        Bf16 -> f32,  64 x 64 in parts, 3 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_64x64_nn:        F16 -> F16,   64 x 64 in parts, 3 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_64x64_nt:        F16 -> F16,   64 x 64 in parts, 3 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_64x64_tn:        F16 -> F16,   64 x 64 in parts, 3 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_64x64_tt:        F16 -> F16,   64 x 64 in parts, 3 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_f32_64x64_nn:    F16 -> f32,   64 x 64 in parts, 3 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_f32_64x64_nt:    F16 -> f32,   64 x 64 in parts, 3 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_f32_64x64_tn:    F16 -> f32,   64 x 64 in parts, 3 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_f32_64x64_tt:    F16 -> f32,   64 x 64 in parts, 3 stages, AcrossK, AlongK }

entry! { gemm_wgmma_deep_64x64_nn:          Bf16 -> Bf16, 64 x 64 in parts, 12 stages, AlongK, AcrossK }
entry! { gemm_wgmma_deep_64x64_nt:          Bf16 -> Bf16, 64 x 64 in parts, 12 stages, AlongK, AlongK }
entry! { gemm_wgmma_deep_64x64_tn:          Bf16 -> Bf16, 64 x 64 in parts, 12 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_deep_64x64_tt:          Bf16 -> Bf16, 64 x 64 in parts, 12 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f32_deep_64x64_nn:      Bf16 -> f32,  64 x 64 in parts, 12 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f32_deep_64x64_nt:      Bf16 -> f32,  64 x 64 in parts, 12 stages, AlongK, AlongK }
entry! { gemm_wgmma_f32_deep_64x64_tn:      Bf16 -> f32,  64 x 64 in parts, 12 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f32_deep_64x64_tt:      Bf16 -> f32,  64 x 64 in parts, 12 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_deep_64x64_nn:      F16 -> F16,   64 x 64 in parts, 12 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_deep_64x64_nt:      F16 -> F16,   64 x 64 in parts, 12 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_deep_64x64_tn:      F16 -> F16,   64 x 64 in parts, 12 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_deep_64x64_tt:      F16 -> F16,   64 x 64 in parts, 12 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_f32_deep_64x64_nn:  F16 -> f32,   64 x 64 in parts, 12 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_f32_deep_64x64_nt:  F16 -> f32,   64 x 64 in parts, 12 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_f32_deep_64x64_tn:  F16 -> f32,   64 x 64 in parts, 12 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_f32_deep_64x64_tt:  F16 -> f32,   64 x 64 in parts, 12 stages, AcrossK, AlongK }

entry! { gemm_wgmma_64x16_nn:               Bf16 -> Bf16, 64 x 16 in parts, 20 stages, AlongK, NarrowAcrossK }
entry! { gemm_wgmma_64x16_nt:               Bf16 -> Bf16, 64 x 16 in parts, 20 stages, AlongK, AlongK }
entry! { gemm_wgmma_64x16_tn:               Bf16 -> Bf16, 64 x 16 in parts, 20 stages, AcrossK, NarrowAcrossK }
entry! { gemm_wgmma_64x16_tt:               Bf16 -> Bf16, 64 x 16 in parts, 20 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f32_64x16_nn:           Bf16 -> f32,  64 x 16 in parts, 20 stages, AlongK, NarrowAcrossK }
entry! { gemm_wgmma_f32_64x16_nt:           Bf16 -> f32,  64 x 16 in parts, 20 stages, AlongK, AlongK }
entry! { gemm_wgmma_f32_64x16_tn:           Bf16 -> f32,  64 x 16 in parts, 20 stages, AcrossK, NarrowAcrossK }
entry! { gemm_wgmma_f32_64x16_tt:           Bf16 -> f32,  64 x 16 in parts, 20 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_64x16_nn:           F16 -> F16,   64 x 16 in parts, 20 stages, AlongK, NarrowAcrossK }
entry! { gemm_wgmma_f16_64x16_nt:           F16 -> F16,   64 x 16 in parts, 20 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_64x16_tn:           F16 -> F16,   64 x 16 in parts, 20 stages, AcrossK, NarrowAcrossK }
entry! { gemm_wgmma_f16_64x16_tt:           F16 -> F16,   64 x 16 in parts, 20 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_f32_64x16_nn:       F16 -> f32,   64 x 16 in parts, 20 stages, AlongK, NarrowAcrossK }
entry! { gemm_wgmma_f16_f32_64x16_nt:       F16 -> f32,   64 x 16 in parts, 20 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_f32_64x16_tn:       F16 -> f32,   64 x 16 in parts, 20 stages, AcrossK, NarrowAcrossK }
entry! { gemm_wgmma_f16_f32_64x16_tt:       F16 -> f32,   64 x 16 in parts, 20 stages, AcrossK, AlongK }

shifted_entry! { gemm_wgmma_256x256_on:         Bf16 -> Bf16, 256 x 256, 4 stages, 8 classes }
shifted_entry! { gemm_wgmma_f32_256x256_on:     Bf16 -> f32,  256 x 256, 4 stages, 8 classes }
shifted_entry! { gemm_wgmma_f16_256x256_on:     F16 -> F16,   256 x 256, 4 stages, 8 classes }
shifted_entry! { gemm_wgmma_f16_f32_256x256_on: F16 -> f32,   256 x 256, 4 stages, 8 classes }
shifted_entry! { gemm_wgmma_256x256_sn:         Bf16 -> Bf16, 256 x 256, 4 stages, 16 classes }
shifted_entry! { gemm_wgmma_f32_256x256_sn:     Bf16 -> f32,  256 x 256, 4 stages, 16 classes }
shifted_entry! { gemm_wgmma_f16_256x256_sn:     F16 -> F16,   256 x 256, 4 stages, 16 classes }
shifted_entry! { gemm_wgmma_f16_f32_256x256_sn: F16 -> f32,   256 x 256, 4 stages, 16 classes }
