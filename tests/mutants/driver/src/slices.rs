//! Operands that are split into slices, and the kernels that copy operands: into slices, or to padded rows.

use std::sync::atomic::Ordering::Relaxed;

use gpu::{
    kernels::{
        gemm::pad::PAD_BYTES,
        gemm_sliced::{self, halves, slices},
    },
    problem::Matrices,
    registry::CutParams,
};
use simt::{
    Bf16, Element, F16, Kernel, LaunchConfig, checked,
    checked::{In, Out},
    device,
};

use crate::{
    MUTATION,
    memory::{Matrix, Number, Place},
    numbers::Numbers,
    product::{Trial, launch, trials},
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
pub struct Split<T, S> {
    pub source: Matrix<T>,
    pub planes: Matrix<S>,
    pub ranges: Matrix<S>,
    matrices: Matrices,
}

impl<T: Number, S: Slice> Split<T, S> {
    pub fn new(source: Matrix<T>) -> Self {
        let [count, rows, cols] = source.size;
        let [pitch, step] = [source.place.strides[0], source.place.step].map(|it| it as u64);
        let [of_all, down, across] = source.size.map(|size| size as u32);
        let patches = S::PATCHES(down, across);
        let patches = patches.0 * patches.1 * of_all;
        Split {
            source,
            planes: Matrix::new(
                [count * S::SLICES, rows, cols],
                Place::padded(rows, slices::plane_pitch(cols)),
            ),
            ranges: Matrix::vector(S::WORDS * patches as usize),
            matrices: Matrices { rows: down, cols: across, count: of_all, patches, pitch, step },
        }
    }
}

/// The parameters of a kernel that splits, as views of `simt::device` or `simt::checked`, and its launch: a block for each patch.
macro_rules! to_split {
    ($views:ident, $a:expr, $b:expr) => {{
        let (a, b): (&mut Split<_, _>, &mut Split<_, _>) = ($a, $b);
        let params = (
            a.matrices,
            b.matrices,
            $views::In::new(a.source.pointer().cast(), a.source.len),
            $views::In::new(b.source.pointer().cast(), b.source.len),
            $views::Out::uninit(a.planes.pointer(), a.planes.len),
            $views::Out::uninit(b.planes.pointer(), b.planes.len),
            $views::Out::uninit(a.ranges.pointer(), a.ranges.len),
            $views::Out::uninit(b.ranges.pointer(), b.ranges.len),
        );
        (LaunchConfig::new([a.matrices.patches + b.matrices.patches, 1, 1], [32, 8, 1]), params)
    }};
}

/// Makes the slices, by the kernel as it is.
pub fn split<T: Number, E: Element, S: Slice>(
    kernel: &Kernel<CutParams<E, S>>,
    a: &mut Split<T, S>,
    b: &mut Split<T, S>,
) {
    let mutation = MUTATION.swap(0, Relaxed);
    // SAFETY: the operands outlive the launch, and nobody else uses them.
    let done = unsafe {
        let (config, params) = to_split!(device, a, b);
        simt::cpu::launch(kernel, &config, params, &Default::default())
    };
    MUTATION.store(mutation, Relaxed);
    done.expect("the kernel is right as it is");
}

type SplitParams<S> = (Matrices, Matrices, In<f32>, In<f32>, Out<S>, Out<S>, Out<S>, Out<S>);

/// Of a kernel that splits. Each case is run in one order: A and B as matrices, rows and columns; elements between rows, and between
/// matrices beside that; elements from a 16-byte boundary to A's first; and what A and B hold.
pub fn splits<S: Slice>(kernel: &'static Kernel<SplitParams<S>>) -> Vec<Trial> {
    // One element, part of a patch, more than one of each; whole ones, aligned or not.
    let shapes = [
        [[1, 1, 1], [1, 3, 300]],
        [[2, 65, 40], [1, 33, 256]],
        [[2, 32, 512], [2, 31, 7]],
        [[1, 66, 255], [1, 2, 1]],
    ];
    let places = [([0, 0], 0), ([1, 1], 1), ([1, 0], 0), ([0, 1], 0), ([3, 3], 2)];
    let (full, special, [ends, sizes]) = (Numbers::Full, Numbers::Special, S::UNCERTAIN);
    let (last, zeros, lonely) = (Numbers::Last, Numbers::Zeros, Numbers::Lonely);
    let all = [full, special, ends, sizes, last, sizes, zeros, lonely];
    let case = |at: usize| (shapes[at / 5], places[at % 5], [all[at % 8], all[(at + 3) % 8]]);
    trials((0..20).map(case).collect(), 0, move |&(shapes, (gaps, offset), numbers), options| {
        let [mut a, mut b] = [0, 1].map(|which| {
            let size @ [_, rows, cols] = shapes[which];
            let offset = if which == 0 { offset } else { 3 - offset };
            let strides = [cols + gaps[0], 1];
            let step = rows * strides[0] + gaps[1];
            let source = Matrix::new(size, Place { offset, step, ..Place::strided(strides) });
            let number = |at| numbers[which].at(which, at, [rows, cols]).into();
            Split::<f32, S>::new(source.filled(number))
        });
        // SAFETY: the operands outlive the launch, and nobody else uses them.
        let outcome = unsafe {
            let (config, params) = to_split!(checked, &mut a, &mut b);
            launch(kernel, &config, params, &options)
        };
        outcome.and(&a.planes).and(&a.ranges).and(&b.planes).and(&b.ranges)
    })
}

type PadParams<T> = (u32, u32, u64, u64, u64, u64, In<T>, Out<T>);

/// Of a kernel that copies to padded rows: matrices, rows and columns; elements from row to row; elements from a 16-byte boundary to the
/// first; and rows of blocks. The first two cases are run in every order.
pub fn pads<T: Number>(kernel: &'static Kernel<PadParams<T>>, transposes: bool) -> Vec<Trial> {
    let cases = vec![
        // Ragged: of several rows of blocks, and with fewer of these than there are tiles.
        ([2, 70, 65], 70, 1, 4),
        ([2, 70, 65], 70, 2, 1),
        // One element; a whole tile; one row less and more.
        ([1, 1, 1], 1, 3, 1),
        ([1, 32, 32], 32, 0, 1),
        ([1, 33, 31], 31, 5, 2),
        // More columns than a block copies; few rows of many columns, and many of few.
        ([2, 5, 1100], 1103, 4, 1),
        ([3, 7, 130], 133, 7, 1),
        ([1, 150, 5], 5, 6, 2),
    ];
    trials(cases, 2, move |&(size @ [count, rows, cols], pitch, offset, grid_rows), options| {
        let unit = 16 / size_of::<T>();
        let (tile_cols, to_size) = match transposes {
            true => (32, [count, cols, rows]),
            false => (PAD_BYTES / size_of::<T>(), size),
        };
        let (step, offset) = (rows * pitch + 3, offset % unit);
        let place = Place { offset, step, ..Place::strided([pitch, 1]) };
        let number = |[i, row, col]: [usize; 3]| ((i * rows + row) * cols + col) as f64;
        let mut from = Matrix::<T>::new(size, place).filled(number);
        let to_pitch = to_size[2].next_multiple_of(unit);
        let mut to = Matrix::<T>::new(to_size, Place::padded(to_size[1], to_pitch));
        let grid = [cols.div_ceil(tile_cols) as u32, grid_rows, count as u32];
        let config = LaunchConfig::new(grid, [32, 8, 1]);
        let words = [pitch, step, to_pitch, to.place.step].map(|elements| elements as u64);
        let ([a, b, c, d], rows, cols) = (words, rows as u32, cols as u32);
        let params = (rows, cols, a, b, c, d, from.view(), to.out(0, false));
        // SAFETY: the matrices outlive the launch, and nobody else uses them.
        unsafe { launch(kernel, &config, params, &options) }.and(&to)
    })
}
