//! The steps of a product over several places.

use gpu::registry::Type;
use simt::{Limits, types::Typed};

use super::{
    order::order,
    pieces::{PANELS, Piece, pieces},
    plan::{
        Algorithm, COMPUTE, Memory, OPERANDS, RESULTS, Rect, Scratch, ShardedPlan, ShardedScalar,
        Step, Sums, What,
    },
    predict::{Link, simulate},
};
use crate::{
    devices::{Block, Devices, ShardLayout, offset, pitch_of, sources},
    error::{Error, Result},
    gemm::{
        Choice, Gemm, Output, Plan, Request, Target,
        operands::check_scales,
        plan::Task,
        scalar::Kernel,
        select::{choose_cached, choose_kernel},
    },
    shape::Shape,
};

/// The types and the settings of a product.
pub(super) struct Product<'p> {
    /// Of A and B, of C, and of the sums.
    pub(super) types: [Type; 3],
    pub(super) alpha: f64,
    pub(super) beta: f64,
    /// What scales of A and B are of.
    pub(super) scales: u32,
    /// The request with the product's settings, and with those of its partial products.
    pub(super) request: &'p dyn Fn(&Request) -> Request,
    pub(super) partial: &'p dyn Fn(&Request) -> Request,
    pub(super) task: &'p dyn Fn(Request) -> Result<Task>,
    pub(super) choose: Choose,
}

/// Selects the kernel of a request.
type Choose = fn(&Request, &Target, Option<Kernel>) -> Result<(Kernel, Choice)>;

/// What all plans of a product share.
pub(super) struct Whole<'p> {
    pub(super) product: Product<'p>,
    pub(super) kernel: Kernel,
    pub(super) choice: Choice,
    pub(super) shape: Shape,
    pub(super) layouts: [&'p ShardLayout; 3],
    pub(super) places: usize,
    pub(super) target: Target,
    pub(super) limits: Limits,
    pub(super) link: Link,
    /// Panels of an operand that travels, at least. 1: all of it comes before the product.
    pub(super) panels: usize,
}

/// What is planned for: places of one kind.
pub(super) struct Places {
    pub(super) count: usize,
    pub(super) target: Target,
    pub(super) limits: Limits,
    pub(super) link: Link,
}

impl Places {
    pub(super) fn of(devices: &Devices) -> Self {
        let (device, link) = (devices.at(0), Link::of(devices));
        let (target, limits) = (Target::of(device), device.limits());
        Places { count: devices.len(), target, limits, link }
    }
}

/// Steps that are being planned, of each place in its order.
pub(super) struct Draft {
    pub(super) steps: Vec<Vec<Step>>,
    /// Steps after all of those.
    pub(super) last: Vec<Step>,
    pub(super) scratch: Vec<Scratch>,
    /// Panels so far.
    pub(super) panels: usize,
}

/// All plans, by their predicted times.
pub(super) fn all<T, O>(
    gemm: &Gemm<T, O>,
    places: Places,
    shape: Shape,
    layouts: [&ShardLayout; 3],
) -> Result<Vec<ShardedPlan>>
where
    T: ShardedScalar<O>,
    O: Output,
{
    let sizes = [[shape.m(), shape.k()], [shape.k(), shape.n()], [shape.m(), shape.n()]];
    let names = ["A.layout", "B.layout", "C.layout"];
    for ((name, layout), size) in names.into_iter().zip(layouts).zip(sizes) {
        layout.check(name, size, places.count)?;
    }
    let refuse = |what: &str, value: &str| {
        Err(Error::argument(what, value, "must be none over several devices"))
    };
    if gemm.bias.is_some() {
        return refuse("bias", "a vector");
    }
    if gemm.prepared.iter().any(Option::is_some) {
        return refuse("prepared", "a matrix");
    }
    if gemm.tuned.is_some() {
        return refuse("tuned", "a cache");
    }
    if gemm.compute.is_emulated() {
        let limit = "must be native or tf32 over several devices: bits of emulated sums depend on the part of C";
        return Err(Error::argument("compute", format!("{:?}", gemm.compute), limit));
    }
    let Places { count: places, target, limits, link } = places;
    let request = gemm.request(&Request::dense(shape));
    request.check()?;
    check_scales(gemm, &request)?;
    let (kernel, choice) = choose_kernel::<T, O>(&request, &target, gemm.kernel)?;
    let panels = PANELS[0];
    let partial = Gemm::<T, Sums<T, O>> { compute: gemm.compute, ..Gemm::of_types() };
    let product = Product {
        types: [T::TYPE, O::TYPE, Sums::<T, O>::TYPE],
        alpha: gemm.alpha,
        beta: gemm.beta,
        scales: request.scales,
        request: &|request| gemm.request(request),
        partial: &|request| partial.request(request),
        task: &|request| Task::new(gemm, request, [0; 3], false),
        choose: choose_cached::<T, O>,
    };
    Whole { product, kernel, choice, shape, layouts, places, target, limits, link, panels }.plans()
}

impl Whole<'_> {
    fn plans(mut self) -> Result<Vec<ShardedPlan>> {
        self.check_starts()?;
        // A lesson's kernel takes dense matrices: all of them at one place.
        if self.kernel.product.is_lesson() && self.places > 1 {
            self.panels = 1;
            return Ok(vec![self.one_place()?]);
        }
        let mut plans = vec![self.all_gather(Algorithm::AllGather)?];
        if plans[0].transfers() > 0 {
            for panels in &PANELS[1..] {
                self.panels = *panels;
                plans.push(self.all_gather(Algorithm::AllGather)?);
            }
            self.panels = 1;
            plans.push(self.all_gather(Algorithm::GatherFirst)?);
            self.panels = PANELS[0];
        }
        if *self.layouts[2] == ShardLayout::Replicated && self.places > 1 {
            plans.push(self.split_rows()?);
        }
        plans.extend(self.reduce_scatter()?);
        if self.places > 1 {
            self.panels = 1;
            plans.push(self.one_place()?);
        }
        plans.sort_by(|one, other| one.predicted_us.total_cmp(&other.predicted_us));
        Ok(plans)
    }

    pub(super) fn classes(&self) -> usize {
        self.kernel.product.variant.access.classes()
    }

    /// Rows and columns of A, B or C.
    pub(super) fn size(&self, operand: usize) -> [usize; 2] {
        let (m, n, k) = (self.shape.m(), self.shape.n(), self.shape.k());
        [[m, k], [k, n], [m, n]][operand]
    }

    /// Bytes of an element of A, B or C.
    pub(super) fn bytes(&self, operand: usize) -> usize {
        let [operands, c, _] = self.product.types;
        [operands, operands, c][operand].bytes()
    }

    pub(super) fn block(&self, operand: usize, place: usize) -> Block {
        self.layouts[operand].block(place, self.size(operand))
    }

    /// A part of the shard of A, B or C.
    pub(super) fn shard(&self, operand: usize, place: usize, part: &Block) -> Rect {
        let block = self.block(operand, place);
        let (cols, whole) = (block.cols.len(), self.size(operand)[1]);
        let pitch = pitch_of(self.bytes(operand), cols, whole);
        let memory = [Memory::A, Memory::B, Memory::C][operand];
        let start = if part.is_empty() { 0 } else { offset(&block, pitch, part) };
        Rect { place, memory, start, pitch, size: part.size(), panel: 0 }
    }

    pub(super) fn draft(&self) -> Draft {
        let steps = (0..self.places).map(|_| Vec::new()).collect();
        Draft { steps, last: Vec::new(), scratch: vec![Scratch::default(); self.places], panels: 0 }
    }

    /// Each place computes its part of C.
    fn all_gather(&self, algorithm: Algorithm) -> Result<ShardedPlan> {
        let mut draft = self.draft();
        for place in 0..self.places {
            let block = self.block(2, place);
            let c = self.shard(2, place, &block);
            self.compute(&mut draft, place, &block, c)?;
        }
        Ok(self.plan(algorithm, draft))
    }

    /// Each place computes some rows of a replicated C, and the others copy them.
    fn split_rows(&self) -> Result<ShardedPlan> {
        let mut draft = self.draft();
        for (place, block) in self.rows_of_places().into_iter().enumerate() {
            let c = self.shard(2, place, &block);
            self.compute(&mut draft, place, &block, c)?;
            self.send_to_all(&mut draft, place, &block);
        }
        Ok(self.plan(Algorithm::SplitRows, draft))
    }

    /// Rows of C, in nearly equal parts.
    pub(super) fn rows_of_places(&self) -> Vec<Block> {
        let rows = ShardLayout::rows(self.shape.m(), self.places);
        (0..self.places).map(|place| rows.block(place, self.size(2))).collect()
    }

    /// All other places copy a part of a replicated C.
    pub(super) fn send_to_all(&self, draft: &mut Draft, from: usize, part: &Block) {
        for step in 1..self.places {
            let to = (from + step) % self.places;
            let rects = [from, to].map(|place| self.shard(2, place, part));
            draft.last.extend(self.transfer(RESULTS, rects, self.bytes(2)));
        }
    }

    /// The first place computes all of C, and sends each place its part.
    fn one_place(&self) -> Result<ShardedPlan> {
        let mut draft = self.draft();
        let all = Block::new(0..self.shape.m(), 0..self.shape.n());
        if *self.layouts[2] == ShardLayout::Replicated {
            self.compute(&mut draft, 0, &all, self.shard(2, 0, &all))?;
            self.send_to_all(&mut draft, 0, &all);
            return Ok(self.plan(Algorithm::OnePlace, draft));
        }
        let pitch = pitch_of(self.bytes(2), self.shape.n(), self.shape.n());
        let result = |part: &Block| Rect {
            place: 0,
            memory: Memory::Result,
            start: if part.is_empty() { 0 } else { offset(&all, pitch, part) },
            pitch,
            size: part.size(),
            panel: 0,
        };
        draft.scratch[0].result = self.shape.c_len();
        let parts = (0..self.places).map(|place| (place, self.block(2, place)));
        let parts = parts.filter(|(_, part)| !part.is_empty()).collect::<Vec<_>>();
        if self.product.beta != 0.0 {
            for (place, part) in &parts {
                let rects = [self.shard(2, *place, part), result(part)];
                draft.steps[0].extend(self.transfer(RESULTS, rects, self.bytes(2)));
            }
        }
        self.compute(&mut draft, 0, &all, result(&all))?;
        for (place, part) in &parts {
            let rects = [result(part), self.shard(2, *place, part)];
            draft.last.extend(self.transfer(RESULTS, rects, self.bytes(2)));
        }
        Ok(self.plan(Algorithm::OnePlace, draft))
    }

    /// A part of C, computed at a place and stored in `c`, which is of that size.
    fn compute(&self, draft: &mut Draft, place: usize, part: &Block, c: Rect) -> Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        let k = self.shape.k();
        let whole = [Block::new(part.rows.clone(), 0..k), Block::new(0..k, part.cols.clone())];
        let ranges = [&part.rows, &part.cols];
        let all = [0, 1].map(|side| {
            let (at, range) = ((place, self.places), ranges[side].clone());
            match self.panels {
                1 => {
                    let is_own = self.block(side, place).contains(&whole[side]);
                    vec![Piece { range, is_own }]
                }
                _ => {
                    let of = (self.layouts[side], self.size(side));
                    pieces(of.0, side, of.1, at, (range, self.units(side), self.panels))
                }
            }
        });
        let is_here = |side: usize| all[side].iter().all(|piece| piece.is_own);
        // The operand that stays: the one that is here, or the smaller one.
        let len = |side: usize| whole[side].rows.len() * whole[side].cols.len();
        let inner = match (is_here(0), is_here(1)) {
            (true, _) => 0,
            (_, true) => 1,
            _ => usize::from(len(1) < len(0)),
        };
        let outer = 1 - inner;
        // Two buffers take the panels of the outer operand in turn, and each of the inner has one.
        let buffers = draft.scratch[place].operands.len();
        let (mut passing, mut staying) = (0, 2);
        let outer_rects = all[outer].iter().map(|piece| {
            passing += usize::from(!piece.is_own);
            self.arrive(draft, place, outer, piece, buffers + (passing + 1) % 2)
        });
        let outer_rects = outer_rects.collect::<Vec<_>>();
        let inner_rects = all[inner].iter().map(|piece| {
            staying += usize::from(!piece.is_own);
            self.arrive(draft, place, inner, piece, buffers + staying - 1)
        });
        let inner_rects = inner_rects.collect::<Vec<_>>();
        let mut coming = outer_rects.iter().map(|(_, copies)| copies.clone());
        let mut steps = Vec::new();
        steps.extend(coming.next().into_iter().flatten());
        steps.extend(inner_rects.iter().flat_map(|(_, copies)| copies.clone()));
        let bytes = self.bytes(0);
        let as_steps = |copies: Vec<[Rect; 2]>| {
            copies
                .into_iter()
                .filter_map(|rects| self.transfer(OPERANDS, rects, bytes))
                .collect::<Vec<_>>()
        };
        draft.steps[place].extend(as_steps(steps));
        for (outer_piece, (outer_rect, _)) in all[outer].iter().zip(&outer_rects) {
            draft.steps[place].extend(as_steps(coming.next().unwrap_or_default()));
            for (inner_piece, (inner_rect, _)) in all[inner].iter().zip(&inner_rects) {
                let of = |side: usize| {
                    if side == inner {
                        (inner_piece, inner_rect)
                    } else {
                        (outer_piece, outer_rect)
                    }
                };
                let ((rows, a), (cols, b)) = (of(0), of(1));
                let start =
                    c.start + (rows.range.start - part.rows.start) * c.pitch + cols.range.start
                        - part.cols.start;
                let size = [rows.range.len(), cols.range.len()];
                let to = Rect { start, size, ..c };
                let at = [rows.range.start, cols.range.start];
                draft.steps[place].push(self.multiply(place, [*a, *b], (to, at))?);
            }
        }
        Ok(())
    }

    /// Where a piece of A or B is at a place, and the copies that bring it to that buffer.
    fn arrive(
        &self,
        draft: &mut Draft,
        place: usize,
        side: usize,
        piece: &Piece,
        buffer: usize,
    ) -> (Rect, Vec<[Rect; 2]>) {
        let k = self.shape.k();
        let block = match side {
            0 => Block::new(piece.range.clone(), 0..k),
            _ => Block::new(0..k, piece.range.clone()),
        };
        if piece.is_own {
            return (self.shard(side, place, &block), Vec::new());
        }
        let pitch = pitch_of(self.bytes(side), block.cols.len(), self.size(side)[1]);
        let [rows, cols] = block.size();
        let operands = &mut draft.scratch[place].operands;
        if operands.len() <= buffer {
            operands.resize(buffer + 1, 0);
        }
        operands[buffer] = operands[buffer].max(rows * pitch);
        let memory = Memory::Operand(buffer);
        draft.panels += 1;
        let size = [rows, cols];
        let rect = Rect { place, memory, start: 0, pitch, size, panel: draft.panels };
        let sources = sources(self.layouts[side], self.size(side), self.places, place, &block);
        let copies = sources.into_iter().map(|(from, part)| {
            let to = Rect { start: offset(&block, pitch, &part), size: part.size(), ..rect };
            [self.shard(side, from, &part), to]
        });
        (rect, copies.collect())
    }

    /// A copy of some rows. `None` of nothing.
    pub(super) fn transfer(
        &self,
        lane: usize,
        [from, to]: [Rect; 2],
        element: usize,
    ) -> Option<Step> {
        let [rows, cols] = to.size;
        let us = self.link.us(rows * cols * element);
        let what = What::Transfer { from, to };
        (rows * cols > 0).then(|| Step { place: to.place, lane, after: Vec::new(), what, us })
    }

    /// A product of all of k. `at`: the first row and column of C.
    fn multiply(
        &self,
        place: usize,
        operands: [Rect; 2],
        (c, at): (Rect, [usize; 2]),
    ) -> Result<Step> {
        let split = [self.choice.split_k, self.choice.partials];
        let Product { types: [of_operands, of_c, _], request, task, .. } = self.product;
        let types = [of_operands, of_c];
        let request = request(&dense(types, operands, c)?);
        let (task, on) = (task(request)?, (&self.limits, self.target.sms));
        let plan = Plan::new(types, self.kernel, self.choice.operands, split, task, on)?;
        let us = self.product_us(&request, split);
        let what = What::Multiply { operands, c, at, plan: Box::new(plan) };
        Ok(Step { place, lane: COMPUTE, after: Vec::new(), what, us })
    }

    /// The predicted time of a part: by the model, or where the kernel was not measured by its
    /// operations, as if all took as long.
    pub(super) fn product_us(&self, request: &Request, [split_k, partials]: [u32; 2]) -> f64 {
        /// Operations in a microsecond, of a kernel without a measured speed.
        const UNKNOWN: f64 = 1e3;
        let asked = Request {
            split_k: Some(split_k),
            partials: Some(partials),
            invariant: None,
            ..*request
        };
        let choice = (self.product.choose)(&asked, &self.target, Some(self.kernel)).ok();
        let timed = choice.and_then(|(_, choice)| choice.times).map(|times| times.us());
        let operations = |shape: Shape| 2.0 * shape.c_len() as f64 * shape.k() as f64;
        timed.unwrap_or_else(|| operations(request.shape) / UNKNOWN)
    }

    /// The steps of all places in turn, with what each waits for, and the predicted time.
    pub(super) fn plan(&self, algorithm: Algorithm, draft: Draft) -> ShardedPlan {
        let mut steps = Vec::new();
        let mut places = draft.steps.into_iter().map(Vec::into_iter).collect::<Vec<_>>();
        loop {
            let before = steps.len();
            steps.extend(places.iter_mut().filter_map(Iterator::next));
            if steps.len() == before {
                break;
            }
        }
        steps.extend(draft.last);
        order(&mut steps);
        let predicted_us = simulate(&steps).into_iter().map(|[_, end]| end).fold(0.0, f64::max);
        ShardedPlan {
            algorithm,
            choice: self.choice,
            shape: self.shape,
            layouts: self.layouts.map(Clone::clone),
            steps,
            scratch: draft.scratch,
            predicted_us,
        }
    }
}

/// The request of a part, without the product's settings.
pub(super) fn dense([operands, of_c]: [Type; 2], [a, b]: [Rect; 2], c: Rect) -> Result<Request> {
    let shape = Shape::new(a.size[0] as u64, b.size[1] as u64, a.size[1] as u64)?;
    // Every buffer is aligned.
    let aligned = |rect: Rect, of: Type| (rect.start * of.bytes()).is_multiple_of(16);
    let aligned = [aligned(a, operands), aligned(b, operands), aligned(c, of_c)];
    let request = Request::new(shape, [a.strides(), b.strides(), c.strides()]);
    Ok(Request { aligned, ..request })
}
