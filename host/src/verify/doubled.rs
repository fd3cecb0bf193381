//! Sums of products of f64 in twice the precision: a reference for sums in f64.
//!
//! A product and a sum are each two numbers: what f64 rounds it to, and the rest, which is exact
//! (T. J. Dekker, *A floating-point technique for extending the available precision*, 1971; D. E.
//! Knuth, *TAOCP* 2, 4.2.2). The rests are added in f64. So a sum of k products is off by about `k²
//! 2^-106` of its terms' absolute values, and by the one rounding to f64.

use gpu_gemm::{Result, memory, parallel};

/// Rows of B that are read again for each row of A while they are in the cache.
const ROWS: usize = 32;

/// Sums, and the rests of them.
pub(super) struct Doubled {
    highs: Vec<f64>,
    lows: Vec<f64>,
}

impl Doubled {
    /// So many sums of nothing.
    pub(super) fn new(len: usize) -> Result<Self> {
        Ok(Doubled { highs: memory::filled(0.0, len)?, lows: memory::filled(0.0, len)? })
    }

    /// `c += A b` of a row-major A of k columns and a row-major B of n, on all cores.
    pub(super) fn add(&mut self, a: &[f64], k: usize, b: &[f64], n: usize) -> Result<()> {
        let len = (ROWS * n).max(1);
        let rows = self.highs.chunks_mut(len).zip(self.lows.chunks_mut(len)).enumerate();
        parallel::for_each(rows, |(part, (highs, lows))| {
            gpu_gemm::check_interrupt()?;
            let first = part * ROWS;
            add_products((&a[first * k..(first + highs.len() / n) * k], k), (b, n), highs, lows);
            gpu_gemm::progress::one_more();
            Ok(())
        })
    }

    /// The f64 nearest to a sum. If that is not finite, there is no rest.
    pub(super) fn nearest(&self, index: usize) -> f64 {
        let (high, low) = (self.highs[index], self.lows[index]);
        if high.is_finite() { high + low } else { high }
    }
}

/// The sum of products, rounded once.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (mut high, mut low) = (0.0, 0.0);
    for (&a, &b) in a.iter().zip(b) {
        (high, low) = with_product((high, low), a, b);
    }
    if high.is_finite() { high + low } else { high }
}

/// `C = A B` of row-major matrices, on all cores, each sum rounded once.
///
/// # Errors
/// [`Error::Interrupted`](gpu_gemm::Error::Interrupted),
/// [`Error::OutOfMemory`](gpu_gemm::Error::OutOfMemory).
///
/// # Panics
/// If A has not `m k` elements, or B not `k n`.
pub fn product_of_doubles([m, n, k]: [usize; 3], a: &[f64], b: &[f64]) -> Result<Vec<f64>> {
    assert!(a.len() == m * k && b.len() == k * n, "A and B have their sizes");
    let mut sums = Doubled::new(m * n)?;
    sums.add(a, k, b, n)?;
    let mut c = memory::reserved(m * n)?;
    c.extend((0..m * n).map(|index| sums.nearest(index)));
    Ok(c)
}

/// The sum and its rest with another product.
#[inline(always)]
fn with_product((high, low): (f64, f64), a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let of_product = a.mul_add(b, -product);
    let sum = high + product;
    let other = sum - high;
    let of_sum = (high - (sum - other)) + (product - other);
    (sum, low + (of_product + of_sum))
}

/// Adds the products of some rows of A, with k columns, and of B, with n columns.
fn add_products(a: (&[f64], usize), b: (&[f64], usize), highs: &mut [f64], lows: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has both.
        return unsafe { by_fma(a, b, highs, lows) };
    }
    one_by_one(a, b, highs, lows);
}

/// The same, compiled for processors that multiply and add four numbers at once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn by_fma(a: (&[f64], usize), b: (&[f64], usize), highs: &mut [f64], lows: &mut [f64]) {
    one_by_one(a, b, highs, lows);
}

#[inline(always)]
fn one_by_one(
    (a, k): (&[f64], usize),
    (b, n): (&[f64], usize),
    highs: &mut [f64],
    lows: &mut [f64],
) {
    for first in (0..k).step_by(ROWS) {
        let steps = first..(first + ROWS).min(k);
        for (row, (highs, lows)) in highs.chunks_mut(n).zip(lows.chunks_mut(n)).enumerate() {
            for p in steps.clone() {
                let (a, b) = (a[row * k + p], &b[p * n..][..n]);
                for ((high, low), &b) in highs.iter_mut().zip(lows.iter_mut()).zip(b) {
                    (*high, *low) = with_product((*high, *low), a, b);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_cancels_is_right_to_the_last_bit() {
        // (1 + e)(1 - e) - 1 = -e², and what f64 loses of large terms.
        let e = 2f64.powi(-40);
        let (a, b) = ([1.0 + e, 1.0, 1e30, 3.0, -1e30], [1.0 - e, -1.0, 1.0, e, 1.0]);
        let wanted = 3.0 * e - e * e;
        assert_eq!(dot(&a, &b), wanted);
        assert_eq!(product_of_doubles([1, 1, 5], &a, &b).unwrap(), [wanted]);
        assert!(a.iter().zip(&b).map(|(a, b)| a * b).sum::<f64>() != wanted);
    }

    #[test]
    fn every_element_is_the_sum_of_its_row_and_column() {
        let [m, n, k] = [67, 5, 70];
        let draw = |seed, len| crate::operands::uniform::<f64>(seed, len).unwrap();
        let (a, b) = (draw(1, m * k), draw(2, k * n));
        let c = product_of_doubles([m, n, k], &a, &b).unwrap();
        for (at, c) in c.into_iter().enumerate() {
            let column = (0..k).map(|p| b[p * n + at % n]).collect::<Vec<_>>();
            assert_eq!(c, dot(&a[at / n * k..][..k], &column));
        }
        assert_eq!(product_of_doubles([0, 3, 4], &[], &[0.0; 12]).unwrap(), [0.0; 0]);
        assert_eq!(product_of_doubles([2, 1, 0], &[], &[]).unwrap(), [0.0; 2]);
    }

    #[test]
    fn what_is_not_finite_stays_so() {
        assert_eq!(dot(&[f64::INFINITY, 1.0], &[1.0, 1.0]), f64::INFINITY);
        assert_eq!(dot(&[1e300, 1.0], &[1e300, 1.0]), f64::INFINITY);
        assert!(dot(&[f64::INFINITY, f64::INFINITY], &[1.0, -1.0]).is_nan());
        assert!(dot(&[f64::NAN], &[0.0]).is_nan());
    }
}
