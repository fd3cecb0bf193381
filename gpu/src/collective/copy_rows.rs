//! Copies of unaligned rows to 16-byte aligned rows.
//!
//! * **A warp** copies a *stretch* of a row. Each lane issues all its loads before it waits for the
//!   first. One more load brings the piece after the last.
//! * **A lane** stores sixteen bytes at a time. In an unaligned row these are in two *pieces* of
//!   the source: the lane's own piece, and the next lane's piece. The next lane passes it on
//!   ([`warp::shuffle`]). So every access has sixteen bytes, and every piece is loaded once.
//! * **At the ends of the source** whole pieces may exceed it. There a row is copied element by
//!   element.
//! * **Nothing is read between rows.** If there are gaps, the pieces at the ends of a row are read
//!   element by element, and only those that belong to the row.

use core::ops::Range;

use super::{
    device::*,
    unaligned_vector::{Piece, shifted, shifted_by_bytes},
};
use crate::params::MatrixBatch;

/// The part of a row that a warp copies at a time: `EACH` pieces a lane, of `N` elements each. The
/// lanes of a warp take neighbouring pieces.
#[derive(Clone, Copy)]
struct Stretch<const N: usize, const EACH: usize> {
    /// The start of the row.
    at: usize,
    /// The start of its copy.
    to: usize,
    /// Elements of the row.
    cols: usize,
    /// The first piece.
    first: usize,
}

/// A lane's loaded pieces: its own, and the piece after the warp's last.
type Pieces<const EACH: usize> = ([Piece; EACH], Piece);

impl<const N: usize, const EACH: usize> Stretch<N, EACH> {
    /// Elements from the start of the first piece to the start of the row.
    #[inline(always)]
    fn shift<T: Element>(&self, from: &In<T>) -> usize {
        (from.misalignment::<16>() + self.at) % N
    }

    /// The last piece of the row.
    #[inline(always)]
    fn last(&self, shift: usize) -> usize {
        (shift + self.cols - 1) / N
    }

    /// Whether one of its pieces is an end of the row, and exceeds it.
    #[inline(always)]
    fn has_ends<T: Element>(&self, from: &In<T>) -> bool {
        let shift = self.shift(from);
        let exceeds = !(shift + self.cols).is_multiple_of(N);
        self.first == 0 && shift > 0 || exceeds && self.last(shift) <= self.first + 32 * EACH
    }

    /// Loads the pieces. `ENDS`: what is outside of the row is not read.
    #[inline(always)]
    #[track_caller]
    fn read<T: Element, const ENDS: bool>(&self, from: &In<T>) -> Pieces<EACH> {
        let shift = self.shift(from);
        let (lane, last) = (thread::lane_id() as usize, self.last(shift));
        // Past the end of the row the last piece is loaded again. So no load depends on a
        // condition.
        let read = |number: usize| {
            let number = number.min(last);
            let at = self.at - shift + number * N;
            if ENDS && (at < self.at || at + N > self.at + self.cols) {
                let (first, end) = (self.at, self.at + self.cols - 1);
                return to_words::<T, N>(core::array::from_fn(|i| {
                    from[(at + i).max(first).min(end)]
                }));
            }
            to_words::<T, N>(from.load128(at))
        };
        let own = core::array::from_fn(|i| read(self.first + 32 * i + lane));
        (own, read(self.first + 32 * EACH))
    }

    #[inline(always)]
    #[track_caller]
    fn write<T: Element>(&self, from: &In<T>, to: &mut Out<T>, (own, after): Pieces<EACH>) {
        let (shift, lane) = (self.shift(from), thread::lane_id() as usize);
        for i in 0..EACH {
            // For the last lane, the next piece is the first of the next 512 bytes.
            let further = if i + 1 < EACH { own[i + 1] } else { after };
            let handed = if lane == 0 { further } else { own[i] };
            let next = handed.map(|word| warp::shuffle(warp::ALL, word, lane as u32 + 1));
            let col = (self.first + 32 * i + lane) * N;
            if col < self.cols {
                // Rows of the copy are whole pieces. The end of the last one holds what follows the
                // row in the source.
                let piece = match size_of::<T>() {
                    1 => shifted_by_bytes(own[i], next, shift),
                    bytes => shifted(own[i], next, shift * bytes),
                };
                to.store128::<N>(self.to + col, from_words::<T, N>(piece));
            }
        }
    }
}

/// Copies `EACH` pieces a lane of a row of `cols` elements, from piece `first` on. `matrix` are the
/// first element of its matrix, and the end of the last. `gaps`: what is between rows is not read.
#[inline(always)]
#[track_caller]
pub fn copy_stretch<T: Element, const N: usize, const EACH: usize>(
    (from, at): (&In<T>, usize),
    (to, to_row): (&mut Out<T>, usize),
    (cols, gaps): (usize, bool),
    matrix: (usize, usize),
    first: usize,
) {
    if at < matrix.0 + N || at + cols + N > matrix.1 {
        let lane = thread::lane_id() as usize;
        let end = cols.min((first + EACH * 32) * N);
        copy_elements((from, at), (to, to_row), first * N + lane, end);
        return;
    }
    let stretch = Stretch::<N, EACH> { at, to: to_row, cols, first };
    if gaps && stretch.has_ends(from) {
        copy_with_ends::<_, N>((from, at), (to, to_row), cols, first..first + EACH * 32);
        return;
    }
    let pieces = stretch.read::<_, false>(from);
    stretch.write(from, to, pieces);
}

/// Copies some pieces of a row, up to its end, and reads nothing outside of the row. A lane has one
/// piece at a time: elements of more would take more registers than all else.
#[inline(always)]
#[track_caller]
fn copy_with_ends<T: Element, const N: usize>(
    (from, at): (&In<T>, usize),
    (to, to_row): (&mut Out<T>, usize),
    cols: usize,
    pieces: Range<usize>,
) {
    let Range { mut start, end } = pieces;
    while start < end && start * N < cols {
        let stretch = Stretch::<N, 1> { at, to: to_row, cols, first: start };
        let pieces = stretch.read::<_, true>(from);
        stretch.write(from, to, pieces);
        // The compiler would unroll the loop, and load all pieces at once.
        start = thread::opaque(start + 32);
    }
}

/// Copies some rows of a matrix to rows that are `to_pitch` elements apart. The pitch of the source
/// is at least a piece. `gaps`: what is between rows is not read.
///
/// This is for a warp on an SM with few other warps, which do not hide its latency. So the warp
/// loads the next stretch before it stores the current one.
#[inline(always)]
#[track_caller]
pub fn copy_rows<T: Element, const N: usize>(
    (from, matrix, gaps): (&In<T>, &MatrixBatch, bool),
    (to, to_pitch): (&mut Out<T>, usize),
    rows: Range<u32>,
) {
    const EACH: usize = 2;
    let (cols, pitch) = (matrix.cols as usize, matrix.pitch as usize);
    let Range { mut start, mut end } = rows;
    let mut by_elements = |row: u32| {
        let (at, to_row) = (row as usize * pitch, row as usize * to_pitch);
        copy_elements((from, at), (to, to_row), thread::lane_id() as usize, cols);
    };
    if start == 0 {
        by_elements(0);
        start = 1;
    }
    if start < end && end == matrix.rows {
        end -= 1;
        by_elements(end);
    }
    if gaps {
        while start < end {
            let (at, to_row) = (start as usize * pitch, start as usize * to_pitch);
            copy_with_ends::<_, N>((from, at), (to, to_row), cols, 0..cols);
            start += 1;
        }
        return;
    }
    let mut first = 0;
    let mut next = || {
        let (at, to) = (start as usize * pitch, start as usize * to_pitch);
        let stretch =
            (start < end).then_some(Stretch::<N, EACH> { at, to, cols, first: first as usize });
        first += EACH as u32 * 32;
        if first * N as u32 >= matrix.cols {
            (start, first) = (start + 1, 0);
        }
        stretch
    };
    let Some(mut one) = next() else { return };
    let mut pieces = one.read::<_, false>(from);
    // Two stretches alternate. Each has registers of its own: a register with a pending load cannot
    // be moved.
    loop {
        let Some(two) = next() else { return one.write(from, to, pieces) };
        let others = two.read::<_, false>(from);
        one.write(from, to, pieces);
        let Some(three) = next() else { return two.write(from, to, others) };
        (one, pieces) = (three, three.read::<_, false>(from));
        two.write(from, to, others);
    }
}

/// Copies every 32nd element of a row, from `col` to before `end`.
#[inline(always)]
#[track_caller]
fn copy_elements<T: Element>(
    (from, from_row): (&In<T>, usize),
    (to, to_row): (&mut Out<T>, usize),
    mut col: usize,
    end: usize,
) {
    while col < end {
        // No load depends on whether the element exists. So all loads are issued before the first
        // is awaited.
        let read: [T; 4] = core::array::from_fn(|i| from[from_row + (col + 32 * i).min(end - 1)]);
        for i in 0..4 {
            if col + 32 * i < end {
                to[to_row + col + 32 * i] = read[i];
            }
        }
        col += 4 * 32;
    }
}
