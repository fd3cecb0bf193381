//! How panels of an operand come to the ranks: by broadcasts, or each piece from its owner.

use std::ops::Range;

use mpi::{Rank, traits::Equivalence};

use crate::{
    cyclic::{Span, joined},
    error::Result,
    grid::Grid,
    messages::{Messages, Part, int},
};

/// A or B: a part of a distributed matrix, and this rank's elements of the matrix.
pub(crate) struct Operand<T> {
    /// The dimension that it shares with C: m of A, n of B.
    pub outer: Span,
    /// The dimension k.
    pub inner: Span,
    /// Whether the rows of the stored matrix are the outer dimension.
    pub has_outer_rows: bool,
    /// This rank's elements, column-major. MPI reads them.
    pub start: *const T,
    /// From a column to the next, in elements.
    pub leading: usize,
}

/// Moves panels of an operand: for a range of k, to each rank, what its part of C needs.
pub(crate) struct Exchange<'g, T> {
    grid: &'g Grid,
    operand: Operand<T>,
    /// The dimension of the grid, and of C, that is the operand's outer one.
    dimension: usize,
    /// C's rows or columns.
    wanted: Span,
    /// Whether each row (of B: column) of the grid has what its ranks need. Then panels are
    /// broadcast in it.
    pub is_broadcast: bool,
    /// For each of `ranks`, the outer indices that it gets from here: where this rank has them.
    sent: Vec<Vec<[usize; 2]>>,
    /// For each of `ranks`, the outer indices that come from there: where the panel has them.
    received: Vec<Vec<[usize; 2]>>,
}

impl<'g, T: Equivalence> Exchange<'g, T> {
    /// The exchange of A (dimension 0) or B (1) for a C with these rows or columns.
    ///
    /// # Safety
    /// 1. The operand's memory has the elements that the spans and the grid say, at its places.
    /// 2. They can be read, and nothing writes them, as long as this is used.
    pub unsafe fn new(grid: &'g Grid, dimension: usize, operand: Operand<T>, wanted: Span) -> Self {
        let is_broadcast = operand.has_outer_rows == (dimension == 0)
            && pieces(&operand.outer, &wanted).all(|piece| {
                let owner = operand.outer.owner(piece.start);
                owner.is_none() || owner == wanted.owner(piece.start)
            });
        let (sent, received) = (Vec::new(), Vec::new());
        let mut exchange =
            Exchange { grid, operand, dimension, wanted, is_broadcast, sent, received };
        exchange.sent = exchange.ranks().map(|to| exchange.outer_sent(to)).collect();
        exchange.received = exchange.ranks().map(|from| exchange.outer_received(from)).collect();
        exchange
    }

    /// The ranks with which this one exchanges pieces. With broadcasts it is itself, and all ranks
    /// of its line have the same outer indices.
    fn ranks(&self) -> Range<usize> {
        let this = self.grid.rank_at(self.grid.own);
        if self.is_broadcast { this..this + 1 } else { 0..self.grid.ranks() }
    }

    /// The place of a rank's outer indices.
    fn at(&self, rank: usize) -> usize {
        if self.is_broadcast { 0 } else { rank }
    }

    /// Whether MPI counts this rank's rows and columns, of the matrix and of panels. Then `begin`
    /// does not refuse them.
    ///
    /// # Errors
    /// More than MPI counts.
    pub fn check(&self) -> Result<()> {
        let Operand { outer, inner, has_outer_rows, .. } = &self.operand;
        let spans = if *has_outer_rows { [outer, inner] } else { [inner, outer] };
        check(spans, self.grid.own, self.outer())
    }

    /// The most elements that a rank's panel has for an index of k.
    pub fn most_outer(&self) -> usize {
        let counts = (0..self.grid.size[self.dimension]).map(|process| self.wanted.count(process));
        counts.max().unwrap_or(0)
    }

    /// The elements that this rank's panel has for an index of k.
    pub fn outer(&self) -> usize {
        self.wanted.count(self.grid.own[self.dimension])
    }

    /// The strides of a panel in memory, outer and inner, if it is at most `width` wide. Its
    /// elements are in the order of the operand's.
    pub fn strides(&self, width: usize) -> [usize; 2] {
        if self.operand.has_outer_rows { [1, self.outer()] } else { [width, 1] }
    }

    /// Begins to move a panel to `target`, on all ranks. `width`: of the widest panel.
    ///
    /// # Safety
    /// 1. `target` has room for this rank's panel, and nothing else uses it until `messages` has
    ///    waited.
    pub unsafe fn begin(
        &self,
        panel: &Range<usize>,
        width: usize,
        target: *mut T,
        messages: &mut Messages,
    ) -> Result<()> {
        let Grid { all, lines, own, .. } = self.grid;
        let this = self.grid.rank_at(*own);
        for rank in self.ranks() {
            let (there, here) = (self.there(rank, panel, width, target), self.here(rank, panel));
            let (rank, tag) = (rank as Rank, self.dimension as i32);
            if !there.is_empty() {
                // SAFETY: the panel's memory is the caller's. No two ranks have an element of it.
                unsafe { messages.receive(&there, rank, tag, all)? };
            }
            if !here.is_empty() {
                // SAFETY: the operand's memory, for which the caller of `new` answers.
                unsafe { messages.send(&here, rank, tag, all)? };
            }
        }
        if !self.is_broadcast || self.operand.inner.cyclic.source.is_none() {
            return Ok(());
        }
        let across = 1 - self.dimension;
        for root in (0..self.grid.size[across]).filter(|_| self.grid.size[across] > 1) {
            let mut place = *own;
            place[across] = root;
            let part = match self.grid.rank_at(place) {
                rank if rank == this => self.here(this, panel),
                rank => self.there(rank, panel, width, target),
            };
            if !part.is_empty() {
                // SAFETY: as above, for one or the other.
                unsafe { messages.broadcast(&part, root as Rank, &lines[self.dimension])? };
            }
        }
        Ok(())
    }

    /// What this rank sends to another, where it is here.
    fn here(&self, to: usize, panel: &Range<usize>) -> Part<T> {
        let Operand { inner, start, leading, has_outer_rows, .. } = &self.operand;
        let (this, axis) = (self.grid.own, usize::from(*has_outer_rows));
        let to_place = self.grid.place(to)[axis];
        let sent = &self.sent[self.at(to)];
        let inner_runs = match sent.is_empty() {
            true => Vec::new(),
            false => {
                let own = inner.pieces(panel.clone());
                let own = own.filter(|piece| has(inner, piece.start, this[axis], to_place));
                joined(own.map(|piece| [inner.place(this[axis], piece.start), piece.len()]))
            }
        };
        part(start.cast_mut(), *leading, *has_outer_rows, sent.clone(), inner_runs)
    }

    /// What this rank receives from another, where the panel has it.
    fn there(&self, from: usize, panel: &Range<usize>, width: usize, target: *mut T) -> Part<T> {
        let Operand { inner, has_outer_rows, .. } = &self.operand;
        let axis = usize::from(*has_outer_rows);
        let (from_place, this) = (self.grid.place(from)[axis], self.grid.own[axis]);
        let its = inner.pieces(panel.clone());
        let its = its.filter(|piece| has(inner, piece.start, from_place, this));
        let inner_runs = joined(its.map(|piece| [piece.start - panel.start, piece.len()]));
        let [outer_stride, inner_stride] = self.strides(width);
        let leading = outer_stride.max(inner_stride);
        let received = self.received[self.at(from)].clone();
        part(target, leading, *has_outer_rows, received, inner_runs)
    }

    fn outer_sent(&self, to: usize) -> Vec<[usize; 2]> {
        let outer = &self.operand.outer;
        let (this, axis) = (self.grid.own, usize::from(!self.operand.has_outer_rows));
        let to = self.grid.place(to);
        let own = pieces(outer, &self.wanted).filter(|piece| {
            has(&self.wanted, piece.start, to[self.dimension], to[self.dimension])
                && has(outer, piece.start, this[axis], to[axis])
        });
        joined(own.map(|piece| [outer.place(this[axis], piece.start), piece.len()]))
    }

    fn outer_received(&self, from: usize) -> Vec<[usize; 2]> {
        let outer = &self.operand.outer;
        let (this, axis) = (self.grid.own, usize::from(!self.operand.has_outer_rows));
        let (from, own) = (self.grid.place(from), this[self.dimension]);
        let its = pieces(outer, &self.wanted).filter(|piece| {
            has(&self.wanted, piece.start, own, own)
                && has(outer, piece.start, from[axis], this[axis])
        });
        let before = self.wanted.before(own);
        joined(its.map(|piece| [self.wanted.place(own, piece.start) - before, piece.len()]))
    }
}

/// The pieces of two spans of one length, each of which is in one block of either.
fn pieces<'s>(one: &'s Span, other: &'s Span) -> impl Iterator<Item = Range<usize>> {
    one.pieces(0..one.len).flat_map(|piece| other.pieces(piece))
}

/// Whether MPI counts a rank's rows and columns up to the end of these spans, and those of panels.
fn check(spans: [&Span; 2], own: [usize; 2], outer: usize) -> Result<()> {
    let ends = [0, 1].map(|side| spans[side].place(own[side], spans[side].len));
    ends.into_iter().chain([outer]).try_for_each(|end| int("rows or columns", end).map(|_| ()))
}

/// Whether an index comes to a process from another: from its owner or, if all have it, from the
/// process itself.
fn has(span: &Span, index: usize, from: usize, to: usize) -> bool {
    from == span.owner(index).unwrap_or(to)
}

fn part<T>(
    start: *mut T,
    leading: usize,
    has_outer_rows: bool,
    outer: Vec<[usize; 2]>,
    inner: Vec<[usize; 2]>,
) -> Part<T> {
    let (rows, cols) = if has_outer_rows { (outer, inner) } else { (inner, outer) };
    Part { start, leading, rows, cols }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cyclic::Cyclic;

    #[test]
    fn rows_and_columns_that_mpi_does_not_count_are_refused() {
        let most = i32::MAX as usize;
        let span = |len| Span::whole(&Cyclic::new(2, Some(0), 8, 8).unwrap(), len);
        let [few, half, all] = [5, most, 2 * most + 1].map(span);
        assert!(check([&half, &all], [1, 1], most).is_ok());
        for (spans, own, outer) in
            [([&all, &few], [0, 0], 5), ([&few, &all], [1, 0], 5), ([&few, &few], [1, 1], most + 1)]
        {
            let said = check(spans, own, outer).unwrap_err().to_string();
            assert!(said.ends_with("of a rank are at most 2147483647"), "{said}");
        }
    }
}
