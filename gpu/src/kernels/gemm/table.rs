//! The kernels, one row each. Sums are f32, of f64 f64, of i8 i32.
//!
//! ```text
//!   gemm_f64_64x64x16:   f64 -> f64,    64 x 64,     4 x 4 a thread,   2 stages of 16,    3 blocks an SM
//!   name                 A, B -> C      tile of C    elements of C     k-steps in         at least
//!                                                                      shared memory
//! ```

use super::{device::*, direct, dot, main_loop::multiply, stream, through_registers};
use crate::params::GemmParams;

/// Elements that nobody reads between the k-steps of a tile in shared memory.
const PAD: usize = 4;

/// A kernel of [`multiply`]: tiles in shared memory. Barriers: one in the loop.
macro_rules! tiled {
    ($name:ident: Half -> $($rest:tt)+) => {
        tiled! { @ $name [, constants(half = bf16 | f16)] f32: Half -> $($rest)+ }
    };
    ($name:ident: Fp8 -> Half, $($rest:tt)+) => {
        tiled! { @ $name [, constants(fp8 = e4m3 | e5m2, half = bf16 | f16)] f32: Fp8 -> Half, $($rest)+ }
    };
    ($name:ident: Fp8 -> $($rest:tt)+) => {
        tiled! { @ $name [, constants(fp8 = e4m3 | e5m2)] f32: Fp8 -> $($rest)+ }
    };
    ($name:ident: i8 -> Half, $($rest:tt)+) => {
        tiled! { @ $name [, constants(half = bf16 | f16)] i32: i8 -> Half, $($rest)+ }
    };
    ($name:ident: i8 -> $($rest:tt)+) => { tiled! { @ $name [] i32: i8 -> $($rest)+ } };
    ($name:ident: $t:ident -> $($rest:tt)+) => { tiled! { @ $name [] $t: $t -> $($rest)+ } };
    (
        @ $name:ident [$($constants:tt)*] $sum:ident: $t:ident -> $c:ident, $tile:literal x $cols:literal,
        $each:literal x $across:literal a thread, $stages:literal stages of $depth:literal
        $(, $min_blocks:literal blocks an SM)?
    ) => {
        #[doc = concat!("A and B of [`", stringify!($t), "`], C of [`", stringify!($c), "`]; tiles of ", $tile, " x ", $cols, " elements.")]
        #[kernel(
            block = (($tile / $each) * ($cols / $across)),
            shared = 2 * ($stages * $depth) * ($tile + PAD) * size_of::<$sum>(),
            barriers = 1
            $(, min_blocks = $min_blocks)?
            $($constants)*
        )]
        pub fn $name(problem: GemmParams, a: In<$t>, b: In<$t>, mut c: Out<$c>, bias: In<$c>) {
            let tiles = (
                shared![$sum; $stages * $depth, $tile + PAD],
                shared![$sum; $stages * $depth, $tile + PAD],
            );
            multiply::<_, _, $tile, $each, $depth, { $stages * $depth }, { $tile + PAD }>(
                &problem,
                (&a, &b),
                (&mut c, &bias),
                tiles,
            );
        }
    };
    (
        row $t:ident -> $c:ident, $rows:literal x $cols:literal, $each:literal x $across:literal a thread,
        $stages:literal stages of $depth:literal $($rest:tt)*
    ) => {
        crate::registry::Row::gemm::<$t, $c>([$rows, $cols, $depth])
    };
}

/// A kernel of [`through_registers`]: tiles of few columns. `together` is how many groups of four
/// elements a thread stores together. Barriers: two in the loop, one before the sums.
macro_rules! through_registers {
    (
        $name:ident: $t:ident -> $c:ident, $rows:literal x $cols:literal, $down:literal x $across:literal a thread,
        $together:literal together, $min_blocks:literal blocks an SM
    ) => {
        #[doc = concat!("A and B of [`", stringify!($t), "`], through registers; tiles of ", $rows, " x ", $cols, " elements.")]
        #[kernel(
            block = (through_registers::THREADS),
            shared = through_registers::STEPS * ($rows + $cols + through_registers::PAD) * size_of::<$t>(),
            barriers = 3,
            min_blocks = $min_blocks
        )]
        pub fn $name(problem: GemmParams, a: In<$t>, b: In<$t>, mut c: Out<$c>, bias: In<$c>) {
            const { assert!($rows == through_registers::ROWS, "the rows of all tiles") };
            const PITCH: usize = $rows + $cols + through_registers::PAD;
            const LOADS_B: usize = $cols * through_registers::BLOCK_K / through_registers::THREADS;
            let stages = shared![$t; through_registers::STEPS, PITCH];
            let (operands, c) = ((&a, &b), (&mut c, &bias));
            through_registers::multiply::<_, _, $cols, $down, $across, LOADS_B, PITCH, $together>(
                &problem, operands, c, stages,
            );
        }
    };
    (row $t:ident -> $c:ident, $rows:literal x $cols:literal, $($rest:tt)+) => {
        crate::registry::Row::gemm::<$t, $c>([
            $rows,
            $cols,
            through_registers::BLOCK_K as u32,
        ])
    };
}

/// A kernel of [`stream`]. Barriers: for the first stage, in the loop, and two for the sums.
macro_rules! streamed {
    ($name:ident: 128 x 128, 3 stages of 16) => {
        /// A, B and C of [`f32`]; tiles of 128 x 128 elements, fragments loaded ahead.
        #[kernel(
                                            block = (stream::THREADS),
                                            dynamic_shared = stream::STAGES * size_of::<f32>(),
                                            barriers = 4,
                                            min_blocks = 2,
                                            opt_level = 1,
                                            constants(a_mn_major = 0 | 1, b_mn_major = 1 | 0)
                                        )]
        pub fn $name(problem: GemmParams, a: In<f32>, b: In<f32>, mut c: Out<f32>, bias: In<f32>) {
            let k_major = [a_mn_major == 0, b_mn_major == 0];
            stream::multiply(&problem, (&a, &b), (&mut c, &bias), k_major);
        }
    };
    (row 128 x 128, 3 stages of 16) => {
        crate::registry::Row::gemm::<f32, f32>([128, 128, 16])
    };
}

/// A kernel of [`direct`]: thin products, without shared memory.
macro_rules! direct {
    ($name:ident: Half -> $c:ident) => {
        direct! { @ $name [, constants(half = bf16 | f16)] Half -> $c }
    };
    ($name:ident: $t:ident -> $c:ident $(, $min_blocks:literal blocks an SM)?) => {
        direct! { @ $name [$(, min_blocks = $min_blocks)?] $t -> $c }
    };
    (@ $name:ident [$($more:tt)*] $t:ident -> $c:ident) => {
        #[doc = concat!("A and B of [`", stringify!($t), "`], C of [`", stringify!($c), "`], for thin products.")]
        #[kernel(block = (direct::TILE[0] * direct::TILE[1] / 4), shared = 0 $($more)*)]
        pub fn $name(problem: GemmParams, a: In<$t>, b: In<$t>, mut c: Out<$c>, bias: In<$c>) {
            direct::multiply(&problem, (&a, &b), (&mut c, &bias));
        }
    };
    (row $t:ident -> $c:ident $($rest:tt)*) => {
        crate::registry::Row::gemm::<$t, $c>([direct::TILE[0] as u32, direct::TILE[1] as u32, 1])
    };
}

/// A kernel of [`dot`](super::dot): threads split k. The constant `cols` says which of its tiles.
macro_rules! dot {
    ($name:ident: Half -> $c:ident) => { dot! { @ $name [, half = bf16 | f16] Half -> $c } };
    ($name:ident: f32 -> $c:ident) => { dot! { @ $name [] f32 -> $c } };
    ($name:ident: f64 -> f64) => { dot! { @ $name [] 64 of f64: f64 -> f64 } };
    (@ $name:ident [$($half:tt)*] $t:ident -> $c:ident) => {
        dot! { @ $name [$($half)*] 128 of f32: $t -> $c }
    };
    (@ $name:ident [$($half:tt)*] $most:literal of $sum:ident: $t:ident -> $c:ident) => {
        #[doc = concat!("A and B of [`", stringify!($t), "`], C of [`", stringify!($c), "`]; threads split k.")]
        #[kernel(
            block = (dot::THREADS),
            shared = size_of::<$sum>() * dot::ROWS * $most,
            barriers = 1,
            min_blocks = 2,
            constants(cols = $most | 16 | 4 $($half)*)
        )]
        pub fn $name(problem: GemmParams, a: In<$t>, b: In<$t>, mut c: Out<$c>, bias: In<$c>) {
            let sums = shared![$sum; dot::ROWS, $most];
            dot::multiply(&problem, (&a, &b), (&mut c, &bias), sums, cols);
        }
    };
    (row f64 -> f64) => { crate::registry::Row::dot::<f64, f64>(&dot::TILES_F64) };
    (row $t:ident -> $c:ident) => { crate::registry::Row::dot::<$t, $c>(&dot::TILES) };
}

kernels! {
    gemm;

    // For the smallest C.
    tiled! { gemm_f32_32x32x8: f32 -> f32, 32 x 32, 4 x 4 a thread, 4 stages of 8 }
        gpu { gflops: 160.0, alone: 0.27, fixed_us: 3.0, tile_us: [0.25, 0.35] }
        cpu { gflops: 8.0, alone: 1.0, fixed_us: 20.0 };

    // For few columns. Fitted to random shapes on an H100 (docs/log/general-product.md, "Through
    // registers").
    through_registers! { gemm_f32_64x64x16: f32 -> f32, 64 x 64, 8 x 8 a thread, 2 together, 6 blocks an SM }
        gpu { gflops: 250.0, alone: 0.22, fixed_us: 4.0, tile_us: [1.0, 1.1] }
        cpu { gflops: 11.0, alone: 1.0, fixed_us: 40.0 };
    through_registers! { gemm_f32_64x32x16: f32 -> f32, 64 x 32, 8 x 4 a thread, 2 together, 8 blocks an SM }
        gpu { gflops: 205.0, alone: 0.22, fixed_us: 4.0, tile_us: [0.4, 0.45] }
        cpu { gflops: 12.0, alone: 1.0, fixed_us: 40.0 };
    through_registers! { gemm_f32_64x16x16: f32 -> f32, 64 x 16, 4 x 4 a thread, 1 together, 8 blocks an SM }
        gpu { gflops: 145.0, alone: 0.22, fixed_us: 4.0, tile_us: [0.3, 0.3] }
        cpu { gflops: 7.0, alone: 1.0, fixed_us: 40.0 };

    tiled! { gemm_f32_128x128x8: f32 -> f32, 128 x 128, 8 x 8 a thread, 4 stages of 8, 2 blocks an SM }
        gpu { gflops: 310.0, alone: 0.87, fixed_us: 5.5, tile_us: [0.8, 2.0] }
        cpu { gflops: 16.0, alone: 1.0, fixed_us: 40.0 };

    // At 1024³ to 8192³ on an H200 (docs/log/general-product.md, "By fragments"). Hopper has the
    // `tma` family.
    streamed! { gemm_f32_128x128x16: 128 x 128, 3 stages of 16 }
        gpu { gflops: 370.0, alone: 0.87, fixed_us: 5.5, tile_us: [1.2, 2.4], of: Products::OtherGpus };

    direct! { gemm_f32_4x64x1: f32 -> f32 }
        cpu { gflops: 1.2, alone: 1.0, fixed_us: 20.0 };

    // Fitted to products of few rows or columns on an H100 (docs/log/dot-products.md).
    dot! { gemm_f32_dot: f32 -> f32 }
        gpu { gflops: 110.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.45, 0.45] };

    // More than two stages of f64 do not fit.
    tiled! { gemm_f64_64x64x16: f64 -> f64, 64 x 64, 4 x 4 a thread, 2 stages of 16, 3 blocks an SM }
        gpu { gflops: 100.0, alone: 0.3, fixed_us: 3.0, tile_us: [0.8, 0.8] }
        cpu { gflops: 6.0, alone: 1.0, fixed_us: 40.0 };
    direct! { gemm_f64_4x64x1: f64 -> f64, 24 blocks an SM }
        cpu { gflops: 1.2, alone: 1.0, fixed_us: 20.0 };
    // As f32's, with half its multiply-adds a clock. Not yet timed: `fixed_us` is so long that
    // tensor cores have the products where the two are close.
    dot! { gemm_f64_dot: f64 -> f64 }
        gpu { gflops: 75.0, alone: 1.0, fixed_us: 7.0, tile_us: [0.45, 0.45] };

    // i8 for any GPU and any operands. Not yet timed: half of f32's multiply-adds a clock.
    tiled! { gemm_i8_i32_64x64x16: i8 -> i32, 64 x 64, 4 x 4 a thread, 2 stages of 16, 2 blocks an SM }
        gpu { gflops: 100.0, alone: 0.37, fixed_us: 4.0, tile_us: [0.8, 0.8] }
        cpu { gflops: 6.0, alone: 1.0, fixed_us: 40.0 };
    direct! { gemm_i8_i32_4x64x1: i8 -> i32 }
        cpu { gflops: 1.2, alone: 1.0, fixed_us: 20.0 };
    tiled! { gemm_i8_f32_64x64x16: i8 -> f32, 64 x 64, 4 x 4 a thread, 2 stages of 16, 2 blocks an SM }
        gpu { gflops: 100.0, alone: 0.37, fixed_us: 4.0, tile_us: [0.8, 0.8] }
        cpu { gflops: 6.0, alone: 1.0, fixed_us: 40.0 };
    tiled! { gemm_i8_half_64x64x16: i8 -> Half, 64 x 64, 4 x 4 a thread, 2 stages of 16, 2 blocks an SM }
        gpu { gflops: 100.0, alone: 0.37, fixed_us: 4.0, tile_us: [0.8, 0.8] }
        cpu { gflops: 6.0, alone: 1.0, fixed_us: 40.0 };

    // e4m3 and e5m2 for any GPU and any operands. Not yet timed: as i8.
    tiled! { gemm_fp8_f32_64x64x16: Fp8 -> f32, 64 x 64, 4 x 4 a thread, 2 stages of 16, 2 blocks an SM }
        gpu { gflops: 100.0, alone: 0.37, fixed_us: 4.0, tile_us: [0.8, 0.8] }
        cpu { gflops: 4.0, alone: 1.0, fixed_us: 40.0 };
    tiled! { gemm_fp8_half_64x64x16: Fp8 -> Half, 64 x 64, 4 x 4 a thread, 2 stages of 16, 2 blocks an SM }
        gpu { gflops: 100.0, alone: 0.37, fixed_us: 4.0, tile_us: [0.8, 0.8] }
        cpu { gflops: 4.0, alone: 1.0, fixed_us: 40.0 };

    // bf16 and f16 for any GPU and any operands; at most as fast as f32. Fitted to random shapes on
    // an H100.
    tiled! { gemm_half_64x64x16: Half -> Half, 64 x 64, 4 x 4 a thread, 2 stages of 16, 4 blocks an SM }
        gpu { gflops: 180.0, alone: 0.37, fixed_us: 4.0, tile_us: [0.8, 0.8] }
        cpu { gflops: 6.0, alone: 1.0, fixed_us: 40.0 };
    tiled! { gemm_half_f32_64x64x16: Half -> f32, 64 x 64, 4 x 4 a thread, 2 stages of 16, 4 blocks an SM }
        gpu { gflops: 180.0, alone: 0.37, fixed_us: 4.0, tile_us: [0.8, 0.8] }
        cpu { gflops: 6.0, alone: 1.0, fixed_us: 40.0 };
    direct! { gemm_half_4x64x1: Half -> Half }
        cpu { gflops: 1.2, alone: 1.0, fixed_us: 20.0 };
    direct! { gemm_half_f32_4x64x1: Half -> f32 }
        cpu { gflops: 1.2, alone: 1.0, fixed_us: 20.0 };
    // Fitted to random shapes on an H200.
    dot! { gemm_half_dot: Half -> Half }
        gpu { gflops: 140.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.45, 0.45] };
    dot! { gemm_half_f32_dot: Half -> f32 }
        gpu { gflops: 140.0, alone: 1.0, fixed_us: 4.5, tile_us: [0.45, 0.45] };
}
