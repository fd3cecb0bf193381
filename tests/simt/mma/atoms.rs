//! The atoms of f64 and of i8: which lane has what, and the bits of their sums.

use proptest::prelude::*;
use simt::{
    Kernel, LaunchConfig,
    check::{self, Order},
    checked,
    device::*,
};

use super::{kernels, watched};
use crate::Aligned;

pub type OfF64 = Kernel<(In<f64>, In<f64>, Out<f64>)>;
pub type Watched<T, S> = Kernel<(checked::In<T>, checked::In<T>, checked::Out<S>)>;

/// A kernel for each, its version for checked launches, and its k-steps.
pub const OF_F64: [(&OfF64, &Watched<f64, f64>, usize); 4] = [
    (&kernels::f64_m8n8k4, &watched::kernels::f64_m8n8k4, 4),
    (&kernels::f64_m16n8k4, &watched::kernels::f64_m16n8k4, 4),
    (&kernels::f64_m16n8k8, &watched::kernels::f64_m16n8k8, 8),
    (&kernels::f64_m16n8k16, &watched::kernels::f64_m16n8k16, 16),
];

/// Multiplies with each atom of f64, and compares the bits with a chain of fused multiply-adds.
/// Elements are by outer element and step.
fn is_a_chain(a: impl Fn(usize, usize) -> f64, b: impl Fn(usize, usize) -> f64) {
    for (kernel, watched, steps) in OF_F64 {
        let of = |value: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            (0..32 * steps).map(|at| value(at / steps, at % steps)).collect()
        };
        let (rows, cols, mut c) = (of(&a), of(&b), vec![0.0; 1024]);
        let params = (crate::read(&rows), crate::read(&cols), crate::write(&mut c));
        crate::launch(kernel, [1; 3], [32, 1, 1], params).unwrap();
        let mut found = vec![0.0; 1024];
        let mut options = check::Options::default();
        options.order = Order::Random(1);
        // SAFETY: the vectors outlive the launch, and nobody else uses them.
        let report = unsafe {
            let params = (
                checked::In::new(rows.as_ptr(), rows.len()),
                checked::In::new(cols.as_ptr(), cols.len()),
                checked::Out::uninit(found.as_mut_ptr(), 1024),
            );
            check::launch(watched, &LaunchConfig::new([1; 3], [32, 1, 1]), params, &options)
        };
        let report = report.unwrap();
        assert!(report.is_clean(), "{report}");
        assert!(c.iter().zip(&found).all(|(x, y)| x.to_bits() == y.to_bits()));
        for (at, sum) in c.into_iter().enumerate() {
            let (row, col) = (at / 32, at % 32);
            let products = (0..2 * steps).map(|p| (a(row, p % steps), b(col, p % steps)));
            let expected = products.fold(0.0, |sum, (a, b)| f64::mul_add(a, b, sum));
            let same = sum.to_bits() == expected.to_bits() || sum.is_nan() && expected.is_nan();
            assert!(same, "({row}, {col}) of {steps} steps: {sum:e}, not {expected:e}");
        }
    }
}

/// Pseudo-random numbers, of some range of exponents.
pub fn number(outer: usize, p: usize, salt: u64, spread: i32) -> f64 {
    let mixed = (outer as u64 * 2_654_435_761 + p as u64 * 40_503)
        .wrapping_add(salt)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let fraction = (mixed >> 11) as f64 / 2f64.powi(52) - 1.0;
    fraction * 2f64.powi((mixed % 1024) as i32 % (2 * spread + 1) - spread)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn sums_of_f64_are_chains_of_fused_multiply_adds(salt: u64, spread in 0..=500i32) {
        is_a_chain(|row, p| number(row, p, salt, spread), |col, p| number(col, p, !salt, spread));
    }
}

#[test]
fn products_of_integers_are_exact() {
    is_a_chain(
        |row, p| ((row * 7 + p * 3) % 17) as f64 - 8.0,
        |col, p| ((p * 5 + col * 11) % 13) as f64 - 6.0,
    );
}

/// Cancellation, subnormal products and sums, signed zeros; and last, infinity and NaN.
pub const ADVERSARIAL: [f64; 14] = [
    1e16,
    1.0,
    -1e16,
    1.0 + f64::EPSILON,
    f64::MIN_POSITIVE,
    5e-324,
    -0.0,
    0.0,
    f64::MAX,
    -f64::MAX,
    2.8e-163,
    -2.2e-162,
    f64::INFINITY,
    f64::NAN,
];

#[test]
fn sums_of_f64_are_chains_at_the_ends_of_the_range() {
    // Without the last two, without the last, and with all.
    for count in 12..=14 {
        let pick = |i: usize| ADVERSARIAL[i % count];
        is_a_chain(|row, p| pick(row * 5 + p * 3 + p / 4), |col, p| pick(col * 3 + p * 5 + 1));
    }
}

#[test]
fn sums_of_i8_are_exact_and_wrap_around() {
    let byte = |number: usize| (number % 256) as u8 as i8;
    // The greatest sum has row 5 and column 3.
    let a = |row: usize, p: usize| if row == 5 { i8::MIN } else { byte(row * 37 + p * 101) };
    let b = |col: usize, p: usize| if col == 3 { i8::MIN } else { byte(col * 59 + p * 83) };
    let rows = Aligned::<[_; 1024]>(std::array::from_fn(|at| a(at / 32, at % 32)));
    let cols = Aligned::<[_; 1024]>(std::array::from_fn(|at| b(at / 32, at % 32)));
    // 4096 times 32 times 2^14 is 2^31, one more than an i32 has.
    for times in [1, 2, 4096] {
        let mut c = vec![0; 1024];
        let params = (times, crate::read(&rows.0), crate::read(&cols.0), crate::write(&mut c));
        crate::launch(&kernels::of_i8, [1; 3], [32, 1, 1], params).unwrap();
        for (at, sum) in c.into_iter().enumerate() {
            let products = (0..32).map(|p| i64::from(a(at / 32, p)) * i64::from(b(at % 32, p)));
            let expected = i64::from(times) * products.sum::<i64>();
            assert_eq!(sum, expected as i32, "({}, {}), {times} times", at / 32, at % 32);
        }
    }
}
