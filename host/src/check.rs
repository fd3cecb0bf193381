//! Products on the CPU with every access of every thread checked.
//!
//! A kernel with a race or a missing barrier can give the right result many times. Here such a
//! kernel is found by its accesses, not by its result: [`simt::check`](mod@simt::check) reports the
//! findings. The result is compared, too: a kernel without races can be wrong.
//!
//! ```
//! use host::{Shape, check, product};
//!
//! let (kernel, shape) = (product::find("tiled16")?, Shape::new(40, 33, 17)?);
//! let products = check::kernel(kernel, shape, &check::orders(4, 1), 1)?;
//! assert!(products.iter().all(|product| product.findings.is_empty()));
//! assert!(products.iter().all(|product| product.comparison.passed()));
//! # Ok::<(), host::Error>(())
//! ```

use std::{fmt, num::NonZeroU32};

use gpu::registry::{Entry, Type};
use simt::{
    LaunchConfig,
    check::{Finding, Limit, Order, Profile, Report, Trace, shadow_bytes},
    with_types,
};

use crate::{
    operands::{self, Drawn},
    scaling::{ScaleKind, Scaling},
    verify::{Claim, Comparison, Criterion, NumberFormat, slices},
};
use gpu_gemm::{
    Device, Error, INTERRUPTED, Matrix, Result, Shape,
    gemm::{
        Output, Scalar, Scales,
        checked::{self, workspace_bytes},
    },
    product::shape_of,
};

pub use simt::check::{Seen, merge};

/// The values in A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Real numbers from [-1, 1), rounded to the operands' type. C must be within the error bound
    /// of an f32 sum.
    Uniform,
    /// Integers so small that C must be exact.
    Integers,
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Data::Uniform => "uniform data",
            Data::Integers => "integers",
        })
    }
}

/// A checked product.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// How the numbers of A and B were made.
    pub data: Data,
    /// The order of blocks, warps and lanes.
    pub order: Order,
    /// The kernel's errors.
    pub findings: Vec<Finding>,
    /// What the checker could not see, since a limit of its own was reached.
    pub limits: Vec<Limit>,
    /// How C compares with the product in float64.
    pub comparison: Comparison,
}

/// `count` orders to check a kernel in: forward, reverse, and random ones with the seeds `seed`,
/// `seed + 1` and so on.
pub fn orders(count: u32, seed: u64) -> Vec<Order> {
    let random = (0..).map(|number| Order::Random(seed.wrapping_add(number)));
    [Order::Forward, Order::Reverse].into_iter().chain(random).take(count as usize).collect()
}

/// The products that [`kernel`] checks. Integers in each order show a dropped or wrong term of a
/// sum. Uniform numbers in the first order show a loss of precision. If k is too large for
/// integers, all are of uniform numbers.
pub fn products(shape: Shape, scales: Option<ScaleKind>, orders: &[Order]) -> Vec<(Data, Order)> {
    match operands::exact_magnitude(exact_steps(shape, scales.is_some())) {
        None => orders.iter().map(|&order| (Data::Uniform, order)).collect(),
        Some(_) => {
            let uniform = orders.first().map(|&order| (Data::Uniform, order));
            uniform.into_iter().chain(orders.iter().map(|&order| (Data::Integers, order))).collect()
        }
    }
}

/// K-steps of integers whose sums are as large. Scales are up to two, of A and of B.
fn exact_steps(shape: Shape, has_scales: bool) -> usize {
    shape.k().saturating_mul(if has_scales { 4 } else { 1 })
}

/// Checks a kernel in these orders. `seed` is that of the operands.
///
/// # Errors
/// As [`product`].
pub fn kernel(
    entry: &'static Entry,
    shape: Shape,
    orders: &[Order],
    seed: u64,
) -> Result<Vec<Checked>> {
    let one = |(data, order)| product(entry, shape, data, order, seed);
    products(shape, None, orders).into_iter().map(one).collect()
}

/// Checks a kernel in one order, with operands of its types and in its layout, and compares C.
/// `seed` is that of the operands. They are drawn in their own type: a kernel that rounds f64 to
/// f32 on the way is wrong.
///
/// # Errors
/// [`Error::Argument`] for a kernel that computes no product, and for integers if k is too large
/// for an exact sum; [`Error::OutOfMemory`] before the operands are made; [`Error::Interrupted`].
pub fn product(
    entry: &'static Entry,
    shape: Shape,
    data: Data,
    order: Order,
    seed: u64,
) -> Result<Checked> {
    scaled(entry, shape, None, data, order, seed)
}

/// As [`product`], with random scales of A and B, if there are any. With integers they are 1 and 2.
///
/// # Errors
/// As there; [`Error::Argument`] for scales that the kernel does not have.
pub fn scaled(
    entry: &'static Entry,
    shape: Shape,
    scales: Option<ScaleKind>,
    data: Data,
    order: Order,
    seed: u64,
) -> Result<Checked> {
    let given = (shape, data, order, seed);
    must_take(entry, scales)?;
    let draw = |kind| Scaling::draw(kind, shape, seed, data == Data::Integers);
    let scaling = scales.map(draw).transpose()?;
    let scaling = scaling.as_ref();
    let types = match entry.product.as_ref().filter(|product| !product.is_of_f32_views()) {
        Some(product) => (product.variant.operands, product.variant.c),
        None => {
            let multiply = |a: &_, b: &_, c: &mut _| multiply(entry, a, b, c, order);
            return product_of::<f32, f32>(given, None, |_| {}, [false; 2], multiply);
        }
    };
    with_types!(types, |T, O| product_by::<T, O>(entry, given, scaling))
        .unwrap_or_else(|| Err(not_multiplied(entry)))
}

/// Refuses scales that the kernel does not have.
///
/// # Errors
/// [`Error::Argument`].
pub fn must_take(entry: &Entry, scales: Option<ScaleKind>) -> Result<()> {
    let Some(kind) = scales.filter(|kind| !entry.takes_scales(kind.number())) else {
        return Ok(());
    };
    let types = match kind {
        ScaleKind::RowsCols => "e4m3 or e5m2, or of i8 with a C of f32, bf16 or f16",
        ScaleKind::Blocks => "e4m3 or e5m2",
    };
    let limit = format!(
        "{} has no such scales; name a kernel of {types}: `host kernels e4m3 tensor` lists some",
        entry.name()
    );
    Err(Error::argument("--scales", kind, limit))
}

/// The error for a kernel of types that the table does not combine.
fn not_multiplied(entry: &Entry) -> Error {
    Error::argument("kernel", entry.name(), "is for types of which no products are computed")
}

/// A shape, its data, the order, and the seed.
type Given = (Shape, Data, Order, u64);

/// [`product`] for a kernel that is not a lesson, with operands in its layout.
fn product_by<T, O>(
    entry: &'static Entry,
    given: Given,
    scaling: Option<&Scaling>,
) -> Result<Checked>
where
    T: Scalar<O> + Drawn,
    O: Output + Drawn,
{
    let (shape, _, order, _) = given;
    let by_columns = entry.by_columns();
    let here = scaling.map(|of| of.upload(&Device::cpu())).transpose()?;
    let scales = here.as_ref().map(Scaling::scales).transpose()?;
    let multiply =
        |a: &_, b: &_, c: &mut _| watch(entry, shape, by_columns, [a, b], scales, c, order.into());
    let claimed = |claim: &mut Claim| {
        claim.factors = entry.is_tf32().then_some(NumberFormat::TF32);
        claim.sliced = entry.is_emulated();
    };
    product_of::<T, O>(given, scaling, claimed, by_columns, multiply)
}

/// For operands of `T`, and C of `O`. A column-major operand is passed as its transpose.
fn product_of<T: Drawn, O: Drawn>(
    (shape, data, order, seed): Given,
    scaling: Option<&Scaling>,
    claimed: impl Fn(&mut Claim),
    [a_by_columns, b_by_columns]: [bool; 2],
    multiply: impl FnOnce(&Matrix<T>, &Matrix<T>, &mut Matrix<O>) -> Result<Watched>,
) -> Result<Checked> {
    let wider = if size_of::<T>() > size_of::<f32>() { shape.bytes() } else { 0 };
    Device::cpu().require_memory(bytes(shape).saturating_add(wider))?;
    let (criterion, a, b) = draw::<T>(shape, scaling.is_some(), data, O::TYPE, seed)?;
    let device = Device::cpu();
    let matrix = |values: &[T], rows: usize, cols: usize, by_columns: bool| {
        if by_columns {
            let places = (0..cols).flat_map(|col| (0..rows).map(move |row| row * cols + col));
            let turned = places.map(|place| values[place]).collect::<Vec<_>>();
            return Matrix::from_row_major(&device, cols, rows, &turned);
        }
        Matrix::from_row_major(&device, rows, cols, values)
    };
    let a_matrix = matrix(&a, shape.m(), shape.k(), a_by_columns)?;
    let b_matrix = matrix(&b, shape.k(), shape.n(), b_by_columns)?;
    let mut c = Matrix::zeros(&device, shape.m(), shape.n())?;
    // An element that is not written is wrong, too.
    c.buffer_mut().fill_bytes(0xff)?;
    let Watched { findings, limits, .. } = multiply(&a_matrix, &b_matrix, &mut c)?;
    let c = c.to_row_major()?;
    let comparison = slices(shape, &a, &b, &c, |claim| {
        // It also refers to the scaled matrices, which live shorter.
        let mut claim: Claim = claim;
        let scaled = scaling.map(|of| [of.of(0, claim.a), of.of(1, claim.b)]);
        if let Some([a, b]) = &scaled {
            (claim.a, claim.b) = (a, b);
        }
        claimed(&mut claim);
        claim.compare(criterion)
    })?;
    Ok(Checked { data, order, findings, limits, comparison })
}

/// A, B, and the criterion for C, whose type is `c`.
pub(crate) fn draw<T: Drawn>(
    shape: Shape,
    has_scales: bool,
    data: Data,
    c: Type,
    seed: u64,
) -> Result<(Criterion, Vec<T>, Vec<T>)> {
    let (seeds, lens) = ([seed, operands::seed_of_b(seed)], [shape.a_len(), shape.b_len()]);
    match data {
        Data::Uniform => {
            let draw = |i: usize| operands::uniform(seeds[i], lens[i]);
            Ok((Criterion::Bound, draw(0)?, draw(1)?))
        }
        Data::Integers => {
            let types = (T::TYPE, c);
            let magnitude = operands::exact_magnitude_of(exact_steps(shape, has_scales), types)
                .ok_or_else(|| {
                    let limit = operands::most_exact_steps(T::TYPE);
                    let limit = format!("{limit}: no longer sum of integers is sure to be exact");
                    Error::argument("k", shape.k(), limit)
                })?;
            let draw = |i: usize| operands::integers(seeds[i], lens[i], magnitude);
            Ok((Criterion::Exact, draw(0)?, draw(1)?))
        }
    }
}

/// Bytes that [`multiply`] needs for f32: the matrices, and shadow memory that records the accesses
/// to each element. bf16 and f16 need fewer.
pub fn bytes(shape: Shape) -> u64 {
    shape.bytes().saturating_add(shadow(shape))
}

fn shadow(shape: Shape) -> u64 {
    shadow_bytes(shape.bytes() as usize, size_of::<f32>()) as u64
}

/// Options of [`multiply`]. An [`Order`] converts to them.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The order of blocks, warps and lanes.
    pub order: Order,
    /// Count the memory accesses of every n-th block.
    pub profile: Option<NonZeroU32>,
    /// Record everything that the block at that column and row does. If the product takes several
    /// launches, it is a block of the first.
    pub trace: Option<[u32; 2]>,
}

impl From<Order> for Options {
    fn from(order: Order) -> Self {
        Options { order, ..Options::default() }
    }
}

impl Options {
    fn of_launch(self, device: &Device, config: &LaunchConfig) -> simt::check::Options<'static> {
        let mut options = simt::check::Options::default();
        options.order = self.order;
        options.profile = self.profile;
        options.trace = self.trace.map(|[x, y]| [x, y, 0]);
        options.complete = true;
        options.workers = Some(device.sms() as usize);
        options.cancel = Some(&INTERRUPTED);
        options.done = Some(gpu_gemm::progress::begin(config.blocks()));
        options
    }
}

/// The report of [`multiply`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Watched {
    /// The kernel's errors.
    pub findings: Vec<Finding>,
    /// What the checker could not see, since a limit of its own was reached.
    pub limits: Vec<Limit>,
    /// The counts, if asked for: one profile for each launch.
    pub profiles: Vec<Profile>,
    /// The trace of the block, if asked for.
    pub trace: Option<Trace>,
}

impl Watched {
    /// Adds the report of the next launch.
    fn add(&mut self, report: Report) {
        self.findings.extend(report.findings);
        let new = |limit: &Limit| !self.limits.contains(limit);
        let limits: Vec<_> = report.limits.into_iter().filter(new).collect();
        self.limits.extend(limits);
        self.profiles.extend(report.profile);
        self.trace = self.trace.take().or(report.trace);
    }
}

/// As [`product::multiply`](gpu_gemm::product::multiply) on the CPU device, and reports the
/// kernel's errors. What C held before counts as uninitialised.
///
/// A product must read every element of A and B, and write every element of C. An element that is
/// not read or not written is a finding, too.
///
/// A product with more rows than a grid allows takes several launches. Each launch counts blocks
/// and elements from its own first row.
///
/// # Errors
/// [`Error::Argument`] for matrices that do not fit together, are not dense and row-major, or are
/// on a GPU; [`Error::OutOfMemory`]; [`Error::Interrupted`]. An error of the kernel, even a panic,
/// is reported as a finding, not as an `Err`.
pub fn multiply(
    entry: &'static Entry,
    a: &Matrix<f32>,
    b: &Matrix<f32>,
    c: &mut Matrix<f32>,
    options: impl Into<Options>,
) -> Result<Watched> {
    let options = options.into();
    for (name, matrix) in [("A", a), ("B", b), ("C", &*c)] {
        if matrix.device().is_cuda() {
            let limit = "a kernel is checked on the CPU, and so must its matrices lie there";
            return Err(Error::argument(name, matrix.device().name(), limit));
        }
    }
    let shape = shape_of(entry, a, b, c)?;
    Device::cpu().require_memory(shadow(shape))?;
    watch(entry, shape, [false; 2], [a, b], None, c, options)
}

/// Checks a product with uniform operands of the kernel's type. `seed` is that of the operands.
pub(crate) fn drawn(
    entry: &'static Entry,
    shape: Shape,
    seed: u64,
    options: Options,
) -> Result<Watched> {
    let product = entry.product.as_ref();
    let types = product
        .map_or((Type::F32, Type::F32), |product| (product.variant.operands, product.variant.c));
    with_types!(types, |T, O| drawn_of::<T, O>(entry, shape, seed, options))
        .unwrap_or_else(|| Err(not_multiplied(entry)))
}

fn drawn_of<T: Scalar<O> + Drawn, O: Output + Drawn>(
    entry: &'static Entry,
    shape: Shape,
    seed: u64,
    options: Options,
) -> Result<Watched> {
    let (_, a, b) = draw::<T>(shape, false, Data::Uniform, O::TYPE, seed)?;
    let device = Device::cpu();
    let a = Matrix::from_row_major(&device, shape.m(), shape.k(), &a)?;
    let b = Matrix::from_row_major(&device, shape.k(), shape.n(), &b)?;
    let mut c = Matrix::<O>::zeros(&device, shape.m(), shape.n())?;
    watch(entry, shape, [false; 2], [&a, &b], None, &mut c, options)
}

/// For operands of any type that are dense, on the CPU, and fit together. `by_columns`: whether A,
/// and B, is column-major.
fn watch<T: Scalar<O>, O: Output>(
    entry: &'static Entry,
    shape: Shape,
    by_columns: [bool; 2],
    [a, b]: [&Matrix<T>; 2],
    scales: Option<Scales>,
    c: &mut Matrix<O>,
    options: Options,
) -> Result<Watched> {
    let copies = workspace_bytes(entry, shape, by_columns, scales);
    let their_shadow = shadow_bytes(copies as usize, size_of::<T>()) as u64;
    Device::cpu()
        .require_memory(shadow(shape).saturating_add(copies).saturating_add(their_shadow))?;
    let launch = |config: &_| options.of_launch(a.device(), config);
    let operands = [a.buffer().all(), b.buffer().all()];
    let mut watched = Watched::default();
    let c = c.buffer_mut();
    for report in checked::multiply(entry, shape, by_columns, operands, scales, c, launch)? {
        watched.add(report);
    }
    Ok(watched)
}

#[cfg(test)]
mod tests;
