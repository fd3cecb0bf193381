//! What is copied to the device for each step, and where to: the same for whoever reads it and whoever takes it.

use std::ops::Range;

use super::plan::{BlockPlan, Stays, Step};

/// One of A and B, or C as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    A,
    B,
    C,
}

/// A block to be copied to a place on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) operand: Operand,
    /// Of A's or B's places; of C's, whichever is free.
    pub(super) place: usize,
    pub(super) rows: Range<usize>,
    pub(super) cols: Range<usize>,
}

/// A step, the places of its blocks of A and B, and what is copied for it before.
#[derive(Clone, Debug)]
pub(super) struct Scheduled {
    pub(super) step: Step,
    pub(super) a: usize,
    pub(super) b: usize,
    /// Is it the first of its tile of C, the last?
    pub(super) first: bool,
    pub(super) last: bool,
    pub(super) loads: Vec<Load>,
}

/// All steps.
pub(super) fn schedule(plan: &BlockPlan, reads_c: bool) -> impl Iterator<Item = Scheduled> + use<> {
    let plan = *plan;
    let mut a = Places::new(plan.places()[0]);
    let mut b = Places::new(plan.places()[1]);
    plan.steps().map(move |step| {
        let (rows, cols, depth) = (plan.rows(step), plan.cols(step), plan.depth(step));
        let mut loads = Vec::new();
        // Where k is cut, nothing is kept: the next time that a block is needed, others have been there.
        let keeps = plan.stays() != Stays::Neither;
        let first = step.depth == 0;
        let a_place = a.find((step.row, step.depth), keeps, |place| {
            let (rows, cols) = (rows.clone(), depth.clone());
            loads.push(Load { operand: Operand::A, place, rows, cols });
        });
        let b_place = b.find((step.depth, step.col), keeps, |place| {
            let (rows, cols) = (depth.clone(), cols.clone());
            loads.push(Load { operand: Operand::B, place, rows, cols });
        });
        if first && reads_c {
            loads.push(Load { operand: Operand::C, place: 0, rows, cols });
        }
        let last = step.depth + 1 >= plan.blocks()[2];
        Scheduled { step, a: a_place, b: b_place, first, last, loads }
    })
}

/// What is at an operand's places.
struct Places {
    /// The blocks, and when each was last used.
    blocks: Vec<(Option<(usize, usize)>, u64)>,
    now: u64,
}

impl Places {
    fn new(count: usize) -> Self {
        Places { blocks: vec![(None, 0); count], now: 0 }
    }

    /// The place of a block. If it is not there yet, it takes the place that was not used for longest, and is loaded.
    fn find(&mut self, block: (usize, usize), keeps: bool, mut load: impl FnMut(usize)) -> usize {
        self.now += 1;
        let there = self.blocks.iter().position(|&(there, _)| keeps && there == Some(block));
        let oldest = || (0..self.blocks.len()).min_by_key(|&place| self.blocks[place].1);
        // Of an operand that is not read there are no places.
        let Some(place) = there.or_else(oldest) else { return 0 };
        if there.is_none() {
            load(place);
        }
        self.blocks[place] = (Some(block), self.now);
        place
    }
}

/// The parts of a block that are copied at a time: whole runs, as many as fit into `chunk` elements, or a part of one
/// where not even one fits. `outer` and `inner` are its runs and the elements of each. Each with the number of elements
/// before it.
pub(super) fn chunks(
    outer: Range<usize>,
    inner: Range<usize>,
    chunk: usize,
) -> impl Iterator<Item = (Range<usize>, Range<usize>, usize)> {
    let run = inner.len();
    let runs = (chunk / run.max(1)).max(1);
    let part = chunk.min(run).max(1);
    let rows = outer.clone().step_by(runs).filter(move |_| run > 0);
    rows.flat_map(move |first| {
        let runs = first..(first + runs).min(outer.end);
        let (inner, outer) = (inner.clone(), outer.start);
        inner.clone().step_by(part).map(move |start| {
            let before = (runs.start - outer) * run + (start - inner.start);
            (runs.clone(), start..(start + part).min(inner.end), before)
        })
    })
}
