//! Operands of kernels that need certain layouts: packed into the workspace where they must be,
//! and their tensor maps.

use gpu::{params::MatrixBatch, registry::Access};
use simt::Limits;

use super::{
    Argument, Binding, Input, Launched, Part, Plan, Purpose, Step, Target, Task, Unpack,
    binding::Map,
    multiply::{Multiply, Operand, Tail},
};
use crate::{
    error::Result,
    gemm::select::layout::{OperandLayout, stored_pitch},
};

impl Plan {
    /// Adds a launch that multiplies, and before it those that pack its operands.
    pub(super) fn pack(
        &mut self,
        task: &Task,
        layouts: &[OperandLayout; 2],
        mut multiply: Multiply,
        limits: &Limits,
    ) -> Result<()> {
        let (product, products) = (multiply.product, multiply.params.products as usize);
        let starts = multiply.starts;
        let copied = [0, 1].map(|i| layouts[i].copied(products, task.request.aligned[i]));
        let to = [0..copied[0], copied[0]..copied[0] + copied[1]];
        self.workspace = self.workspace.max(copied[0] + copied[1]);
        let first = first_columns(&multiply, &layouts[1], copied);
        for (operand, layout) in layouts.iter().enumerate() {
            let to = to[operand].clone();
            if to.is_empty() {
                continue;
            }
            let len = first.unwrap_or(layout.contiguous.1);
            let (kernel, config) = layout.copy(products, len, limits)?;
            let ((_, _, stride), (count, pitch)) = (layout.contiguous, layout.strided);
            let ([rows, cols], pitch) = match layout.transposed {
                true => ([len, count], stride),
                false => ([count, len], pitch),
            };
            let padded = layout.padded_pitch();
            let arguments = [
                ("rows", Binding::U32(rows as u32)),
                ("cols", Binding::U32(cols as u32)),
                ("from_pitch", Binding::U64(pitch as u64)),
                ("from_step", Binding::U64(task.steps[operand] as u64)),
                ("to_pitch", Binding::U64(padded as u64)),
                ("to_step", Binding::U64((count * padded) as u64)),
                ("from", Binding::Read(Input::Operand(operand), Part::from(starts[operand]))),
                ("to", Binding::Write(Target::Workspace, Part::of(&to))),
            ];
            let arguments = arguments.map(|(name, binding)| Argument::new(name, binding)).into();
            let purpose = Purpose::Prepare;
            self.push(Launched { kernel, config, purpose, arguments });
        }
        if let Some(first) = first {
            let (layout, all) = (&layouts[1], to[1].clone());
            let ((_, len, _), (count, pitch)) = (layout.contiguous, layout.strided);
            multiply.params.b = [layout.padded_pitch() as u64, 1];
            multiply.tail = Some(Tail {
                matrix: MatrixBatch {
                    rows: count as u32,
                    cols: (len - first) as u32,
                    count: 1,
                    pitch: pitch as u64,
                    ..MatrixBatch::default()
                },
                start: starts[1] + first,
                to: all.start + first..all.end,
            });
        }
        let rows = [0, 1].map(|operand| {
            let layout = &layouts[operand];
            let (count, pitch) = layout.strided;
            match to[operand].clone() {
                to if to.is_empty() => Rows {
                    from: Input::Operand(operand),
                    start: starts[operand],
                    len: None,
                    step: task.steps[operand],
                    pitch,
                },
                to => {
                    let pitch = layout.padded_pitch();
                    let (start, len, step) = (to.start, Some(to.len()), count * pitch);
                    Rows { from: Input::Workspace, start, len, step, pitch }
                }
            }
        });
        multiply.pitches[0] = rows[0].pitch;
        multiply.pitches[1] = rows[1].pitch;
        let access = product.variant.access;
        if access.classes() > 1 {
            // By it the kernel computes where a row begins within its class.
            multiply.params.a = [rows[0].pitch as u64, 1];
        }
        if access == Access::Pieces {
            // A single row has none: the copies of those beyond it begin at aligned places, too.
            let [a, b] = [0, 1].map(|i| match layouts[i].strided.0 {
                0 | 1 => 0,
                _ => rows[i].pitch as u64,
            });
            (multiply.params.a, multiply.params.b) = ([a, 1], [1, b]);
            let [_, _, of_c] = multiply.params.batch;
            multiply.params.batch = [rows[0].step as u64, rows[1].step as u64, of_c];
        }
        let [a, b] = rows;
        multiply.operands = match access {
            Access::Ldg | Access::Pieces => [a, b].map(Rows::view),
            Access::UnalignedA(classes) => [
                Operand::Maps(a.classes(&layouts[0], products, classes as usize)),
                Operand::Maps(vec![b.map(&layouts[1], products)]),
            ],
            _ => [
                Operand::Maps(vec![a.map(&layouts[0], products)]),
                Operand::Maps(vec![b.map(&layouts[1], products)]),
            ],
        };
        let unpack = self.store(task, &mut multiply, copied[0] + copied[1]);
        self.add(multiply);
        self.steps.extend(unpack.map(Step::Unpack));
        Ok(())
    }

    /// Lets a kernel that stores C by TMA do so in the workspace, from element `start` on, if C's
    /// rows are not 16-byte aligned. Gives the step that copies them to C.
    fn store(&mut self, task: &Task, multiply: &mut Multiply, start: usize) -> Option<Unpack> {
        let [m, n] = [multiply.params.m, multiply.params.n].map(|size| size as usize);
        let to_pitch = multiply.pitches[2];
        let pitch = stored_pitch(multiply.product, &task.request)?;
        let from = start..start + m * pitch;
        self.workspace = self.workspace.max(from.end);
        multiply.stored = Some(from.clone());
        multiply.pitches[2] = pitch;
        let to = multiply.c.start;
        Some(Unpack { from, to, size: [m, n], pitches: [pitch, to_pitch] })
    }
}

/// The number of columns of B that are packed before the launch, for a kernel that packs the others
/// in the background. It is enough for half of the kernel's waves. `None` where all of B is packed
/// before, or nothing.
fn first_columns(multiply: &Multiply, of_b: &OperandLayout, copied: [usize; 2]) -> Option<usize> {
    let Multiply { product, config, params, .. } = multiply;
    let [m, n] = [params.m, params.n].map(|size| size as usize);
    let clusters = (config.grid[0] / product.variant.cluster) as usize;
    let (down, across) = (product.tiles_down(m).max(1), n.div_ceil(product.tile()[1] as usize));
    let waves = (down * across).div_ceil(clusters.max(1));
    let tiles = (waves / 2).max(1) * clusters;
    let first = (tiles / down).max(1) * product.tile()[1] as usize;
    let packs = product.packs_tail && of_b.are_apart() && params.products == 1;
    (packs && copied[0] == 0 && copied[1] > 0 && first < n).then_some(first)
}

/// An operand's rows, in the operand or in the workspace.
struct Rows {
    from: Input,
    start: usize,
    len: Option<usize>,
    /// Elements from one matrix to the next, and from one row to the next.
    step: usize,
    pitch: usize,
}

impl Rows {
    fn view(self) -> Operand {
        Operand::View(self.from, Part { start: self.start, len: self.len })
    }

    /// One tensor map of all rows.
    fn map(&self, layout: &OperandLayout, matrices: usize) -> Map {
        let (len, count) = (layout.contiguous.1, layout.strided.0);
        self.part(layout, self.start, [matrices, count, len], self.pitch)
    }

    /// A tensor map for each alignment class: every `classes`-th row, from the last multiple of
    /// sixteen bytes on. All of its rows begin the same number of elements after one. A class
    /// without rows gets the first row, which nobody reads.
    fn classes(&self, layout: &OperandLayout, matrices: usize, classes: usize) -> Vec<Map> {
        let (len, count) = (layout.contiguous.1, layout.strided.0);
        let class = |class: usize| {
            let (start, rows) = match count.checked_sub(class) {
                None | Some(0) => (0, 1),
                Some(rows) => (class * self.pitch, rows.div_ceil(classes)),
            };
            // The kernel's first copy of a row begins `start % classes` elements before the row.
            // Where these are more than sixteen bytes, it begins before the map: TMA reads no
            // sixteen bytes without an element of the row.
            let skipped = start % layout.unit();
            let extents = [matrices, rows, len + skipped];
            let pitch = self.pitch.saturating_mul(classes);
            Map { skipped, ..self.part(layout, self.start + start - skipped, extents, pitch) }
        };
        (0..classes).map(class).collect()
    }

    fn part(&self, layout: &OperandLayout, start: usize, extents: [usize; 3], pitch: usize) -> Map {
        Map {
            from: self.from,
            start,
            extents,
            strides: [self.step, pitch],
            shape: layout.shape,
            skipped: 0,
            rows: [layout.strided.0, layout.contiguous.1, self.pitch],
        }
    }
}
