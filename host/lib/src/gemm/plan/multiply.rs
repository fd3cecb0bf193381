//! The launch of the product's kernel, while it is planned: its operands may still be packed, split
//! or mapped.

use std::ops::Range;

use gpu::{
    collective::background,
    params::{GemmParams, MatrixBatch, ROW_BIAS},
    registry::{Entry, Product},
};
use simt::LaunchConfig;

use super::{
    binding::{Argument, Binding, Input, Launched, Map, Part, Purpose, Stored, Target},
    grid::Panel,
    task::Task,
};
use crate::gemm::{Request, scalar::Kernel, scales::ScalePlan};

/// The launch of the product's kernel for a panel.
pub(super) struct Multiply {
    pub(super) entry: &'static Entry,
    pub(super) product: &'static Product,
    pub(super) params: GemmParams,
    pub(super) config: LaunchConfig,
    pub(super) operands: [Operand; 2],
    /// The first elements of A and B.
    pub(super) starts: [usize; 2],
    /// It writes partial products to the workspace, not to C.
    is_partial: bool,
    /// C's elements: a lesson's kernel takes exactly those that it writes.
    pub(super) c: Part,
    /// The bias's first element.
    bias: usize,
    scales: ScalePlan,
    first_row: usize,
    first_product: usize,
    /// Elements from one row of A, B and C to the next, by which a finding names an element.
    pub(super) pitches: [usize; 3],
    pub(super) tail: Option<Tail>,
    /// Where the kernel stores C by TMA, if not in C itself: in the workspace.
    pub(super) stored: Option<Range<usize>>,
}

/// Arguments of a launch, of most kernels.
const USUAL_ARGUMENTS: usize = 8;

/// How a kernel gets an operand.
pub(super) enum Operand {
    /// As a view.
    View(Input, Part),
    /// By tensor maps: one, or one for each alignment class.
    Maps(Vec<Map>),
    /// As slices, and the ranges of their values.
    Slices(Map, (Input, Part)),
}

/// Columns of B that the kernel packs in the background, while it multiplies those before them.
pub(super) struct Tail {
    pub(super) matrix: MatrixBatch,
    /// Their first element in B.
    pub(super) start: usize,
    pub(super) to: Range<usize>,
}

/// The parameters of a kernel for a panel.
pub(super) fn params(task: &Task, panel: &Panel) -> GemmParams {
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
        wide_cols: u32::try_from(panel.wide).unwrap_or(u32::MAX),
        all_k: task.all_k.unwrap_or(0) as u32,
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

impl Multiply {
    /// The launch of a kernel for a panel, with its operands as they are.
    pub(super) fn new(Kernel { entry, product }: Kernel, task: &Task, panel: &Panel) -> Self {
        let &Panel { first_row, rows, first_product, config, .. } = panel;
        let Request { shape, strides: [a, b, c], .. } = task.request;
        let (n, k) = (shape.n(), shape.k());
        let [a_step, b_step, c_step] = task.steps;
        let [a_start, b_start, c_start] = task.starts;
        let starts = match k {
            0 => [0; 2],
            _ => [
                a_start + first_product * a_step + first_row * a[0],
                b_start + first_product * b_step,
            ],
        };
        let c_start = c_start + first_product * c_step + first_row * c[0];
        // A lesson's kernel declares how long its operands are.
        let lens = match (product.is_lesson(), k) {
            (true, _) => [Some(rows * k), Some(k * n)],
            (false, 0) => [Some(0); 2],
            _ => [None; 2],
        };
        let view =
            |i: usize| Operand::View(Input::Operand(i), Part { start: starts[i], len: lens[i] });
        Multiply {
            entry,
            product,
            config,
            operands: [view(0), view(1)],
            starts,
            is_partial: task.is_partial,
            c: Part { start: c_start, len: product.is_lesson().then_some(rows * n) },
            bias: if task.bias == ROW_BIAS { first_row } else { 0 },
            scales: task.scales,
            first_row,
            first_product,
            pitches: [a[0], b[0], c[0]],
            params: params(task, panel),
            tail: None,
            stored: None,
        }
    }

    /// The step of the plan.
    pub(super) fn into_launch(self) -> Launched {
        let Multiply { entry, product, params, config, first_row, pitches, .. } = self;
        let mut arguments = Vec::with_capacity(USUAL_ARGUMENTS);
        arguments.push(Argument::new("c", self.of_c()));
        if product.is_lesson() {
            let sizes = [("m", params.m), ("n", params.n), ("k", params.k)];
            arguments.extend(sizes.map(|(name, size)| Argument::new(name, Binding::U32(size))));
        } else {
            let bias = match self.is_partial {
                // No bias, of the type of the sums.
                true => Binding::Read(Input::Partials, Part::NOTHING),
                false => Binding::Read(Input::Bias, Part::from(self.bias)),
            };
            arguments.push(Argument::new("problem", Binding::Problem(params)));
            arguments.push(Argument::new("bias", bias));
        }
        if entry.has_scales() {
            arguments.extend(self.of_scales());
        }
        if product.packs_tail {
            arguments.extend(self.of_tail());
        }
        let mut has_slices = false;
        for (i, operand) in self.operands.into_iter().enumerate() {
            let name = ["a", "b"][i];
            match operand {
                Operand::View(input, part) => {
                    arguments.push(Argument::new(name, Binding::Read(input, part)));
                }
                Operand::Maps(maps) => arguments.push(Argument::new(name, Binding::Maps(maps))),
                Operand::Slices(planes, (ranges, part)) => {
                    has_slices = true;
                    // Uncertain elements of C are recomputed from the operands.
                    let itself = Binding::Read(Input::Operand(i), Part::from(self.starts[i]));
                    let ranges = Binding::Read(ranges, part);
                    arguments.extend([
                        Argument::sparse(name, Binding::Maps(vec![planes])),
                        Argument::sparse(["a_itself", "b_itself"][i], itself),
                        Argument::sparse(["patches_a", "patches_b"][i], ranges),
                    ]);
                }
            }
        }
        if has_slices {
            // It uses few of the words.
            let board = Binding::Write(Target::Counters, Part::ALL);
            arguments.push(Argument::sparse("board", board));
        }
        Launched {
            kernel: entry.kernel,
            config: LaunchConfig {
                constants: entry.with_scales(entry.constants_of(&params), self.scales.kind),
                ..config
            },
            purpose: Purpose::Multiply { entry, first_row, rows: params.m, pitches },
            arguments,
        }
    }

    /// The arguments of a kernel that has scales: perhaps none. Columns of scales may be padded.
    fn of_scales(&self) -> [Argument; 3] {
        let [of_a, of_b] = match self.scales.are_there() {
            true => self.scales.before(self.first_product, self.first_row).map(Part::from),
            false => [Part::NOTHING; 2],
        };
        [
            Argument::new("strides", Binding::Scales(self.scales.for_kernel())),
            Argument::sparse("scales_a", Binding::Read(Input::Scales(0), of_a)),
            Argument::sparse("scales_b", Binding::Read(Input::Scales(1), of_b)),
        ]
    }

    fn of_c(&self) -> Binding {
        let target = if self.is_partial { Target::Partials } else { Target::C };
        let Some(shape) = self.product.stores else { return Binding::Write(target, self.c) };
        let [m, n] = [self.params.m, self.params.n].map(|size| size as usize);
        let pitch = self.pitches[2];
        match &self.stored {
            None => Binding::Stores(target, self.c, Stored { size: [m, n], pitch, shape }),
            // Zeros beyond the columns of C, too: of the workspace nothing stays unwritten.
            Some(part) => {
                let all = Stored { size: [m, pitch], pitch, shape };
                Binding::Stores(Target::Workspace, Part::of(part), all)
            }
        }
    }

    /// The arguments of a kernel that packs columns of B in the background: perhaps none.
    fn of_tail(&self) -> [Argument; 4] {
        let (matrix, from, to, words) = match &self.tail {
            None => (MatrixBatch::default(), Part::NOTHING, Part::NOTHING, Part::NOTHING),
            Some(Tail { matrix, start, to }) => {
                let words = Part { start: 0, len: Some(background::COUNTERS) };
                (*matrix, Part::from(*start), Part::of(to), words)
            }
        };
        [
            Argument::new("last", Binding::Matrix(matrix)),
            Argument::new("from", Binding::Read(Input::Operand(1), from)),
            Argument::new("to", Binding::Write(Target::Workspace, to)),
            Argument::new("words", Binding::Write(Target::Zeros, words)),
        ]
    }
}
