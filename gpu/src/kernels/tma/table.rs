//! The kernels whose warps all multiply.

use super::{device::*, main_loop::multiply, split_k};
use crate::params::GemmParams;

/// Bytes of shared memory: `stages` for the pipeline, or more if the parts of such a tile take
/// more. The parts of four warps replace the stages.
const fn shared_bytes(stages: usize, rows: usize, cols: usize) -> usize {
    let parts = split_k::bytes(rows, cols, 4);
    if parts > stages { parts } else { stages }
}

/// 128 x 128 elements a block; A K-major, B N-major.
#[kernel(block = (128), dynamic_shared = 3 * 128 * 256, barriers = 4, min_blocks = 2, arch = 90, opt_level = 1, dependent)]
pub fn tma_f32_128x128x32_nn(
    problem: GemmParams,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<128, 32, 128>(), b.boxes::<32, 128, 0>());
    multiply::<_, _, 128, 128, 8, 4, 16, 1, 1, 128, 3>(
        &problem,
        (&a, &b),
        (&mut c, &bias),
        &pipeline![3],
    );
}

/// 128 x 128 elements a block; A M-major, B N-major.
#[kernel(block = (128), dynamic_shared = 3 * 128 * 256, barriers = 4, min_blocks = 2, arch = 90, opt_level = 1, dependent)]
pub fn tma_f32_128x128x32_tn(
    problem: GemmParams,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<32, 128, 0>(), b.boxes::<32, 128, 0>());
    multiply::<_, _, 128, 128, 8, 4, 16, 1, 1, 128, 3>(
        &problem,
        (&a, &b),
        (&mut c, &bias),
        &pipeline![3],
    );
}

/// 64 x 64 elements a block; A K-major, B N-major.
#[kernel(block = (128), dynamic_shared = shared_bytes(3 * 128 * 256, 64, 64), barriers = 4, min_blocks = 2, arch = 90, opt_level = 1, dependent)]
pub fn tma_f32_64x64x64_nn(
    problem: GemmParams,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<64, 32, 128>(), b.boxes::<32, 64, 0>());
    multiply::<_, _, 64, 64, 8, 4, 16, 2, 4, 128, 3>(
        &problem,
        (&a, &b),
        (&mut c, &bias),
        &pipeline![3],
    );
}

/// 64 x 64 elements a block; A M-major, B N-major.
#[kernel(block = (128), dynamic_shared = shared_bytes(3 * 128 * 256, 64, 64), barriers = 4, min_blocks = 2, arch = 90, opt_level = 1, dependent)]
pub fn tma_f32_64x64x64_tn(
    problem: GemmParams,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<32, 64, 0>(), b.boxes::<32, 64, 0>());
    multiply::<_, _, 64, 64, 8, 4, 16, 2, 4, 128, 3>(
        &problem,
        (&a, &b),
        (&mut c, &bias),
        &pipeline![3],
    );
}

/// 16 x 256 elements a block; A K-major, B N-major.
#[kernel(block = (128), dynamic_shared = shared_bytes(3 * 128 * 272, 16, 256), barriers = 4, min_blocks = 2, arch = 90, opt_level = 1, dependent)]
pub fn tma_f32_16x256x32_nn(
    problem: GemmParams,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<16, 32, 128>(), b.boxes::<32, 256, 0>());
    multiply::<_, _, 16, 256, 2, 16, 16, 1, 4, 128, 3>(
        &problem,
        (&a, &b),
        (&mut c, &bias),
        &pipeline![3],
    );
}

/// 256 x 16 elements a block; A K-major, B N-major.
#[kernel(block = (128), dynamic_shared = shared_bytes(3 * 128 * 272, 256, 16), barriers = 4, min_blocks = 2, arch = 90, opt_level = 1, dependent)]
pub fn tma_f32_256x16x32_nn(
    problem: GemmParams,
    a: TensorMap<f32>,
    b: TensorMap<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let (a, b) = (a.boxes::<256, 32, 128>(), b.boxes::<32, 16, 0>());
    multiply::<_, _, 256, 16, 32, 1, 16, 1, 4, 128, 3>(
        &problem,
        (&a, &b),
        (&mut c, &bias),
        &pipeline![3],
    );
}
