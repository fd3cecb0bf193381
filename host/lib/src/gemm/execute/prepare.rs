//! The launches before and after the kernel that multiplies: copies of operands, their slices, sums
//! of partial products.

use std::ops::Range;

use super::{
    Executor,
    matrices::{Matrices3, part},
};
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{
    buffer::{Buffer, Pod, Written},
    error::Result,
    gemm::{
        Output, Scalar,
        plan::{Pack, Reduce, Split, Unpack},
        planes,
    },
    launch::Named,
    stream::Stream,
};

/// Copies an operand into the workspace.
pub(super) fn pack<T: Scalar<O>, O: Output, W: Pod>(
    executor: &impl Executor,
    step: &Pack,
    matrices: &Matrices3<T, O>,
    workspace: &mut Buffer<W>,
) -> Result<()> {
    let [mut rows, mut cols] = step.size;
    let [mut from_pitch, mut from_step] = step.strides;
    let [mut to_pitch, mut to_step] = step.to_strides;
    let mut from = part(matrices.operands[step.operand], step.start, None)?;
    let mut to = Written::from(workspace.view_mut(step.to.clone())?);
    let arguments: &mut [(_, &mut dyn Named)] = &mut [
        ("rows", &mut rows),
        ("cols", &mut cols),
        ("from_pitch", &mut from_pitch),
        ("from_step", &mut from_step),
        ("to_pitch", &mut to_pitch),
        ("to_step", &mut to_step),
        ("from", &mut from),
        ("to", &mut to),
    ];
    // SAFETY: it reads the operand's elements, and writes their copies, each by a thread of its
    // own.
    unsafe { executor.launch(step.kernel, &step.config, arguments) }
}

/// Splits A and B into slices in the workspace.
pub(super) fn split<T: Scalar<O>, O: Output, W: Pod>(
    executor: &impl Executor,
    step: &Split,
    matrices: &Matrices3<T, O>,
    workspace: &mut Buffer<W>,
) -> Result<()> {
    let all = Written::from(workspace.view_mut(..)?);
    // SAFETY: four parts of it are made, which do not overlap.
    let [[planes_a, planes_b], [ranges_a, ranges_b]] =
        unsafe { all.twice().map(|half| half.twice()) };
    let to = [
        within(planes_a, &step.planes[0])?,
        within(planes_b, &step.planes[1])?,
        within(ranges_a, &step.ranges[0])?,
        within(ranges_b, &step.ranges[1])?,
    ];
    let [a, b] = matrices.operands;
    let operands = [part(a, step.starts[0], None)?, part(b, step.starts[1], None)?];
    planes::with_arguments(step.operands, operands, to, |arguments| {
        // SAFETY: it reads the operands' elements, and writes planes and ranges, each element by a
        // thread of its own.
        unsafe { executor.launch(step.kernel, &step.config, arguments) }
    })
}

fn within<'a, W: Pod>(all: Written<'a, W>, part: &Range<usize>) -> Result<Written<'a, W>> {
    all.into_part(part.start, part.len())
}

/// Copies C from the workspace.
///
/// # Safety
/// 1. The step is of a plan for these matrices. Elements of `W` have as many bytes as those of `O`.
pub(super) unsafe fn unpack<T: Scalar<O>, O: Output, W: Pod>(
    stream: &Stream,
    step: &Unpack,
    matrices: &mut Matrices3<T, O>,
    workspace: &Buffer<W>,
) -> Result<()> {
    let ([rows, cols], [from_pitch, to_pitch]) = (step.size, step.pitches);
    let len = (rows - 1) * to_pitch + cols;
    let from = workspace.view(step.from.clone())?.address_on(stream)?;
    let mut to = matrices.c.reborrow().into_part(step.to, len)?;
    let to = to.address_on(stream)?;
    if stream.is_preparing() {
        return Ok(());
    }
    #[cfg(feature = "cuda")]
    if let Some(stream) = stream.cuda() {
        let bytes = size_of::<O>();
        let from = cuda::Pitched { start: from as u64, pitch: from_pitch * bytes };
        let to = cuda::Pitched { start: to as u64, pitch: to_pitch * bytes };
        // SAFETY: condition 1: the rows are in the workspace and in C. Both are used on this stream
        // alone until the copy has ended.
        return unsafe { stream.copy_on_device(from, to, [cols * bytes, rows]) };
    }
    for row in 0..rows {
        let from = from.cast::<O>().wrapping_add(row * from_pitch);
        // SAFETY: as above.
        unsafe { to.wrapping_add(row * to_pitch).copy_from_nonoverlapping(from, cols) };
    }
    Ok(())
}

/// Adds partial products.
///
/// # Safety
/// As for [`Stream::launch`].
pub(super) unsafe fn reduce<T: Scalar<O>, O: Output>(
    executor: &impl Executor,
    step: &Reduce,
    matrices: &mut Matrices3<T, O>,
    partials: &Buffer<f32>,
) -> Result<()> {
    let (mut params, mut count) = (step.params, step.count);
    let (mut partials, mut bias) = (partials.view(..)?, matrices.bias);
    let mut c = matrices.c.reborrow();
    let arguments: &mut [(_, &mut dyn Named)] = &mut [
        ("problem", &mut params),
        ("count", &mut count),
        ("partials", &mut partials),
        ("c", &mut c),
        ("bias", &mut bias),
    ];
    // SAFETY: the caller's. The number of partial products is the plan's.
    unsafe { executor.launch(step.kernel, &step.config, arguments) }
}
