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
    boxes::{AnyBoxes, BoxElement},
    buffer::{AnyView, BufferView, ElementType, Written},
    error::Result,
    launch::{Named, Value},
    stream::Stream,
};

/// The matrices of a product, as its plan counts them: A and B are the kernel's.
pub(in crate::gemm) struct Matrices3<'a> {
    pub(super) operands: [AnyView<'a>; 2],
    pub(super) prepared: [Option<&'a Prepared>; 2],
    pub(super) c: AnyView<'a>,
    pub(super) bias: Option<AnyView<'a>>,
    /// Of A and of B.
    pub(super) scales: Option<[AnyView<'a>; 2]>,
    /// The type of the sums.
    pub(super) sums: ElementType,
}

impl<'a> Matrices3<'a> {
    /// Without slices, bias and scales. Sums are of `S`.
    pub(super) fn new<T: BoxElement, O: BoxElement, S: BoxElement>(
        operands: [BufferView<'a, T>; 2],
        c: Written<'a, O>,
    ) -> Self {
        Matrices3 {
            operands: operands.map(|operand| AnyView::from(operand).for_boxes::<T>()),
            prepared: [None; 2],
            c: AnyView::from(c).for_boxes::<O>(),
            bias: None,
            scales: None,
            sums: ElementType::of_boxes::<S>(),
        }
    }
}

/// All memories that the launches of a plan read or write.
pub(super) struct Memories<'a> {
    pub(super) matrices: Matrices3<'a>,
    /// Empty, if there is none.
    pub(super) bias: AnyView<'a>,
    /// Empty, if there are none.
    pub(super) scales: [AnyView<'a>; 2],
    /// The planes and the ranges of a prepared operand.
    pub(super) slices: [Option<[AnyView<'a>; 2]>; 2],
    pub(super) workspace: AnyView<'a>,
    pub(super) partials: AnyView<'a>,
    pub(super) zeros: AnyView<'a>,
    pub(super) counters: AnyView<'a>,
}

impl<'a> Memories<'a> {
    /// The arguments of a launch.
    ///
    /// # Safety
    /// 1. They are of a plan for these memories.
    /// 2. They are used by one launch, and no longer than the result lives.
    pub(super) unsafe fn arguments(
        &self,
        bindings: &[Argument],
    ) -> Result<Vec<(&'static str, Box<dyn Named + 'a>)>> {
        let argument =
            |argument: &Argument| Ok((argument.parameter, self.argument(&argument.binding)?));
        bindings.iter().map(argument).collect()
    }

    /// No two bindings of a launch have an element in common that it writes, but those whose
    /// accesses the kernel orders.
    fn argument(&self, binding: &Binding) -> Result<Box<dyn Named + 'a>> {
        Ok(match *binding {
            Binding::U32(value) => Box::new(Value(value)),
            Binding::U64(value) => Box::new(Value(value)),
            Binding::Problem(params) => Box::new(Value(params)),
            Binding::Matrix(matrix) => Box::new(Value(matrix)),
            Binding::Scales(strides) => Box::new(Value(strides)),
            Binding::Read(input, part) => Box::new(read(self.input(input)?, part)?),
            Binding::Write(target, part) => Box::new(written(self.target(target), part)?),
            Binding::Maps(ref maps) => {
                let of = self.input(maps.first().map_or(Input::Workspace, |map| map.from))?;
                let boxes = |map: &Map| {
                    let elements = read(of, Part::from(map.start))?;
                    AnyBoxes::new(elements, map.extents, map.strides, map.shape, map.skipped)
                };
                Box::new(maps.iter().map(boxes).collect::<Result<Vec<_>>>()?)
            }
            Binding::Stores(target, part, Stored { size: [rows, cols], pitch, shape }) => {
                let elements = written(self.target(target), part)?;
                let boxes = AnyBoxes::new(elements, [1, rows, cols], [0, pitch], shape, 0)?;
                Box::new(vec![boxes])
            }
        })
    }

    fn input(&self, input: Input) -> Result<AnyView<'a>> {
        let Memories { matrices, bias, scales, workspace, partials, .. } = self;
        Ok(match input {
            Input::Operand(i) => matrices.operands[i],
            Input::Bias => *bias,
            Input::Scales(i) => scales[i],
            Input::Workspace => workspace.as_read(),
            Input::Partials => partials.as_read(),
            Input::Planes(i) => self.slices(i)?[0],
            Input::Ranges(i) => self.slices(i)?[1],
        })
    }

    fn target(&self, target: Target) -> AnyView<'a> {
        match target {
            Target::C => self.matrices.c,
            Target::Workspace => self.workspace,
            Target::Partials => self.partials,
            Target::Zeros => self.zeros,
            Target::Counters => self.counters,
        }
    }

    /// The planes and the ranges of an operand. None of both where it was not split before.
    fn slices(&self, i: usize) -> Result<[AnyView<'a>; 2]> {
        let nothing = read(self.workspace.as_read(), Part::NOTHING)?;
        Ok(self.slices[i].unwrap_or([nothing; 2]))
    }

    /// Copies C from the workspace.
    ///
    /// # Safety
    /// 1. The step is of a plan for these matrices. Elements of the workspace have as many bytes as
    ///    those of C.
    pub(super) unsafe fn unpack(&self, stream: &Stream, step: &Unpack) -> Result<()> {
        let (bytes, [rows, cols]) = (self.matrices.c.element().bytes, step.size);
        let [from_pitch, to_pitch] = step.pitches.map(|pitch| pitch * bytes);
        let len = (rows - 1) * step.pitches[1] + cols;
        let from = read(self.workspace.as_read(), Part::of(&step.from))?.address_on(stream)?;
        let to = self.matrices.c.part(step.to, len)?.address_on(stream)?;
        if stream.is_preparing() {
            return Ok(());
        }
        #[cfg(feature = "cuda")]
        if let Some(stream) = stream.cuda() {
            let from = cuda::Pitched { start: from as u64, pitch: from_pitch };
            let to = cuda::Pitched { start: to as u64, pitch: to_pitch };
            // SAFETY: condition 1: the rows are in the workspace and in C. Both are used on this
            // stream alone until the copy has ended.
            return unsafe { stream.copy_on_device(from, to, [cols * bytes, rows]) };
        }
        for row in 0..rows {
            let from = from.wrapping_add(row * from_pitch);
            // SAFETY: as above.
            unsafe { to.wrapping_add(row * to_pitch).copy_from_nonoverlapping(from, cols * bytes) };
        }
        Ok(())
    }
}

/// A part of elements that are read. Nothing where they end before: an operand that is not read may
/// be empty.
fn read(elements: AnyView, part: Part) -> Result<AnyView> {
    let start = part.start.min(elements.len());
    elements.part(start, part.len.unwrap_or(elements.len() - start))
}

/// A part of elements that are written.
fn written(elements: AnyView, part: Part) -> Result<AnyView> {
    elements.part(part.start, part.len.unwrap_or(elements.len().saturating_sub(part.start)))
}
