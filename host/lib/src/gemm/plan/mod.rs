//! The plan of a product: all its launches as plain data, within the device's limits. A launch has
//! a [binding](binding::Binding) for each of its kernel's parameters.
//! [`execute`](super::execute) runs it on a GPU, on the CPU device, or checked; it decides nothing.
//! `--plan` prints it.
//!
//! | step | what it does |
//! |---|---|
//! | [`Purpose::Prepare`] | copies an operand into the workspace, with aligned rows, perhaps transposed; or splits A and B into slices, for emulated fp32 |
//! | [`Purpose::Multiply`] | the product's kernel, for some rows of C and some products of a batch |
//! | [`Purpose::Reduce`] | adds partial products in a fixed order, and applies the epilogue: split-K over the grid |
//! | [`Unpack`] | copies C from the workspace, if its kernel stores aligned rows alone |

pub(super) mod binding;
mod grid;
mod multiply;
mod pack;
mod split;
mod task;

use std::ops::Range;

use gpu::{
    kernels::{emulated::stream_counters, reduce},
    params::ROW_BIAS,
    registry::{Scheme, Type},
};
use simt::{AnyKernel, Bf16, F16, LaunchConfig, Limits};

pub(super) use self::task::Task;

use self::{
    binding::{Argument, Binding, Input, Launched, Part, Purpose, Target},
    grid::{Panel, panels},
    multiply::{Multiply, params},
};
use super::{
    Output, Request, Scalar,
    scalar::{self, Kernel},
    select::{
        layout::{OperandPlan, layouts},
        partials::{launches, range_of, rows_at_once},
    },
};
use crate::error::Result;

/// All launches of a product, first to last.
#[derive(Debug, Default)]
pub struct Plan {
    pub(super) steps: Vec<Step>,
    /// Elements of workspace: of the operands' type, or of slices. All launches that multiply share
    /// it.
    pub(super) workspace: usize,
    /// Sums of partial products.
    pub(super) partials: usize,
    /// The type of the workspace's elements, where they are slices.
    pub(super) scheme: Option<Scheme>,
    /// Words that are zero before a launch and after it.
    pub(super) zeros: usize,
    /// The stream's counters.
    pub(super) counters: usize,
}

/// A launch of a plan.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Launch {
    /// The kernel: the selected one, or one that prepares an operand for it.
    pub kernel: &'static str,
    /// Grid, block, cluster and dynamic shared memory.
    pub config: LaunchConfig,
    /// What it is for.
    pub role: Role,
}

/// What a launch of a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// It packs, transposes or splits an operand.
    Prepare,
    /// It multiplies.
    Multiply,
    /// It adds partial products.
    Reduce,
}

impl Plan {
    /// Its launches, first to last. None where C stays as it is.
    pub fn launches(&self) -> impl Iterator<Item = Launch> + '_ {
        self.launched().map(|launched| {
            let (kernel, role) = (launched.kernel.declaration().name, Role::Prepare);
            let (kernel, role) = match launched.purpose {
                Purpose::Prepare => (kernel, role),
                Purpose::Multiply { entry, .. } => (entry.name(), Role::Multiply),
                Purpose::Reduce => (kernel, Role::Reduce),
            };
            Launch { kernel, config: launched.config, role }
        })
    }

    /// Bytes of workspace of a plan for A and B of `T`.
    pub(super) fn workspace_bytes<T: Scalar<O>, O: Output>(&self) -> u64 {
        // Slices of both schemes have two bytes.
        let element = if self.scheme.is_some() { size_of::<Bf16>() } else { size_of::<T>() };
        let bytes = |len: usize, element: usize| (len as u64).saturating_mul(element as u64);
        bytes(self.workspace, element).saturating_add(bytes(self.partials, size_of::<T::Sums>()))
    }

    /// The same, with their arguments.
    pub(super) fn launched(&self) -> impl Iterator<Item = &Launched> {
        self.steps.iter().filter_map(|step| match step {
            Step::Launch(launched) => Some(&**launched),
            // A copy of the driver's.
            Step::Unpack(_) => None,
        })
    }
}

/// A step of a plan.
#[derive(Debug)]
pub(super) enum Step {
    Launch(Box<Launched>),
    Unpack(Unpack),
}

/// Copies C from the workspace, where its rows are 16-byte aligned. `to`: its first element.
/// Pitches are those of the workspace and of C.
#[derive(Debug)]
pub(super) struct Unpack {
    pub(super) from: Range<usize>,
    pub(super) to: usize,
    pub(super) size: [usize; 2],
    pub(super) pitches: [usize; 2],
}

impl Plan {
    /// The plan of a task for A and B, and C, of these types, computed as that choice says. `on`:
    /// the device's limits, and its SMs.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) where a step would be beyond the limits.
    pub(super) fn new(
        types: [Type; 2],
        kernel: Kernel,
        operands: OperandPlan,
        [split_k, partials]: [u32; 2],
        mut task: Task,
        on: (&Limits, u32),
    ) -> Result<Self> {
        let shape = task.request.shape;
        let k = if task.alpha == 0.0 { 0 } else { shape.k() };
        let mut plan = Plan::default();
        if task.is_nothing(k) {
            return Ok(plan);
        }
        if k == 0 {
            // Nothing is multiplied. An empty matrix has no tensor map, and a kernel of partial
            // products may not store C's type.
            let stores_c = kernel.product.variant.c == types[1];
            let kernel = match kernel.product.requires_layouts() || !stores_c {
                true => scalar::general_of(types)?,
                false => kernel,
            };
            if shape.k() == 0 {
                task.alpha = 0.0;
            }
            task.request.shape = shape.with_k(0);
            plan.multiply(kernel, operands, 1, task, on)?;
            return Ok(plan);
        }
        if partials == 1 {
            plan.multiply(kernel, operands, split_k, task, on)?;
            return Ok(plan);
        }
        plan.partials(kernel, operands, partials, task, types[1], on)?;
        Ok(plan)
    }

    /// Adds the launches of a task, with k as its request says.
    fn multiply(
        &mut self,
        kernel: Kernel,
        operands: OperandPlan,
        split_k: u32,
        task: Task,
        on: (&Limits, u32),
    ) -> Result<()> {
        let task = if operands.swap_ab { task.swapped() } else { task };
        let Request { shape, batch, strides: [a, b, _], .. } = task.request;
        // A launch has the scales of one product.
        let at_once = if task.scales.are_there() { 1 } else { usize::MAX };
        for panel in panels(kernel, shape, (batch, at_once), split_k, on)? {
            let multiply = Multiply::new(kernel, &task, &panel);
            if !kernel.product.requires_layouts() {
                self.add(multiply);
                continue;
            }
            let sizes = [panel.rows, shape.n(), shape.k()];
            let layouts = layouts(kernel.product, operands, sizes, [a, b]);
            let scheme = kernel.product.variant.scheme;
            self.scheme = kernel.product.split.map(|_| scheme);
            match (kernel.product.split, scheme) {
                (None, _) => self.pack(&task, &layouts, multiply, on.0)?,
                (Some(split), Scheme::F16x3) => {
                    self.split::<F16>(split, &task, &layouts, multiply)?;
                }
                (Some(split), _) => {
                    self.split::<Bf16>(split, &task, &layouts, multiply)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the launches of partial products, and those that add them: of each product, and of as
    /// many of its rows as [`rows_at_once`] allows.
    fn partials(
        &mut self,
        kernel: Kernel,
        operands: OperandPlan,
        count: u32,
        task: Task,
        c: Type,
        on: (&Limits, u32),
    ) -> Result<()> {
        let Request { shape, batch, .. } = task.request;
        let at_once = rows_at_once(&task.request, count as usize, kernel.product.variant.c.bytes());
        for product in 0..batch {
            for first_row in (0..shape.m()).step_by(at_once) {
                let rows = at_once.min(shape.m() - first_row);
                self.partials_of(
                    kernel,
                    operands,
                    count,
                    &task.part(product, first_row, rows),
                    on,
                )?;
                let of = (product, first_row, rows);
                self.add_partials(Input::Partials, count, &task, of, c, on.0);
            }
        }
        Ok(())
    }

    /// Adds the launches of partial products: a batch of equal ranges of k, and the range that is
    /// left.
    fn partials_of(
        &mut self,
        kernel: Kernel,
        operands: OperandPlan,
        count: u32,
        task: &Task,
        on: (&Limits, u32),
    ) -> Result<()> {
        let Request { shape, strides: [a, b, _], .. } = task.request;
        let (len, range) = (shape.c_len(), range_of(shape.k(), count as usize));
        let steps = [range * a[1], range * b[0], len];
        let starts = [task.starts[0], task.starts[1], 0];
        let request = Request { strides: [a, b, [shape.n(), 1]], ..task.request };
        for [first, batch, k] in launches(kernel.product, shape.k(), count as usize) {
            let partial = Task {
                starts: [0, 1, 2].map(|i: usize| starts[i] + first * steps[i]),
                steps,
                is_partial: true,
                all_k: kernel.product.is_dot().then_some(shape.k()),
                ..Task::plain(Request { shape: shape.with_k(k as u32), batch, ..request })
            };
            self.multiply(kernel, operands, 1, partial, on)?;
        }
        self.partials = self.partials.max(count as usize * len);
        Ok(())
    }

    /// The launch that adds partial products which are the kernel's A: those of several devices.
    pub(super) fn of_sum(c: Type, count: u32, task: &Task, limits: &Limits) -> Self {
        let mut plan = Plan::default();
        let rows = (0, 0, task.request.shape.m());
        plan.add_partials(Input::Operand(0), count, task, rows, c, limits);
        plan
    }

    /// Adds the launch that adds the partial products of some rows of a product.
    fn add_partials(
        &mut self,
        from: Input,
        count: u32,
        task: &Task,
        (product, first_row, rows): (usize, usize, usize),
        c: Type,
        limits: &Limits,
    ) {
        let (shape, step) = (task.request.shape, task.steps[2]);
        let params = params(task, &Panel::of_rows(rows));
        let kernel: &'static dyn AnyKernel = match () {
            _ if c == Type::F32 => &reduce::reduce_f32,
            _ if c == Type::F64 => &reduce::reduce_f64,
            _ if c == Type::I32 => &reduce::reduce_i32,
            _ => &reduce::reduce_half,
        };
        let grid = [shape.n().div_ceil(reduce::COLS), rows.min(limits.grid[1] as usize), 1];
        let config = LaunchConfig::new(grid.map(|blocks| blocks as u32), reduce::BLOCK);
        let start = task.starts[2] + product * step + first_row * task.request.strides[2][0];
        let bias = if params.bias == ROW_BIAS { first_row } else { 0 };
        let arguments = vec![
            Argument::new("problem", Binding::Problem(params)),
            Argument::new("count", Binding::U32(count)),
            Argument::new("partials", Binding::Read(from, Part::ALL)),
            Argument::new("c", Binding::Write(Target::C, Part::from(start))),
            Argument::new("bias", Binding::Read(Input::Bias, Part::from(bias))),
        ];
        let purpose = Purpose::Reduce;
        self.push(Launched { kernel, config, purpose, arguments });
    }

    /// Adds the launch that multiplies.
    fn add(&mut self, multiply: Multiply) {
        let launched = multiply.into_launch();
        for argument in &launched.arguments {
            match argument.binding {
                Binding::Write(Target::Zeros, Part { len, .. }) => {
                    self.zeros = self.zeros.max(len.unwrap_or(0));
                }
                Binding::Write(Target::Counters, _) => self.counters = stream_counters::LEN,
                _ => {}
            }
        }
        self.push(launched);
    }

    fn push(&mut self, launched: Launched) {
        self.steps.push(Step::Launch(Box::new(launched)));
    }
}

#[cfg(test)]
mod tests;
