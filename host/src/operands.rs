//! Operands of a run: pseudo-random, the same for the same seed on every machine.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use crate::product::Shape;

/// The largest integer below which every integer is an f32: sums of products up to it are exact, in any
/// order of summation.
const EXACT: u64 = 1 << f32::MANTISSA_DIGITS;

/// The seed of B in a run whose seed, and A's, is `seed`: with the same seed A and B would begin alike.
pub fn seed_of_b(seed: u64) -> u64 {
    !seed
}

/// `len` values, uniform in [-1, 1).
pub fn uniform(seed: u64, len: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// `len` values, normally distributed, mean 0, deviation 1.
pub fn normal(seed: u64, len: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| rng.sample(StandardNormal)).collect()
}

/// Puts a NaN in one of a hundred rows of A and columns of B, in one at least. The rows and columns of C
/// that they reach are NaN, and no others.
pub fn sprinkle_nan(seed: u64, shape: Shape, a: &mut [f32], b: &mut [f32]) {
    let (m, n, k) = (shape.m(), shape.n(), shape.k());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    if k == 0 {
        return;
    }
    for _ in 0..m.div_ceil(100) {
        a[rng.random_range(0..m) * k + rng.random_range(0..k)] = f32::NAN;
    }
    for _ in 0..n.div_ceil(100) {
        b[rng.random_range(0..k) * n + rng.random_range(0..n)] = f32::NAN;
    }
}

/// The largest `s` up to 8 such that a sum of `k` products of integers up to `s` in magnitude stays
/// exact in f32: `k s² < 2^24`. `None` where even `s = 1` does not, from `k = 2^24` on.
pub fn exact_magnitude(k: usize) -> Option<u32> {
    (1..=8)
        .rev()
        .find(|&s| (k as u64).checked_mul(s * s).is_some_and(|sum| sum < EXACT))
        .map(|s| s as u32)
}

/// `len` integers from -magnitude to magnitude and none of them 0, so that every product counts: a kernel
/// that drops one gives another sum.
pub fn integers(seed: u64, len: usize, magnitude: u32) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len)
        .map(|_| {
            let value = rng.random_range(1..=magnitude) as f32;
            if rng.next_u32() % 2 == 0 { value } else { -value }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_values() {
        // Pinned: another generator or another way of drawing would make old reports irreproducible.
        assert_eq!(uniform(1, 3), uniform(1, 3));
        assert_ne!(uniform(1, 3), uniform(2, 3));
        assert!(uniform(3, 1000).iter().all(|x| (-1.0..1.0).contains(x)));
        let normal = normal(3, 10_000);
        let moment = |power| normal.iter().map(|&x| f64::from(x).powi(power)).sum::<f64>() / 1e4;
        assert!(moment(1).abs() < 0.05 && (moment(2) - 1.0).abs() < 0.05);
    }

    #[test]
    fn integer_sums_stay_exact() {
        assert_eq!(exact_magnitude(0), Some(8));
        assert_eq!(exact_magnitude(513), Some(8));
        assert_eq!(exact_magnitude(1 << 20), Some(3));
        assert_eq!(exact_magnitude((1 << 24) - 1), Some(1));
        assert_eq!(exact_magnitude(1 << 24), None);
        assert!(
            integers(7, 1000, 3).iter().all(|&x| x != 0.0 && x.abs() <= 3.0 && x.fract() == 0.0)
        );
    }
}
