//! alpha and beta: what is not read, what stays, and every pair of different numbers.

use host::testing;
use tests::gemm::{Case, Data, INFINITY, NAN, Number, Operand, Order, Place, Suite, Want, bytes};
use tests::once;

/// None of them a multiple of a tile's side.
const SHAPES: [[usize; 3]; 3] = [[255, 127, 63], [62, 126, 254], [253, 61, 125]];

/// A matrix of that size with the same number everywhere.
fn full<T: Number>(size: (usize, usize), value: T) -> Operand<T> {
    Operand::new(size, Place::padded(size, Order::Rows, 1), |_, _, _| value)
}

/// With `beta = 0` C may hold anything: the result has the same bits as with zeros.
fn beta_zero<T: Number>() {
    let mut suite = Suite::<T>::new();
    for sizes in SHAPES {
        let case = Case::<T>::dense(sizes, Data::Uniform, 6);
        let case = Case { alpha: 0.7, ..case };
        let size = case.c.size;
        let with = |c: Operand<T>| Case { c, ..case.clone() };
        let want = Want::bounded(&with(full(size, T::nearest(0.0))));
        let zeros = suite.check(&with(full(size, T::nearest(0.0))), &want);
        for c in [
            full(size, T::nearest(NAN)),
            full(size, T::nearest(INFINITY)),
            full(size, T::nearest(-INFINITY)),
            // All payloads, also signalling ones.
            Operand::noise(size, Place::padded(size, Order::Columns, 2)),
        ] {
            let c = suite.check(&with(c), &want);
            assert!(
                c.iter().all(|&x| x.into().is_finite()) && bytes(&c) == bytes(&zeros),
                "{case}"
            );
        }
    }
    suite.done("scalars::beta_zero_does_not_read_c");
}

#[test]
fn beta_zero_does_not_read_c() {
    once!(crate::SOURCES);
    beta_zero::<f32>();
    beta_zero::<f64>();
}

/// With `alpha = 0` A and B may hold anything: C is beta C, rounded once.
fn alpha_zero<T: Number>() {
    let mut suite = Suite::<T>::new();
    for [m, n, k] in SHAPES {
        for value in [NAN, INFINITY] {
            let value = T::nearest(value);
            let case =
                Case::plain(full((m, k), value), full((k, n), value), Place::strided([n, 1]));
            for (alpha, beta) in [(0.0, 0.0), (0.0, 1.0), (-0.0, 1.3), (1e-320, -0.5)] {
                // In f64 the last alpha is not zero.
                let alpha = if T::nearest(alpha).into() == 0.0 { alpha } else { 0.0 };
                let case = case.clone().scaled(alpha, beta, Data::Uniform, 7);
                let c = suite.bounded(&case);
                let right = |(&before, &after): (&T, &T)| T::nearest(beta).times(before) == after;
                assert!(case.c.values().iter().zip(&c).all(right), "{case}");
            }
        }
    }
    suite.done("scalars::alpha_zero_does_not_read_a_and_b");
}

#[test]
fn alpha_zero_does_not_read_a_and_b() {
    once!(crate::SOURCES);
    alpha_zero::<f32>();
    alpha_zero::<f64>();
}

/// With `alpha = 0` and `beta = 1` nothing is launched, and C is not changed, also the payloads of
/// its NaNs.
#[test]
fn alpha_zero_and_beta_one_leave_c() {
    once!(crate::SOURCES);
    let mut suite = Suite::<f32>::new();
    for [m, n, k] in SHAPES {
        let case = Case::plain(full((m, k), 1.0), full((k, n), 1.0), Place::strided([n + 1, 1]));
        // The second pair, rounded to f32, is the first.
        for (alpha, beta) in [(0.0, 1.0), (1e-60, 1.0 + 1e-12)] {
            let case = Case { alpha, beta, ..case.clone() };
            suite.each(|bench, kernel| {
                let before = testing::counts().launches;
                let c = bench.run(&case, Some(kernel)).unwrap();
                assert_eq!(testing::counts().launches, before, "{case}");
                assert!(bytes(&c) == bytes(&case.c.values()), "{case}");
            });
        }
    }
    suite.done("scalars::alpha_zero_and_beta_one_leave_c");
}

/// Without products alpha is not read, even if it is NaN.
#[test]
fn without_products_alpha_may_be_nan() {
    once!(crate::SOURCES);
    let mut suite = Suite::<f32>::new();
    for [m, n, _] in SHAPES {
        for beta in [0.0, 1.0, 1.3] {
            let case = Case::dense([m, n, 0], Data::Uniform, 8).scaled(NAN, beta, Data::Uniform, 9);
            let c = suite.bounded(&case);
            let right = |(&before, &after): (&f32, &f32)| beta as f32 * before == after;
            assert!(case.c.values().iter().zip(&c).all(right), "{case}");
        }
    }
    suite.done("scalars::without_products_alpha_may_be_nan");
}

fn pairs<T: Number>() {
    let mut suite = Suite::<T>::new();
    for alpha in [0.0, 1.0, -1.0, 0.5, 0.7, 5.0, NAN, INFINITY] {
        for beta in [0.0, 1.0, -1.0, 1.3, 3.0, NAN, INFINITY] {
            for order in Order::BOTH {
                let case = Case::<T>::dense([37, 41, 19], Data::Uniform, 10);
                let place = Place::padded((37, 41), order, 1);
                let case = case.c_at(place).scaled(alpha, beta, Data::Uniform, 11);
                suite.bounded(&case);
            }
        }
    }
    suite.done("scalars::every_pair");
}

/// If a scalar is NaN, so is C. If one is infinite, C is infinite, or NaN if infinities of both
/// signs are added.
#[test]
fn every_pair() {
    once!(crate::SOURCES);
    pairs::<f32>();
    pairs::<f64>();
}

/// Scalars are rounded to the operands' type. What is zero or one then counts as that.
#[test]
fn scalars_are_rounded_first() {
    once!(crate::SOURCES);
    let mut suite = Suite::<f32>::new();
    let case = Case::<f32>::dense([9, 10, 11], Data::Uniform, 12);
    for (alpha, beta, same) in [
        (1e-60, 1.0 + 1e-12, (0.0, 1.0)),
        (0.1, 1e-60, (f64::from(0.1f32), 0.0)),
        (1e60, -1e60, (INFINITY, -INFINITY)),
    ] {
        let scaled = |alpha, beta| case.clone().scaled(alpha, beta, Data::Uniform, 13);
        let (one, other) = (scaled(alpha, beta), scaled(same.0, same.1));
        assert!(bytes(&suite.bounded(&one)) == bytes(&suite.bounded(&other)), "{one}");
    }
    suite.done("scalars::scalars_are_rounded_first");
}
