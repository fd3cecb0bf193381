//! The plan of a product: all its launches as plain data, within the device's limits. [`execute`](super::execute) runs it on a GPU, on the
//! CPU device, or checked; it decides nothing. `--plan` prints it.
//!
//! | step | what it launches |
//! |---|---|
//! | [`Pack`] | copies an operand into the workspace, with aligned rows, perhaps transposed |
//! | [`Split`] | splits A and B into slices, for emulated fp32 |
//! | [`Multiply`] | the product's kernel, for some rows of C and some products of a batch |

mod grid;
mod pack;

use std::ops::Range;

use gpu::{
    params::{COL_BIAS, GELU, GemmParams, IDENTITY, MatrixBatch, NO_BIAS, RELU, ROW_BIAS},
    registry::{Entry, Product, Scheme},
};
use simt::{AnyKernel, Bf16, F16, LaunchConfig, Limits, device::BoxShape};

use self::grid::{Panel, panels};
use super::{
    Activation, Bias, Gemm, Output, Request, Scalar,
    scalar::{self, Kernel},
    select::layout::{OperandPlan, layouts},
    split,
};
use crate::{error::Result, product::Shape};

/// All launches of a product, first to last.
#[derive(Debug, Default)]
pub struct Plan {
    pub(super) steps: Vec<Step>,
    /// Elements of workspace: of the operands' type, or of slices. All launches that multiply share it.
    pub(super) workspace: usize,
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
}

impl Plan {
    /// Its launches, first to last. None where C stays as it is.
    pub fn launches(&self) -> impl Iterator<Item = Launch> + '_ {
        self.steps.iter().map(|step| match step {
            Step::Pack(Pack { kernel, config, .. }) | Step::Split(Split { kernel, config, .. }) => {
                Launch { kernel: kernel.declaration().name, config: *config }
            }
            Step::Multiply(step) => Launch { kernel: step.entry.name(), config: step.config },
        })
    }
}

/// A step of a plan.
#[derive(Debug)]
pub(super) enum Step {
    Pack(Pack),
    Split(Split),
    Multiply(Box<Multiply>),
}

/// Copies an operand's matrices to `to` in the workspace. Strides are from row to row, and from matrix to matrix.
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

/// Splits A and B into slices: their planes, and the ranges of their values, are parts of the workspace.
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
    /// C's first element, and its elements: a lesson's kernel takes exactly those it writes.
    pub(super) c: (usize, Option<usize>),
    /// The bias's first element.
    pub(super) bias: usize,
    /// The first row of C.
    pub(super) first_row: usize,
    /// Elements from one row of A, B and C to the next, by which a finding names an element.
    pub(super) pitches: [usize; 3],
    pub(super) tail: Option<Tail>,
}

/// How a kernel gets an operand.
#[derive(Debug)]
pub(super) enum Operand {
    /// As a view. `len`: all elements to the end where it is `None`.
    View { from: Memory, start: usize, len: Option<usize> },
    /// By tensor maps: one, or one for each alignment class.
    Maps(Vec<Map>),
    /// As slices, and the ranges of their values. `start`: of the operand, whose uncertain elements are recomputed.
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
    /// Rows of the operand, elements of a row, and from one row to the next. Nobody reads the padding.
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

/// A product without its matrices. C is row-major where a swap of A and B makes it so.
pub(super) struct Task {
    pub(super) request: Request,
    /// Elements from one matrix of a batch to the next.
    pub(super) steps: [usize; 3],
    /// Factors, rounded to the type of the sums.
    alpha: f64,
    beta: f64,
    bias: u32,
    activation: u32,
    /// Rows and columns of the slices that there are of A, and of B.
    pub(super) prepared: [Option<(usize, usize)>; 2],
}

impl Task {
    /// The task of a product. `bias`: C's, as in the request.
    pub(super) fn new<T: Scalar<O>, O: Output>(
        gemm: &Gemm<T, O>,
        request: Request,
        steps: [usize; 3],
        bias: Option<Bias<O>>,
    ) -> Self {
        let (bias, activation) = (
            match bias {
                None => NO_BIAS,
                Some(Bias::PerRow(_)) => ROW_BIAS,
                Some(Bias::PerCol(_)) => COL_BIAS,
            },
            match gemm.activation {
                Activation::Identity => IDENTITY,
                Activation::Relu => RELU,
                Activation::Gelu => GELU,
            },
        );
        let [alpha, beta] = [gemm.alpha, gemm.beta].map(T::rounded);
        Task { request, steps, alpha, beta, bias, activation, prepared: [None; 2] }
    }

    /// `C = A B` of dense row-major matrices.
    pub(super) fn dense(shape: Shape) -> Self {
        Task::plain(Request::dense(shape))
    }

    /// `C = A B`, once.
    pub(super) fn plain(request: Request) -> Self {
        Task {
            request,
            steps: [0; 3],
            alpha: 1.0,
            beta: 0.0,
            bias: NO_BIAS,
            activation: IDENTITY,
            prepared: [None; 2],
        }
    }

    /// `C^T = B^T A^T`.
    fn swapped(self) -> Self {
        let ([a, b, c], [of_a, of_b]) = (self.steps, self.prepared);
        let bias = match self.bias {
            ROW_BIAS => COL_BIAS,
            COL_BIAS => ROW_BIAS,
            none => none,
        };
        let request = self.request.swapped();
        Task { request, steps: [b, a, c], bias, prepared: [of_b, of_a], ..self }
    }

    /// Whether C stays as it is.
    fn is_nothing(&self, k: usize) -> bool {
        let Request { shape, batch, .. } = self.request;
        let stays = self.bias == NO_BIAS && self.activation == IDENTITY;
        shape.c_len() == 0 || batch == 0 || k == 0 && self.beta == 1.0 && stays
    }
}

impl Plan {
    /// The plan of a task, computed by that kernel. `on`: the device's limits, and its SMs.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) where a step would be beyond the limits.
    pub(super) fn new<T: Scalar<O>, O: Output>(
        kernel: Kernel,
        operands: OperandPlan,
        split_k: u32,
        task: Task,
        on: (&Limits, u32),
    ) -> Result<Self> {
        let mut task = if operands.swap_ab { task.swapped() } else { task };
        let k = if task.alpha == 0.0 { 0 } else { task.request.shape.k() };
        if task.is_nothing(k) {
            return Ok(Plan::default());
        }
        let (mut kernel, mut split_k) = (kernel, split_k);
        if k == 0 {
            // Nothing is multiplied. An empty matrix has no tensor map.
            split_k = 1;
            if task.request.shape.k() == 0 {
                task.alpha = 0.0;
            }
            if kernel.product.is_particular() {
                kernel = scalar::general::<T, O>()?;
            }
        }
        let mut plan = Plan::default();
        for panel in panels(kernel, task.request.shape, task.request.batch, split_k, on) {
            let multiply = multiply(kernel, &task, k, &panel);
            if !kernel.product.is_particular() {
                plan.steps.push(Step::Multiply(Box::new(multiply)));
                continue;
            }
            let [a, b, _] = task.request.strides;
            let n = task.request.shape.n();
            let layouts = layouts(kernel.product, operands, [panel.rows, n, k], [a, b]);
            plan.scheme = kernel.product.split.map(|_| kernel.product.variant.scheme);
            match (kernel.product.split, kernel.product.variant.scheme) {
                (None, _) => plan.pack(&task, &layouts, multiply, on.0)?,
                (Some(split), Scheme::F16x3) => {
                    split::plan::<F16>(&mut plan, split, &task, &layouts, multiply)?;
                }
                (Some(split), _) => {
                    split::plan::<Bf16>(&mut plan, split, &task, &layouts, multiply)?;
                }
            }
        }
        Ok(plan)
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

/// The launch of a kernel for a panel, with its operands as they are.
fn multiply(Kernel { entry, product }: Kernel, task: &Task, k: usize, panel: &Panel) -> Multiply {
    let &Panel { first_row, rows, first_product, products, wide, config } = panel;
    let Request { shape, strides: [a, b, c], batch, .. } = task.request;
    let [m, n] = [shape.m(), shape.n()];
    // The stride of a side of one element may be any.
    let words = |[rows, cols]: [usize; 2], strides: [usize; 2]| {
        let used = |size: usize, stride: usize| if size > 1 { stride as u64 } else { 0 };
        [used(rows, strides[0]), used(cols, strides[1])]
    };
    let step = |step: usize| if batch > 1 { step as u64 } else { 0 };
    let is_read = |strides: [u64; 2]| if k == 0 { [0; 2] } else { strides };
    let mut batch_steps = task.steps.map(step);
    if k == 0 {
        (batch_steps[0], batch_steps[1]) = (0, 0);
    }
    let params = GemmParams {
        m: rows as u32,
        n: n as u32,
        k: k as u32,
        products: products as u32,
        wide: wide as u64,
        bias: task.bias,
        activation: task.activation,
        alpha: task.alpha,
        beta: task.beta,
        a: is_read(words([m, k], a)),
        b: is_read(words([k, n], b)),
        c: words([m, n], c),
        batch: batch_steps,
    };
    let [a_step, b_step, c_step] = task.steps;
    // An operand that is not read may be empty, and its strides may be any.
    let starts = match k {
        0 => [0; 2],
        _ => [first_product * a_step + first_row * a[0], first_product * b_step],
    };
    let c_start = first_product * c_step + first_row * c[0];
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
        c: (c_start, product.is_lesson().then_some(rows * n)),
        bias: if task.bias == ROW_BIAS { first_row } else { 0 },
        first_row,
        pitches: [a[0], b[0], c[0]],
        params,
        tail: None,
    }
}

#[cfg(test)]
mod tests;
