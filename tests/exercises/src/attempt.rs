//! Runs an exercise's kernel with all checks, and reports what is still missing.

use std::{fmt, num::NonZeroU32};

use simt::{
    Kernel, LaunchConfig,
    check::{self, Finding, Options, Order, Place, Profile},
    checked::{In, Out},
    cpu::Stop,
};

/// m, n, k, A, B, C.
pub type Params = (u32, u32, u32, In<f32>, In<f32>, Out<f32>);

/// A further goal besides being clean and right. `Some`: what is missing.
pub type Goal = fn(&Profile) -> Option<String>;

/// Orders in which a kernel is run. CUDA promises none.
pub const ORDERS: [Order; 4] = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];

/// The result of a kernel.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The order in which something was wrong, or the last one.
    pub order: Order,
    /// The findings of the checked launch in that order.
    pub findings: Vec<Finding>,
    /// What is wrong with C in that order.
    pub wrong: Option<Wrong>,
    /// The counts in that order.
    pub profile: Profile,
    /// What else is missing.
    pub missing: Option<String>,
}

/// Wrong elements of C.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    /// Their number.
    pub count: usize,
    /// The number of all elements.
    pub elements: usize,
    /// Row and column of the first.
    pub first: (usize, usize),
    /// The wrong value.
    pub is: f32,
    /// The right value.
    pub should_be: f64,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Wrong { count, elements, first: (row, col), is, should_be } = self;
        write!(f, "C is wrong in {count} of {elements} elements; ")?;
        write!(f, "C({row}, {col}) is the first, {is} instead of {should_be}")
    }
}

impl Attempt {
    /// Whether nothing is left to do.
    pub fn solved(&self) -> bool {
        self.findings.is_empty() && self.wrong.is_none() && self.missing.is_none()
    }

    /// The findings, with the lines of the kernel's file.
    pub fn text(&self, name: &str, source: &str) -> String {
        let file = format!("{name}.rs");
        let line = |place: &Place| match place.file.ends_with(&file) {
            true => source.lines().nth((place.line as usize).checked_sub(1)?),
            false => None,
        };
        let findings = self.findings.iter().map(|finding| finding.with_source(line).to_string());
        let wrong = self.wrong.iter().map(Wrong::to_string);
        findings.chain(wrong).chain(self.missing.clone()).collect::<Vec<_>>().join("\n")
    }
}

/// Runs an exercise's kernel, or its answer, on an m x n x k product in each order, up to the first in which
/// something is wrong.
///
/// # Errors
/// [`Stop`] if there is no memory for the launch.
pub fn attempt(kernel: &Kernel<Params>, shape: [usize; 3], goal: Goal) -> Result<Attempt, Stop> {
    let [m, n, k] = shape;
    let (a, b) = (integers(m * k, 7), integers(k * n, 11));
    let expected = product(shape, &a, &b);
    let mut orders = ORDERS.into_iter();
    loop {
        // There is at least one order, and the last one returns.
        let order = orders.next().unwrap_or_default();
        let mut c = vec![f32::NAN; m * n];
        let mut options = Options::default();
        options.order = order;
        options.complete = true;
        options.profile = Some(NonZeroU32::MIN);
        // Blocks run one after another, so that the text is the same every time.
        options.workers = Some(1);
        // SAFETY:
        // 1. The vectors outlive the launch, and nobody else uses them.
        // 2. These kernels take views.
        // 3. and 4. An element of a view is a float that is copied, and no local has a destructor.
        let report = unsafe {
            let (a, b) = (In::new(a.as_ptr(), a.len()), In::new(b.as_ptr(), b.len()));
            let c = Out::uninit(c.as_mut_ptr(), c.len());
            let params = (m as u32, n as u32, k as u32, a, b, c);
            check::launch(kernel, &config(kernel, shape), params, &options)
        }?;
        let profile = report.profile.unwrap_or_default();
        let attempt = Attempt {
            order,
            findings: report.findings,
            wrong: compare(n, &c, &expected),
            missing: goal(&profile),
            profile,
        };
        if !attempt.solved() || orders.len() == 0 {
            return Ok(attempt);
        }
    }
}

/// Blocks along x have columns of C, blocks along y rows.
fn config(kernel: &Kernel<Params>, [m, n, _]: [usize; 3]) -> LaunchConfig {
    // Each kernel declares its block, which is as large as its tile of C.
    let block = kernel.declaration.block.unwrap_or([1; 3]);
    let blocks = |size: usize, threads: u32| (size as u32).div_ceil(threads);
    LaunchConfig::new([blocks(n, block[0]), blocks(m, block[1]), 1], block)
}

/// Small integers, so that C is exact.
fn integers(len: usize, step: usize) -> Vec<f32> {
    (0..len).map(|i| (i * step % 13) as f32 - 6.0).collect()
}

/// `A B` by three loops.
fn product([m, n, k]: [usize; 3], a: &[f32], b: &[f32]) -> Vec<f64> {
    let element = |i: usize, j: usize| {
        (0..k).map(|p| f64::from(a[i * k + p]) * f64::from(b[p * n + j])).sum()
    };
    (0..m * n).map(|at| element(at / n, at % n)).collect()
}

fn compare(n: usize, c: &[f32], expected: &[f64]) -> Option<Wrong> {
    let wrong = |at: &usize| f64::from(c[*at]) != expected[*at]; // NaN is wrong, too
    let all = (0..c.len()).filter(wrong).collect::<Vec<_>>();
    let &first = all.first()?;
    Some(Wrong {
        count: all.len(),
        elements: c.len(),
        first: (first / n, first % n),
        is: c[first],
        should_be: expected[first],
    })
}
