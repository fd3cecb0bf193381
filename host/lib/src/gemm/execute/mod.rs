//! Runs a [`Plan`], step by step, on a stream. An [`Executor`](executor::Executor) launches the
//! kernel that multiplies: the stream itself, or one that [checks](checked) it.

#[cfg(feature = "cpu")]
pub mod checked;
mod executor;
mod memories;
pub(super) mod steps;

use gpu::registry::Type;
use simt::{LaunchConfig, Limits};

use self::{
    memories::Matrices3,
    steps::{execute, plan_of, run},
};
use super::{
    Batch, BatchMut, Bias, Choice, Gemm, Output, Request, Scalar, Target,
    operands::{self, Operands, check, check_apart, check_written_once, is_aligned, of_product},
    plan::{Plan, Task, binding::Purpose},
    scalar::Kernel,
    select::{choose_cached, layout::OperandPlan},
    tune::ask,
};
use crate::{
    buffer::{BufferView, Written},
    error::{Error, Result},
    matrix::MatrixView,
    matrix::MatrixViewMut,
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
    check_apart(&a, &b, &c, bias, gemm.scales)?;
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
    (choice, plan, is_swapped): (&Choice, &Plan, bool),
    a: Batch<T>,
    b: Batch<T>,
    c: BatchMut<O>,
) -> Result<()> {
    check_apart(&a, &b, &c, gemm.bias.map(Bias::elements), gemm.scales)?;
    let operands = check(gemm, stream, a, b, c)?;
    let is_as_planned = operands.is_swapped == is_swapped;
    let operands = if is_as_planned { operands } else { operands.swapped() };
    run(gemm, stream, choice, plan, operands)
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
        let fits =
            check_apart(&a, &b, &c, bias, gemm.scales).and_then(|()| check(gemm, stream, a, b, c));
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
            ask::launched(gemm, cache, stream, operands, &request)?
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
    // SAFETY: as in `run`: the partial products are borrowed, C mutably.
    unsafe { execute(stream, plan, Matrices3::new::<S, O, S>([partials; 2], c)) }
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
    let plan = Plan::new([Type::F32; 2], kernel, OperandPlan::default(), [1; 2], task, on)?;
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
    let plan = Plan::new([T::TYPE, O::TYPE], kernel, OperandPlan::default(), [1; 2], task, on)?;
    // SAFETY: as in `run`: A and B are borrowed, C mutably.
    unsafe { execute(stream, &plan, Matrices3::new::<T, O, T::Sums>(operands, c)) }
}
