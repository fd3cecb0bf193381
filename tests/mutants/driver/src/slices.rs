//! Operands that are split into slices.

use std::sync::atomic::Ordering::Relaxed;

use gpu::{
    kernels::gemm_sliced::{self, halves, slices},
    problem::Matrices,
    registry::CutParams,
};
use simt::{Bf16, F16, Kernel, LaunchConfig};

use crate::{
    MUTATION,
    memory::{Matrix, Number, Place},
    numbers::Numbers,
};

/// What numbers are split into.
pub trait Slice: Number {
    /// Slices of a number.
    const SLICES: usize;
    /// What is written of a patch beside its slices, in elements.
    const WORDS: usize;
    /// Numbers that are to be found uncertain: at the ends of what these slices hold, and of all sizes.
    const UNCERTAIN: [Numbers; 2];

    /// Patches down and across, of so many rows and columns.
    const PATCHES: fn(u32, u32) -> (u32, u32);
}

impl Slice for Bf16 {
    const SLICES: usize = gemm_sliced::SLICES;
    const WORDS: usize = 2;
    const UNCERTAIN: [Numbers; 2] = [Numbers::Small, Numbers::Tiny];
    const PATCHES: fn(u32, u32) -> (u32, u32) = slices::patches;
}

impl Slice for F16 {
    const SLICES: usize = halves::SLICES;
    const WORDS: usize = halves::WORDS;
    const UNCERTAIN: [Numbers; 2] = [Numbers::Far, Numbers::Scaled];
    const PATCHES: fn(u32, u32) -> (u32, u32) = halves::patches;
}

/// A or B, its slices, and what is written beside them.
pub struct Split<S> {
    pub source: Matrix<f32>,
    pub planes: Matrix<S>,
    pub ranges: Matrix<S>,
    pub matrices: Matrices,
}

impl<S: Slice> Split<S> {
    pub fn new(source: Matrix<f32>) -> Self {
        let ([count, rows, cols], place) = (source.size, source.place);
        let (down, across) = S::PATCHES(rows as u32, cols as u32);
        let matrices = Matrices {
            rows: rows as u32,
            cols: cols as u32,
            count: count as u32,
            patches: down * across * count as u32,
            pitch: place.strides[0] as u64,
            step: place.step as u64,
        };
        let planes = Place::padded(rows, slices::plane_pitch(cols));
        Split {
            source,
            planes: Matrix::new([count * S::SLICES, rows, cols], planes),
            ranges: Matrix::vector(S::WORDS * matrices.patches as usize),
            matrices,
        }
    }
}

/// The parameters of a kernel that splits, as views of `simt::device` or `simt::checked`.
macro_rules! split_params {
    ($views:ident, $a:expr, $b:expr) => {{
        let (a, b): (&mut Split<_>, &mut Split<_>) = ($a, $b);
        (
            a.matrices,
            b.matrices,
            $views::In::new(a.source.pointer(), a.source.len),
            $views::In::new(b.source.pointer(), b.source.len),
            $views::Out::uninit(a.planes.pointer(), a.planes.len),
            $views::Out::uninit(b.planes.pointer(), b.planes.len),
            $views::Out::uninit(a.ranges.pointer(), a.ranges.len),
            $views::Out::uninit(b.ranges.pointer(), b.ranges.len),
        )
    }};
}
pub(crate) use split_params;

/// A block for each patch.
pub fn split_config<S>(a: &Split<S>, b: &Split<S>) -> LaunchConfig {
    LaunchConfig::new([a.matrices.patches + b.matrices.patches, 1, 1], [32, 8, 1])
}

/// Makes the slices, by the kernel as it is.
pub fn split<S: Slice>(kernel: &Kernel<CutParams<f32, S>>, a: &mut Split<S>, b: &mut Split<S>) {
    use simt::device;
    let config = split_config(a, b);
    let mutation = MUTATION.swap(0, Relaxed);
    // SAFETY: the operands outlive the launch, and nobody else uses them.
    let done = unsafe {
        simt::cpu::launch(kernel, &config, split_params!(device, a, b), &Default::default())
    };
    MUTATION.store(mutation, Relaxed);
    done.expect("the kernel is right as it is");
}
