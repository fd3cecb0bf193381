//! Is a kernel right, and not by luck? Products on the CPU with every access of every thread watched.
//!
//! A kernel with a race or a missing barrier can give the right result a thousand times. Here such a
//! kernel is found by what it does, not by what comes out: see [`simt::check`], whose findings these are.
//! What comes out is compared as well, as in every run: a kernel can be free of races and wrong.
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

use gpu::{
    collective::stored::Stored,
    registry::{Entry, Type},
};
use simt::{
    Bf16, F16, LaunchConfig,
    check::{Finding, Order, Profile, Report, Trace, shadow_bytes},
};

use crate::{
    operands,
    verify::{Claim, Comparison, Criterion, Format, slices},
};
use gpu_gemm::{
    Device, Error, INTERRUPTED, Matrix, Pod, Result, Shape,
    gemm::{
        Output, Scalar,
        checked::{self, workspace_bytes},
    },
    product::shape_of,
};

/// What A and B hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Real numbers from [-1, 1), rounded to the operands' type: C must lie within the bound of a float32 sum.
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

/// A product whose every access was watched.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// What it multiplied.
    pub data: Data,
    /// The order of blocks, warps and lanes.
    pub order: Order,
    /// What the kernel did wrong.
    pub findings: Vec<Finding>,
    /// How C compares with the product in float64.
    pub comparison: Comparison,
}

/// So many orders to check a kernel in: forward, reverse, and random ones of the seeds from `seed` on.
pub fn orders(count: u32, seed: u64) -> Vec<Order> {
    let random = (0..).map(|number| Order::Random(seed.wrapping_add(number)));
    [Order::Forward, Order::Reverse].into_iter().chain(random).take(count as usize).collect()
}

/// The products that [`kernel`] checks: integers in each order, where a dropped or a wrong product shows
/// in C, and in the first one real numbers too, where a loss of precision does. Where k is too large for
/// integers, real numbers in each.
pub fn products(shape: Shape, orders: &[Order]) -> Vec<(Data, Order)> {
    match operands::exact_magnitude(shape.k()) {
        None => orders.iter().map(|&order| (Data::Uniform, order)).collect(),
        Some(_) => {
            let uniform = orders.first().map(|&order| (Data::Uniform, order));
            uniform.into_iter().chain(orders.iter().map(|&order| (Data::Integers, order))).collect()
        }
    }
}

/// Checks a kernel in these orders, on operands drawn from `seed`.
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
    products(shape, orders).into_iter().map(one).collect()
}

/// Checks a kernel in one order, on operands drawn from `seed`, which are of the type that it takes, and lie as it reads
/// them: [`multiply`], or the same of bf16 or f16 or of columns, and C compared.
///
/// # Errors
/// [`Error::Argument`] for a kernel that does not compute a product of f32, bf16 or f16, and for integers where k is too large for an exact sum; [`Error::OutOfMemory`] before
/// anything is drawn, and [`Error::Interrupted`].
pub fn product(
    entry: &'static Entry,
    shape: Shape,
    data: Data,
    order: Order,
    seed: u64,
) -> Result<Checked> {
    let given = (shape, data, order, seed);
    let of = entry.product.as_ref().map(|product| (product.variant, product.is_of_f32_views()));
    match of.map(|(variant, of_views)| (variant.operands, variant.c, of_views)) {
        Some((Type::Bf16, Type::Bf16, _)) => product_by::<Bf16, Bf16>(entry, given, Format::Bf16),
        Some((Type::Bf16, _, _)) => product_by::<Bf16, f32>(entry, given, Format::F32),
        Some((Type::F16, Type::F16, _)) => product_by::<F16, F16>(entry, given, Format::F16),
        Some((Type::F16, _, _)) => product_by::<F16, f32>(entry, given, Format::F32),
        Some((Type::F32, _, false)) => product_by::<f32, f32>(entry, given, Format::F32),
        _ => {
            let multiply = |a: &_, b: &_, c: &mut _| multiply(entry, a, b, c, order);
            let claimed = |claim: &mut Claim| claim.stored = Format::F32;
            product_of::<f32, f32>(given, (claimed, Format::F32), [false; 2], multiply)
        }
    }
}

/// A shape, and what it is drawn and run by.
type Given = (Shape, Data, Order, u64);

/// By a kernel that is no lesson, whose operands lie as it reads them.
fn product_by<T, O>(entry: &'static Entry, given: Given, stored: Format) -> Result<Checked>
where
    T: Scalar<O> + Stored<Real = f32>,
    O: Output + Stored<Real = f32>,
{
    let (shape, _, order, _) = given;
    let by_columns = entry.by_columns();
    let multiply =
        |a: &_, b: &_, c: &mut _| watch(entry, shape, by_columns, [a, b], c, order.into());
    let claimed = |claim: &mut Claim| {
        claim.stored = stored;
        claim.factors = entry.is_tf32().then_some(Format::Tf32);
        claim.sliced = entry.is_emulated();
    };
    product_of::<T, O>(given, (claimed, stored), by_columns, multiply)
}

/// The same for operands of `T`, and C of `O`, whose format is `stored` and which is claimed to be that. An operand that lies by
/// columns is handed on as its transpose.
fn product_of<T: Stored<Real = f32> + Pod, O: Stored<Real = f32> + Pod>(
    (shape, data, order, seed): Given,
    (claimed, stored): (impl Fn(&mut Claim), Format),
    [a_by_columns, b_by_columns]: [bool; 2],
    multiply: impl FnOnce(&Matrix<T>, &Matrix<T>, &mut Matrix<O>) -> Result<Watched>,
) -> Result<Checked> {
    enough_memory(bytes(shape))?;
    let (criterion, mut a, mut b) = draw(shape, data, stored, seed)?;
    let device = Device::cpu();
    let rounded = |values: &mut [f32], rows: usize, cols: usize, by_columns: bool| {
        let elements = values.iter().map(|&value| T::nearest(value)).collect::<Vec<_>>();
        // What is compared with is the product of what is multiplied.
        values.iter_mut().zip(&elements).for_each(|(value, element)| *value = element.widened());
        if by_columns {
            let places = (0..cols).flat_map(|col| (0..rows).map(move |row| row * cols + col));
            let turned = places.map(|place| elements[place]).collect::<Vec<_>>();
            return Matrix::from_row_major(&device, cols, rows, &turned);
        }
        Matrix::from_row_major(&device, rows, cols, &elements)
    };
    let a_matrix = rounded(&mut a, shape.m(), shape.k(), a_by_columns)?;
    let b_matrix = rounded(&mut b, shape.k(), shape.n(), b_by_columns)?;
    let mut c = Matrix::zeros(&device, shape.m(), shape.n())?;
    // An element that nobody writes is wrong, too.
    c.buffer_mut().fill_bytes(0xff)?;
    let findings = multiply(&a_matrix, &b_matrix, &mut c)?.findings;
    let c = c.to_row_major()?.into_iter().map(O::widened).collect::<Vec<_>>();
    let comparison = slices(shape, &a, &b, &c, |mut claim| {
        claimed(&mut claim);
        claim.compare(criterion)
    })?;
    Ok(Checked { data, order, findings, comparison })
}

/// A, B, and what C must keep to, whose format is `stored`.
pub(crate) fn draw(
    shape: Shape,
    data: Data,
    stored: Format,
    seed: u64,
) -> Result<(Criterion, Vec<f32>, Vec<f32>)> {
    let (seeds, lens) = ([seed, operands::seed_of_b(seed)], [shape.a_len(), shape.b_len()]);
    match data {
        Data::Uniform => {
            let draw = |i: usize| operands::uniform(seeds[i], lens[i]);
            Ok((Criterion::Bound, draw(0)?, draw(1)?))
        }
        Data::Integers => {
            let magnitude = operands::exact_magnitude_in(shape.k(), stored).ok_or_else(|| {
                let limit = "must be below 2^24: no longer sum of integers is sure to be exact";
                Error::argument("k", shape.k(), limit)
            })?;
            let draw = |i: usize| operands::integers(seeds[i], lens[i], magnitude);
            Ok((Criterion::Exact, draw(0)?, draw(1)?))
        }
    }
}

/// Bytes that [`multiply`] needs, of bf16 and f16 fewer: the matrices, and for each of their elements a shadow that remembers who
/// came there.
pub fn bytes(shape: Shape) -> u64 {
    shape.bytes().saturating_add(shadow(shape))
}

fn shadow(shape: Shape) -> u64 {
    shadow_bytes(shape.bytes() as usize, size_of::<f32>()) as u64
}

pub(crate) fn enough_memory(needed: u64) -> Result<()> {
    let cpu = Device::cpu();
    let (free, _) = cpu.memory()?;
    match needed > free {
        true => Err(Error::OutOfMemory { device: cpu.name(), needed, free }),
        false => Ok(()),
    }
}

/// How [`multiply`] goes about it. An [`Order`] alone is such options, too.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The order of blocks, warps and lanes.
    pub order: Order,
    /// Count what one block in so many does to memory.
    pub profile: Option<NonZeroU32>,
    /// Write down all that the block at that column and row does. Of a product that takes several launches
    /// it is a block of the first.
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

/// What [`multiply`] has seen.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Watched {
    /// What the kernel did wrong.
    pub findings: Vec<Finding>,
    /// What was counted, if that was asked for: one profile for each launch.
    pub profiles: Vec<Profile>,
    /// What the block did that was to be traced.
    pub trace: Option<Trace>,
}

impl Watched {
    /// What the next launch did.
    fn add(&mut self, report: Report) {
        self.findings.extend(report.findings);
        self.profiles.extend(report.profile);
        self.trace = self.trace.take().or(report.trace);
    }
}

/// As [`product::multiply`](gpu_gemm::product::multiply) on the CPU device, and says what the kernel did wrong.
/// What C held before counts as not written.
///
/// Part of a product's contract is that every element of A and B is read and every one of C written, so what
/// was left out is a finding as well.
///
/// A product too tall for one launch takes several, and in each blocks and elements are counted from its
/// own first row.
///
/// # Errors
/// [`Error::Argument`] for matrices that do not fit together, are not dense and row-major, or lie on a GPU;
/// [`Error::OutOfMemory`]; [`Error::Interrupted`]. What is wrong with the kernel is no error, even where it
/// panics: it is a finding.
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
    enough_memory(shadow(shape))?;
    watch(entry, shape, [false; 2], [a, b], c, options)
}

/// Watches a product of operands of the kernel's type, drawn from `seed`.
pub(crate) fn drawn(
    entry: &'static Entry,
    shape: Shape,
    seed: u64,
    options: Options,
) -> Result<Watched> {
    match entry.product.as_ref().map(|product| product.variant.operands) {
        Some(Type::Bf16) => drawn_of::<Bf16>(entry, shape, seed, options),
        _ => drawn_of::<f32>(entry, shape, seed, options),
    }
}

fn drawn_of<T: Scalar + Stored<Real = f32>>(
    entry: &'static Entry,
    shape: Shape,
    seed: u64,
    options: Options,
) -> Result<Watched> {
    let (_, a, b) = draw(shape, Data::Uniform, Format::F32, seed)?;
    let device = Device::cpu();
    let matrix = |rows: usize, cols: usize, values: Vec<f32>| {
        let elements = values.into_iter().map(T::nearest).collect::<Vec<_>>();
        Matrix::from_row_major(&device, rows, cols, &elements)
    };
    let a = matrix(shape.m(), shape.k(), a)?;
    let b = matrix(shape.k(), shape.n(), b)?;
    let mut c = Matrix::zeros(&device, shape.m(), shape.n())?;
    watch(entry, shape, [false; 2], [&a, &b], &mut c, options)
}

/// The same for operands of any type, dense, on the CPU, that fit together. `by_columns`: the transposes of A, and of B.
fn watch<T: Scalar<O>, O: Output>(
    entry: &'static Entry,
    shape: Shape,
    by_columns: [bool; 2],
    [a, b]: [&Matrix<T>; 2],
    c: &mut Matrix<O>,
    options: Options,
) -> Result<Watched> {
    let copies = workspace_bytes(entry, shape, by_columns);
    let their_shadow = shadow_bytes(copies as usize, size_of::<T>()) as u64;
    enough_memory(shadow(shape).saturating_add(copies).saturating_add(their_shadow))?;
    let launch = |config: &_| options.of_launch(a.device(), config);
    let operands = [a.buffer().all(), b.buffer().all()];
    let mut watched = Watched::default();
    for report in checked::multiply(entry, shape, by_columns, operands, c.buffer_mut(), launch)? {
        watched.add(report);
    }
    Ok(watched)
}

/// A finding, and the orders that it was made in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Seen {
    /// As it was made first: how often it was seen, and the examples, are of that product.
    pub finding: Finding,
    /// The orders.
    pub orders: Vec<Order>,
}

/// What several products of one kernel found, each thing once: of the same kind, in the same memory and the
/// same source lines.
pub fn merge<'a>(findings: impl IntoIterator<Item = (Order, &'a Finding)>) -> Vec<Seen> {
    let mut all = Vec::<Seen>::new();
    for (order, finding) in findings {
        let same = |Seen { finding: known, .. }: &&mut Seen| {
            (known.kernel, known.kind, &known.memory)
                == (finding.kernel, finding.kind, &finding.memory)
                && (&known.place, &known.other_place) == (&finding.place, &finding.other_place)
        };
        match all.iter_mut().find(same) {
            Some(seen) if seen.orders.contains(&order) => {}
            Some(seen) => seen.orders.push(order),
            None => all.push(Seen { finding: finding.clone(), orders: vec![order] }),
        }
    }
    // The same every time: a launch sorts buffers by their addresses.
    all.sort_by_cached_key(
        |Seen { finding: Finding { kind, memory, place, other_place, .. }, .. }| {
            (*kind, memory.clone(), place.clone(), other_place.clone())
        },
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(m: u64, n: u64, k: u64) -> Shape {
        Shape::new(m, n, k).unwrap()
    }

    #[test]
    fn real_numbers_once_and_integers_in_each_order() {
        let [first, second] = [Order::Random(3), Order::Reverse];
        let (uniform, integers) = (Data::Uniform, Data::Integers);
        let expected = [(uniform, first), (integers, first), (integers, second)];
        assert_eq!(products(shape(1, 1, 5), &[first, second]), expected);
        // Of so many integers no sum is sure to be exact.
        let expected = [(uniform, first), (uniform, second)];
        assert_eq!(products(shape(1, 1, 1 << 24), &[first, second]), expected);
        assert_eq!(products(shape(1, 1, 5), &[]), []);
    }

    #[test]
    fn orders_are_counted_from_the_seed() {
        assert_eq!(orders(0, 1), []);
        assert_eq!(orders(1, 1), [Order::Forward]);
        let [last, first] = [Order::Random(u64::MAX), Order::Random(0)];
        assert_eq!(orders(4, u64::MAX), [Order::Forward, Order::Reverse, last, first]);
    }

    #[test]
    fn a_tall_product_takes_several_launches() {
        let entry = gpu_gemm::product::find("basic").unwrap();
        let shape = shape(65535 * 16 + 5, 1, 1);
        let checked = product(entry, shape, Data::Integers, Order::Reverse, 1).unwrap();
        assert!(checked.findings.is_empty(), "{:?}", checked.findings);
        assert_eq!((checked.comparison.passed(), checked.comparison.elements), (true, 1_048_565));
    }

    #[test]
    fn c_of_bf16_is_compared_too() {
        let given = (shape(5, 4, 3), Data::Integers, Order::Forward, 1);
        let leave =
            |_: &Matrix<Bf16>, _: &Matrix<Bf16>, _: &mut Matrix<Bf16>| Ok(Watched::default());
        let claimed = |claim: &mut Claim| claim.stored = Format::Bf16;
        let left = product_of(given, (claimed, Format::Bf16), [false; 2], leave).unwrap();
        assert_eq!(left.comparison.wrong, 20);
        let mut kernels = gpu::registry::KERNELS.iter();
        let entry = kernels.find(|entry| entry.name() == "wgmma_bf16_128x128x64_nn").unwrap();
        for data in [Data::Uniform, Data::Integers] {
            let checked = product(entry, shape(5, 4, 3), data, Order::Reverse, 1).unwrap();
            assert!(checked.findings.is_empty(), "{:?}", checked.findings);
            assert_eq!((checked.comparison.passed(), checked.comparison.elements), (true, 20));
        }
    }

    #[test]
    fn what_does_not_fit_together_or_into_memory_is_refused() {
        let entry = gpu_gemm::product::find("basic").unwrap();
        let device = Device::cpu();
        let matrix = |rows, cols| Matrix::zeros(&device, rows, cols).unwrap();
        let (a, b, mut c) = (matrix(2, 3), matrix(4, 2), matrix(2, 2));
        let error = multiply(entry, &a, &b, &mut c, Order::Forward).unwrap_err().to_string();
        assert_eq!(error, "B.rows = 4: must be A.cols = 3");
        let huge = shape(1 << 29, 1 << 29, 1);
        let error = product(entry, huge, Data::Uniform, Order::Forward, 1).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        let long = shape(1, 1, 1 << 24);
        let error = product(entry, long, Data::Integers, Order::Forward, 1).unwrap_err();
        assert!(error.to_string().starts_with("k = 16777216: must be below 2^24"), "{error}");
    }
}
