//! Is C right? Compared with the product in float64, element by element.
//!
//! Two comparisons, and a result counts as verified only where it passes both.
//!
//! 1. **Within the bound**, on real data: `|c - ref| <= gamma(k + 3) (|A| |B|) + (k + 3) tiny`, where
//!    `gamma(n) = n u / (1 - n u)`, `u = 2^-24` and `tiny` is the smallest subnormal f32. This is the
//!    a-priori bound for a sum of k products in any order (N. J. Higham, *Accuracy and Stability of
//!    Numerical Algorithms*, 2nd ed., section 3.5), three roundings to spare.
//! 2. **Exact**, on integers so small that every order of summation gives the same bits. The bound grows
//!    with k, and at k = 4096 it lets a dropped product pass; this does not.
//!
//! Comparisons are written `err <= bound`, which is false for NaN. Where the product itself is NaN or
//! infinite, because the operands are, C must be the same.
//!
//! [`compare`] looks at every element, for the price of a product in float64. Where that takes too long,
//! [`sample()`] looks at some elements and at random projections of all.

mod sample;

use std::sync::atomic::Ordering;

use rayon::prelude::*;

pub use sample::{Sample, sample};

use crate::{
    error::{Error, Result},
    product::Shape,
};

/// The unit roundoff of f32.
const U: f64 = 1.0 / (1u64 << f32::MANTISSA_DIGITS) as f64;
/// The smallest positive f32.
const TINY: f64 = f32::from_bits(1) as f64;
/// Rows of C that are compared at a time: enough for a fast product, few enough for many cores.
const PANEL_ROWS: usize = 32;

/// How C compares with the product in float64.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Elements compared: all of C.
    pub elements: u64,
    /// Of these, elements that must be NaN. Where they are, there is no error to be measured.
    pub nan: u64,
    /// Elements outside the bound, NaN among them.
    pub wrong: u64,
    /// The largest `|c - ref|`; NaN if one is.
    pub max_abs_err: f64,
    /// The largest `|c - ref| / bound`; NaN if one is. At most 1 if nothing is wrong.
    pub max_err_over_bound: f64,
    /// The sum of all `|c - ref|` squared; NaN if one is. Of elements that must be NaN or infinite nothing is added.
    pub squared_err: f64,
    /// The sum of all `|ref|` squared, of the same elements.
    pub squared_ref: f64,
    /// The element furthest outside its bound, or nearest to it; `None` if C is empty.
    pub worst: Option<Worst>,
}

/// An element of C beside what it should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worst {
    /// Its row.
    pub row: usize,
    /// Its column.
    pub col: usize,
    /// What C has there.
    pub got: f32,
    /// What the product in float64 is there.
    pub want: f64,
    /// `|got - want| / bound`.
    pub err_over_bound: f64,
}

impl Worst {
    fn new(row: usize, col: usize, got: f32, want: f64, bound: f64) -> Self {
        // 0 / 0 is no error at all: an exact element under an exact criterion.
        let err = distance(got, want);
        let err_over_bound = if err == 0.0 { 0.0 } else { err / bound };
        Worst { row, col, got, want, err_over_bound }
    }
}

/// What counts as right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// Within the a-priori bound of a float32 sum.
    Bound,
    /// Equal, bit for bit but for the sign of zero.
    Exact,
}

impl Comparison {
    const NOTHING: Comparison = Comparison {
        elements: 0,
        nan: 0,
        wrong: 0,
        max_abs_err: 0.0,
        max_err_over_bound: 0.0,
        squared_err: 0.0,
        squared_ref: 0.0,
        worst: None,
    };

    /// Has something been compared, and is all of it right?
    pub fn passed(&self) -> bool {
        self.elements > 0 && self.wrong == 0
    }

    /// `|C - ref| / |ref|` in the Frobenius norm: how exact the arithmetic is. A float32 sum of a few thousand products
    /// shows about 1e-6, whatever their order; one of TF32 shows 3e-4, and may still be within the bound. 0 where
    /// everything is exact, a product of zeros too.
    pub fn relative_err(&self) -> f64 {
        if self.squared_err == 0.0 { 0.0 } else { (self.squared_err / self.squared_ref).sqrt() }
    }

    fn add(&mut self, element: Worst, bound: f64) {
        let err = distance(element.got, element.want);
        self.elements += 1;
        self.nan += u64::from(element.want.is_nan());
        self.wrong += u64::from(!within(err, bound));
        self.max_abs_err = max_or_nan(self.max_abs_err, err);
        self.max_err_over_bound = max_or_nan(self.max_err_over_bound, element.err_over_bound);
        if element.want.is_finite() {
            self.squared_err += err * err;
            self.squared_ref += element.want * element.want;
        }
        self.worst = worse(self.worst, Some(element));
    }

    /// The comparison of two parts of C together.
    #[must_use]
    pub fn merge(mut self, other: Comparison) -> Comparison {
        self.elements += other.elements;
        self.nan += other.nan;
        self.wrong += other.wrong;
        self.max_abs_err = max_or_nan(self.max_abs_err, other.max_abs_err);
        self.max_err_over_bound = max_or_nan(self.max_err_over_bound, other.max_err_over_bound);
        self.squared_err += other.squared_err;
        self.squared_ref += other.squared_ref;
        self.worst = worse(self.worst, other.worst);
        self
    }
}

/// `|got - want|`; zero where both are NaN, or the same infinity.
fn distance(got: f32, want: f64) -> f64 {
    let same = f64::from(got) == want || got.is_nan() && want.is_nan();
    if same { 0.0 } else { (f64::from(got) - want).abs() }
}

/// `err <= bound`, for a finite error: an infinite one is wrong even under an infinite bound, which an
/// infinite operand makes. No error at all is right under any, NaN included.
fn within(err: f64, bound: f64) -> bool {
    err == 0.0 || err.is_finite() && err <= bound
}

/// The larger; NaN if one is (`f64::max` would drop it).
fn max_or_nan(a: f64, b: f64) -> f64 {
    if a.is_nan() || a >= b { a } else { b }
}

/// The one further from its bound; NaN is furthest, and of equals the first.
fn worse(a: Option<Worst>, b: Option<Worst>) -> Option<Worst> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let a_stays = a.err_over_bound.is_nan() || a.err_over_bound >= b.err_over_bound;
            Some(if a_stays { a } else { b })
        }
        (a, b) => a.or(b),
    }
}

/// Compares all of C with A B. `a`, `b` and `c` are row-major.
///
/// Takes the time of one product in float64 ([`Criterion::Exact`]) or two, on all cores, and sixteen
/// bytes of memory for each element of B at most.
///
/// # Errors
/// [`Error::Argument`] for an operand of another length than the shape asks for; [`Error::Interrupted`].
pub fn compare(
    shape: Shape,
    a: &[f32],
    b: &[f32],
    c: &[f32],
    criterion: Criterion,
) -> Result<Comparison> {
    check_lengths(shape, a, b, c)?;
    let (n, k) = (shape.n(), shape.k());
    if shape.c_len() == 0 {
        return Ok(Comparison::NOTHING);
    }
    let b_wide = widen(b, |x| x)?;
    let b_abs = match criterion {
        Criterion::Bound => widen(b, f64::abs)?,
        Criterion::Exact => Vec::new(),
    };
    let done = crate::progress::begin(shape.m() as u64);
    let panels = c.par_chunks(PANEL_ROWS * n).enumerate().map(|(panel, c)| {
        crate::check_interrupt()?;
        let (first_row, rows) = (panel * PANEL_ROWS, c.len() / n);
        let a = &a[first_row * k..(first_row + rows) * k];
        let reference = product(rows, n, k, &widen(a, |x| x)?, &b_wide);
        let magnitude = match criterion {
            Criterion::Bound => product(rows, n, k, &widen(a, f64::abs)?, &b_abs),
            Criterion::Exact => Vec::new(),
        };
        let mut comparison = Comparison::NOTHING;
        for (index, (&got, &want)) in c.iter().zip(&reference).enumerate() {
            let bound = magnitude.get(index).map_or(0.0, |&magnitude| bound(k, magnitude));
            let (row, col) = (first_row + index / n, index % n);
            comparison.add(Worst::new(row, col, got, want, bound), bound);
        }
        done.fetch_add(rows as u64, Ordering::Relaxed);
        Ok(comparison)
    });
    panels.try_reduce(|| Comparison::NOTHING, |a, b| Ok(a.merge(b)))
}

fn check_lengths(shape: Shape, a: &[f32], b: &[f32], c: &[f32]) -> Result<()> {
    for (name, len, needed) in [
        ("a", a.len(), shape.a_len()),
        ("b", b.len(), shape.b_len()),
        ("c", c.len(), shape.c_len()),
    ] {
        if len != needed {
            let limit = format!("must be {needed} for {shape}");
            return Err(Error::argument(format!("{name}.len()"), len, limit));
        }
    }
    Ok(())
}

/// `gamma(k + 3) magnitude + (k + 3) tiny`; infinite where k is so large that the bound says nothing.
fn bound(k: usize, magnitude: f64) -> f64 {
    let roundings = k as f64 + 3.0;
    let gamma = match roundings * U {
        small if small < 1.0 => small / (1.0 - small),
        _ => f64::INFINITY,
    };
    // An infinite gamma times a zero magnitude is still an exact zero.
    let relative = if magnitude == 0.0 { 0.0 } else { gamma * magnitude };
    relative + roundings * TINY
}

fn widen(values: &[f32], function: impl Fn(f64) -> f64) -> Result<Vec<f64>> {
    let mut wide = Vec::with_capacity(values.len());
    // All of B may be many GiB: somebody may not want to wait for it.
    for part in values.chunks(1 << 20) {
        crate::check_interrupt()?;
        wide.extend(part.iter().map(|&value| function(f64::from(value))));
    }
    Ok(wide)
}

/// The product of row-major `rows x k` and `k x n` in float64.
fn product(rows: usize, n: usize, k: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut c = vec![0.0; rows * n];
    let [k_stride, n_stride] = [k, n].map(|stride| stride as isize);
    assert!(a.len() == rows * k && b.len() == k * n, "an operand has another size than its shape");
    // SAFETY: the strides are those of row-major matrices, whose lengths have just been checked.
    unsafe {
        matrixmultiply::dgemm(
            rows,
            k,
            n,
            1.0,
            a.as_ptr(),
            k_stride,
            1,
            b.as_ptr(),
            n_stride,
            1,
            0.0,
            c.as_mut_ptr(),
            n_stride,
            1,
        );
    }
    c
}
