//! Operands that are split into slices, and the kernels that copy operands: into slices, or to
//! padded rows.

use std::sync::atomic::Ordering::Relaxed;

use gpu::{
    kernels::{
        emulated::{planes::plane_pitch, scales, split_bf16x3, value_range},
        pack::PACK_BYTES,
        transpose_bytes::TILE,
    },
    params::MatrixBatch,
};
use simt::{AnyCheckedKernel, AnyKernel, Bf16, Bound, F16, LaunchConfig, Named};

use crate::{
    memory::{Matrix, Number, Place},
    mutation::MUTATION,
    numbers::Numbers,
    product::{Trial, launch, trials},
};

/// A type of slices.
pub trait Slice: Number {
    /// The number of slices of a number.
    const SLICES: usize;
    /// Elements that are written for a patch besides its slices.
    const WORDS: usize;
    /// Numbers that must be found uncertain: at the ends of the range of these slices, and of all
    /// sizes.
    const UNCERTAIN: [Numbers; 2];

    /// Patches down and across, for this many rows and columns.
    const PATCHES: fn(u32, u32) -> (u32, u32);
}

impl Slice for Bf16 {
    const SLICES: usize = split_bf16x3::SLICES;
    const WORDS: usize = 2;
    const UNCERTAIN: [Numbers; 2] = [Numbers::Small, Numbers::Tiny];
    const PATCHES: fn(u32, u32) -> (u32, u32) = value_range::patches;
}

impl Slice for F16 {
    const SLICES: usize = scales::SLICES;
    const WORDS: usize = scales::WORDS;
    const UNCERTAIN: [Numbers; 2] = [Numbers::Far, Numbers::Scaled];
    const PATCHES: fn(u32, u32) -> (u32, u32) = scales::patches;
}

/// A or B, its slices, and what is written with them.
pub struct Split<T, S> {
    pub source: Matrix<T>,
    pub planes: Matrix<S>,
    pub ranges: Matrix<S>,
    matrices: MatrixBatch,
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
                Place::padded(rows, plane_pitch(cols)),
            ),
            ranges: Matrix::vector(S::WORDS * patches as usize),
            matrices: MatrixBatch { rows: down, cols: across, count: of_all, patches, pitch, step },
        }
    }
}

/// The arguments of a kernel that splits, and its launch: a block for each patch.
fn to_split<'a, T: Number, S: Slice>(
    a: &'a mut Split<T, S>,
    b: &'a mut Split<T, S>,
) -> (LaunchConfig, [Named<'a>; 8]) {
    let blocks = a.matrices.patches + b.matrices.patches;
    let arguments = [
        ("of_a", Bound::Value(&a.matrices)),
        ("of_b", Bound::Value(&b.matrices)),
        ("a", a.source.view()),
        ("b", b.source.view()),
        ("planes_a", a.planes.out(0, false)),
        ("planes_b", b.planes.out(0, false)),
        ("patches_a", a.ranges.out(0, false)),
        ("patches_b", b.ranges.out(0, false)),
    ];
    (LaunchConfig::new([blocks, 1, 1], [32, 8, 1]), arguments)
}

/// Makes the slices, by the unchanged kernel.
pub fn split<T: Number, S: Slice>(
    kernel: &dyn AnyKernel,
    a: &mut Split<T, S>,
    b: &mut Split<T, S>,
) {
    let mutation = MUTATION.swap(0, Relaxed);
    let (config, arguments) = to_split(a, b);
    // SAFETY: the operands outlive the launch, and nobody else uses them.
    let done = unsafe { kernel.launch_named(&config, arguments, &Default::default()) };
    MUTATION.store(mutation, Relaxed);
    done.expect("the kernel is right as it is");
}

/// The trials of a kernel that splits, each in one order: A and B as matrices, rows and columns;
/// padding between rows and between matrices; the misalignment of A's first element; and the values
/// of A and B.
pub fn splits<S: Slice>(kernel: &'static dyn AnyCheckedKernel) -> Vec<Trial> {
    // One element, a part of a patch, more than one patch; whole patches, aligned or not.
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
    // Rows without gaps, which end within sixteen bytes of a patch of f16.
    let edge = ([[1, 5, 131], [1, 5, 130]], places[0], [Numbers::Edge; 2]);
    trials(
        (0..20).map(case).chain([edge]).collect(),
        0,
        move |&(shapes, (gaps, offset), numbers), options| {
            let [mut a, mut b] = [0, 1].map(|which| {
                let size @ [_, rows, cols] = shapes[which];
                let offset = if which == 0 { offset } else { 3 - offset };
                let strides = [cols + gaps[0], 1];
                let step = rows * strides[0] + gaps[1];
                let source = Matrix::new(size, Place { offset, step, ..Place::strided(strides) });
                let number = |at| numbers[which].at(which, at, [rows, cols]).into();
                Split::<f32, S>::new(source.filled(number))
            });
            let mut options = options;
            options.gaps = [a.source.gaps(), b.source.gaps()].concat();
            let (config, arguments) = to_split(&mut a, &mut b);
            // SAFETY: the operands outlive the launch, and nobody else uses them.
            let outcome = unsafe { launch(kernel, &config, arguments, &options) };
            outcome.and(&a.planes).and_flags(&a.ranges).and(&b.planes).and_flags(&b.ranges)
        },
    )
}

/// The trials of a kernel that copies to padded rows: matrices, rows and columns; the pitch; the
/// misalignment of the first element; and rows of blocks. The first two cases are run in every
/// order.
pub fn pads<T: Number>(kernel: &'static dyn AnyCheckedKernel, transposes: bool) -> Vec<Trial> {
    let cases = vec![
        // Ragged: several rows of blocks, and fewer blocks than tiles.
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
        // Aligned rows: a whole tile of bytes, and one that exceeds it.
        ([2, 130, 256], 272, 0, 1),
        ([1, 40, 127], 128, 0, 1),
        // Several tiles of bytes by one block.
        ([1, 300, 20], 20, 3, 1),
        // Aligned rows with gaps. The last piece has one element, and follows a block's others.
        ([1, 4, 1025], 1032, 0, 1),
    ];
    trials(cases, 2, move |&(size @ [count, rows, cols], pitch, offset, grid_rows), options| {
        let unit = 16 / size_of::<T>();
        let (tile_cols, to_size) = match transposes {
            true => (if unit == 16 { TILE } else { 32 }, [count, cols, rows]),
            false => (PACK_BYTES / size_of::<T>(), size),
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
        let [from_pitch, from_step, to_pitch, to_step] = &words;
        let (rows, cols) = (rows as u32, cols as u32);
        let arguments = [
            ("rows", Bound::Value(&rows)),
            ("cols", Bound::Value(&cols)),
            ("from_pitch", Bound::Value(from_pitch)),
            ("from_step", Bound::Value(from_step)),
            ("to_pitch", Bound::Value(to_pitch)),
            ("to_step", Bound::Value(to_step)),
            ("from", from.view()),
            ("to", to.out(0, false)),
        ];
        let mut options = options;
        options.gaps = from.gaps();
        // SAFETY: the matrices outlive the launch, and nobody else uses them.
        unsafe { launch(kernel, &config, arguments, &options) }.and(&to)
    })
}
