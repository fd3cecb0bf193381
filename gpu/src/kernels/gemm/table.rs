//! The kernels.

use super::{device::*, direct, dot, main_loop::multiply, through_registers};
use crate::params::GemmParams;

/// 32 x 32 elements a block of 64 threads: for the smallest C.
#[kernel(block = (64), shared = 2 * 32 * 36 * size_of::<f32>(), barriers = 1)]
pub fn gemm_f32_32x32x8(
    problem: GemmParams,
    a: In<f32>,
    b: In<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let tiles = (shared![f32; 32, 36], shared![f32; 32, 36]);
    multiply::<_, _, 32, 4, 8, 32, 36>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// 64 x 64 elements a block of 64 threads, through registers.
#[kernel(block = (64), shared = 32 * 140 * size_of::<f32>(), barriers = 3, min_blocks = 6)]
pub fn gemm_f32_64x64x16(
    problem: GemmParams,
    a: In<f32>,
    b: In<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let stages = shared![f32; 32, 140];
    let (operands, c) = ((&a, &b), (&mut c, &bias));
    through_registers::multiply::<_, _, 64, 8, 8, 16, 140, 2>(&problem, operands, c, stages);
}

/// 64 x 32 elements a block of 64 threads, for few columns.
#[kernel(block = (64), shared = 32 * 108 * size_of::<f32>(), barriers = 3, min_blocks = 8)]
pub fn gemm_f32_64x32x16(
    problem: GemmParams,
    a: In<f32>,
    b: In<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let stages = shared![f32; 32, 108];
    let (operands, c) = ((&a, &b), (&mut c, &bias));
    through_registers::multiply::<_, _, 32, 8, 4, 8, 108, 2>(&problem, operands, c, stages);
}

/// 64 x 16 elements a block of 64 threads, for fewer columns.
#[kernel(block = (64), shared = 32 * 92 * size_of::<f32>(), barriers = 3, min_blocks = 8)]
pub fn gemm_f32_64x16x16(
    problem: GemmParams,
    a: In<f32>,
    b: In<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let stages = shared![f32; 32, 92];
    let (operands, c) = ((&a, &b), (&mut c, &bias));
    through_registers::multiply::<_, _, 16, 4, 4, 4, 92, 1>(&problem, operands, c, stages);
}

/// 128 x 128 elements a block of 256 threads.
#[kernel(block = (256), shared = 2 * 32 * 132 * size_of::<f32>(), barriers = 1, min_blocks = 2)]
pub fn gemm_f32_128x128x8(
    problem: GemmParams,
    a: In<f32>,
    b: In<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let tiles = (shared![f32; 32, 132], shared![f32; 32, 132]);
    multiply::<_, _, 128, 8, 8, 32, 132>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// 64 x 64 elements of f64 a block of 256 threads. More than two stages do not fit.
#[kernel(block = (256), shared = 2 * 32 * 68 * size_of::<f64>(), barriers = 1, min_blocks = 3)]
pub fn gemm_f64_64x64x16(
    problem: GemmParams,
    a: In<f64>,
    b: In<f64>,
    mut c: Out<f64>,
    bias: In<f64>,
) {
    let tiles = (shared![f64; 32, 68], shared![f64; 32, 68]);
    multiply::<_, _, 64, 4, 16, 32, 68>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// 64 x 64 elements of bf16 or f16 a block of 256 threads. Sums are f32. For any GPU and any
/// operands; at most as fast as f32.
#[kernel(
    block = (256),
    shared = 2 * 32 * 68 * size_of::<f32>(),
    barriers = 1,
    min_blocks = 4,
    constants(half = bf16 | f16)
)]
pub fn gemm_half_64x64x16(
    problem: GemmParams,
    a: In<Half>,
    b: In<Half>,
    mut c: Out<Half>,
    bias: In<Half>,
) {
    let tiles = (shared![f32; 32, 68], shared![f32; 32, 68]);
    multiply::<_, _, 64, 4, 16, 32, 68>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// The same with a C and a bias of f32.
#[kernel(
    block = (256),
    shared = 2 * 32 * 68 * size_of::<f32>(),
    barriers = 1,
    min_blocks = 4,
    constants(half = bf16 | f16)
)]
pub fn gemm_half_f32_64x64x16(
    problem: GemmParams,
    a: In<Half>,
    b: In<Half>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let tiles = (shared![f32; 32, 68], shared![f32; 32, 68]);
    multiply::<_, _, 64, 4, 16, 32, 68>(&problem, (&a, &b), (&mut c, &bias), tiles);
}

/// 4 x 64 elements a block of 64 threads, for thin products.
#[kernel(block = (64), shared = 0)]
pub fn gemm_f32_4x64x1(
    problem: GemmParams,
    a: In<f32>,
    b: In<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    direct::multiply(&problem, (&a, &b), (&mut c, &bias));
}

/// The same in f64.
#[kernel(block = (64), shared = 0, min_blocks = 24)]
pub fn gemm_f64_4x64x1(
    problem: GemmParams,
    a: In<f64>,
    b: In<f64>,
    mut c: Out<f64>,
    bias: In<f64>,
) {
    direct::multiply(&problem, (&a, &b), (&mut c, &bias));
}

/// The same in bf16 or f16. Sums are f32.
#[kernel(block = (64), shared = 0, constants(half = bf16 | f16))]
pub fn gemm_half_4x64x1(
    problem: GemmParams,
    a: In<Half>,
    b: In<Half>,
    mut c: Out<Half>,
    bias: In<Half>,
) {
    direct::multiply(&problem, (&a, &b), (&mut c, &bias));
}

/// The same with a C and a bias of f32.
#[kernel(block = (64), shared = 0, constants(half = bf16 | f16))]
pub fn gemm_half_f32_4x64x1(
    problem: GemmParams,
    a: In<Half>,
    b: In<Half>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    direct::multiply(&problem, (&a, &b), (&mut c, &bias));
}

/// Threads split k; tiles of 4 or 8 rows.
#[kernel(
    block = (dot::THREADS),
    shared = size_of::<f32>() * 64 * 128,
    barriers = 1,
    min_blocks = 2,
    constants(cols = 128 | 16 | 4)
)]
pub fn gemm_f32_dot(problem: GemmParams, a: In<f32>, b: In<f32>, mut c: Out<f32>, bias: In<f32>) {
    let sums = shared![f32; 64, 128];
    dot::multiply(&problem, (&a, &b), (&mut c, &bias), sums, cols);
}

/// The same in bf16 or f16. Sums are f32.
#[kernel(
    block = (dot::THREADS),
    shared = size_of::<f32>() * 64 * 128,
    barriers = 1,
    min_blocks = 2,
    constants(cols = 128 | 16 | 4, half = bf16 | f16)
)]
pub fn gemm_half_dot(
    problem: GemmParams,
    a: In<Half>,
    b: In<Half>,
    mut c: Out<Half>,
    bias: In<Half>,
) {
    let sums = shared![f32; 64, 128];
    dot::multiply(&problem, (&a, &b), (&mut c, &bias), sums, cols);
}

/// The same with a C and a bias of f32.
#[kernel(
    block = (dot::THREADS),
    shared = size_of::<f32>() * 64 * 128,
    barriers = 1,
    min_blocks = 2,
    constants(cols = 128 | 16 | 4, half = bf16 | f16)
)]
pub fn gemm_half_f32_dot(
    problem: GemmParams,
    a: In<Half>,
    b: In<Half>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let sums = shared![f32; 64, 128];
    dot::multiply(&problem, (&a, &b), (&mut c, &bias), sums, cols);
}
