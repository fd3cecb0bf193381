//! The plan of a product: all its launches as plain data, within the device's limits.
//! [`execute`](super::execute) runs it on a GPU, on the CPU device, or checked; it decides nothing.
//! `--plan` prints it.
//!
//! | step | what it launches |
//! |---|---|
//! | [`Pack`] | copies an operand into the workspace, with aligned rows, perhaps transposed |
//! | [`Split`] | splits A and B into slices, for emulated fp32 |
//! | [`Multiply`] | the product's kernel, for some rows of C and some products of a batch |
//! | [`Reduce`] | adds partial products in a fixed order, and applies the epilogue: split-K over the grid |
//! | [`Unpack`] | copies C from the workspace, if its kernel stores aligned rows alone |

mod grid;
mod pack;
mod split;
mod task;

use std::ops::Range;

use gpu::{
    kernels::reduce,
    params::{GemmParams, MatrixBatch, ROW_BIAS},
    registry::{Entry, Product, Scheme, Type},
};
use simt::{AnyKernel, Bf16, F16, LaunchConfig, Limits, device::BoxShape};

pub(super) use self::task::Task;

use self::grid::{Panel, panels};
use super::{
    Output, Request, Scalar,
    scalar::{self, Kernel},
    select::{
        layout::{OperandPlan, layouts},
        partials::{launches, range_of},
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
        self.steps.iter().filter_map(|step| match step {
            Step::Pack(Pack { kernel, config, .. }) | Step::Split(Split { kernel, config, .. }) => {
                let (kernel, config) = (kernel.declaration().name, *config);
                Some(Launch { kernel, config, role: Role::Prepare })
            }
            Step::Multiply(step) => {
                let (kernel, config) = (step.entry.name(), step.config);
                Some(Launch { kernel, config, role: Role::Multiply })
            }
            Step::Reduce(Reduce { kernel, config, .. }) => {
                let (kernel, config) = (kernel.declaration().name, *config);
                Some(Launch { kernel, config, role: Role::Reduce })
            }
            // A copy of the driver's.
            Step::Unpack(_) => None,
        })
    }
}

/// A step of a plan.
#[derive(Debug)]
pub(super) enum Step {
    Pack(Pack),
    Split(Split),
    Multiply(Box<Multiply>),
    Reduce(Reduce),
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

/// Adds partial products in a fixed order, and applies the epilogue.
#[derive(Debug)]
pub(super) struct Reduce {
    pub(super) kernel: &'static dyn AnyKernel,
    pub(super) config: LaunchConfig,
    pub(super) params: GemmParams,
    /// Partial products.
    pub(super) count: u32,
}

/// Copies an operand's matrices to `to` in the workspace. Strides are from row to row, and from
/// matrix to matrix.
#[derive(Debug)]
pub(super) struct Pack {
    pub(super) kernel: &'static dyn AnyKernel,
    pub(super) config: LaunchConfig,
    /// 0 for the kernel's A, 1 for its B.
    pub(super) operand: usize,
    /// Its first element.
    pub(super) start: usize,
    pub(super) size: [u32; 2],
    pub(super) strides: [u64; 2],
    pub(super) to: Range<usize>,
    pub(super) to_strides: [u64; 2],
}

/// Splits A and B into slices: their planes, and the ranges of their values, are parts of the
/// workspace.
#[derive(Debug)]
pub(super) struct Split {
    pub(super) kernel: &'static dyn AnyKernel,
    pub(super) config: LaunchConfig,
    /// The first elements of A and B.
    pub(super) starts: [usize; 2],
    /// An operand that was split before has no patches.
    pub(super) operands: [MatrixBatch; 2],
    pub(super) planes: [Range<usize>; 2],
    pub(super) ranges: [Range<usize>; 2],
}

/// Launches the product's kernel.
#[derive(Debug)]
pub(super) struct Multiply {
    pub(super) entry: &'static Entry,
    pub(super) product: &'static Product,
    pub(super) config: LaunchConfig,
    pub(super) params: GemmParams,
    pub(super) operands: [Operand; 2],
    /// It writes partial products to the workspace, not to C.
    pub(super) is_partial: bool,
    /// C's first element, and its elements: a lesson's kernel takes exactly those it writes.
    pub(super) c: (usize, Option<usize>),
    /// The bias's first element.
    pub(super) bias: usize,
    /// The first row of C.
    pub(super) first_row: usize,
    /// Elements from one row of A, B and C to the next, by which a finding names an element.
    pub(super) pitches: [usize; 3],
    pub(super) tail: Option<Tail>,
    /// Where the kernel stores C by TMA, if not in C itself: in the workspace.
    pub(super) stored: Option<Range<usize>>,
}

/// How a kernel gets an operand.
#[derive(Debug)]
pub(super) enum Operand {
    /// As a view. `len`: all elements to the end where it is `None`.
    View { from: Memory, start: usize, len: Option<usize> },
    /// By tensor maps: one, or one for each alignment class.
    Maps(Vec<Map>),
    /// As slices, and the ranges of their values. `start`: of the operand, whose uncertain elements
    /// are recomputed.
    Slices { start: usize, planes: Map, ranges: Range<usize> },
}

/// Where an operand's elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// In the operand.
    Operand,
    /// In the workspace.
    Workspace,
    /// In the slices of a [`PreparedMatrix`](super::PreparedMatrix).
    Prepared,
}

/// A tensor map: matrices, rows and columns from `start` on.
#[derive(Debug)]
pub(super) struct Map {
    pub(super) from: Memory,
    pub(super) start: usize,
    pub(super) extents: [usize; 3],
    pub(super) strides: [usize; 2],
    pub(super) shape: BoxShape,
    /// Columns before the operand's own: each row starts that many elements after a multiple of
    /// sixteen bytes. Nobody's value depends on what is there.
    pub(super) skipped: usize,
    /// Rows of the operand, elements of a row, and from one row to the next. Nobody reads the
    /// padding.
    pub(super) rows: [usize; 3],
}

/// Columns of B that the kernel packs in the background, while it multiplies those before them.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) matrix: MatrixBatch,
    /// Their first element in B.
    pub(super) start: usize,
    pub(super) to: Range<usize>,
}

impl Plan {
    /// The plan of a task, computed as that choice says. `on`: the device's limits, and its SMs.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) where a step would be beyond the limits.
    pub(super) fn new<T: Scalar<O>, O: Output>(
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
            let stores_c = kernel.product.variant.c == O::TYPE;
            let kernel = match kernel.product.requires_layouts() || !stores_c {
                true => scalar::general::<T, O>()?,
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
        plan.partials(kernel, operands, partials, task, O::TYPE, on)?;
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
        for panel in panels(kernel, shape, batch, split_k, on)? {
            let multiply = multiply(kernel, &task, &panel);
            if !kernel.product.requires_layouts() {
                self.steps.push(Step::Multiply(Box::new(multiply)));
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

    /// Adds the launches of partial products, and the one that adds them: a batch of equal ranges
    /// of k, and the range that is left.
    fn partials(
        &mut self,
        kernel: Kernel,
        operands: OperandPlan,
        count: u32,
        task: Task,
        c: Type,
        on: (&Limits, u32),
    ) -> Result<()> {
        let Request { shape, strides: [a, b, _], .. } = task.request;
        let (len, range) = (shape.c_len(), range_of(shape.k(), count as usize));
        let steps = [range * a[1], range * b[0], len];
        let request = Request { strides: [a, b, [shape.n(), 1]], ..task.request };
        for [first, batch, k] in launches(kernel.product, shape.k(), count as usize) {
            let partial = Task {
                starts: steps.map(|step| first * step),
                steps,
                is_partial: true,
                all_k: kernel.product.is_dot().then_some(shape.k()),
                ..Task::plain(Request { shape: shape.with_k(k as u32), batch, ..request })
            };
            self.multiply(kernel, operands, 1, partial, on)?;
        }
        let panel = Panel::of_rows(shape.m());
        let params = params(&task, &panel);
        let kernel: &'static dyn AnyKernel = match c == Type::F32 {
            true => &reduce::reduce_f32,
            false => &reduce::reduce_half,
        };
        let grid = [shape.n().div_ceil(reduce::COLS), shape.m().min(on.0.grid[1] as usize), 1];
        let config = LaunchConfig::new(grid.map(|blocks| blocks as u32), reduce::BLOCK);
        self.partials = count as usize * len;
        self.steps.push(Step::Reduce(Reduce { kernel, config, params, count }));
        Ok(())
    }
}

impl Multiply {
    /// The first elements of A and B.
    pub(super) fn starts(&self) -> [usize; 2] {
        self.operands.each_ref().map(|operand| match operand {
            Operand::View { start, .. } | Operand::Slices { start, .. } => *start,
            Operand::Maps(maps) => maps.first().map_or(0, |map| map.start),
        })
    }
}

/// The parameters of a kernel for a panel.
fn params(task: &Task, panel: &Panel) -> GemmParams {
    let Request { shape, strides: [a, b, c], batch, .. } = task.request;
    let [m, n, k] = [shape.m(), shape.n(), shape.k()];
    // The stride of a side of one element may be any; an operand that is not read may have no
    // elements.
    let words = |[rows, cols]: [usize; 2], strides: [usize; 2]| {
        let used = |size: usize, stride: usize| if size > 1 { stride as u64 } else { 0 };
        if rows * cols == 0 { [0; 2] } else { [used(rows, strides[0]), used(cols, strides[1])] }
    };
    let [a_step, b_step, c_step] = task.steps.map(|step| if batch > 1 { step as u64 } else { 0 });
    let is_read = |step| if k == 0 { 0 } else { step };
    GemmParams {
        m: panel.rows as u32,
        n: n as u32,
        k: k as u32,
        products: panel.products as u32,
        extent: task.all_k.unwrap_or(panel.wide) as u64,
        bias: task.bias,
        activation: task.activation,
        alpha: task.alpha,
        beta: task.beta,
        a: words([m, k], a),
        b: words([k, n], b),
        c: words([m, n], c),
        batch: [is_read(a_step), is_read(b_step), c_step],
    }
}

/// The launch of a kernel for a panel, with its operands as they are.
fn multiply(Kernel { entry, product }: Kernel, task: &Task, panel: &Panel) -> Multiply {
    let &Panel { first_row, rows, first_product, config, .. } = panel;
    let Request { shape, strides: [a, b, c], .. } = task.request;
    let (n, k) = (shape.n(), shape.k());
    let params = params(task, panel);
    let [a_step, b_step, c_step] = task.steps;
    let [a_start, b_start, c_start] = task.starts;
    let starts = match k {
        0 => [0; 2],
        _ => {
            [a_start + first_product * a_step + first_row * a[0], b_start + first_product * b_step]
        }
    };
    let c_start = c_start + first_product * c_step + first_row * c[0];
    // A lesson's kernel declares how long its operands are.
    let lens = match (product.is_lesson(), k) {
        (true, _) => [Some(rows * k), Some(k * n)],
        (false, 0) => [Some(0); 2],
        _ => [None; 2],
    };
    let operands =
        [0, 1].map(|i| Operand::View { from: Memory::Operand, start: starts[i], len: lens[i] });
    Multiply {
        entry,
        product,
        config: LaunchConfig { constants: entry.constants_of(&params), ..config },
        operands,
        is_partial: task.is_partial,
        c: (c_start, product.is_lesson().then_some(rows * n)),
        bias: if task.bias == ROW_BIAS { first_row } else { 0 },
        first_row,
        pitches: [a[0], b[0], c[0]],
        params,
        tail: None,
        stored: None,
    }
}

#[cfg(test)]
mod tests;
