//! The memories of a plan, and the arguments that its bindings make of them.

use super::super::{
    plan::{
        Unpack,
        binding::{Argument, Binding, Input, Map, Part, Stored, Target},
    },
    prepared::Prepared,
};
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{
    boxes::{BoxElement, Boxes, BoxesMut},
    buffer::{BufferView, Pod, Written},
    error::Result,
    launch::{Named, Value},
    stream::Stream,
};

/// The matrices of a product, as its plan counts them: A and B are the kernel's.
pub(in crate::gemm) struct Matrices3<'a, T, O> {
    pub(super) operands: [BufferView<'a, T>; 2],
    pub(super) prepared: [Option<&'a Prepared>; 2],
    pub(super) c: Written<'a, O>,
    pub(super) bias: BufferView<'a, O>,
    pub(super) scales: [BufferView<'a, f32>; 2],
}

/// The planes and the ranges of a prepared operand.
pub(super) type Slices<'a, W> = Option<(BufferView<'a, W>, BufferView<'a, W>)>;

/// All memories that the launches of a plan read or write. The workspace has elements of `W`,
/// partial products have elements of `S`.
pub(super) struct Memories<'a, T, O, W, S> {
    pub(super) matrices: Matrices3<'a, T, O>,
    pub(super) slices: [Slices<'a, W>; 2],
    pub(super) workspace: Written<'a, W>,
    pub(super) partials: Written<'a, S>,
    pub(super) zeros: Written<'a, u32>,
    pub(super) counters: Written<'a, u32>,
}

impl<T, O, W, S> Memories<'_, T, O, W, S>
where
    T: BoxElement + Pod,
    O: BoxElement + Pod,
    W: BoxElement + Pod,
    S: BoxElement + Pod,
{
    /// The arguments of a launch.
    ///
    /// # Safety
    /// 1. They are of a plan for these memories.
    /// 2. They are used by one launch, and no longer than the result lives.
    pub(super) unsafe fn arguments<'s>(
        &'s self,
        bindings: &[Argument],
    ) -> Result<Vec<(&'static str, Box<dyn Named + 's>)>> {
        let argument = |argument: &Argument| {
            // SAFETY: the caller's.
            Ok((argument.parameter, unsafe { self.argument(&argument.binding) }?))
        };
        bindings.iter().map(argument).collect()
    }

    /// # Safety
    /// As for [`arguments`](Self::arguments).
    unsafe fn argument<'s>(&'s self, binding: &Binding) -> Result<Box<dyn Named + 's>> {
        let Memories { matrices, workspace, partials, zeros, counters, .. } = self;
        Ok(match *binding {
            Binding::U32(value) => Box::new(Value(value)),
            Binding::U64(value) => Box::new(Value(value)),
            Binding::Problem(params) => Box::new(Value(params)),
            Binding::Matrix(matrix) => Box::new(Value(matrix)),
            Binding::Scales(strides) => Box::new(Value(strides)),
            Binding::Read(input, part) => match input {
                Input::Operand(i) => Box::new(read(matrices.operands[i], part)?),
                Input::Bias => Box::new(read(matrices.bias, part)?),
                Input::Scales(i) => Box::new(read(matrices.scales[i], part)?),
                Input::Workspace => Box::new(read(workspace.as_view(), part)?),
                Input::Partials => Box::new(read(partials.as_view(), part)?),
                Input::Planes(i) => Box::new(read(self.slices(i)?.0, part)?),
                Input::Ranges(i) => Box::new(read(self.slices(i)?.1, part)?),
            },
            // SAFETY: no two bindings of a launch have an element in common that it writes, but
            // those whose accesses the kernel orders.
            Binding::Write(target, part) => unsafe {
                match target {
                    Target::C => Box::new(written(&matrices.c, part)?),
                    Target::Workspace => Box::new(written(workspace, part)?),
                    Target::Partials => Box::new(written(partials, part)?),
                    Target::Zeros => Box::new(written(zeros, part)?),
                    Target::Counters => Box::new(written(counters, part)?),
                }
            },
            Binding::Maps(ref maps) => match maps.first().map(|map| map.from) {
                Some(Input::Operand(i)) => boxes(matrices.operands[i], maps)?,
                Some(Input::Bias) => boxes(matrices.bias, maps)?,
                Some(Input::Scales(i)) => boxes(matrices.scales[i], maps)?,
                Some(Input::Workspace) | None => boxes(workspace.as_view(), maps)?,
                Some(Input::Partials) => boxes(partials.as_view(), maps)?,
                Some(Input::Planes(i)) => boxes(self.slices(i)?.0, maps)?,
                Some(Input::Ranges(i)) => boxes(self.slices(i)?.1, maps)?,
            },
            // SAFETY: as above.
            Binding::Stores(target, part, to) => unsafe {
                match target {
                    Target::C => Box::new(stored(&matrices.c, part, to)?),
                    Target::Workspace => Box::new(stored(workspace, part, to)?),
                    Target::Partials => Box::new(stored(partials, part, to)?),
                    Target::Zeros => Box::new(stored(zeros, part, to)?),
                    Target::Counters => Box::new(stored(counters, part, to)?),
                }
            },
        })
    }

    /// The planes and the ranges of an operand. None of both where it was not split before.
    fn slices(&self, i: usize) -> Result<(BufferView<'_, W>, BufferView<'_, W>)> {
        let nothing = read(self.workspace.as_view(), Part::NOTHING)?;
        Ok(self.slices[i].unwrap_or((nothing, nothing)))
    }

    /// Copies C from the workspace.
    ///
    /// # Safety
    /// 1. The step is of a plan for these matrices. Elements of `W` have as many bytes as those of
    ///    `O`.
    pub(super) unsafe fn unpack(&mut self, stream: &Stream, step: &Unpack) -> Result<()> {
        let ([rows, cols], [from_pitch, to_pitch]) = (step.size, step.pitches);
        let len = (rows - 1) * to_pitch + cols;
        let from = read(self.workspace.as_view(), Part::of(&step.from))?.address_on(stream)?;
        let mut to = self.matrices.c.reborrow().into_part(step.to, len)?;
        let to = to.address_on(stream)?;
        if stream.is_preparing() {
            return Ok(());
        }
        #[cfg(feature = "cuda")]
        if let Some(stream) = stream.cuda() {
            let bytes = size_of::<O>();
            let from = cuda::Pitched { start: from as u64, pitch: from_pitch * bytes };
            let to = cuda::Pitched { start: to as u64, pitch: to_pitch * bytes };
            // SAFETY: condition 1: the rows are in the workspace and in C. Both are used on this
            // stream alone until the copy has ended.
            return unsafe { stream.copy_on_device(from, to, [cols * bytes, rows]) };
        }
        for row in 0..rows {
            let from = from.cast::<O>().wrapping_add(row * from_pitch);
            // SAFETY: as above.
            unsafe { to.wrapping_add(row * to_pitch).copy_from_nonoverlapping(from, cols) };
        }
        Ok(())
    }
}

/// A part of elements that are read. Nothing where they end before: an operand that is not read may
/// be empty.
fn read<T: Pod>(elements: BufferView<T>, part: Part) -> Result<BufferView<T>> {
    let start = part.start.min(elements.len());
    elements.view(start, part.len.unwrap_or(elements.len() - start))
}

/// A part of elements that are written.
///
/// # Safety
/// 1. No element is written through the result and read or written through another view, but by a
///    kernel that orders the two.
unsafe fn written<'s, T: Pod>(elements: &'s Written<T>, part: Part) -> Result<Written<'s, T>> {
    let len = part.len.unwrap_or(elements.len().saturating_sub(part.start));
    // SAFETY: the caller's.
    unsafe { elements.again() }.into_part(part.start, len)
}

fn boxes<'s, T: BoxElement + Pod>(
    of: BufferView<'s, T>,
    maps: &[Map],
) -> Result<Box<dyn Named + 's>> {
    let one = |map: &Map| {
        let boxes =
            Boxes::new(read(of, Part::from(map.start))?, map.extents, map.strides, map.shape)?;
        Ok(boxes.skipping(map.skipped))
    };
    Ok(Box::new(maps.iter().map(one).collect::<Result<Vec<_>>>()?))
}

/// # Safety
/// As for [`written`].
unsafe fn stored<'s, T: BoxElement + Pod>(
    elements: &'s Written<T>,
    part: Part,
    Stored { size: [rows, cols], pitch, shape }: Stored,
) -> Result<BoxesMut<'s, T>> {
    // SAFETY: the caller's.
    let elements = unsafe { written(elements, part) }?;
    BoxesMut::of_written(elements, [1, rows, cols], [0, pitch], shape)
}
