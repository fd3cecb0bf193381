//! Runs a plan: one loop over its steps.

use std::time::Duration;

use super::{
    complete::check_complete,
    plan::{COMPUTE, LANES, Memory, Rect, Scratch, ShardedPlan, ShardedScalar, Step, Sums, What},
    scales::{self, PlaceScales},
};
use crate::{
    buffer::{Buffer, BufferView, BufferViewMut, Pod},
    devices::{Devices, Sharded},
    error::{Error, Result},
    gemm::{Batch, BatchMut, Gemm, Output, Scalar, execute, scales::elements},
    matrix::{MatrixView, MatrixViewMut, extent},
    shape::Shape,
    stream::{
        Stream,
        lane::{AllLanes, Mark, transfer},
    },
};

/// Refuses matrices that do not fit together.
pub(super) fn check<T: Pod, O: Pod>(
    devices: &Devices,
    a: &Sharded<T>,
    b: &Sharded<T>,
    c: &Sharded<O>,
) -> Result<Shape> {
    for (name, of) in [("A", a.devices()), ("B", b.devices()), ("C", c.devices())] {
        if of != devices {
            return Err(Error::argument(name, of, format!("must be on {devices}")));
        }
    }
    Shape::of_matrices([(a.rows(), a.cols()), (b.rows(), b.cols()), (c.rows(), c.cols())])
}

/// The memories of all places.
struct Memories<'m, T, O, S> {
    operands: [&'m [Buffer<T>]; 2],
    panels: &'m mut [Vec<Buffer<T>>],
    /// The shards of C, and then the results of each place.
    outputs: Vec<BufferViewMut<'m, O>>,
    /// Three of each place.
    sums: &'m mut [Buffer<S>],
    /// Of each place, if there are any.
    scales: &'m [PlaceScales],
}

/// What a plan needs at all places: buffers, lanes, and the marks of its steps.
pub(super) struct Reserved<T, O, S> {
    panels: Vec<Vec<Buffer<T>>>,
    results: Vec<Buffer<O>>,
    sums: Vec<Buffer<S>>,
    scales: Vec<PlaceScales>,
    lanes: Vec<[Stream; LANES]>,
    /// Of the steps that others wait for, once they have run.
    marks: Vec<Option<Mark>>,
}

/// Allocates and opens what a plan needs.
///
/// # Errors
/// [`Error::Device`] with an [`Error::OutOfMemory`]; those of the driver.
pub(super) fn reserve<T: ShardedScalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    plan: &ShardedPlan,
    devices: &Devices,
) -> Result<Reserved<T, O, Sums<T, O>>> {
    let (mut panels, mut results, mut sums) = (Vec::new(), Vec::new(), Vec::new());
    for (place, Scratch { operands, result, sums: partials }) in plan.scratch.iter().enumerate() {
        let device = devices.at(place);
        let failed = || devices.failed(place);
        let of_place = operands.iter().map(|&len| device.uninit(len)).collect::<Result<Vec<_>>>();
        panels.push(of_place.map_err(failed())?);
        results.push(device.uninit(*result).map_err(failed())?);
        for &len in partials {
            sums.push(device.uninit(len).map_err(failed())?);
        }
    }
    let marks = plan.steps.iter().map(|_| None).collect();
    let scales = scales::reserve(gemm.scales, plan, devices)?;
    Ok(Reserved { panels, results, sums, scales, lanes: devices.lanes()?, marks })
}

/// Runs a plan for matrices that fit it, and waits for it.
pub(super) fn run<T, O>(
    gemm: &Gemm<T, O>,
    (plan, reserved): (&ShardedPlan, &mut Reserved<T, O, Sums<T, O>>),
    devices: &Devices,
    (a, b, c): (&Sharded<T>, &Sharded<T>, &mut Sharded<O>),
) -> Result<()>
where
    T: ShardedScalar<O>,
    O: Output,
{
    check_complete(plan, gemm.beta)?;
    let Reserved { panels, results, sums, scales, lanes, marks } = reserved;
    // What was queued on the shards and the scales before.
    for of in elements(gemm.scales).iter().flatten() {
        of.buffer().wait_for_uses().map_err(devices.failed(0))?;
    }
    for place in 0..devices.len() {
        for shard in [&a.shards()[place], &b.shards()[place]] {
            shard.wait_for_uses().map_err(devices.failed(place))?;
        }
        c.shards()[place].wait_for_uses().map_err(devices.failed(place))?;
    }
    let outputs = c.shards_mut().chain(results.iter_mut().map(Buffer::all_mut)).collect();
    let all = AllLanes(lanes);
    // Not where one failed, but all are waited for.
    let brought = scales.iter_mut().zip(all.0).enumerate().try_for_each(|(place, (to, lanes))| {
        let brought = gemm.scales.map_or(Ok(()), |of| to.bring(of, lanes));
        brought.map_err(|error| (place, error))
    });
    let operands = [a.shards(), b.shards()];
    let mut memories = Memories { operands, panels, outputs, sums, scales };
    let ran = brought.and_then(|()| memories.steps(gemm, plan, all.0, marks));
    let ran = ran.map_err(|(place, error)| devices.failed(place)(error));
    // After an error, too.
    let limit = devices.time_limit.saturating_add(ten_times(plan.predicted_us));
    let ended = all.wait(limit, || stuck(plan, marks), |place, error| devices.failed(place)(error));
    ran.and(ended)
}

fn ten_times(us: f64) -> Duration {
    Duration::try_from_secs_f64(us * 1e-5).unwrap_or(Duration::MAX)
}

/// The place of the first step that has not ended, of those for which others wait.
fn stuck(plan: &ShardedPlan, marks: &[Option<Mark>]) -> Option<usize> {
    let is_ahead = |mark: &Option<Mark>| mark.as_ref().is_some_and(Mark::is_ahead);
    let mut steps = plan.steps.iter().zip(marks);
    steps.find(|(_, mark)| is_ahead(mark)).map(|(step, _)| step.place)
}

impl<T, O, S> Memories<'_, T, O, S>
where
    T: Scalar<O> + Scalar<S>,
    O: Output,
    S: Output,
{
    /// Runs all steps, each with its mark. An error has its place.
    fn steps(
        &mut self,
        gemm: &Gemm<T, O>,
        plan: &ShardedPlan,
        lanes: &[[Stream; LANES]],
        marks: &mut [Option<Mark>],
    ) -> std::result::Result<(), (usize, Error)> {
        let mut is_awaited = vec![false; plan.steps.len()];
        plan.steps
            .iter()
            .flat_map(|step| &step.after)
            .for_each(|&earlier| is_awaited[earlier] = true);
        for (index, step) in plan.steps.iter().enumerate() {
            let lane = &lanes[step.place][step.lane];
            // A step waits for earlier ones: their marks are of this run.
            let mut waited =
                step.after.iter().filter_map(|&earlier| marks[..index].get(earlier)?.as_ref());
            let ran = waited.try_for_each(|mark| lane.after(mark));
            let ran = ran.and_then(|()| self.step(gemm, plan, step, lane));
            let kept = marks[index].take();
            let mark = ran.and_then(|()| is_awaited[index].then(|| lane.mark(kept)).transpose());
            marks[index] = mark.map_err(|error| (step.place, error))?;
        }
        Ok(())
    }

    fn step(
        &mut self,
        gemm: &Gemm<T, O>,
        plan: &ShardedPlan,
        step: &Step,
        lane: &Stream,
    ) -> Result<()> {
        debug_assert!(step.lane == COMPUTE || matches!(step.what, What::Transfer { .. }));
        match &step.what {
            What::Transfer { from, to } => self.transfer(lane, from, to),
            What::Multiply { operands: [a, b], c, at, plan: product } => {
                // Shards are row-major.
                let planned = (&plan.choice, &**product, false);
                let Memories { operands, panels, outputs, sums, scales } = self;
                let view = |rect: &Rect| operand(operands, panels, rect);
                let (a, b) = (view(a)?, view(b)?);
                let (a, b) = (Batch::one(a), Batch::one(b));
                match c.memory {
                    Memory::Sums(index) => {
                        let gemm = Gemm::<T, S>::of_types().compute(gemm.compute);
                        let sums = &mut sums[sums_of(c.place, index)];
                        let c = BatchMut::one(written(sums.all_mut(), c)?);
                        execute::planned(&gemm, lane, planned, a, b, c)
                    }
                    _ => {
                        let output = output_of(c, operands[0].len());
                        let gemm = match (gemm.scales, scales.get(step.place)) {
                            (Some(all), Some(here)) => gemm.scales(here.of(all, *at, c.size)?),
                            _ => *gemm,
                        };
                        let c = BatchMut::one(written(outputs[output].reborrow(), c)?);
                        execute::planned(&gemm, lane, planned, a, b, c)
                    }
                }
            }
            What::Sum { partials, c, plan } => {
                let output = output_of(c, self.operands[0].len());
                let sums = self.sums[sums_of(partials.place, 0)].view(partials.range())?;
                let c = written(self.outputs[output].reborrow(), c)?;
                execute::sum(lane, plan, sums, c.into_elements())
            }
        }
    }

    fn transfer(&mut self, lane: &Stream, from: &Rect, to: &Rect) -> Result<()> {
        let places = self.operands[0].len();
        match to.memory {
            Memory::Operand(index) => {
                let source = match from.memory {
                    Memory::A => &self.operands[0][from.place],
                    _ => &self.operands[1][from.place],
                };
                copy(lane, (source.all(), from), (self.panels[to.place][index].all_mut(), to))
            }
            Memory::Sums(index) => {
                let Memory::Sums(sent) = from.memory else { return Err(unknown(from)) };
                let two = [sums_of(from.place, sent), sums_of(to.place, index)];
                let [source, target] = self.sums.get_disjoint_mut(two).map_err(|_| unknown(to))?;
                copy(lane, (source.all(), from), (target.all_mut(), to))
            }
            _ => {
                let two = [output_of(from, places), output_of(to, places)];
                let [source, target] =
                    self.outputs.get_disjoint_mut(two).map_err(|_| unknown(to))?;
                copy(lane, (source.as_view(), from), (target.reborrow(), to))
            }
        }
    }
}

/// A part of A or B, or a panel.
fn operand<'m, T: Pod>(
    shards: &[&'m [Buffer<T>]; 2],
    panels: &'m [Vec<Buffer<T>>],
    rect: &Rect,
) -> Result<MatrixView<'m, T>> {
    let elements = match rect.memory {
        Memory::A => shards[0][rect.place].all(),
        Memory::B => shards[1][rect.place].all(),
        Memory::Operand(index) => panels[rect.place][index].all(),
        _ => return Err(unknown(rect)),
    };
    let [rows, cols] = rect.size;
    let len = extent(rows, cols, rect.strides())?;
    MatrixView::new(elements.view(rect.start, len)?, rows, cols, rect.strides())
}

/// No plan says so.
fn unknown(rect: &Rect) -> Error {
    Error::argument("step", format!("{rect:?}"), "must be in a memory of the plan")
}

fn sums_of(place: usize, index: usize) -> usize {
    3 * place + index
}

/// The number of an output: a shard of C, or a result.
fn output_of(rect: &Rect, places: usize) -> usize {
    match rect.memory {
        Memory::Result => places + rect.place,
        _ => rect.place,
    }
}

fn written<'a, E: Pod>(
    elements: BufferViewMut<'a, E>,
    rect: &Rect,
) -> Result<MatrixViewMut<'a, E>> {
    let [rows, cols] = rect.size;
    let len = extent(rows, cols, rect.strides())?;
    MatrixViewMut::new(elements.into_part(rect.start, len)?, rows, cols, rect.strides())
}

/// Copies a part of one memory to a part of another one.
fn copy<E: Pod>(
    lane: &Stream,
    (from, from_rect): (BufferView<E>, &Rect),
    (to, to_rect): (BufferViewMut<E>, &Rect),
) -> Result<()> {
    let from = (from.view(from_rect.start, from_rect.range().len())?, from_rect.pitch);
    let to = (to.into_part(to_rect.start, to_rect.range().len())?, to_rect.pitch);
    // SAFETY: `run` waits for all lanes before the memories are freed. Each step waits for those
    // with which it shares memory (`order`); a plan is made nowhere else.
    unsafe { transfer(lane, from, to, to_rect.size) }
}
