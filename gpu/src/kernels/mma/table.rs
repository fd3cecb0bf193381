//! The kernels, one line each.
//!
//! ```text
//!   mma_half_f32_64x64x64:   Half -> f32,    64 x 64,     2 x 2 a warp,       4 stages of 64,     rows anywhere
//!   name                     A, B -> C       tile of C    16 x 16 parts of    k-steps in       alignment of
//!                                                         the tile            shared memory       A and B
//! ```

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
        $stages:tt stages of $depth:tt, rows $where:ident
    ) => {
        #[cfg(not(target_feature = "sm_90a"))]
        #[doc = concat!(
            "A and B of [`", stringify!($t), "`], C of [`", stringify!($c), "`]; tiles of ", $rows, " x ", $cols, " elements."
        )]
        #[kernel(
            block = (threads([$rows, $cols], [$m, $n])),
            dynamic_shared = $stages * main_loop::stage_len::<$t>($rows, $cols, $depth, rows!($where)) * size_of::<$t>(),
            barriers = 3,
            min_blocks = 2,
            constants(a_mn_major = 0 | 1, b_mn_major = 1 | 0 $(, $($constants)+)?),
        )]
        pub fn $name(problem: GemmParams, a: In<$t>, b: In<$t>, mut c: Out<$c>, bias: In<$c>) {
            main_loop::multiply::<_, _, $rows, $cols, $m, $n, $stages, $depth, { rows!($where) }, { threads([$rows, $cols], [$m, $n]) }>(
                &problem,
                (&a, &b),
                (&mut c, &bias),
                [a_mn_major == 0, b_mn_major == 0],
            );
        }
    };
}

/// A kernel of f64: Hopper has other instructions than the GPUs before. Barriers: those of three
/// main loops, two each, and one before the sums.
macro_rules! entry_f64 {
    (
        $name:ident: $rows:tt x $cols:tt, $m:tt x $n:tt a warp, $stages:tt stages of $depth:tt,
        $blocks:tt an SM $(, arch = $arch:tt)?
    ) => {
        #[doc = concat!("A, B and C of [`f64`]; tiles of ", $rows, " x ", $cols, " elements.")]
        #[kernel(
            block = (threads([$rows, $cols], [$m, $n])),
            dynamic_shared = $stages * main_loop::stage_len::<f64>($rows, $cols, $depth, rows!(anywhere)) * size_of::<f64>(),
            barriers = 7,
            min_blocks = $blocks,
            $(arch = $arch,)?
            constants(a_mn_major = 0 | 1, b_mn_major = 1 | 0),
        )]
        pub fn $name(problem: GemmParams, a: In<f64>, b: In<f64>, mut c: Out<f64>, bias: In<f64>) {
            stream::multiply::<_, _, $rows, $cols, $m, $n, $stages, $depth, { threads([$rows, $cols], [$m, $n]) }>(
                &problem,
                (&a, &b),
                (&mut c, &bias),
                [a_mn_major == 0, b_mn_major == 0],
            );
        }
    };
}

/// Whether rows may be unaligned. Otherwise unaligned rows are slow.
macro_rules! rows {
    (anywhere) => {
        true
    };
    (at_pieces) => {
        false
    };
}

entry! { mma_half_64x64x64:        Half -> Half, 64 x 64, 2 x 2 a warp, 4 stages of 64, rows anywhere }
entry! { mma_half_f32_64x64x64:    Half -> f32, 64 x 64, 2 x 2 a warp, 4 stages of 64, rows anywhere }
entry! { mma_half_128x128x32:      Half -> Half, 128 x 128, 4 x 4 a warp, 4 stages of 32, rows at_pieces }
entry! { mma_half_f32_128x128x32:  Half -> f32, 128 x 128, 4 x 4 a warp, 4 stages of 32, rows at_pieces }

entry! { mma_tf32_64x64x32:        f32 -> f32, 64 x 64, 2 x 2 a warp, 4 stages of 32, rows anywhere }
entry! { mma_tf32_128x128x32:      f32 -> f32, 128 x 128, 4 x 4 a warp, 2 stages of 32, rows at_pieces }

entry_f64! { mma_f64_64x64x32:     64 x 64, 2 x 2 a warp, 2 stages of 32, 2 an SM }
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
entry_f64! { mma_f64_128x128x32:   128 x 128, 4 x 2 a warp, 3 stages of 32, 1 an SM, arch = 90 }
