//! Block-cyclic distributions of one dimension: which process has which index, and where.

/// A block-cyclic distribution: blocks of indices go to the processes in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cyclic {
    /// The number of processes.
    pub procs: usize,
    /// The process of the first block. `None`: every process has all indices.
    pub source: Option<usize>,
    /// The indices of the first block.
    pub first: usize,
    /// The indices of each later block.
    pub block: usize,
}

impl Cyclic {
    /// Blocks of one size over processes, from process 0 on.
    pub fn new(procs: usize, block: usize) -> Self {
        Cyclic { procs, source: Some(0), first: block, block }
    }

    /// The process that has an index. `None`: every process has it.
    pub fn owner(&self, index: usize) -> Option<usize> {
        let source = self.source?;
        let block = if index < self.first { 0 } else { 1 + (index - self.first) / self.block };
        Some((source + block) % self.procs)
    }

    /// How many of the indices below `end` a process has.
    pub fn count(&self, process: usize, end: usize) -> usize {
        let Some(source) = self.source else { return end };
        let turn = (process + self.procs - source) % self.procs;
        let Some(rest) = end.checked_sub(self.first) else {
            return if turn == 0 { end } else { 0 };
        };
        // Whole blocks after the first one, the process's turn among them, and the last block.
        let (blocks, last) = (rest / self.block, rest % self.block);
        let turn_of_rest = (turn + self.procs - 1) % self.procs;
        let whole = (blocks + self.procs - 1 - turn_of_rest) / self.procs;
        let own_last = if blocks % self.procs == turn_of_rest { last } else { 0 };
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

    /// Where a process has an index of the span among its own indices of the dimension.
    pub fn place(&self, process: usize, index: usize) -> usize {
        self.cyclic.count(process, self.start + index)
    }
}

/// Places in ascending order, as runs: the start and the length of each.
pub(crate) fn runs(places: impl IntoIterator<Item = usize>) -> Vec<[usize; 2]> {
    let mut runs: Vec<[usize; 2]> = Vec::new();
    for place in places {
        match runs.last_mut() {
            Some([start, len]) if *start + *len == place => *len += 1,
            _ => runs.push([place, 1]),
        }
    }
    runs
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
    }

    #[test]
    fn every_process_has_all_of_what_has_no_source() {
        let cyclic = Cyclic { procs: 3, source: None, first: 2, block: 2 };
        let span = Span { cyclic, start: 4, len: 5 };
        assert_eq!((span.owner(0), span.before(2), span.count(1)), (None, 4, 5));
    }

    #[test]
    fn neighbours_are_one_run() {
        assert_eq!(runs([3, 4, 5, 9, 10, 12]), [[3, 3], [9, 2], [12, 1]]);
        assert_eq!(runs([]), [[0; 2]; 0]);
    }
}
