//! The kernels, a line each: all that they differ in.
//!
//! ```text
//!   gemm_wgmma_f32_256x256_nt:   Bf16 -> f32,   256 x 256 of 2,   4 stages,   AlongK, AlongK
//!   the name                     A, B -> C      C's tile, and     of the      how A lies, and B
//!                                               of how many blocks ring
//! ```

use super::{
    super::device::*,
    DEPTH, multiply,
    operand::{AcrossK, AlongK, GROUP},
    output,
};
use crate::problem::Problem;

/// A kernel. Warpgroups of 64 rows each, and the one that copies, have 128 threads. Shared memory holds the ring,
/// 32-bit sums on their way to C, and the ring's barriers: two of eight bytes a stage.
macro_rules! entry {
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
            shared = $rows / $blocks * output::COLS * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
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
            let mut staged = shared![f32; ROWS, output::COLS];
            multiply::<_, _, _, _, ROWS, $cols, $blocks, $stages, ROWS>(&problem, operands, out, &ring, &mut staged);
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

entry! { gemm_wgmma_128x128_nn:           Bf16 -> Bf16, 128 x 128 of 1, 6 stages, AlongK, AcrossK }
entry! { gemm_wgmma_128x128_nt:           Bf16 -> Bf16, 128 x 128 of 1, 6 stages, AlongK, AlongK }
entry! { gemm_wgmma_128x128_tn:           Bf16 -> Bf16, 128 x 128 of 1, 6 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_128x128_tt:           Bf16 -> Bf16, 128 x 128 of 1, 6 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f32_128x128_nn:       Bf16 -> f32,  128 x 128 of 1, 6 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f32_128x128_nt:       Bf16 -> f32,  128 x 128 of 1, 6 stages, AlongK, AlongK }
entry! { gemm_wgmma_f32_128x128_tn:       Bf16 -> f32,  128 x 128 of 1, 6 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f32_128x128_tt:       Bf16 -> f32,  128 x 128 of 1, 6 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_128x128_nn:       F16 -> F16,   128 x 128 of 1, 6 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_128x128_nt:       F16 -> F16,   128 x 128 of 1, 6 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_128x128_tn:       F16 -> F16,   128 x 128 of 1, 6 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_128x128_tt:       F16 -> F16,   128 x 128 of 1, 6 stages, AcrossK, AlongK }
entry! { gemm_wgmma_f16_f32_128x128_nn:   F16 -> f32,   128 x 128 of 1, 6 stages, AlongK, AcrossK }
entry! { gemm_wgmma_f16_f32_128x128_nt:   F16 -> f32,   128 x 128 of 1, 6 stages, AlongK, AlongK }
entry! { gemm_wgmma_f16_f32_128x128_tn:   F16 -> f32,   128 x 128 of 1, 6 stages, AcrossK, AcrossK }
entry! { gemm_wgmma_f16_f32_128x128_tt:   F16 -> f32,   128 x 128 of 1, 6 stages, AcrossK, AlongK }
