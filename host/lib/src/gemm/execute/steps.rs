//! The plan of a choice, and the loop over its steps.

use gpu::registry::Scheme;
use simt::{Bf16, F16};

use super::{
    executor::Executor,
    memories::{Matrices3, Memories},
};
use crate::{
    buffer::{AnyView, ElementType, Written},
    device::Device,
    error::Result,
    gemm::{
        Choice, Gemm, Output, Request, Scalar,
        operands::Operands,
        plan::{Plan, Step, Task},
        prepared::Prepared,
        scalar::Kernel,
    },
    stream::{Kept, Stream},
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
    Plan::new([T::TYPE, O::TYPE], kernel, choice.operands, split, task, on)
}

/// Runs the plan of a product, of operands that were [checked](crate::gemm::operands::check). C
/// shares no element with A, B, the bias and the scales.
pub(in crate::gemm) fn run<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    choice: &Choice,
    plan: &Plan,
    operands: Operands<T, O>,
) -> Result<()> {
    let operands = if choice.operands.swap_ab { operands.swapped() } else { operands };
    let Operands { a, b, c, bias, scales, .. } = operands;
    let prepared = [&a, &b].map(|operand| gemm.planes_of(operand, plan.scheme?));
    let matrices = Matrices3::new::<T, O, T::Sums>([a.elements, b.elements], c.elements);
    let (bias, scales) = (bias.map(AnyView::from), scales.map(|both| both.map(AnyView::from)));
    let matrices = Matrices3 { prepared, bias, scales, ..matrices };
    // SAFETY:
    // 1. A kernel keeps inside the sizes and strides of its parameters, and the views reach from
    //    the first to the last element of those; the tests run each kernel with guard bands. Tensor
    //    maps keep inside their extents.
    // 2. No two elements of C are one, and each is written by the one thread that computes it.
    // 3. A and B are borrowed, C mutably, and `check_apart` has seen to foreign memory. Work on
    //    other streams is waited for.
    unsafe { execute(stream, plan, matrices) }
}

/// Runs a plan.
///
/// # Safety
/// As for [`Stream::launch`].
pub(in crate::gemm) unsafe fn execute(
    executor: &dyn Executor,
    plan: &Plan,
    matrices: Matrices3,
) -> Result<()> {
    let stream = executor.stream();
    // Once for all launches.
    #[cfg(feature = "cuda")]
    let _current = stream.cuda().map(|stream| stream.context().enter()).transpose()?;
    let of_workspace = match plan.scheme {
        None => matrices.operands[0].element(),
        Some(Scheme::F16x3) => ElementType::of_boxes::<F16>(),
        Some(_) => ElementType::of_boxes::<Bf16>(),
    };
    let of_sums = matrices.sums;
    let empty = stream.device().uninit(0)?;
    let no_bias = AnyView::nothing(&empty, matrices.c.element());
    let no_scales = AnyView::nothing(&empty, ElementType::of::<f32>());
    let bytes = |len: usize, of: ElementType| len.saturating_mul(of.bytes);
    stream.of_kept(Kept::with_partials, bytes(plan.partials, of_sums), |partials| {
        executor.prepare(partials)?;
        stream.of_kept(Kept::with_workspace, bytes(plan.workspace, of_workspace), |workspace| {
            executor.prepare(workspace)?;
            stream.of_kept(Kept::with_zeros, plan.zeros, |zeros| {
                stream.of_kept(Kept::with_counters, plan.counters, |counters| {
                    let memories = Memories {
                        bias: matrices.bias.unwrap_or(no_bias),
                        scales: matrices.scales.unwrap_or([no_scales; 2]),
                        slices: matrices.prepared.map(|of| of.map(Prepared::views)),
                        matrices,
                        workspace: AnyView::of_memory(workspace, of_workspace),
                        partials: AnyView::of_memory(partials, of_sums),
                        zeros: AnyView::from(Written::from(zeros.all_mut())),
                        counters: AnyView::from(Written::from(counters.all_mut())),
                    };
                    // SAFETY: the caller's.
                    plan.steps
                        .iter()
                        .try_for_each(|step| unsafe { self::step(executor, step, &memories) })
                })
            })
        })
    })
}

/// Runs a step of a plan for these memories.
///
/// # Safety
/// As for [`Stream::launch`].
unsafe fn step(executor: &dyn Executor, step: &Step, memories: &Memories) -> Result<()> {
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
