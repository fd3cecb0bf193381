//! The plan of a choice, and the loop over its steps.

use gpu::registry::Scheme;
use simt::{Bf16, F16};

use super::{
    executor::Executor,
    memories::{Matrices3, Memories, Slices},
};
use crate::{
    boxes::BoxElement,
    buffer::Pod,
    device::Device,
    error::Result,
    gemm::{
        Choice, Gemm, Output, Request, Scalar,
        operands::Operands,
        plan::{Plan, Step, Task},
        planes::Planes,
        prepared::Prepared,
        scalar::Kernel,
        split::Slice,
    },
    stream::Stream,
};

/// The plan of a choice for these operands.
pub(in crate::gemm) fn plan_of<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    device: &Device,
    operands: &Operands<T, O>,
    request: Request,
    (kernel, choice): (Kernel, &Choice),
) -> Result<Plan> {
    let Operands { a, b, c, is_swapped, .. } = operands;
    let mut task = Task::new(gemm, request, [a.step, b.step, c.step], *is_swapped)?;
    let scheme = kernel.product.variant.scheme;
    task.prepared = [a, b].map(|operand| gemm.planes_of(operand, scheme)?.rows(scheme));
    let on = (&device.limits(), device.sms());
    let split = [choice.split_k, choice.partials];
    Plan::new::<T, O>(kernel, choice.operands, split, task, on)
}

/// Runs the plan of a product, of operands that were [checked](crate::gemm::operands::check). C
/// shares no element with A, B and the bias.
pub(in crate::gemm) fn run<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    choice: &Choice,
    plan: &Plan,
    operands: Operands<T, O>,
) -> Result<()> {
    let operands = if choice.operands.swap_ab { operands.swapped() } else { operands };
    let Operands { a, b, c, bias, scales, .. } = operands;
    let (no_bias, no_scales) = (stream.device().uninit(0)?, stream.device().uninit(0)?);
    let matrices = Matrices3 {
        operands: [a.elements, b.elements],
        prepared: [&a, &b].map(|operand| gemm.planes_of(operand, plan.scheme?)),
        c: c.elements,
        bias: bias.map_or(no_bias.view(..), Ok)?,
        scales: scales.unwrap_or([no_scales.view(..)?; 2]),
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

/// Runs a plan.
///
/// # Safety
/// As for [`Stream::launch`].
pub(in crate::gemm) unsafe fn execute<T: Scalar<O>, O: Output>(
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
