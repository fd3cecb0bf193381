//! The steps of emulated fp32: one splits A and B, the next multiplies their slices. The workspace
//! holds A's planes, B's planes, and the ranges of A's and of B's values.

use gpu::{kernels::emulated::planes::plane_pitch, params::MatrixBatch};
use simt::AnyKernel;

use super::{
    Argument, Binding, Input, Launched, Part, Plan, Purpose, Target, Task,
    binding::Map,
    multiply::{Multiply, Operand},
};
use crate::{
    error::Result,
    gemm::{
        select::layout::OperandLayout,
        split::{self, Slice},
    },
};

impl Plan {
    /// Adds the launch that splits A and B, as far as they were not split before, and the one that
    /// multiplies their slices.
    ///
    /// # Errors
    /// As [`config`](split::config).
    pub(super) fn split<S: Slice>(
        &mut self,
        kernel: &'static dyn AnyKernel,
        task: &Task,
        layouts: &[OperandLayout; 2],
        mut multiply: Multiply,
    ) -> Result<()> {
        let (products, starts) = (multiply.params.products as usize, multiply.starts);
        let rows = layouts.each_ref().map(OperandLayout::rows);
        // Slices are prepared for one matrix.
        let is_prepared = [0, 1].map(|i| products == 1 && task.prepared[i] == Some(rows[i]));
        let [[planes_a, ranges_a], [planes_b, ranges_b]] =
            [0, 1].map(|i: usize| match is_prepared[i] {
                true => [0, 0],
                false => split::elements::<S>(rows[i], products),
            });
        let mut end = 0;
        let [planes_a, planes_b, ranges_a, ranges_b] = [planes_a, planes_b, ranges_a, ranges_b]
            .map(|len: usize| {
                end += len;
                end - len..end
            });
        self.workspace = self.workspace.max(end);
        let (planes, ranges) = ([planes_a, planes_b], [ranges_a, ranges_b]);
        if is_prepared != [true; 2] {
            let operands = [0, 1].map(|i: usize| {
                let patches = split::patches::<S>(rows[i]).saturating_mul(products);
                MatrixBatch {
                    rows: rows[i].0 as u32,
                    cols: rows[i].1 as u32,
                    count: products as u32,
                    patches: if is_prepared[i] { 0 } else { patches as u32 },
                    pitch: layouts[i].strided.1 as u64,
                    step: task.steps[i] as u64,
                }
            });
            let config = split::config::<S>(operands.map(|operand| operand.patches as usize))?;
            let [of_a, of_b] = operands;
            let read = |i: usize| Binding::Read(Input::Operand(i), Part::from(starts[i]));
            let write = |part| Binding::Write(Target::Workspace, Part::of(part));
            let arguments = [
                ("of_a", Binding::Matrix(of_a)),
                ("of_b", Binding::Matrix(of_b)),
                ("a", read(0)),
                ("b", read(1)),
                ("planes_a", write(&planes[0])),
                ("planes_b", write(&planes[1])),
                ("patches_a", write(&ranges[0])),
                ("patches_b", write(&ranges[1])),
            ];
            let arguments = arguments.map(|(name, binding)| Argument::new(name, binding)).into();
            let purpose = Purpose::Prepare;
            self.push(Launched { kernel, config, purpose, arguments });
        }
        multiply.operands = [0, 1].map(|i: usize| {
            let pitch = plane_pitch(rows[i].1);
            let (from, start, ranges) = match is_prepared[i] {
                true => (Input::Planes(i), 0, (Input::Ranges(i), Part::ALL)),
                false => {
                    (Input::Workspace, planes[i].start, (Input::Workspace, Part::of(&ranges[i])))
                }
            };
            let planes = Map {
                from,
                start,
                extents: [S::SLICES * products, rows[i].0, rows[i].1],
                strides: [rows[i].0 * pitch, pitch],
                shape: layouts[i].shape,
                skipped: 0,
                rows: [rows[i].0, rows[i].1, pitch],
            };
            Operand::Slices(planes, ranges)
        });
        self.add(multiply);
        Ok(())
    }
}
