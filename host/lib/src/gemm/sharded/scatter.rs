//! Product + reduce-scatter: partial products where k is, added where C is.

use std::ops::Range;

use super::{
    build::{Draft, Product, Whole, dense},
    pieces::UNIT,
    plan::{Algorithm, COMPUTE, Memory, OPERANDS, Rect, ShardedPlan, Step, What},
};
use crate::{
    devices::{Block, ShardLayout},
    error::Result,
    gemm::{Plan, Request, plan::Task, select::partials::range_of},
    shape::Shape,
};

impl Whole<'_> {
    /// Each place computes the partial products of its ranges of k. `None` if the whole product has
    /// no partial products, or if a range is in no shard of A and of B.
    pub(super) fn reduce_scatter(&self) -> Result<Option<ShardedPlan>> {
        let (m, n, k) = (self.shape.m(), self.shape.n(), self.shape.k());
        let count = self.choice.partials as usize;
        let splits_k = matches!(self.layouts[..2], [ShardLayout::Cols(_), ShardLayout::Rows(_)]);
        let Product { types: [operands, of_c, _], alpha, request, task, .. } = self.product;
        let reads = operands.sums_for(of_c).map_or(alpha, |sums| sums.nearest(alpha)) != 0.0;
        if count < 2 || !splits_k || !reads || self.classes() > 1 || self.shape.c_len() == 0 {
            return Ok(None);
        }
        let len = range_of(k, count);
        let ranges = (0..count).map(|index| k.min(index * len)..k.min((index + 1) * len));
        let ranges = ranges.collect::<Vec<_>>();
        let owner = |range: &Range<usize>| {
            (0..self.places).find(|&place| {
                let [a, b] = [0, 1].map(|operand| self.block(operand, place));
                a.contains(&Block::new(0..m, range.clone()))
                    && b.contains(&Block::new(range.clone(), 0..n))
            })
        };
        let Some(owners) = ranges.iter().map(owner).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let is_replicated = *self.layouts[2] == ShardLayout::Replicated;
        let parts = match is_replicated {
            true => self.rows_of_places(),
            false => (0..self.places).map(|place| self.block(2, place)).collect(),
        };
        let mut draft = self.draft();
        for place in 0..self.places {
            let own = (0..count).filter(|&index| owners[index] == place).collect::<Vec<_>>();
            let mut travelling = 0;
            // Its own part comes last: meanwhile the others travel.
            for step in 1..=self.places {
                let to = (place + step) % self.places;
                for piece in rows_in_pieces(&parts[to], if to == place { 1 } else { self.places }) {
                    let buffer = 1 + travelling % 2;
                    travelling += usize::from(to != place);
                    self.partial_products(
                        &mut draft,
                        place,
                        (to, &parts[to], &piece),
                        (&own, &ranges),
                        buffer,
                    )?;
                }
            }
        }
        for (place, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let [rows, cols] = part.size();
            draft.scratch[place].sums[0] = count * rows * cols;
            let partials = Rect {
                place,
                memory: Memory::Sums(0),
                start: 0,
                pitch: cols,
                size: [count * rows, cols],
                panel: 0,
            };
            let c = self.shard(2, place, part);
            let shape = Shape::new(rows as u64, cols as u64, k as u64)?;
            let task = task(request(&Request::new(shape, [[k, 1], [cols, 1], c.strides()])))?;
            let plan = Box::new(Plan::of_sum(of_c, count as u32, &task, &self.limits));
            let us = self.link.latency_us + (count * rows * cols) as f64 * 1e-6;
            let what = What::Sum { partials, c, plan };
            draft.last.push(Step { place, lane: COMPUTE, after: Vec::new(), what, us });
        }
        if is_replicated {
            for (place, part) in parts.iter().enumerate() {
                self.send_to_all(&mut draft, place, part);
            }
        }
        Ok(Some(self.plan(Algorithm::ReduceScatter, draft)))
    }

    /// The partial products of a place for some rows of the part of C at `to`, and their way there.
    fn partial_products(
        &self,
        draft: &mut Draft,
        place: usize,
        (to, part, piece): (usize, &Block, &Block),
        (own, ranges): (&[usize], &[Range<usize>]),
        buffer: usize,
    ) -> Result<()> {
        let ([rows, cols], len) = (piece.size(), piece.rows.len() * piece.cols.len());
        let of_part = part.rows.len() * cols;
        for (position, &index) in own.iter().enumerate() {
            let range = &ranges[index];
            let a = self.shard(0, place, &Block::new(piece.rows.clone(), range.clone()));
            let b = self.shard(1, place, &Block::new(range.clone(), piece.cols.clone()));
            let start = index * of_part + (piece.rows.start - part.rows.start) * cols;
            let target = Rect {
                place: to,
                memory: Memory::Sums(0),
                start,
                pitch: cols,
                size: [rows, cols],
                panel: 0,
            };
            let sums = match to == place {
                true => target,
                false => {
                    Rect { place, memory: Memory::Sums(buffer), start: position * len, ..target }
                }
            };
            let Product { types: [of_operands, _, of_sums], partial, .. } = self.product;
            let types = [of_operands, of_sums];
            let request = partial(&dense(types, [a, b], sums)?);
            let (task, on) = (Task::plain(request), (&self.limits, self.target.sms));
            let plan = Plan::new(types, self.kernel, self.choice.operands, [1; 2], task, on)?;
            let us = self.product_us(&request, [1; 2]);
            let at = [piece.rows.start, piece.cols.start];
            let what = What::Multiply { operands: [a, b], c: sums, at, plan: Box::new(plan) };
            draft.steps[place].push(Step { place, lane: COMPUTE, after: Vec::new(), what, us });
            if to != place {
                let sent = &mut draft.scratch[place].sums[buffer];
                *sent = (*sent).max(own.len() * len);
                let bytes = of_sums.bytes();
                draft.steps[place].extend(self.transfer(OPERANDS, [sums, target], bytes));
            }
        }
        Ok(())
    }
}

/// Rows of a part in at least four pieces for all places but one.
fn rows_in_pieces(part: &Block, places: usize) -> Vec<Block> {
    let count = if places == 1 { 1 } else { 4usize.div_ceil(places - 1) };
    let len = (part.rows.len() / count / UNIT).max(1) * UNIT;
    let starts = part.rows.clone().step_by(len);
    let pieces =
        starts.map(|start| Block::new(start..part.rows.end.min(start + len), part.cols.clone()));
    pieces.filter(|piece| !piece.is_empty()).collect()
}
