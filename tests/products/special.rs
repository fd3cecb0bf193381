//! NaN and infinities reach the elements of C that depend on them, and no others.

use tests::{devices, multiply_guarded, products, reference};

use crate::check::{Data, operands, shape};

/// Corners, and edges of tiles, of a 37 x 41 by 41 x 39 product.
const PLACES: [(usize, usize); 6] = [(0, 0), (15, 16), (16, 15), (31, 32), (32, 31), (36, 38)];
const M: usize = 37;
const N: usize = 39;
const K: usize = 41;

/// The class of a number, apart from its value.
fn class(x: f64) -> &'static str {
    match x {
        x if x.is_nan() => "NaN",
        f64::INFINITY => "inf",
        f64::NEG_INFINITY => "-inf",
        _ => "finite",
    }
}

/// Multiplies A and B, changed by `plant`. Returns the class of each element of C, after a
/// comparison with the three loops in float64.
fn classes(plant: impl Fn(&mut [f32], &mut [f32])) -> Vec<Vec<&'static str>> {
    let shape = shape(M, N, K);
    let (mut a, mut b) = operands(shape, Data::Integers, 5);
    plant(&mut a, &mut b);
    let want = reference::naive(shape, &a, &b).into_iter().map(class).collect::<Vec<_>>();
    let mut found = Vec::new();
    for device in devices() {
        for (entry, _) in products() {
            let c = multiply_guarded(&device, entry, shape, &a, &b).unwrap();
            let got = c.iter().map(|&x| class(x.into())).collect::<Vec<_>>();
            let wrong = got.iter().zip(&want).position(|(got, want)| got != want);
            let place = wrong.map(|index| (index / N, index % N));
            assert!(wrong.is_none(), "{} on {}: C{place:?}", entry.name(), device.name());
            found.push(got);
        }
    }
    found
}

#[test]
fn a_nan_in_a_makes_its_row_nan() {
    for (i, p) in PLACES {
        let found = classes(|a, _| a[i * K + p] = f32::NAN);
        for (index, class) in found.concat().into_iter().enumerate() {
            let row = index / N % M;
            assert_eq!(class == "NaN", row == i, "A({i}, {p}), row {row}");
        }
    }
}

#[test]
fn a_nan_in_b_makes_its_column_nan() {
    for (p, j) in PLACES {
        let found = classes(|_, b| b[p * N + j] = f32::NAN);
        for (index, class) in found.concat().into_iter().enumerate() {
            let col = index % N;
            assert_eq!(class == "NaN", col == j, "B({p}, {j}), column {col}");
        }
    }
}

/// An infinity times a zero is NaN, times any other number it is infinite.
#[test]
fn an_infinity_meets_zero() {
    for (i, p) in PLACES {
        let found = classes(|a, b| {
            a[i * K + p] = f32::INFINITY;
            b[p * N + 3] = 0.0;
        });
        for c in found {
            assert_eq!(c.iter().filter(|&&class| class == "NaN").count(), 1);
            assert_eq!(c.iter().filter(|class| class.ends_with("inf")).count(), N - 1);
            assert_eq!(c[i * N + 3], "NaN");
        }
    }
}

#[test]
fn opposite_infinities_in_one_sum() {
    let found = classes(|a, b| {
        (a[7 * K], a[7 * K + K - 1]) = (f32::INFINITY, f32::INFINITY);
        b[..N].fill(1.0);
        b[(K - 1) * N..].fill(-1.0);
    });
    assert!(found.iter().all(|c| c[7 * N..8 * N].iter().all(|&class| class == "NaN")));
}

/// Subnormal numbers are kept: no kernel flushes them to zero.
#[test]
fn subnormal_numbers_are_kept() {
    let shape = shape(20, 20, 1);
    let subnormal = f32::MIN_POSITIVE / 8.0;
    let (a, b) = (vec![subnormal; 20], vec![0.5; 20]);
    for device in devices() {
        for (entry, _) in products() {
            let c = multiply_guarded(&device, entry, shape, &a, &b).unwrap();
            let kept = c.iter().all(|&x| x == subnormal / 2.0 && x > 0.0);
            assert!(kept, "{} on {}: {}", entry.name(), device.name(), c[0]);
        }
    }
}

/// The sum overflows in float32. In float64 it would not.
#[test]
fn an_overflow_is_infinite() {
    let shape = shape(17, 17, 2);
    let (a, b) = (vec![2f32.powi(127); 34], vec![1.0; 34]);
    for device in devices() {
        for (entry, _) in products() {
            let c = multiply_guarded(&device, entry, shape, &a, &b).unwrap();
            let infinite = c.iter().all(|&x| x == f32::INFINITY);
            assert!(infinite, "{} on {}: {}", entry.name(), device.name(), c[0]);
        }
    }
}
