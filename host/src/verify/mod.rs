//! Comparison of C with the product in float64, element by element.
//!
//! There are two comparisons. A result is verified only if it passes both.
//!
//! 1. **Within the bound**, on real data: `|c - ref| <= gamma(k + 3) (|A| |B|) + (k + 3)
//!    tiny`, where `gamma(n) = n u / (1 - n u)`, `u = 2^-24`, and `tiny` is the smallest subnormal
//!    f32. This is the a-priori bound for a sum of k products in any order (N. J. Higham, *Accuracy
//!    and Stability of Numerical Algorithms*, 2nd ed., section 3.5), with three roundings to spare.
//!    Hopper's tensor cores truncate where others round, but their sums of bf16 products keep to
//!    it, too. docs/design/numerics.md says why.
//! 2. **Exact**, on integers so small that every order of summation gives the same bits. The bound
//!    grows with k, and at k = 4096 it lets a dropped product pass. The exact comparison does not.
//!
//! Comparisons are written `err <= bound`, which is false for NaN. If the product is NaN or
//! infinite, because the operands are, C must be the same.
//!
//! [`compare`] compares every element, and takes the time of a product in float64. If that is too
//! long, [`sample()`] compares some elements, and random projections of all.
//!
//! Both take slices of `C = A B`. A [`Claim`] is for `C = activation(alpha A B + beta C0 + bias)`,
//! in f32 and f64, perhaps stored in another format (bf16, from a sum in f32). Its matrices need
//! not fit into memory: they are read in blocks. With alpha, beta or a bias the bound has `k + 5`
//! in place of `k + 3`. An activation moves the bound by its slope and adds its own error
//! ([`activations`]). A sum may overflow if its terms' absolute values together exceed the type's
//! largest number. Infinity and NaN are then counted, and are not wrong.

mod activation;
mod claim;
mod comparison;
mod doubled;
mod full;
mod sample;

pub use activation::{activated, activations};
pub use claim::{Claim, Widened};
pub use comparison::{Comparison, Criterion, Worst};
pub use doubled::product_of_doubles;
pub use sample::{Sample, sample};
pub use simt::types::NumberFormat;

use gpu_gemm::{Layout, Pod, Result, Shape, blocks::Dense};
use simt::types::Typed;

/// Compares all of C with A B: [`Claim::compare`] of row-major slices.
///
/// # Errors
/// [`Error::Argument`](gpu_gemm::Error::Argument) for an operand of another length than the
/// shape's; [`Error::Interrupted`](gpu_gemm::Error::Interrupted).
pub fn compare<T: Compared>(
    shape: Shape,
    a: &[T],
    b: &[T],
    c: &[T],
    criterion: Criterion,
) -> Result<Comparison> {
    slices(shape, a, b, c, |claim| claim.compare(criterion))
}

/// A type of elements that are compared: f64 holds all its numbers.
pub trait Compared: Pod + Typed + Default + Into<f64> + Send + Sync {}

impl<T: Pod + Typed + Default + Into<f64> + Send + Sync> Compared for T {}

/// Calls `work` with the claim that C is A B, all row-major, computed in the sums of A's type and
/// stored in C's.
///
/// # Errors
/// [`Error::Argument`](gpu_gemm::Error::Argument) for an operand of another length than the
/// shape's; those of `work`.
pub fn slices<T: Compared, C: Compared, R>(
    shape: Shape,
    a: &[T],
    b: &[T],
    c: &[C],
    work: impl FnOnce(Claim) -> Result<R>,
) -> Result<R> {
    shape.check_lens([a.len(), b.len(), c.len()])?;
    let dense = |rows, cols, values| Dense::new::<T>(rows, cols, Layout::RowMajor, values);
    let (a, b) = (dense(shape.m(), shape.k(), a)?, dense(shape.k(), shape.n(), b)?);
    let c = Dense::new::<C>(shape.m(), shape.n(), Layout::RowMajor, c)?;
    let (a, b, c) = (Widened(&a), Widened(&b), Widened(&c));
    let mut claim = Claim::product(&a, &b, &c);
    (claim.computed, claim.stored) = (T::TYPE.sums_for(C::TYPE).unwrap_or(T::FORMAT), C::FORMAT);
    let is_of_8_bits = T::FORMAT.is_float() && T::FORMAT.bits() == 8;
    claim.of_8_bits = is_of_8_bits.then_some(T::FORMAT);
    work(claim)
}

#[cfg(test)]
mod tests;
