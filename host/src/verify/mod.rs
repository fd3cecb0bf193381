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
mod comparison;
mod full;
mod sample;

pub use claim::{Claim, Format, Widened};
pub use comparison::{Comparison, Criterion, Worst};
pub use sample::{Sample, sample};

use gpu_gemm::{Layout, Result, Shape, blocks::Dense};

/// Compares all of C with A B: [`Claim::compare`] of slices, all row-major.
///
/// # Errors
/// [`Error::Argument`](gpu_gemm::Error::Argument) for an operand of another length than the shape asks for; [`Error::Interrupted`](gpu_gemm::Error::Interrupted).
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
/// [`Error::Argument`](gpu_gemm::Error::Argument) for an operand of another length than the shape asks for; those of `work`.
pub fn slices<R>(
    shape: Shape,
    a: &[f32],
    b: &[f32],
    c: &[f32],
    work: impl FnOnce(Claim) -> Result<R>,
) -> Result<R> {
    shape.check_lens([a.len(), b.len(), c.len()])?;
    let dense = |rows, cols, values| Dense::new::<f32>(rows, cols, Layout::RowMajor, values);
    let (a, b) = (dense(shape.m(), shape.k(), a)?, dense(shape.k(), shape.n(), b)?);
    let c = dense(shape.m(), shape.n(), c)?;
    let (a, b, c) = (Widened(&a), Widened(&b), Widened(&c));
    work(Claim::product(&a, &b, &c))
}

#[cfg(test)]
mod tests;
