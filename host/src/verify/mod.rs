//! Is C right? Compared with the product in float64, element by element.
//!
//! Two comparisons, and a result counts as verified only where it passes both.
//!
//! 1. **Within the bound**, on real data: `|c - ref| <= gamma(k + 3) (|A| |B|) + (k + 3) tiny`, where
//!    `gamma(n) = n u / (1 - n u)`, `u = 2^-24` and `tiny` is the smallest subnormal f32. This is the
//!    a-priori bound for a sum of k products in any order (N. J. Higham, *Accuracy and Stability of
//!    Numerical Algorithms*, 2nd ed., section 3.5), three roundings to spare. A sum of bf16 products by Hopper's tensor
//!    cores, which cut off where others round, keeps to it too: docs/design/numerics.md says why.
//! 2. **Exact**, on integers so small that every order of summation gives the same bits. The bound grows
//!    with k, and at k = 4096 it lets a dropped product pass; this does not.
//!
//! Comparisons are written `err <= bound`, which is false for NaN. Where the product itself is NaN or
//! infinite, because the operands are, C must be the same.
//!
//! [`compare`] looks at every element, for the price of a product in float64. Where that takes too long,
//! [`sample()`] looks at some elements and at random projections of all.
//!
//! Both are of `C = A B` in slices. A [`Claim`] is the same of `C = alpha A B + beta C0`, of f32 and f64, rounded to
//! another format perhaps (bf16, of a sum in f32), and of matrices that need not fit into memory: they are read in blocks. With alpha or beta
//! the bound has `k + 5` in place of `k + 3`. A sum whose terms' absolute values are together beyond the type's
//! largest number may overflow, and what is infinite or NaN then is counted and not called wrong.

mod claim;
mod full;
mod sample;

pub use claim::{Claim, Format, Widened};
pub use sample::{Sample, sample};

use gpu_gemm::{Error, Layout, Result, Shape, blocks::Dense};

/// The unit roundoff of f32.
const U: f64 = 1.0 / (1u64 << f32::MANTISSA_DIGITS) as f64;

/// How C compares with the product in float64.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Elements compared: all of C.
    pub elements: u64,
    /// Of these, elements that must be NaN. Where they are, there is no error to be measured.
    pub nan: u64,
    /// Of these, elements that are not finite, whose sums may have become too large. There is no error either.
    pub overflowing: u64,
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
    pub got: f64,
    /// What the product in float64 is there.
    pub want: f64,
    /// `|got - want| / bound`.
    pub err_over_bound: f64,
}

impl Worst {
    fn new(row: usize, col: usize, got: f64, want: f64, bound: f64) -> Self {
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
        overflowing: 0,
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
        self.overflowing += other.overflowing;
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
fn distance(got: f64, want: f64) -> f64 {
    let same = got == want || got.is_nan() && want.is_nan();
    if same { 0.0 } else { (got - want).abs() }
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

/// Compares all of C with A B: [`Claim::compare`] of slices, all row-major.
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
    slices(shape, a, b, c, |claim| claim.compare(criterion))
}

/// Does something with the claim that C is A B, all row-major; of bf16 their numbers as f32.
///
/// # Errors
/// [`Error::Argument`] for an operand of another length than the shape asks for; those of `work`.
pub fn slices<R>(
    shape: Shape,
    a: &[f32],
    b: &[f32],
    c: &[f32],
    work: impl FnOnce(Claim) -> Result<R>,
) -> Result<R> {
    check_lengths(shape, a, b, c)?;
    let dense = |rows, cols, values| Dense::new::<f32>(rows, cols, Layout::RowMajor, values);
    let (a, b) = (dense(shape.m(), shape.k(), a)?, dense(shape.k(), shape.n(), b)?);
    let c = dense(shape.m(), shape.n(), c)?;
    let (a, b, c) = (Widened(&a), Widened(&b), Widened(&c));
    work(Claim::product(&a, &b, &c))
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

#[cfg(test)]
mod tests;
