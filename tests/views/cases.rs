//! The views with which each kernel is run.

use gpu::registry::{Entry, Product, Scheme};
use host::{
    Activation, Bias, BufferView, Error, Gemm, Result,
    gemm::{Compute, Scalar},
};
use tests::gemm::{Case, Data, Number, Operand, Order, Place, Side, Want};

/// How the rows of an operand are placed.
#[derive(Clone, Copy, Debug)]
pub enum Rows {
    /// A row is followed by a whole number of pages, so that all rows have the same misalignment.
    Pages,
    /// A row is followed by that many elements.
    Padded(usize),
    /// Neither rows nor columns are contiguous.
    Strided,
}

/// Sizes whose rows are whole 16-byte pieces, and others.
pub const EVEN: [usize; 3] = [40, 72, 48];
pub const ODD: [usize; 3] = [37, 69, 45];

/// Bytes of a page, at least.
pub const PAGE: usize = 4096;

/// The place of a batch of matrices. Gaps are between matrices, too.
fn place<T>(size: (usize, usize), order: Order, rows: Rows, count: usize) -> Place {
    let (len, number) = if order == Order::Rows { (size.1, size.0) } else { (size.0, size.1) };
    let page = PAGE / size_of::<T>();
    let [pitch, between] = match rows {
        Rows::Pages => [len.next_multiple_of(page) + page, 1],
        Rows::Padded(padding) => [len + padding, 1],
        Rows::Strided => [3 * len + 1, 3],
    };
    let strides = if order == Order::Rows { [pitch, between] } else { [between, pitch] };
    let step = match rows {
        Rows::Pages => number * pitch + page,
        // Whole pieces, and some more.
        _ => (number * pitch).next_multiple_of(16) + 16,
    };
    Place::strided(strides).batch(count, step)
}

/// A case: sizes, places, and what is done to the sums.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub sizes: [usize; 3],
    /// A's rows, and B's and C's.
    pub rows: [Rows; 3],
    /// The elements that are contiguous in A, B and C.
    pub orders: [Order; 3],
    /// The misalignment of the first elements.
    pub at: usize,
    pub count: usize,
    /// Whether C has an old value, a bias and an activation.
    pub full: bool,
}

/// The layout that the kernel reads without a copy, or the `number`th one.
fn orders(product: &Product, number: usize) -> [Order; 3] {
    let of_c = Order::BOTH[number % 2];
    match product.requires_layouts() {
        true => {
            let [a, b] = product.variant.k_major();
            let [by_rows, by_cols] = Order::BOTH;
            [if a { by_rows } else { by_cols }, if b { by_cols } else { by_rows }, of_c]
        }
        false => [Order::BOTH[number / 2 % 2], Order::BOTH[number / 4 % 2], of_c],
    }
}

/// The ways of a kernel, with that many of its kind before it.
pub fn ways(product: &Product, before: usize) -> Vec<Way> {
    let kinds = [
        (EVEN, Rows::Pages, 0, 1),
        (ODD, Rows::Pages, 0, 2),
        (ODD, Rows::Padded(2), 1, 2),
        (EVEN, Rows::Padded(5), 0, 1),
        (ODD, Rows::Padded(16 - 45 % 16), 3, 1),
        (ODD, Rows::Strided, 1, 1),
    ];
    let kinds = kinds
        .into_iter()
        .enumerate()
        .filter(|(_, (_, rows, ..))| !matches!(rows, Rows::Strided) || !product.requires_layouts());
    let ways = kinds.map(|(number, (sizes, rows, at, count))| {
        let full = (before + number) % 2 == 1;
        Way { sizes, rows: [rows; 3], orders: orders(product, before + number), at, count, full }
    });
    let dense = |way| Way {
        rows: [Rows::Padded(0); 3],
        orders: [Order::Rows; 3],
        at: 0,
        count: 1,
        full: false,
        ..way
    };
    match product.is_lesson() {
        // One product of dense row-major matrices, `C = A B`.
        true => ways.map(dense).take(2).collect(),
        false => ways.collect(),
    }
}

/// The case of integers so small that each sum is a number of any type. Some numbers of `uncertain`
/// cases are infinite, and so are their sums: kernels for emulated fp32 compute these again, from A
/// and B themselves.
pub fn case<T: Number>(way: Way, uncertain: bool) -> (Case<T>, Want) {
    let Way { sizes: [m, n, k], rows, orders, at, count, full } = way;
    let data = Data::Integers(1);
    let place =
        |operand: usize, size| place::<T>(size, orders[operand], rows[operand], count).at(at);
    let mut a = Operand::draw((m, k), place(0, (m, k)), data, 1);
    let mut b = Operand::draw((k, n), place(1, (k, n)), data, 2);
    if uncertain {
        // A whole row of sums, and a single column: many of a warp's part, and few.
        a.set(0, 0, 0, T::nearest(f64::INFINITY));
        b.set(0, k - 1, n - 1, T::nearest(f64::INFINITY));
    }
    let case = Case::plain(a, b, place(2, (m, n)));
    let case = match full {
        true => {
            let side = Side::BOTH[k % 2];
            case.scaled(2.0, 3.0, data, 3).biased(side, data, 4).activated(Activation::Relu)
        }
        false => case,
    };
    let want = Want::exact(&case);
    (case, want)
}

/// The product of a case by that kernel.
pub fn gemm<'a, T: Number + Scalar<O>, O: Number>(
    entry: &'static Entry,
    case: &Case<T, O>,
    bias: BufferView<'a, O>,
) -> Result<Gemm<'a, T, O>> {
    let gemm = Gemm::of_types().alpha(case.alpha).beta(case.beta).activation(case.activation);
    let gemm = match case.bias {
        None => gemm,
        Some((Side::Row, _)) => gemm.bias(Bias::PerRow(bias)),
        Some((Side::Col, _)) => gemm.bias(Bias::PerCol(bias)),
    };
    let gemm = match entry.scheme() {
        Scheme::F16x3 => gemm.compute(Compute::Fp32F16x3),
        Scheme::Bf16x6 => gemm.compute(Compute::Fp32Bf16x6),
        Scheme::Tf32 => gemm.compute(Compute::Tf32),
        Scheme::Native => gemm,
    };
    gemm.entry(entry)
}

/// Whether the library has refused the kernel for a case.
pub fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Argument { argument, .. } if argument == "kernel")
}

/// Checks C, which is exact.
pub fn check<O: Number>(
    want: &Want,
    c: impl IntoIterator<Item = O>,
) -> std::result::Result<(), String> {
    for (at, (found, wanted)) in c.into_iter().zip(&want.values).enumerate() {
        let found: f64 = found.into();
        if !(found == *wanted || found.is_nan() && wanted.is_nan()) {
            return Err(format!("element {at} is {found}, should be {wanted}"));
        }
    }
    Ok(())
}
