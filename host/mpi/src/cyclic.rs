//! Block-cyclic distributions of one dimension: which process has which index, and where.

use std::{iter, ops::Range};

use crate::error::{Error, Result};

/// A block-cyclic distribution: blocks of indices go to the processes in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cyclic {
    /// The number of processes.
    pub(crate) procs: usize,
    /// The process of the first block. `None`: every process has all indices.
    pub(crate) source: Option<usize>,
    /// The indices of the first block.
    pub(crate) first: usize,
    /// The indices of each later block.
    pub(crate) block: usize,
}

impl Cyclic {
    /// Blocks of `block` indices after a first block of `first`, from the process `source` on.
    /// Without a source, every process has all indices.
    ///
    /// # Errors
    /// No process, or more than MPI counts; a source that is none of them; a block without indices.
    pub fn new(procs: usize, source: Option<usize>, first: usize, block: usize) -> Result<Self> {
        let most = i32::MAX as usize;
        for (name, value, limits) in [
            ("procs", procs, [1, most]),
            ("source", source.unwrap_or(0), [0, procs.saturating_sub(1)]),
            ("first", first, [1, usize::MAX]),
            ("block", block, [1, usize::MAX]),
        ] {
            let [least, most] = limits;
            if !(least..=most).contains(&value) {
                return Err(Error::argument(name, value, format!("must be {least} to {most}")));
            }
        }
        Ok(Cyclic { procs, source, first, block })
    }

    /// The process that has an index. `None`: every process has it.
    pub fn owner(&self, index: usize) -> Option<usize> {
        let source = self.source?;
        let block = if index < self.first { 0 } else { 1 + (index - self.first) / self.block };
        Some((source + block % self.procs) % self.procs)
    }

    /// The end of the block that has an index.
    fn end_of_block(&self, index: usize) -> usize {
        let rest = index.checked_sub(self.first);
        let end = rest.map(|rest| (index - rest % self.block).saturating_add(self.block));
        end.unwrap_or(self.first)
    }

    /// How many of the indices below `end` a process has.
    pub fn count(&self, process: usize, end: usize) -> usize {
        let Some(source) = self.source else { return end };
        let turn = (process % self.procs + self.procs - source) % self.procs;
        let Some(rest) = end.checked_sub(self.first) else {
            return if turn == 0 { end } else { 0 };
        };
        // Whole blocks after the first one, the process's turn among them, and the last block.
        let (blocks, last) = (rest / self.block, rest % self.block);
        let turn_of_rest = (turn + self.procs - 1) % self.procs;
        let turn_of_last = blocks % self.procs;
        let whole = blocks / self.procs + usize::from(turn_of_rest < turn_of_last);
        let own_last = if turn_of_rest == turn_of_last { last } else { 0 };
        whole * self.block + own_last + if turn == 0 { self.first } else { 0 }
    }
}

/// A range of a distributed dimension: the rows, or the columns, of a part of a matrix.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub cyclic: Cyclic,
    pub start: usize,
    pub len: usize,
}

impl Span {
    /// All of a dimension.
    pub fn whole(cyclic: &Cyclic, len: usize) -> Self {
        Span { cyclic: cyclic.clone(), start: 0, len }
    }

    /// The process that has an index of the span. `None`: every process has it.
    pub fn owner(&self, index: usize) -> Option<usize> {
        self.cyclic.owner(self.start + index)
    }

    /// The process's indices before the span.
    pub fn before(&self, process: usize) -> usize {
        self.cyclic.count(process, self.start)
    }

    /// How many of the indices of the span a process has.
    pub fn count(&self, process: usize) -> usize {
        self.cyclic.count(process, self.start + self.len) - self.before(process)
    }

    /// The pieces of a range of the span, each of which is in one block.
    pub fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut next = range.start;
        iter::from_fn(move || {
            let start = next;
            next = range.end.min(self.cyclic.end_of_block(self.start + start) - self.start);
            (start < next).then_some(start..next)
        })
    }

    /// Where a process has an index of the span among its own indices of the dimension.
    pub fn place(&self, process: usize, index: usize) -> usize {
        self.cyclic.count(process, self.start + index)
    }
}

/// Runs of places in ascending order, the start and the length of each, with neighbours as one.
pub(crate) fn joined(runs: impl IntoIterator<Item = [usize; 2]>) -> Vec<[usize; 2]> {
    let mut all: Vec<[usize; 2]> = Vec::new();
    for [place, more] in runs {
        match all.last_mut() {
            Some([start, len]) if *start + *len == place => *len += more,
            _ => all.push([place, more]),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_dealing_out_block_after_block() {
        for (procs, source, first, block) in
            [(1, 0, 3, 2), (2, 1, 1, 4), (3, 2, 5, 1), (4, 0, 2, 3), (6, 5, 7, 7)]
        {
            let cyclic = Cyclic { procs, source: Some(source), first, block };
            let (mut own, mut process, mut left) = (vec![0; procs], source, first);
            for index in 0..100 {
                if left == 0 {
                    (process, left) = ((process + 1) % procs, block);
                }
                assert_eq!(cyclic.owner(index), Some(process), "{cyclic:?} {index}");
                for (other, &count) in own.iter().enumerate() {
                    assert_eq!(cyclic.count(other, index), count, "{cyclic:?} {index} {other}");
                }
                own[process] += 1;
                left -= 1;
            }
        }
    }

    #[test]
    fn a_span_has_places_behind_what_is_before_it() {
        let cyclic = Cyclic { procs: 2, source: Some(0), first: 2, block: 3 };
        // Process 0 has 0, 1, 5, 6, 7, and process 1 has 2, 3, 4, 8, 9.
        let span = Span { cyclic, start: 3, len: 6 };
        assert_eq!([0, 1].map(|process| span.before(process)), [2, 1]);
        assert_eq!([0, 1].map(|process| span.count(process)), [3, 3]);
        assert_eq!((span.owner(1), span.place(1, 1)), (Some(1), 2));
        assert_eq!((span.owner(5), span.place(1, 5)), (Some(1), 3));
        assert_eq!(span.pieces(0..6).collect::<Vec<_>>(), [0..2, 2..5, 5..6]);
        assert_eq!(span.pieces(1..2).chain(span.pieces(3..5)).collect::<Vec<_>>(), [1..2, 3..5]);
        assert_eq!(span.pieces(4..4).next(), None);
    }

    #[test]
    fn every_process_has_all_of_what_has_no_source() {
        let cyclic = Cyclic { procs: 3, source: None, first: 2, block: 2 };
        let span = Span { cyclic, start: 4, len: 5 };
        assert_eq!((span.owner(0), span.before(2), span.count(1)), (None, 4, 5));
    }

    #[test]
    fn neighbours_are_one_run() {
        assert_eq!(joined([[3, 1], [4, 2], [9, 2], [12, 1]]), [[3, 3], [9, 2], [12, 1]]);
        assert_eq!(joined([]), [[0; 2]; 0]);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        let max = usize::MAX;
        for (procs, source, first, block, what) in [
            (0, None, 1, 1, "procs = 0: must be 1 to 2147483647"),
            (max, None, 1, 1, "procs = "),
            (3, Some(3), 1, 1, "source = 3: must be 0 to 2"),
            (3, Some(0), 0, 1, "first = 0: must be 1 to "),
            (3, Some(0), 1, 0, "block = 0: must be 1 to "),
        ] {
            let said = Cyclic::new(procs, source, first, block).unwrap_err().to_string();
            assert!(said.starts_with(what), "{said}");
        }
        // No index and no process is too large.
        let cyclic = Cyclic::new(3, Some(2), 1, 1).unwrap();
        assert_eq!((cyclic.owner(max), cyclic.count(max, max)), (Some(2), max / 3));
    }
}
