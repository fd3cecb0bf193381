//! The kernels, a line each: all that they differ in.
//!
//! ```text
//!   wgmma_half_f32_256x256x64_c2:   f32,   256 x 256 of 2,      4 stages,     Whole
//!   the name                  C's    C's tile, and of     of the ring   B's boxes
//!                             type   how many blocks
//! ```
//!
//! `in parts`, in place of so many blocks: of [small tiles](parts), whose k a cluster may split.

use super::{
    super::device::{warpgroup::*, *},
    DEPTH,
    beside::{LastColumns, Nothing},
    multiply,
    operand::{GROUP, Halves, Whole, mn_span},
    output, parts,
    shifted::Shifted,
};
use crate::problem::{Matrices, Problem};

/// A kernel. Warpgroups of 64 rows each, and the one that copies, have 128 threads. Shared memory holds the ring,
/// 32-bit sums on their way to C, and the ring's barriers: two of eight bytes a stage.
macro_rules! entry {
    ($name:ident: $c:ident, $rows:tt x $cols:tt in parts, $stages:tt stages) => {
        #[doc = concat!("A and B of [`Half`], C of [`", stringify!($c), "`], tiles of ", $rows, " x ", $cols,
            " elements, whose k a cluster may split.")]
        #[kernel(
            // A warpgroup for 64 rows, and the warp that copies.
            block = (128 * ($rows / GROUP) + 32),
            dynamic_shared = $stages * DEPTH * ($rows + $cols) * size_of::<Half>(),
            shared = parts::rows($rows) * parts::pitch($rows, $cols) * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            barriers = 1,
            min_blocks = parts::blocks($stages),
            arch = 90,
            constants(a_mn_major = 0 | 1, b_mn_major = 0 | 1, half = bf16 | f16),
            dependent
        )]
        pub fn $name(
            problem: Problem,
            a: TensorMap<Half>,
            b: TensorMap<Half>,
            mut c: Out<$c>,
            bias: In<$c>,
        ) {
            const STAGED: usize = parts::rows($rows);
            const PITCH: usize = parts::pitch($rows, $cols);
            let of_a = Whole::<_, EitherMajorA<DEPTH>, $rows>::new(&a);
            let of_b = Whole::<_, EitherMajorB<DEPTH, { mn_span($cols) }>, $cols>::new(&b);
            let (out, ring) = ((&mut c, &bias), pipeline![$stages]);
            let mut staged = shared![f32; STAGED, PITCH];
            parts::multiply::<_, _, _, $rows, $cols, $stages, STAGED, PITCH>(&problem, (&of_a, &of_b), out, &ring, &mut staged);
        }
    };
    // A block alone waits at one barrier of its own, until the ring is there; those of a cluster at the cluster's.
    ($name:ident: $c:ident, $rows:tt x $cols:tt of 1, $($rest:tt)*) => {
        entry! { @ $name [barriers = 1] pipeline: $c, $rows x $cols of 1, $($rest)* }
    };
    ($name:ident: $c:ident, $rows:tt x $cols:tt of $blocks:tt, $($rest:tt)*) => {
        entry! { @ $name [cluster = ($blocks)] cluster_pipeline: $c, $rows x $cols of $blocks, $($rest)* }
    };
    (
        @ $name:ident [$($together:tt)*] $ring:ident: $c:ident,
        $rows:tt x $cols:tt of $blocks:tt, $stages:tt stages, $boxes:ident
    ) => {
        #[doc = concat!(
            "A and B of [`Half`], C of [`", stringify!($c), "`]; tiles of ", $rows, " x ", $cols, " elements, blocks of a cluster for each: ", $blocks, "."
        )]
        #[kernel(
            block = (128 * ($rows / $blocks / GROUP + 1)),
            $($together)*,
            dynamic_shared = $stages * DEPTH * ($rows / $blocks + $cols) * size_of::<Half>(),
            shared = $rows / $blocks * output::PITCH * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            min_blocks = 1,
            arch = 90,
            constants(a_mn_major = 0 | 1, b_mn_major = 0 | 1, half = bf16 | f16),
            dependent
        )]
        pub fn $name(
            problem: Problem,
            a: TensorMap<Half>,
            b: TensorMap<Half>,
            mut c: Out<$c>,
            bias: In<$c>,
        ) {
            // Of a block: its own rows, and the columns that it copies for all.
            const ROWS: usize = $rows / $blocks;
            const COPIED: usize = $cols / $blocks;
            let of_a = Whole::<_, EitherMajorA<DEPTH>, ROWS>::new(&a);
            let of_b = $boxes::<_, EitherMajorB<DEPTH>, COPIED>::new(&b);
            let operands = (&of_a, &of_b);
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
    ($name:ident: $c:ident, $rows:tt x $cols:tt, $stages:tt stages, $classes:tt classes) => {
        #[doc = concat!("A and B of [`Half`], C of [`", stringify!($c), "`], tiles of ", $rows, " x ", $cols,
            " elements of two blocks; A lies along k, in rows that begin anywhere ([`Shifted`]), in classes: ", $classes, "; B along n.")]
        #[kernel(
            block = (128 * ($rows / 2 / GROUP + 1)),
            cluster = (2),
            dynamic_shared = $stages * DEPTH * ($rows / 2 + $cols) * size_of::<Half>(),
            shared = $rows / 2 * output::PITCH * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            min_blocks = 1,
            arch = 90,
            constants(half = bf16 | f16),
            dependent
        )]
        pub fn $name(
            problem: Problem,
            a: TensorMaps<Half, $classes>,
            b: TensorMap<Half>,
            last: Matrices,
            from: In<Half>,
            mut to: Out<Half>,
            mut words: Out<u32>,
            mut c: Out<$c>,
            bias: In<$c>,
        ) {
            const ROWS: usize = $rows / 2;
            const COPIED: usize = $cols / 2;
            let (operands, out) = ((&Shifted::<_, ROWS, $classes>::new(&a), &Whole::<_, MnMajor<DEPTH>, COPIED>::new(&b)), (&mut c, &bias));
            let (ring, mut staged) = (cluster_pipeline![$stages], shared![f32; ROWS, output::PITCH]);
            let to_pitch = problem.b[0] as usize;
            let mut beside = LastColumns::<_, { 16 / size_of::<Half>() }> {
                from: &from, matrix: &last, to: &mut to, to_pitch, words: &mut words
            };
            multiply::<_, _, _, _, _, ROWS, $cols, 2, $stages, ROWS>(&problem, operands, out, &ring, &mut staged, &mut beside);
        }
    };
}

entry! { wgmma_half_128x256x64: Half, 128 x 256 of 1, 4 stages, Whole }
entry! { wgmma_half_f32_128x256x64: f32, 128 x 256 of 1, 4 stages, Whole }
entry! { wgmma_half_256x256x64_c2: Half, 256 x 256 of 2, 4 stages, Whole }
entry! { wgmma_half_f32_256x256x64_c2: f32, 256 x 256 of 2, 4 stages, Whole }
entry! { wgmma_half_256x192x64_c2: Half, 256 x 192 of 2, 4 stages, Halves }
entry! { wgmma_half_f32_256x192x64_c2: f32, 256 x 192 of 2, 4 stages, Halves }
entry! { wgmma_half_128x128x64: Half, 128 x 128 in parts, 5 stages }
entry! { wgmma_half_f32_128x128x64: f32, 128 x 128 in parts, 5 stages }
entry! { wgmma_half_64x128x64: Half, 64 x 128 in parts, 7 stages }
entry! { wgmma_half_f32_64x128x64: f32, 64 x 128 in parts, 7 stages }
entry! { wgmma_half_128x64x64: Half, 128 x 64 in parts, 7 stages }
entry! { wgmma_half_f32_128x64x64: f32, 128 x 64 in parts, 7 stages }
entry! { wgmma_half_64x64x64: Half, 64 x 64 in parts, 3 stages }
entry! { wgmma_half_f32_64x64x64: f32, 64 x 64 in parts, 3 stages }
entry! { wgmma_half_64x64x64_s12: Half, 64 x 64 in parts, 12 stages }
entry! { wgmma_half_f32_64x64x64_s12: f32, 64 x 64 in parts, 12 stages }
entry! { wgmma_half_64x16x64: Half, 64 x 16 in parts, 20 stages }
entry! { wgmma_half_f32_64x16x64: f32, 64 x 16 in parts, 20 stages }
shifted_entry! { wgmma_half_256x256x64_c2_ua8_nn: Half, 256 x 256, 4 stages, 8 classes }
shifted_entry! { wgmma_half_f32_256x256x64_c2_ua8_nn: f32, 256 x 256, 4 stages, 8 classes }
shifted_entry! { wgmma_half_256x256x64_c2_ua16_nn: Half, 256 x 256, 4 stages, 16 classes }
shifted_entry! { wgmma_half_f32_256x256x64_c2_ua16_nn: f32, 256 x 256, 4 stages, 16 classes }
