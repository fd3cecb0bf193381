//! Kernels that copy operands: to padded rows, transposed or not, and split into slices.

use gpu::{
    checked::kernels::{
        gemm::pad::{pad_rows, pad_rows_u16, turn_rows, turn_rows_u16},
        gemm_sliced::{halves::cut_f16x2, slices::cut_bf16x3},
    },
    kernels::gemm::pad::PAD_BYTES,
    problem::Matrices,
};
use simt::{
    Kernel, LaunchConfig, checked,
    checked::{In, Out},
};

use crate::{
    memory::{Matrix, Number, Place},
    numbers::Numbers,
    slices::{Slice, Split, split_config, split_params},
    trial::{self, Trial},
};

pub fn of_program(name: &str) -> Option<Vec<Trial>> {
    Some(match name {
        "pad_rows" => padded(&pad_rows, false),
        "pad_rows_u16" => padded(&pad_rows_u16, false),
        "turn_rows" => padded(&turn_rows, true),
        "turn_rows_u16" => padded(&turn_rows_u16, true),
        "cut_bf16x3" => split(&cut_bf16x3),
        "cut_f16x2" => split(&cut_f16x2),
        _ => return None,
    })
}

/// Matrices to be copied to padded rows.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Matrices, rows, columns.
    size: [usize; 3],
    pitch: usize,
    /// Elements from a 16-byte boundary to the first.
    offset: usize,
    grid_rows: u32,
}

type PadParams<T> = (u32, u32, u64, u64, u64, u64, In<T>, Out<T>);

/// The first two cases are run in every order.
fn padded<T: Number>(kernel: &'static Kernel<PadParams<T>>, transposes: bool) -> Vec<Trial> {
    let case = |size, pitch, offset, grid_rows| Case { size, pitch, offset, grid_rows };
    let cases = vec![
        // Ragged: of several rows of blocks, and with fewer of these than there are tiles.
        case([2, 70, 65], 70, 1, 4),
        case([2, 70, 65], 70, 2, 1),
        // One element; a whole tile; one row less and more.
        case([1, 1, 1], 1, 3, 1),
        case([1, 32, 32], 32, 0, 1),
        case([1, 33, 31], 31, 5, 2),
        // More columns than a block copies; few rows of many columns, and many of few.
        case([2, 5, 1100], 1103, 4, 1),
        case([3, 7, 130], 133, 7, 1),
        case([1, 150, 5], 5, 6, 2),
    ];
    trial::trials(cases, 2, move |&Case { size, pitch, offset, grid_rows }, order| {
        let [count, rows, cols] = size;
        let unit = 16 / size_of::<T>();
        let (tile_cols, to) = match transposes {
            true => (32, [count, cols, rows]),
            false => (PAD_BYTES / size_of::<T>(), size),
        };
        let (offset, step) = (offset % unit, rows * pitch + 3);
        let place = Place { offset, step, ..Place::strided([pitch, 1]) };
        let mut from = Matrix::<T>::new(size, place)
            .filled(|[i, row, col]| ((i * rows + row) * cols + col) as f64);
        let mut to = Matrix::<T>::new(to, Place::padded(to[1], to[2].next_multiple_of(unit)));
        let config = LaunchConfig::new(
            [cols.div_ceil(tile_cols) as u32, grid_rows, count as u32],
            [32, 8, 1],
        );
        let words = [pitch, place.step, to.place.strides[0], to.place.step];
        let [from_pitch, from_step, to_pitch, to_step] = words.map(|elements| elements as u64);
        let (from_view, to_view) = (from.view(), to.out(0, false));
        let (rows, cols) = (rows as u32, cols as u32);
        let params = (rows, cols, from_pitch, from_step, to_pitch, to_step, from_view, to_view);
        // SAFETY: the matrices outlive the launch, and nobody else uses them.
        let outcome = unsafe { trial::launch(kernel, &config, params, &trial::options(order)) };
        outcome.and(&mut to)
    })
}

type SplitParams<S> = (Matrices, Matrices, In<f32>, In<f32>, Out<S>, Out<S>, Out<S>, Out<S>);

/// Operands that are to be split.
#[derive(Clone, Copy, Debug)]
struct SplitCase {
    /// Matrices, rows, columns.
    a: [usize; 3],
    b: [usize; 3],
    /// Elements between rows, and between matrices beside that.
    gaps: [usize; 2],
    /// Elements from a 16-byte boundary to A's first.
    offset: usize,
    /// What A and B hold.
    numbers: [Numbers; 2],
}

/// Each case is run in one order.
fn split<S: Slice>(kernel: &'static Kernel<SplitParams<S>>) -> Vec<Trial> {
    // One element, part of a patch, more than one of each; whole ones, aligned or not.
    let shapes = [
        ([1, 1, 1], [1, 3, 300]),
        ([2, 65, 40], [1, 33, 256]),
        ([2, 32, 512], [2, 31, 7]),
        ([1, 66, 255], [1, 2, 1]),
    ];
    let places = [([0, 0], 0), ([1, 1], 1), ([1, 0], 0), ([0, 1], 0), ([3, 3], 2)];
    let [ends, sizes] = S::UNCERTAIN;
    let (full, special) = (Numbers::Full, Numbers::Special);
    let (last, zeros, lonely) = (Numbers::Last, Numbers::Zeros, Numbers::Lonely);
    let all = [full, special, ends, sizes, last, sizes, zeros, lonely];
    let all_cases = shapes.iter().flat_map(|shape| places.iter().map(move |place| (shape, place)));
    let cases = all_cases.enumerate().map(|(number, (&(a, b), &(gaps, offset)))| SplitCase {
        a,
        b,
        gaps,
        offset,
        numbers: [all[number % 8], all[(number + 3) % 8]],
    });
    trial::trials(cases.collect(), 0, move |case, order| {
        let operand = |which: usize, size: [usize; 3], offset: usize| {
            let ([_, rows, cols], [of_rows, of_matrices]) = (size, case.gaps);
            let (pitch, step) = (cols + of_rows, rows * (cols + of_rows) + of_matrices);
            let source = Matrix::new(size, Place { offset, step, ..Place::strided([pitch, 1]) });
            Split::<S>::new(
                source.filled(|at| case.numbers[which].at(which, at, [rows, cols]).into()),
            )
        };
        let mut a = operand(0, case.a, case.offset);
        let mut b = operand(1, case.b, 3 - case.offset);
        let (config, options) = (split_config(&a, &b), trial::options(order));
        // SAFETY: the operands outlive the launch, and nobody else uses them.
        let outcome = unsafe {
            trial::launch(kernel, &config, split_params!(checked, &mut a, &mut b), &options)
        };
        outcome.and(&mut a.planes).and(&mut a.ranges).and(&mut b.planes).and(&mut b.ranges)
    })
}
