//! The schedule: the blocks that are copied to the device for each step. Readers and the caller's
//! thread follow the same one.

use std::ops::Range;

use super::plan::{BlockPlan, Stays, Step};

/// A, B or the old C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    A,
    B,
    C,
}

/// A block to be copied to a buffer on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) operand: Operand,
    /// The index of A's or B's buffer. For C any free buffer is used.
    pub(super) place: usize,
    pub(super) rows: Range<usize>,
    pub(super) cols: Range<usize>,
}

/// A step, the buffers of its blocks of A and B, and the copies before it.
#[derive(Clone, Debug)]
pub(super) struct Scheduled {
    pub(super) step: Step,
    pub(super) a: usize,
    pub(super) b: usize,
    /// Whether it is the first, and the last, of its block of C.
    pub(super) first: bool,
    pub(super) last: bool,
    pub(super) loads: Vec<Load>,
}

/// All steps of a device in order.
pub(super) fn schedule(
    plan: &BlockPlan,
    device: usize,
    reads_c: bool,
) -> impl Iterator<Item = Scheduled> + use<> {
    let plan = *plan;
    let mut a = Places::new(plan.places()[0]);
    let mut b = Places::new(plan.places()[1]);
    plan.steps_of(device).map(move |step| {
        let (rows, cols, depth) = (plan.rows(step), plan.cols(step), plan.depth(step));
        let mut loads = Vec::new();
        // If k is split no block is kept: before it is needed again, its buffer is used for others.
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

/// The blocks in an operand's buffers.
struct Places {
    /// The block in each buffer, and the time of its last use.
    blocks: Vec<(Option<(usize, usize)>, u64)>,
    now: u64,
}

impl Places {
    fn new(count: usize) -> Self {
        Places { blocks: vec![(None, 0); count], now: 0 }
    }

    /// The buffer of a block. A block that is in none is loaded into the least recently used one.
    fn find(&mut self, block: (usize, usize), keeps: bool, mut load: impl FnMut(usize)) -> usize {
        self.now += 1;
        let there = self.blocks.iter().position(|&(there, _)| keeps && there == Some(block));
        let oldest = || (0..self.blocks.len()).min_by_key(|&place| self.blocks[place].1);
        // An operand that is not read has no buffers.
        let Some(place) = there.or_else(oldest) else { return 0 };
        if there.is_none() {
            load(place);
        }
        self.blocks[place] = (Some(block), self.now);
        place
    }
}

/// Splits a block into chunks of at most `chunk` elements: whole runs, or parts of one run.
/// `outer`: the runs. `inner`: the elements of each. A chunk is an outer range, an inner range, and
/// the number of elements before it.
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
