//! Runs a [`Plan`], step by step, on a stream. An [`Executor`] launches the kernel that multiplies:
//! the stream itself, or one that [checks](checked) it.

#[cfg(feature = "cpu")]
pub mod checked;
mod executor;
mod memories;

use gpu::registry::Scheme;
use simt::{Bf16, F16, LaunchConfig, Limits};

pub(super) use self::executor::Executor;
use self::memories::{Matrices3, Memories, Slices};
use super::{
    Batch, BatchMut, Bias, Choice, Gemm, Output, Request, Scalar, Target,
    operands::{self, Operands, check, check_apart, check_written_once, is_aligned, of_product},
    plan::{Plan, Step, Task, binding::Purpose},
    planes::Planes,
    prepared::Prepared,
    scalar::Kernel,
    select::{choose_cached, layout::OperandPlan},
    split::Slice,
    tune,
};
use crate::{
    boxes::BoxElement,
    buffer::{BufferView, Pod, Written},
    device::Device,
    error::{Error, Result},
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
    let tuned = match gemm.tuned {
        Some(cache) if gemm.kernel.is_none() => {
            tune::choose(gemm, cache, stream, operands, &request)?
        }
        _ => None,
    };
    let (kernel, choice) = match tuned {
        Some(tuned) => tuned,
        None => choose_cached::<T, O>(&request, &Target::of(device), gemm.kernel)?,
    };
    let plan = plan_of(gemm, device, operands, request, (kernel, &choice))?;
    Ok((choice, plan))
}

/// The plan of a choice for these operands.
pub(super) fn plan_of<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    device: &Device,
    operands: &Operands<T, O>,
    request: Request,
    (kernel, choice): (Kernel, &Choice),
) -> Result<Plan> {
    let Operands { a, b, c, is_swapped, .. } = operands;
    let mut task = Task::new(gemm, request, [a.step, b.step, c.step], *is_swapped);
    let scheme = kernel.product.variant.scheme;
    task.prepared = [a, b].map(|operand| gemm.planes_of(operand, scheme)?.rows(scheme));
    let on = (&device.limits(), device.sms());
    let split = [choice.split_k, choice.partials];
    Plan::new::<T, O>(kernel, choice.operands, split, task, on)
}

/// Runs the plan of a product.
pub(super) fn run<T: Scalar<O>, O: Output>(
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

/// Adds partial products by a plan of [`Plan::of_sum`].
///
/// # Errors
/// As [`Stream::launch`].
pub(super) fn sum<S: Output, O: Output>(
    stream: &Stream,
    plan: &Plan,
    partials: BufferView<S>,
    c: Written<O>,
) -> Result<()> {
    let device = stream.device();
    let no_bias = device.uninit(0)?;
    let [mut no_workspace, mut no_partials] = [device.uninit::<S>(0)?, device.uninit::<S>(0)?];
    let [mut no_zeros, mut no_counters] = [device.uninit(0)?, device.uninit(0)?];
    let matrices =
        Matrices3 { operands: [partials; 2], prepared: [None; 2], c, bias: no_bias.view(..)? };
    let memories = Memories {
        matrices,
        slices: [None; 2],
        workspace: no_workspace.view_mut(..)?.into(),
        partials: no_partials.view_mut(..)?.into(),
        zeros: no_zeros.view_mut(..)?.into(),
        counters: no_counters.view_mut(..)?.into(),
    };
    plan.launched().try_for_each(|launched| {
        // SAFETY: as in `run`: the partial products are borrowed, C mutably. The arguments are
        // those of this launch.
        unsafe {
            let mut arguments = memories.arguments(&launched.arguments)?;
            (&stream).launch(launched, &mut arguments)
        }
    })
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
    let panels = plan.launched().filter_map(|launched| match launched.purpose {
        Purpose::Multiply { first_row, rows, pitches, .. } => {
            Some(DenseLaunch { first_row, rows, config: launched.config, pitches })
        }
        Purpose::Prepare | Purpose::Reduce => None,
    });
    Ok(panels.collect())
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
    matrices: Matrices3<T, O>,
    slices: [Slices<W>; 2],
) -> Result<()> {
    let stream = executor.stream();
    stream.with_partials::<T::Sums, _>(plan.partials, |partials| {
        executor.prepare(partials)?;
        stream.with_workspace(plan.workspace, |workspace| {
            executor.prepare(workspace)?;
            stream.with_zeros(plan.zeros, |zeros| {
                stream.with_counters(plan.counters, |counters| {
                    let mut memories = Memories {
                        matrices,
                        slices,
                        workspace: workspace.view_mut(..)?.into(),
                        partials: partials.view_mut(..)?.into(),
                        zeros: zeros.view_mut(..)?.into(),
                        counters: counters.view_mut(..)?.into(),
                    };
                    // SAFETY: the caller's.
                    plan.steps
                        .iter()
                        .try_for_each(|step| unsafe { self::step(executor, step, &mut memories) })
                })
            })
        })
    })
}

/// Runs a step of a plan for these memories.
///
/// # Safety
/// As for [`Stream::launch`].
unsafe fn step<T: Scalar<O>, O: Output, W: BoxElement + Pod>(
    executor: &impl Executor,
    step: &Step,
    memories: &mut Memories<T, O, W, T::Sums>,
) -> Result<()> {
    match step {
        // SAFETY: the caller's. The arguments are those of this launch.
        Step::Launch(launched) => unsafe {
            let mut arguments = memories.arguments(&launched.arguments)?;
            executor.launch(launched, &mut arguments)
        },
        // SAFETY: the plan's own step. Only lessons have one, and their workspace has the operands'
        // type, which is C's.
        Step::Unpack(copy) => unsafe { memories.unpack(executor.stream(), copy) },
    }
}
