//! Runs a [`Plan`], step by step, on a stream. An [`Executor`] launches the kernel that multiplies:
//! the stream itself, or one that [checks](checked) it.

#[cfg(feature = "cpu")]
pub mod checked;
mod executor;
mod matrices;
mod prepare;

use std::ops::Range;

use gpu::{collective::background, params::MatrixBatch, registry::Scheme};
use simt::{Bf16, F16, LaunchConfig, Limits};

pub(super) use self::executor::Executor;
use self::{
    matrices::{Matrices3, part, rest},
    prepare::{pack, reduce, split, unpack},
};
use super::{
    Batch, BatchMut, Bias, Choice, Gemm, Output, Request, Scalar, Target,
    operands::{self, Operands, check, check_apart, check_written_once, is_aligned, of_product},
    plan::{Map, Memory, Multiply, Operand, Plan, Step, Tail, Task},
    planes::Planes,
    prepared::Prepared,
    scalar::Kernel,
    select::{choose_cached, layout::OperandPlan},
    split::Slice,
};
use crate::{
    boxes::{BoxElement, Boxes, BoxesMut},
    buffer::{Buffer, BufferView, BufferViewMut, Pod, Written},
    error::{Error, Result},
    launch::Named,
    matrix::{MatrixView, MatrixViewMut},
    memory,
    shape::Shape,
    stream::Stream,
};

/// [`Gemm::launch_batch`].
pub(super) fn batch<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    a: Batch<T>,
    b: Batch<T>,
    c: BatchMut<O>,
) -> Result<Choice> {
    let bias = gemm.bias.map(Bias::elements);
    check_apart(&a, &b, &c, bias)?;
    batch_of_borrows(gemm, stream, a, b, c)
}

/// The same for operands that are known to share no element with C.
pub(super) fn batch_of_borrows<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    a: Batch<T>,
    b: Batch<T>,
    c: BatchMut<O>,
) -> Result<Choice> {
    let operands = check(gemm, stream, a, b, c)?;
    let (choice, plan) = plan(gemm, stream, &operands)?;
    run(gemm, stream, &choice, &plan, operands)?;
    Ok(choice)
}

/// [`PlannedGemm::launch_batch`](super::PlannedGemm::launch_batch), of operands for which the plan
/// was made.
pub(super) fn planned<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    (choice, plan): (&Choice, &Plan),
    a: Batch<T>,
    b: Batch<T>,
    c: BatchMut<O>,
) -> Result<()> {
    check_apart(&a, &b, &c, gemm.bias.map(Bias::elements))?;
    run(gemm, stream, choice, plan, check(gemm, stream, a, b, c)?)
}

/// [`Gemm::launch_array`].
pub(super) fn array<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    inputs: &[(MatrixView<T>, MatrixView<T>)],
    outputs: &mut [MatrixViewMut<O>],
) -> Result<Vec<Choice>> {
    if inputs.len() != outputs.len() {
        let limit = format!("must be outputs.len() = {}", outputs.len());
        return Err(Error::argument("inputs.len()", inputs.len(), limit));
    }
    let mut ready = memory::reserved(inputs.len())?;
    for (index, (&(a, b), c)) in inputs.iter().zip(outputs).enumerate() {
        let (a, b, c) = (Batch::one(a), Batch::one(b), BatchMut::one(c.reborrow()));
        let bias = gemm.bias.map(Bias::elements);
        let fits = check_apart(&a, &b, &c, bias).and_then(|()| check(gemm, stream, a, b, c));
        let one = fits.and_then(|operands| {
            let (choice, plan) = plan(gemm, stream, &operands)?;
            Ok((choice, plan, operands))
        });
        ready.push(one.map_err(|error| of_product(index, error))?);
    }
    check_written_once(ready.iter().map(|(.., operands)| &operands.c))?;
    let mut choices = memory::reserved(ready.len())?;
    for (choice, plan, operands) in ready {
        run(gemm, stream, &choice, &plan, operands)?;
        choices.push(choice);
    }
    Ok(choices)
}

/// Selects a kernel, and makes the plan.
fn plan<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    operands: &Operands<T, O>,
) -> Result<(Choice, Plan)> {
    let (device, request) = (stream.device(), operands::request(gemm, operands));
    let (kernel, choice) = choose_cached::<T, O>(&request, &Target::of(device), gemm.kernel)?;
    let Operands { a, b, c, is_swapped, .. } = operands;
    let mut task = Task::new(gemm, request, [a.step, b.step, c.step], *is_swapped);
    let scheme = kernel.product.variant.scheme;
    task.prepared = [a, b].map(|operand| gemm.planes_of(operand, scheme)?.rows(scheme));
    let on = (&device.limits(), device.sms());
    let split = [choice.split_k, choice.partials];
    let plan = Plan::new::<T, O>(kernel, choice.operands, split, task, on)?;
    Ok((choice, plan))
}

/// Runs the plan of a product.
fn run<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    choice: &Choice,
    plan: &Plan,
    operands: Operands<T, O>,
) -> Result<()> {
    let operands = if choice.operands.swap_ab { operands.swapped() } else { operands };
    let Operands { a, b, c, bias, .. } = operands;
    let no_bias = stream.device().uninit(0)?;
    let matrices = Matrices3 {
        operands: [a.elements, b.elements],
        prepared: [&a, &b].map(|operand| gemm.planes_of(operand, plan.scheme?)),
        c: c.elements,
        bias: bias.map_or(no_bias.view(..), Ok)?,
    };
    // SAFETY:
    // 1. A kernel keeps inside the sizes and strides of its parameters, and the views reach from
    //    the first to the last element of those; the tests run each kernel with guard bands. Tensor
    //    maps keep inside their extents.
    // 2. No two elements of C are one, and each is written by the one thread that computes it.
    // 3. A and B are borrowed, C mutably, and `check_apart` has seen to foreign memory. Work on
    //    other streams is waited for.
    unsafe { execute(&stream, plan, matrices) }
}

/// A launch of [`dense`] that multiplies.
pub(crate) struct DenseLaunch {
    /// The first row of C, and rows of C.
    pub(crate) first_row: usize,
    pub(crate) rows: u32,
    pub(crate) config: LaunchConfig,
    /// Elements from one row of A, B and C to the next.
    pub(crate) pitches: [usize; 3],
}

/// The launches of [`dense`] under these limits.
///
/// # Errors
/// As [`Plan::new`].
pub(crate) fn dense_launches(
    kernel: Kernel,
    shape: Shape,
    limits: &Limits,
) -> Result<Vec<DenseLaunch>> {
    let (task, on) = (Task::plain(Request::dense(shape)), (limits, 1));
    let plan = Plan::new::<f32, f32>(kernel, OperandPlan::default(), [1; 2], task, on)?;
    let panel = |step: &Step| match step {
        Step::Multiply(step) => {
            let Multiply { first_row, config, pitches, .. } = **step;
            Some(DenseLaunch { first_row, rows: step.params.m, config, pitches })
        }
        Step::Pack(_) | Step::Split(_) | Step::Reduce(_) | Step::Unpack(_) => None,
    };
    Ok(plan.steps.iter().filter_map(panel).collect())
}

/// `C = A B` of dense row-major matrices, by a kernel of the registry.
///
/// # Errors
/// As [`Stream::launch`].
pub(crate) fn dense<T: Scalar<O>, O: Output>(
    stream: &Stream,
    kernel: Kernel,
    shape: Shape,
    operands: [BufferView<T>; 2],
    c: Written<O>,
) -> Result<()> {
    let on = (&stream.device().limits(), stream.device().sms());
    let [a, b] = operands.map(|operand| is_aligned(operand, 1, 0));
    let request =
        Request { aligned: [a, b, is_aligned(c.as_view(), 1, 0)], ..Request::dense(shape) };
    let task = Task::plain(request);
    let plan = Plan::new::<T, O>(kernel, OperandPlan::default(), [1; 2], task, on)?;
    let no_bias = stream.device().uninit(0)?;
    let matrices = Matrices3 { operands, prepared: [None; 2], c, bias: no_bias.view(..)? };
    // SAFETY: as in `run`: A and B are borrowed, C mutably.
    unsafe { execute(&stream, &plan, matrices) }
}

/// Runs a plan.
///
/// # Safety
/// As for [`Stream::launch`].
pub(super) unsafe fn execute<T: Scalar<O>, O: Output>(
    executor: &impl Executor,
    plan: &Plan,
    matrices: Matrices3<T, O>,
) -> Result<()> {
    let prepared = matrices.prepared;
    // Once for all launches.
    #[cfg(feature = "cuda")]
    let _current = executor.stream().cuda().map(|stream| stream.context().enter()).transpose()?;
    // SAFETY: the caller's.
    unsafe {
        match plan.scheme {
            None => steps::<T, O, T>(executor, plan, matrices, [None; 2]),
            Some(Scheme::F16x3) => {
                let slices = slices_of::<F16>(prepared.map(|of| of.and_then(Prepared::f16)))?;
                steps(executor, plan, matrices, slices)
            }
            Some(_) => {
                let slices = slices_of::<Bf16>(prepared.map(|of| of.and_then(Prepared::bf16)))?;
                steps(executor, plan, matrices, slices)
            }
        }
    }
}

/// The planes and the ranges of a prepared operand.
type Slices<'a, W> = Option<(BufferView<'a, W>, BufferView<'a, W>)>;

fn slices_of<'a, S: Slice>(prepared: [Option<&'a Planes<S>>; 2]) -> Result<[Slices<'a, S>; 2]> {
    let slices = |planes: Option<&'a Planes<S>>| -> Result<Slices<'a, S>> {
        planes.map(|of| Ok((of.planes.view(..)?, of.ranges.view(..)?))).transpose()
    };
    let [a, b] = prepared;
    Ok([slices(a)?, slices(b)?])
}

/// Runs a plan whose workspace has elements of `W`.
///
/// # Safety
/// As for [`Stream::launch`].
unsafe fn steps<T: Scalar<O>, O: Output, W: BoxElement + Pod>(
    executor: &impl Executor,
    plan: &Plan,
    mut matrices: Matrices3<T, O>,
    slices: [Slices<W>; 2],
) -> Result<()> {
    let stream = executor.stream();
    let mut run = |workspace: &mut Buffer<W>, partials: &mut Buffer<f32>| {
        for step in &plan.steps {
            match step {
                Step::Pack(step) => pack(executor, step, &matrices, workspace)?,
                Step::Split(step) => split(executor, step, &matrices, workspace)?,
                // SAFETY: the caller's.
                Step::Multiply(step) => unsafe {
                    multiply(executor, step, &mut matrices, slices, workspace, partials)?;
                },
                // SAFETY: the caller's.
                Step::Reduce(step) => unsafe { reduce(executor, step, &mut matrices, partials)? },
                // SAFETY: the plan's own step. Only lessons have one, and their workspace has the
                // operands' type, which is C's.
                Step::Unpack(step) => unsafe {
                    unpack(stream, step, &mut matrices, workspace)?;
                },
            }
        }
        Ok(())
    };
    let mut run = |partials: &mut Buffer<f32>| match plan.workspace {
        0 => run(&mut stream.device().uninit(0)?, partials),
        len => stream.with_workspace(len, |workspace| {
            executor.prepare(workspace)?;
            run(workspace, partials)
        }),
    };
    match plan.partials {
        0 => run(&mut stream.device().uninit(0)?),
        len => stream.with_partials(len, |partials| {
            executor.prepare(partials)?;
            run(partials)
        }),
    }
}

/// Launches the kernel that multiplies.
///
/// # Safety
/// As for [`Stream::launch`].
unsafe fn multiply<T: Scalar<O>, O: Output, W: BoxElement + Pod>(
    executor: &impl Executor,
    step: &Multiply,
    matrices: &mut Matrices3<T, O>,
    slices: [Slices<W>; 2],
    workspace: &Buffer<W>,
    partials: &mut Buffer<f32>,
) -> Result<()> {
    let stream = executor.stream();
    let [of_a, of_b] = matrices.operands;
    let [a_slices, b_slices] = slices;
    let (mut a, ranges_a) = operand(&step.operands[0], of_a, a_slices, workspace)?;
    let (mut b, ranges_b) = operand(&step.operands[1], of_b, b_slices, workspace)?;
    let no_bias = stream.device().uninit::<f32>(0)?;
    let part_of_workspace = |part: &Range<usize>| {
        let address = workspace.address() + (part.start * size_of::<W>()) as u64;
        // SAFETY: a part of the workspace that no other step writes. It is read when it has been
        // written, on the stream that has the workspace.
        unsafe { stream.device().foreign::<W>(address, part.len()) }
    };
    let mut stored = step.stored.as_ref().map(part_of_workspace).transpose()?;
    let (mut c, mut bias): (Argument, Argument) = match step.is_partial {
        true => {
            let partials = Written::from(partials.view_mut(..)?);
            (Box::new(rest(partials, step.c)?), Box::new(no_bias.view(..)?))
        }
        false => {
            let bias = part(matrices.bias, step.bias, None)?;
            let c = rest(matrices.c.reborrow(), step.c)?;
            let ([m, n], pitch) = ([step.params.m, step.params.n], step.pitches[2]);
            let extents = [1, m as usize, n as usize];
            let c: Argument = match (step.product.stores, &mut stored) {
                (None, _) => Box::new(c),
                (Some(shape), None) => {
                    Box::new(BoxesMut::of_written(c, extents, [0, pitch], shape)?)
                }
                (Some(shape), Some(stored)) => {
                    // Zeros beyond the columns of C, too: of the workspace nothing stays unwritten.
                    let extents = [1, m as usize, pitch];
                    Box::new(BoxesMut::new(stored.view_mut(..)?, extents, [0, pitch], shape)?)
                }
            };
            (c, Box::new(bias))
        }
    };
    let mut params = step.params;
    let (mut m, mut n, mut k) = (params.m, params.n, params.k);
    let mut arguments: Vec<(_, &mut dyn Named)> =
        vec![("a", &mut *a), ("b", &mut *b), ("c", &mut *c)];
    if step.product.is_lesson() {
        let sizes: [(_, &mut dyn Named); 3] = [("m", &mut m), ("n", &mut n), ("k", &mut k)];
        arguments.extend(sizes);
        // SAFETY: the caller's.
        return unsafe { executor.multiply(step, &mut arguments) };
    }
    let common: [(_, &mut dyn Named); 2] = [("problem", &mut params), ("bias", &mut *bias)];
    arguments.extend(common);
    if let (Some(mut ranges_a), Some(mut ranges_b)) = (ranges_a, ranges_b) {
        let [a_start, b_start] = step.starts();
        let (mut a_itself, mut b_itself) = (part(of_a, a_start, None)?, part(of_b, b_start, None)?);
        return stream.with_recomputed(|board| {
            let mut board = Written::from(board.view_mut(..)?);
            let of_slices: [(_, &mut dyn Named); 5] = [
                ("a_itself", &mut a_itself),
                ("b_itself", &mut b_itself),
                ("patches_a", &mut ranges_a),
                ("patches_b", &mut ranges_b),
                ("board", &mut board),
            ];
            // SAFETY: the caller's; planes and ranges have the operands' size.
            unsafe { executor.multiply(step, &mut and(&mut arguments, of_slices)) }
        });
    }
    if !step.product.packs_tail {
        // SAFETY: the caller's.
        return unsafe { executor.multiply(step, &mut arguments) };
    }
    let mut launch = |(mut matrix, mut from, to, words): Background<T, W>| {
        let (mut to, mut words) = (Written::from(to), Written::from(words));
        let of_tail: [(_, &mut dyn Named); 4] =
            [("last", &mut matrix), ("from", &mut from), ("to", &mut to), ("words", &mut words)];
        // SAFETY: the caller's.
        unsafe { executor.multiply(step, &mut and(&mut arguments, of_tail)) }
    };
    let Some(Tail { matrix, start, to }) = &step.tail else {
        let (mut no_elements, mut no_words) =
            (stream.device().uninit(0)?, stream.device().uninit(0)?);
        let nothing = part(of_b, 0, Some(0))?;
        let to = no_elements.view_mut(..)?;
        return launch((MatrixBatch::default(), nothing, to, no_words.view_mut(..)?));
    };
    let mut rest = part_of_workspace(to)?;
    let from = part(of_b, *start, None)?;
    stream.with_zeros::<{ background::COUNTERS }>(|words| {
        launch((*matrix, from, rest.view_mut(..)?, words.view_mut(..)?))
    })
}

/// Arguments, and some more.
fn and<'s, const MORE: usize>(
    arguments: &'s mut [(&'static str, &mut dyn Named)],
    more: [(&'static str, &'s mut dyn Named); MORE],
) -> Vec<(&'static str, &'s mut dyn Named)> {
    let arguments = arguments
        .iter_mut()
        .map(|(name, argument)| -> (_, &mut dyn Named) { (*name, &mut **argument) });
    arguments.chain(more).collect()
}

/// What a kernel packs in the background: the matrix, from there, to there, and the words by which
/// its blocks count.
type Background<'a, T, W> =
    (MatrixBatch, BufferView<'a, T>, BufferViewMut<'a, W>, BufferViewMut<'a, u32>);

/// An operand as a kernel gets it.
type Argument<'a> = Box<dyn Named + 'a>;

/// The argument for an operand, and the ranges of its slices.
fn operand<'a, T: BoxElement + Pod, W: BoxElement + Pod>(
    operand: &Operand,
    itself: BufferView<'a, T>,
    slices: Slices<'a, W>,
    workspace: &'a Buffer<W>,
) -> Result<(Argument<'a>, Option<BufferView<'a, W>>)> {
    let of_workspace = |map: &Map| boxes(workspace.view(..)?, map);
    Ok(match operand {
        &Operand::View { from: Memory::Operand, start, len } => {
            (Box::new(part(itself, start, len)?), None)
        }
        &Operand::View { start, len, .. } => {
            (Box::new(part(workspace.view(..)?, start, len)?), None)
        }
        Operand::Maps(maps) if maps.iter().all(|map| map.from == Memory::Operand) => {
            let maps = maps.iter().map(|map| boxes(itself, map));
            (Box::new(maps.collect::<Result<Vec<_>>>()?), None)
        }
        Operand::Maps(maps) => {
            let maps = maps.iter().map(of_workspace);
            (Box::new(maps.collect::<Result<Vec<_>>>()?), None)
        }
        Operand::Slices { planes, ranges, .. } => match slices {
            Some((prepared, ranges)) if planes.from == Memory::Prepared => {
                (Box::new(boxes(prepared, planes)?), Some(ranges))
            }
            _ => (Box::new(of_workspace(planes)?), Some(workspace.view(ranges.clone())?)),
        },
    })
}

fn boxes<'a, T: BoxElement + Pod>(of: BufferView<'a, T>, map: &Map) -> Result<Boxes<'a, T>> {
    let boxes = Boxes::new(part(of, map.start, None)?, map.extents, map.strides, map.shape)?;
    Ok(boxes.skipping(map.skipped))
}
