//! The planes that slices are stored in, and how the rows of an f32 matrix are read to be split.
//!
//! A plane is one slice of a matrix. Its rows are 16-byte aligned, for TMA. Plane `slices * i + s`
//! is slice s of matrix i, so that the planes of a batch are one array of matrices.

use super::{collective::vector::FOUR, device::*};
use crate::params::MatrixBatch;

/// Elements of 16 bits in sixteen bytes.
pub const EIGHT: usize = 8;

/// Elements from one row of a plane to the next: a multiple of sixteen bytes, and of a cache line
/// if a row has several. A row of a TMA box is a line, and would take two if it started within one.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub const fn plane_pitch(cols: usize) -> usize {
    const LINE: usize = 64;
    cols.next_multiple_of(if cols >= 4 * LINE { LINE } else { EIGHT })
}

/// Elements that follow one another, all of them the matrix's: the first, and their number. Nothing
/// else is read, for it may be somebody else's.
#[derive(Clone, Copy)]
pub struct Run {
    /// The index of the first.
    pub first: usize,
    /// Their number, at least one.
    pub len: usize,
}

impl Run {
    /// The elements around those of a row: all of the matrix, if no gap is between its rows, and
    /// else the row. `first` is the first element of the matrix, `row` that of the row.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn around(source: &MatrixBatch, first: usize, row: usize) -> Run {
        let (rows, cols, pitch) =
            (source.rows as usize, source.cols as usize, source.pitch as usize);
        match pitch > cols {
            true => Run { first: row, len: cols },
            false => Run { first, len: (rows - 1) * pitch + cols },
        }
    }
}

/// Four elements from index `at` on, whose address is a multiple of sixteen bytes. If some are not
/// of the run, the others are read one by one, and those may be anything.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn piece(from: &In<f32>, at: usize, run: Run) -> [f32; FOUR] {
    // An index before the first element wraps to a huge number.
    let before = at.wrapping_sub(run.first);
    if before <= run.len.wrapping_sub(FOUR) && run.len >= FOUR {
        return from.load128(at);
    }
    core::array::from_fn(|i| from[run.first + before.wrapping_add(i).min(run.len - 1)])
}

/// Four elements of two consecutive pieces, from element `by` on, below four. Registers cannot be
/// indexed by a computed number. So all shift by two or not, and by one or not.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn shifted(first: [f32; FOUR], second: [f32; FOUR], by: usize) -> [f32; FOUR] {
    let ([a, b, c, d], [e, f, g, _]) = (first, second);
    let [a, b, c, d, e] = if by & 2 != 0 { [c, d, e, f, g] } else { [a, b, c, d, e] };
    if by & 1 != 0 { [b, c, d, e] } else { [a, b, c, d] }
}

/// Eight elements from index `at` on. Those that are not of the run may be anything.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn eight(from: &In<f32>, at: usize, run: Run) -> [f32; EIGHT] {
    let shift = (from.misalignment::<16>() + at) % FOUR;
    let at = at.wrapping_sub(shift);
    let first = piece(from, at, run);
    let second = piece(from, at.wrapping_add(FOUR), run);
    // An aligned row is in two pieces only.
    let third = match shift {
        0 => second,
        _ => piece(from, at.wrapping_add(2 * FOUR), run),
    };
    let [a, b, c, d] = shifted(first, second, shift);
    let [e, f, g, h] = shifted(second, third, shift);
    [a, b, c, d, e, f, g, h]
}

/// Eight elements of each of `N` rows, from column `col` on. `row` is the start of a row, `first`
/// that of the matrix. `is_even` if all rows of the block are inside and 16-byte aligned: then
/// there is no branch between the loads, and all are in flight at once.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn rows_of_eight<const N: usize>(
    (from, source): (&In<f32>, &MatrixBatch),
    first: usize,
    row: impl Fn(usize) -> usize,
    col: usize,
    is_even: bool,
) -> [[f32; EIGHT]; N] {
    if !is_even {
        return core::array::from_fn(|i| {
            eight(from, row(i) + col, Run::around(source, first, row(i)))
        });
    }
    core::array::from_fn(|i| {
        let [[a, b, c, d], [e, f, g, h]] = [0, FOUR].map(|more| from.load128(row(i) + col + more));
        [a, b, c, d, e, f, g, h]
    })
}

/// Whether all rows of the matrices are 16-byte aligned and have all of a patch's columns from
/// `first` on.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn is_even(from: &In<f32>, source: &MatrixBatch, first: usize, patch_cols: usize) -> bool {
    from.misalignment::<16>() == 0
        && source.pitch.is_multiple_of(FOUR as u64)
        && source.step.is_multiple_of(FOUR as u64)
        && first + patch_cols <= source.cols as usize
}
