//! The built-in kernels under the checker of the CPU device: findings, and counts of accesses.

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use gpu_gemm::{
    Bf16, Device, E4m3, E5m2, Error, F16, Pod, Result, Shape,
    gemm::{Output, Scalar, checked},
    gpu::registry::{Entry, KERNELS, source},
    simt::{
        check::{Options, Order, Profile, Report},
        with_types,
    },
};

/// The largest m, n and k. Sums of so many ones are exact in every type; a check is of a small
/// product.
pub(crate) const MOST_SIZE: u64 = 256;

/// The kernels of products: name and summary.
pub(crate) fn kernels() -> impl Iterator<Item = &'static Entry> {
    KERNELS.iter().filter(|entry| entry.product.is_some())
}

/// An element of 1 or -1, and its value.
trait Number: Pod {
    fn of(value: f32) -> Self;
    fn value(self) -> f64;
}

macro_rules! numbers {
    ($($ty:ty: $of:expr, $value:expr;)*) => {$(
        impl Number for $ty {
            fn of(value: f32) -> Self {
                $of(value)
            }

            fn value(self) -> f64 {
                f64::from($value(self))
            }
        }
    )*};
}

numbers! {
    f32: f32::from, f32::from;
    f64: f64::from, f64::from;
    Bf16: Bf16::from_f32, Bf16::to_f32;
    F16: F16::from_f32, F16::to_f32;
    E4m3: E4m3::from_f32, E4m3::to_f32;
    E5m2: E5m2::from_f32, E5m2::to_f32;
    i8: |value| value as i8, f64::from;
    i32: |value| value as i32, f64::from;
}

/// A kernel's reports of one product, and the number of wrong elements of C.
pub(crate) struct Watched {
    pub(crate) reports: Vec<Report>,
    pub(crate) wrong: usize,
}

/// Multiplies matrices of 1 and -1 by a kernel with every access checked, in one order. `every`:
/// profile one block in that number. `cancel` ends it early when it is set.
///
/// # Errors
/// [`Error::Argument`] for a kernel of no product; [`Error::Interrupted`] by `cancel`, or that of
/// the launch.
pub(crate) fn watch(
    entry: &'static Entry,
    sizes: [u64; 3],
    order: Order,
    every: Option<NonZeroU32>,
    cancel: &AtomicBool,
) -> Result<Watched> {
    let Some(product) = &entry.product else {
        return Err(Error::argument("kernel", entry.name(), "must compute a product"));
    };
    let shape = Shape::new(sizes[0], sizes[1], sizes[2])?;
    let options = || {
        let mut options = Options::default();
        (options.order, options.profile, options.cancel) = (order, every, Some(cancel));
        options
    };
    let types = (product.variant.operands, product.variant.c);
    with_types!(types, |T, O| multiply::<T, O>(entry, shape, options, cancel)).unwrap_or_else(
        || {
            let limit = "is for types of which no products are computed";
            Err(Error::argument("kernel", entry.name(), limit))
        },
    )
}

fn multiply<'o, T: Scalar<O> + Number, O: Output + Number>(
    entry: &'static Entry,
    shape: Shape,
    options: impl Fn() -> Options<'o>,
    cancel: &AtomicBool,
) -> Result<Watched> {
    let (m, n, k) = (shape.m(), shape.n(), shape.k());
    let sign = |index: usize| if index.wrapping_mul(0x9e37_79b9) & 0x100 == 0 { 1.0 } else { -1.0 };
    let [a_by_columns, b_by_columns] = entry.by_columns();
    let place = |row: usize, col: usize, size: (usize, usize), by_columns: bool| match by_columns {
        true => col * size.0 + row,
        false => row * size.1 + col,
    };
    let device = Device::cpu();
    let values = |len: usize, from: usize| {
        let values = (0..len).map(|index| T::of(sign(from + index))).collect::<Vec<_>>();
        device.upload(&values)
    };
    let (a, b) = (values(m * k, 1)?, values(k * n, 7919)?);
    let mut c = device.uninit::<O>(m * n)?;
    // What a kernel does not write is not right by chance.
    c.fill_bytes(0xff)?;
    let operands = [a.all(), b.all()];
    let (by_columns, options) = (entry.by_columns(), |_: &_| options());
    let reports =
        checked::multiply(entry, shape, by_columns, operands, None, c.all_mut(), options)?;
    let (a, b, c) = (a.to_vec()?, b.to_vec()?, c.to_vec()?);
    // Written so that a NaN is not right.
    let is_right = |row: usize, col: usize| {
        let terms = (0..k).map(|i| {
            let left = a[place(row, i, (m, k), a_by_columns)];
            left.value() * b[place(i, col, (k, n), b_by_columns)].value()
        });
        (c[row * n + col].value() - terms.sum::<f64>()).abs() <= 0.0
    };
    let mut wrong = 0;
    for row in 0..m {
        check_cancel(cancel)?;
        wrong += (0..n).filter(|col| !is_right(row, *col)).count();
    }
    Ok(Watched { reports, wrong })
}

/// Ends what is cancelled.
///
/// # Errors
/// [`Error::Interrupted`] if it is.
pub(crate) fn check_cancel(cancel: &AtomicBool) -> Result<()> {
    if cancel.load(Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
}

/// The profile of all launches together.
pub(crate) fn profile_of(reports: Vec<Report>) -> Profile {
    let mut whole = Profile::default();
    reports.into_iter().filter_map(|report| report.profile).for_each(|one| whole.add(one));
    whole
}

/// The findings of reports, with the lines of the source.
pub(crate) fn findings_of(reports: &[Report]) -> Vec<String> {
    let findings = reports.iter().flat_map(|report| &report.findings);
    findings.map(|it| it.with_source(|at| source(&at.file, at.line)).to_string()).collect()
}
