//! The blocks of a plan in their order, and what is read for them.

use std::ops::Range;

use super::{BlockPlan, Stays, Step};

impl BlockPlan {
    /// Devices that have nothing to do.
    pub(super) fn idle(&self) -> usize {
        (0..self.devices).filter(|&device| self.share(device).is_empty()).count()
    }

    /// Elements of A, B and C that are read in all.
    pub(super) fn count_reads(&self, reads_c: bool) -> [u64; 3] {
        let (m, n, k) = (self.shape.m() as u128, self.shape.n() as u128, self.shape.k() as u128);
        let [rows, cols, _] = self.blocks;
        if rows * cols == 0 {
            return [0; 3];
        }
        // A pass begins with the last two panels of the pass before, which are still on the device.
        let passing = |panels: usize, size: usize, block: usize| {
            let kept = |pass: usize| {
                let last = [0, 1].map(|back| match pass % 2 {
                    0 => panels.checked_sub(1 + back),
                    _ => (back < panels).then_some(back),
                });
                let panel = |panel: usize| range(panel, block, size).len() as u128;
                last.into_iter().flatten().map(panel).sum::<u128>()
            };
            let of_device = |device: usize| {
                let passes = self.share(device).len() / panels;
                let turns = |parity: usize| (passes.saturating_sub(1 + parity)).div_ceil(2) as u128;
                passes as u128 * size as u128 - turns(0) * kept(0) - turns(1) * kept(1)
            };
            (0..self.devices).map(of_device).sum::<u128>()
        };
        let [a, b] = match self.stays {
            Stays::A => [m * k, k * passing(cols, self.shape.n(), self.block[1])],
            Stays::B => [k * passing(rows, self.shape.m(), self.block[0]), k * n],
            Stays::Neither => [m * k * cols as u128, k * n * rows as u128],
        };
        // Saturating: sizes may be larger than those of any file.
        [a, b, if reads_c { m * n } else { 0 }]
            .map(|reads| u64::try_from(reads).unwrap_or(u64::MAX))
    }

    /// The number of panels of the operand that stays, and of the other one.
    fn panels(&self) -> [usize; 2] {
        let [rows, cols, _] = self.blocks;
        if self.stays == Stays::B { [cols, rows] } else { [rows, cols] }
    }

    /// The blocks of C that a device computes, as they are numbered in [`steps`](Self::steps): of
    /// the panels that stay there, or, if none does, any. Empty for a device that there is not.
    pub fn share(&self, device: usize) -> Range<usize> {
        let [outer, inner] = self.panels();
        let whole = if self.stays == Stays::Neither { 1 } else { inner };
        let units = outer * inner / whole.max(1);
        let bound = |device: usize| {
            let share = device.min(self.devices) as u128 * units as u128 / self.devices as u128;
            share as usize * whole
        };
        bound(device)..bound(device.saturating_add(1))
    }

    /// The blocks in the order in which they are multiplied, those of one device after those of the
    /// other. All blocks along k of one block of C follow each other.
    pub fn steps(&self) -> impl Iterator<Item = Step> + use<> {
        let plan = *self;
        (0..plan.devices).flat_map(move |device| plan.steps_of(device))
    }

    /// The blocks that a device multiplies, in order. None of a device that there is not.
    pub fn steps_of(&self, device: usize) -> impl Iterator<Item = Step> + use<> {
        let BlockPlan { blocks: [.., depths], stays, .. } = *self;
        let (share, [_, inner]) = (self.share(device), self.panels());
        // Devices have whole passes, but where k is cut.
        let first = if stays == Stays::Neither { 0 } else { share.start / inner.max(1) };
        // With k = 0 there is one step for each block of C, which scales it.
        let tiles = share.map(move |tile| {
            let (outer, step) = (tile / inner, tile % inner);
            // Back and forth: a pass begins with the panel with which the one before ended.
            let inner = if (outer - first) % 2 == 0 { step } else { inner - 1 - step };
            if stays == Stays::B { (inner, outer) } else { (outer, inner) }
        });
        tiles.flat_map(move |(row, col)| {
            (0..depths.max(1)).map(move |depth| Step { row, col, depth })
        })
    }

    /// The rows of A and C of a block.
    pub fn rows(&self, step: Step) -> Range<usize> {
        range(step.row, self.block[0], self.shape.m())
    }

    /// The columns of B and C of a block.
    pub fn cols(&self, step: Step) -> Range<usize> {
        range(step.col, self.block[1], self.shape.n())
    }

    /// The columns of A and rows of B of a block.
    pub fn depth(&self, step: Step) -> Range<usize> {
        range(step.depth, self.block[2], self.shape.k())
    }
}

fn range(index: usize, block: usize, size: usize) -> Range<usize> {
    // A caller's step may be none of the plan's.
    let start = index.saturating_mul(block).min(size);
    start..start.saturating_add(block).min(size)
}
