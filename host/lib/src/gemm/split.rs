//! Slices of emulated fp32 in numbers: elements of workspace, the predicted time of the kernel that
//! splits, and its grid. A kernel ([`split_bf16x3`](gpu::kernels::emulated::split_bf16x3),
//! [`split_f16x2`](gpu::kernels::emulated::split_f16x2)) splits A and B. The next kernel multiplies
//! the slices. This module launches nothing: [`planes`](super::planes) does.

use gpu::kernels::emulated::{planes::plane_pitch, scales, split_bf16x3, value_range};
use simt::{Bf16, F16, LaunchConfig};

use crate::{
    boxes::BoxElement,
    buffer::Pod,
    error::{Error, Result},
};

/// Microseconds of the launch that splits, and of each byte that it reads or writes. Measured for
/// 4096 x 4096 and more.
const SPLIT_US: f64 = 4.0;
const BYTE_US: f64 = 1e-6 / 4.0;

/// The type of a slice.
pub(super) trait Slice: BoxElement + Pod {
    /// Slices of a number.
    const SLICES: usize;
    /// Elements that describe a patch's values: their range, or their scale.
    const WORDS: usize;
    /// Threads of a block that splits.
    const BLOCK: [u32; 3];

    /// Patches of a matrix, down and across.
    fn patches(rows: u32, cols: u32) -> (u32, u32);
}

impl Slice for Bf16 {
    const SLICES: usize = split_bf16x3::SLICES;
    const WORDS: usize = 2;
    const BLOCK: [u32; 3] = [32, 8, 1];

    fn patches(rows: u32, cols: u32) -> (u32, u32) {
        value_range::patches(rows, cols)
    }
}

impl Slice for F16 {
    const SLICES: usize = scales::SLICES;
    const WORDS: usize = scales::WORDS;
    const BLOCK: [u32; 3] = [32, 8, 1];

    fn patches(rows: u32, cols: u32) -> (u32, u32) {
        scales::patches(rows, cols)
    }
}

/// Elements of the planes, and of the ranges, of `matrices` matrices with `rows` rows of `cols`
/// contiguous elements.
pub(super) fn elements<S: Slice>((rows, cols): (usize, usize), matrices: usize) -> [usize; 2] {
    let planes = [S::SLICES, rows, plane_pitch(cols)];
    let ranges = S::WORDS.saturating_mul(patches::<S>((rows, cols))).saturating_mul(matrices);
    let planes = planes.into_iter().fold(matrices, usize::saturating_mul);
    // The next part begins at an L2 line.
    [planes, ranges.checked_next_multiple_of(64).unwrap_or(usize::MAX)]
}

/// Patches of a matrix.
pub(super) fn patches<S: Slice>((rows, cols): (usize, usize)) -> usize {
    let (down, across) = S::patches(rows as u32, cols as u32);
    (down as usize).saturating_mul(across as usize)
}

/// Bytes of workspace for `matrices` matrices. `rows`: rows of a matrix, and the contiguous
/// elements of each.
pub(super) fn workspace_bytes<S: Slice>(rows: (usize, usize), matrices: usize) -> u64 {
    let [planes, ranges] = elements::<S>(rows, matrices);
    (planes as u64).saturating_add(ranges as u64).saturating_mul(size_of::<S>() as u64)
}

/// Microseconds in which `bytes` bytes of planes are made.
pub(super) fn split_us<S: Slice>(bytes: u64) -> f64 {
    SPLIT_US + bytes as f64 * (1.0 + 2.0 / S::SLICES as f64) * BYTE_US
}

/// The grid of the kernel that splits: a block for each patch of A and of B.
///
/// # Errors
/// [`Error::Argument`] for more patches than a grid has blocks.
pub(super) fn config<S: Slice>([of_a, of_b]: [usize; 2]) -> Result<LaunchConfig> {
    let blocks = of_a.saturating_add(of_b);
    match u32::try_from(blocks) {
        Ok(blocks) if blocks <= i32::MAX as u32 => Ok(LaunchConfig::new([blocks, 1, 1], S::BLOCK)),
        _ => {
            let limit =
                format!("must be at most {} patches of slices: fewer products at once", i32::MAX);
            Err(Error::argument("A and B", format!("{blocks} patches"), limit))
        }
    }
}
