//! Rows that begin anywhere, copied by a warp to where they begin at multiples of sixteen bytes.
//!
//! * **A thread** writes sixteen bytes of a row at once. Where a row begins anywhere, these lie in two such *pieces* of what is
//!   read: its own, and the one of the next lane, which hands it over ([`warp::shuffle`]). So no access is of fewer bytes,
//!   and every piece is read once.
//! * **A warp** copies a [`Stretch`] of a row: each thread has begun all of its reads before it waits for one, and one more brings
//!   the piece behind the last.
//! * **At the ends of what is read**, where whole pieces may reach beyond it, a row is copied element by element.

use core::ops::Range;

use super::{
    device::*,
    unaligned_vector::{Piece, shifted},
};
use crate::params::MatrixBatch;

/// What a warp copies of a row at a time: `EACH` pieces a lane, of `N` elements, those of the warp side by side.
#[derive(Clone, Copy)]
struct Stretch<const N: usize, const EACH: usize> {
    /// Where the row begins.
    at: usize,
    /// And its copy.
    to: usize,
    /// Elements of the row.
    cols: usize,
    /// The first piece.
    first: usize,
}

/// What a lane has read: its own pieces, and the one behind the warp's last.
type Pieces<const EACH: usize> = ([Piece; EACH], Piece);

impl<const N: usize, const EACH: usize> Stretch<N, EACH> {
    /// Elements that the row begins behind its first piece.
    #[inline(always)]
    fn shift<T: Element>(&self, from: &In<T>) -> usize {
        (from.misalignment::<16>() + self.at) % N
    }

    #[inline(always)]
    #[track_caller]
    fn read<T: Element>(&self, from: &In<T>) -> Pieces<EACH> {
        let shift = self.shift(from);
        let (lane, last) = (thread::lane_id() as usize, (shift + self.cols - 1) / N);
        // Behind the row's last piece that one is read again, so that no read depends on whether there is one.
        let read =
            |number: usize| to_words::<T, N>(from.load128(self.at - shift + number.min(last) * N));
        let own = core::array::from_fn(|i| read(self.first + 32 * i + lane));
        (own, read(self.first + 32 * EACH))
    }

    #[inline(always)]
    #[track_caller]
    fn write<T: Element>(&self, from: &In<T>, to: &mut Out<T>, (own, behind): Pieces<EACH>) {
        let (shift, lane) = (self.shift(from), thread::lane_id() as usize);
        for i in 0..EACH {
            // The last lane's next piece is the first one's of the next 512 bytes.
            let further = if i + 1 < EACH { own[i + 1] } else { behind };
            let handed = if lane == 0 { further } else { own[i] };
            let next = handed.map(|word| warp::shuffle(warp::ALL, word, lane as u32 + 1));
            let col = (self.first + 32 * i + lane) * N;
            if col < self.cols {
                // Rows of the copy are whole pieces: at the end of one lies what is behind it in the operand.
                let piece = shifted(own[i], next, shift * size_of::<T>());
                to.store128::<N>(self.to + col, from_words::<T, N>(piece));
            }
        }
    }
}

/// Copies `EACH` pieces a lane of a row of `cols` elements, from the `first`th piece on. The view ends after `len` elements.
#[inline(always)]
#[track_caller]
pub fn copy_stretch<T: Element, const N: usize, const EACH: usize>(
    (from, at): (&In<T>, usize),
    (to, to_row): (&mut Out<T>, usize),
    cols: usize,
    len: usize,
    first: usize,
) {
    if at < N || at + cols + N > len {
        let lane = thread::lane_id() as usize;
        let end = cols.min((first + EACH * 32) * N);
        copy_elements((from, at), (to, to_row), first * N + lane, end);
        return;
    }
    let stretch = Stretch::<N, EACH> { at, to: to_row, cols, first };
    let pieces = stretch.read(from);
    stretch.write(from, to, pieces);
}

/// Copies some rows of a matrix, which begin a piece or more apart, to where they are `to_pitch` elements apart: by a warp that has few
/// others beside it to read while it writes. So it has begun to read the next stretch before it writes one.
#[inline(always)]
#[track_caller]
pub fn copy_rows<T: Element, const N: usize>(
    (from, matrix): (&In<T>, &MatrixBatch),
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
    let mut pieces = one.read(from);
    // Two in turn, each with registers of its own: what is still being read cannot be moved to others.
    loop {
        let Some(two) = next() else { return one.write(from, to, pieces) };
        let others = two.read(from);
        one.write(from, to, pieces);
        let Some(three) = next() else { return two.write(from, to, others) };
        (one, pieces) = (three, three.read(from));
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
        // No read depends on whether there is an element, so that all are begun before one is waited for.
        let read: [T; 4] = core::array::from_fn(|i| from[from_row + (col + 32 * i).min(end - 1)]);
        for i in 0..4 {
            if col + 32 * i < end {
                to[to_row + col + 32 * i] = read[i];
            }
        }
        col += 4 * 32;
    }
}
