//! Trials, and cases of products and their launches.

use std::{fmt::Debug, hash::DefaultHasher, rc::Rc};

use gpu::{
    params::{COL_BIAS, GELU, GemmParams, NO_BIAS, ROW_BIAS},
    registry::Product,
};
use simt::{
    AnyCheckedKernel, Bound, LaunchConfig, Named,
    check::{Memory, Options, Order},
    cpu::Stop,
};

use crate::{
    memory::{Matrix, Number, Place},
    numbers::{Numbers, integer},
};

/// A case in an order of the threads.
pub struct Trial {
    pub what: String,
    pub run: Box<dyn Fn() -> Outcome>,
}

pub struct Outcome {
    /// The kinds of findings, each once.
    pub found: Vec<&'static str>,
    /// The hash of everything that the kernel may write, and of what surrounds it.
    pub hasher: DefaultHasher,
}

impl Outcome {
    pub fn and<T: Number>(mut self, written: &Matrix<T>) -> Self {
        written.hash(&mut self.hasher, T::word);
        self
    }

    /// The same of elements that are flags: of these each bit counts, also where they are those of
    /// a NaN.
    pub fn and_flags<T: Number>(mut self, written: &Matrix<T>) -> Self {
        written.hash(&mut self.hasher, T::bits);
        self
    }
}

const ORDERS: [Order; 4] = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];

/// The first `in_all_orders` cases in every order, the others in one order each.
pub fn trials<C: Debug + 'static>(
    cases: Vec<C>,
    in_all_orders: usize,
    run: impl Fn(&C, Options) -> Outcome + 'static,
) -> Vec<Trial> {
    let run = Rc::new(run);
    let of_case = |(number, case): (usize, C)| {
        let orders = if number < in_all_orders { &ORDERS[..] } else { &ORDERS[number % 4..][..1] };
        let (run, case) = (run.clone(), Rc::new(case));
        orders.iter().map(move |&order| {
            let (run, case) = (run.clone(), case.clone());
            let mut options = Options::default();
            // With one worker a report is the same each time.
            (options.order, options.workers) = (order, Some(1));
            let what = format!("{case:?}, {order}");
            Trial { what, run: Box::new(move || run(&case, options.clone())) }
        })
    };
    cases.into_iter().enumerate().flat_map(of_case).collect()
}

/// # Safety
/// As for [`simt::check::launch`], except for the effects of mutations, which are refused and
/// found.
pub unsafe fn launch<'a>(
    kernel: &dyn AnyCheckedKernel,
    config: &LaunchConfig,
    arguments: impl IntoIterator<Item = Named<'a>>,
    options: &Options,
) -> Outcome {
    // SAFETY: the caller's.
    let mut found = match unsafe { kernel.check_named(config, arguments, options) } {
        Ok(report) => report.findings.iter().map(|finding| finding.kind.name()).collect(),
        Err(Stop::Config(what)) => panic!("{what}"),
        Err(_) => vec!["stop"],
    };
    found.sort_unstable();
    found.dedup();
    Outcome { found, hasher: DefaultHasher::new() }
}

/// `C = activation(alpha A B + beta C + bias)`, `count` times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Case {
    /// m, n, k.
    pub sizes: [usize; 3],
    pub count: usize,
    pub numbers: Numbers,
    /// Whether A, and B, is K-major. Otherwise it is MN-major.
    pub along_k: [bool; 2],
    pub a: Place,
    pub b: Place,
    pub c: Place,
    pub alpha: f64,
    pub beta: f64,
    pub bias: u32,
    pub activation: u32,
    /// CTAs or clusters of a persistent kernel.
    pub blocks: u32,
    /// CTAs of a cluster that splits k.
    pub parts: u32,
    /// Columns in tiles of the greater width, if there are two widths; or k of all partial
    /// products.
    pub wide: usize,
}

impl Case {
    /// The product of dense row-major matrices.
    pub fn dense(sizes @ [m, n, k]: [usize; 3]) -> Self {
        let row_major = |rows, cols| Place { step: rows * cols, ..Place::strided([cols, 1]) };
        let [a, b, c] = [row_major(m, k), row_major(k, n), row_major(m, n)];
        let one = Case { count: 1, alpha: 1.0, blocks: 1, parts: 1, ..Case::default() };
        Case { sizes, along_k: [true, false], a, b, c, ..one }
    }

    /// Matrices, rows and columns of A (0) or B (1) in memory.
    pub fn size(&self, which: usize) -> [usize; 3] {
        let (outer, k) = (self.sizes[which], self.sizes[2]);
        if self.along_k[which] { [self.count, outer, k] } else { [self.count, k, outer] }
    }

    pub fn operand<T: Number>(&self, which: usize) -> Matrix<T> {
        let ends = [self.sizes[which], self.sizes[2]];
        Matrix::new(self.size(which), [self.a, self.b][which]).filled(|[i, row, col]| {
            let [outer, p] = if self.along_k[which] { [row, col] } else { [col, row] };
            self.numbers.at(which, [i, outer, p], ends).into()
        })
    }

    /// The parameters besides the matrices.
    pub fn problem(&self) -> GemmParams {
        let Case { sizes: [m, n, k], count, alpha, beta, bias, activation, .. } = *self;
        let places = [self.a, self.b, self.c];
        let strides = |which: usize, transposed: bool| {
            let [row, col] = places[which].strides.map(|stride| stride as u64);
            if transposed { [col, row] } else { [row, col] }
        };
        let mut problem = GemmParams::dense(m as u32, n as u32, k as u32);
        (problem.products, problem.wide_cols) = (count as u32, self.wide as u32);
        (problem.alpha, problem.beta) = (alpha, beta);
        (problem.bias, problem.activation) = (bias, activation);
        problem.a = strides(0, !self.along_k[0]);
        problem.b = strides(1, self.along_k[1]);
        problem.c = strides(2, false);
        problem.batch = places.map(|place| place.step as u64);
        problem
    }

    /// Launches. `options` has the memory of pointers to A and B, if any. The kernel gets these
    /// operands, C, the parameters and the bias. A `lesson` gets the sizes instead.
    pub fn launch<O: Number>(
        &self,
        kernel: &dyn AnyCheckedKernel,
        config: &LaunchConfig,
        mut options: Options,
        operands: Vec<Named>,
        product: &Product,
    ) -> Outcome {
        let Case { sizes: [m, n, _], count, beta, bias, activation, .. } = *self;
        let mut c = Matrix::<O>::new([count, m, n], self.c);
        // With beta = 0 C must not be read, and each element must be written.
        if beta != 0.0 {
            c = c.filled(|at @ [_, row, col]| match (self.numbers, row * n + col) {
                // Where GELU's error function ends, or rounds past its end, for f32 and f64.
                (Numbers::Ends, at @ ..2) => [21551.0, 34099.0][at] / 4096.0,
                (Numbers::Ends, number) => number as f64 / -64.0,
                _ => integer(2, at).into(),
            });
        }
        const { assert!(NO_BIAS == 0 && ROW_BIAS == 1 && COL_BIAS == 2) };
        let mut added = Matrix::<O>::vector([0, m, n][bias as usize]).filled(|[.., at]| match at {
            // So large that it dominates.
            2 if activation == GELU => -4096.0,
            4 if activation == GELU => 4096.0,
            _ => (at % 64) as f64 - 32.0,
        });
        let problem = self.problem();
        if !options.memory.is_empty() {
            options.memory.push(Memory::new(c.pointer(), c.len, false));
        }
        options.complete &= c.is_dense();
        let mut arguments = operands;
        arguments.push((
            "c",
            match product.stores {
                Some(shape) => c.stored(shape),
                None => c.out(0, beta != 0.0),
            },
        ));
        match product.is_lesson() {
            true => {
                let sizes = [("m", &problem.m), ("n", &problem.n), ("k", &problem.k)];
                arguments.extend(sizes.map(|(name, size)| (name, Bound::Value(size))));
            }
            false => {
                arguments.extend([("problem", Bound::Value(&problem)), ("bias", added.view())]);
            }
        }
        // SAFETY: the caller's operands, C and bias outlive the launch, and nobody else uses them.
        unsafe { launch(kernel, config, arguments, &options) }.and(&c)
    }
}
