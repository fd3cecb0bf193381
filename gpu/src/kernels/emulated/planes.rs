//! Rows of f32 that are read to be split, and the planes that slices are written to.

use super::{collective::vector::FOUR, device::*};
use crate::params::MatrixBatch;

/// Elements of bf16 that are sixteen bytes.
pub const EIGHT: usize = 8;

/// Elements from one row of a plane to the next: sixteen bytes at least, and where a row has several, whole lines of the
/// second-level cache. A box's rows are as long as a line, and of one that begins within a line each takes two.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub const fn plane_pitch(cols: usize) -> usize {
    const LINE: usize = 64;
    cols.next_multiple_of(if cols >= 4 * LINE { LINE } else { EIGHT })
}

/// Four elements from index `at` on, sixteen bytes whose address is a multiple of sixteen. Where they reach beyond the view,
/// whose elements are `len`, they are read one by one, and what is outside may be any.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn piece(from: &In<f32>, at: usize, len: usize) -> [f32; FOUR] {
    // What begins before the first element has a huge index.
    if at <= len.wrapping_sub(FOUR) && len >= FOUR {
        return from.load128(at);
    }
    core::array::from_fn(|i| from[at.wrapping_add(i).min(len - 1)])
}

/// Four elements of two pieces, one behind the other, from the one of that number on, below four. A register has no number
/// that is computed: so all of them move up by two or not, and by one or not.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn shifted(first: [f32; FOUR], second: [f32; FOUR], by: usize) -> [f32; FOUR] {
    let ([a, b, c, d], [e, f, g, _]) = (first, second);
    let [a, b, c, d, e] = if by & 2 != 0 { [c, d, e, f, g] } else { [a, b, c, d, e] };
    if by & 1 != 0 { [b, c, d, e] } else { [a, b, c, d] }
}

/// Eight elements from index `at` on, of a view of `len` elements. What lies outside may be any.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn eight(from: &In<f32>, at: usize, len: usize) -> [f32; EIGHT] {
    let shift = (from.misalignment::<16>() + at) % FOUR;
    let at = at.wrapping_sub(shift);
    let first = piece(from, at, len);
    let second = piece(from, at.wrapping_add(FOUR), len);
    // A row that begins at a multiple of sixteen bytes is in two pieces alone.
    let third = match shift {
        0 => second,
        _ => piece(from, at.wrapping_add(2 * FOUR), len),
    };
    let [a, b, c, d] = shifted(first, second, shift);
    let [e, f, g, h] = shifted(second, third, shift);
    [a, b, c, d, e, f, g, h]
}

/// Eight elements of each of `N` rows, of a view of `len` elements, from an index on for each. It `is_even` where all of a block's
/// lie inside and begin at multiples of sixteen bytes: then there is no branch between them, and all are on their way at once.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn rows_of_eight<const N: usize>(
    from: &In<f32>,
    at: impl Fn(usize) -> usize,
    len: usize,
    is_even: bool,
) -> [[f32; EIGHT]; N] {
    if !is_even {
        return core::array::from_fn(|i| eight(from, at(i), len));
    }
    core::array::from_fn(|i| {
        let [[a, b, c, d], [e, f, g, h]] = [0, FOUR].map(|more| from.load128(at(i) + more));
        [a, b, c, d, e, f, g, h]
    })
}

/// Do all rows of such matrices begin at multiples of sixteen bytes, and have they all of a patch's columns from `first` on?
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn is_even(from: &In<f32>, source: &MatrixBatch, first: usize, patch_cols: usize) -> bool {
    from.misalignment::<16>() == 0
        && source.pitch.is_multiple_of(FOUR as u64)
        && source.step.is_multiple_of(FOUR as u64)
        && first + patch_cols <= source.cols as usize
}
