//! The verification itself: right results must be accepted, and every kind of wrong result refused.

use host::{
    operands,
    product::Shape,
    verify::{Comparison, Criterion, compare},
};
use tests::reference;

const BOTH: [Criterion; 2] = [Criterion::Exact, Criterion::Bound];

fn shape(m: u64, n: u64, k: u64) -> Shape {
    Shape::new(m, n, k).unwrap()
}

/// A, B and C with a closed form: `a(i, p) = i + 1`, `b(p, j) = p - 2 j`, so that
/// `c(i, j) = (i + 1) (k (k - 1) / 2 - 2 k j)`. No two elements of C are equal.
fn closed_form(shape: Shape) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    let (m, n, k) = (shape.m() as i64, shape.n() as i64, shape.k() as i64);
    let matrix = |rows, cols, element: &dyn Fn(i64, i64) -> i64| {
        let places = (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col)));
        places.map(|(row, col)| element(row, col) as f32).collect::<Vec<_>>()
    };
    (
        matrix(m, k, &|i, _| i + 1),
        matrix(k, n, &|p, j| p - 2 * j),
        matrix(m, n, &|i, j| (i + 1) * (k * (k - 1) / 2 - 2 * k * j)),
    )
}

#[test]
fn a_closed_form_is_accepted_exactly() {
    for [m, n, k] in [[1, 1, 1], [6, 6, 4], [5, 7, 3], [70, 3, 9], [33, 40, 16]] {
        let shape = shape(m, n, k);
        let (a, b, c) = closed_form(shape);
        for criterion in BOTH {
            let found = compare(shape, &a, &b, &c, criterion).unwrap();
            assert!(found.passed(), "{shape}: {found:?}");
            assert_eq!((found.elements, found.wrong), (m * n, 0), "{shape}");
            assert_eq!((found.max_abs_err, found.max_err_over_bound), (0.0, 0.0), "{shape}");
        }
    }
}

/// Wrong results of all of C are refused under both criteria.
#[test]
fn a_result_that_is_wrong_as_a_whole() {
    let shape = shape(6, 6, 4);
    let (a, b, c) = closed_form(shape);
    let rearranged = |place: fn(usize, usize) -> (usize, usize)| {
        let from = |index: usize| place(index / 6, index % 6);
        (0..36).map(|index| c[from(index).0 * 6 + from(index).1]).collect::<Vec<_>>()
    };
    let swapped = |i: usize| if i < 2 { 1 - i } else { i };
    assert_eq!(rearranged(|i, j| (i, j)), c);
    let wrong_results: [(&str, Vec<f32>); 7] = [
        ("rows swapped", (0..36).map(|x| c[swapped(x / 6) * 6 + x % 6]).collect()),
        ("columns swapped", (0..36).map(|x| c[x / 6 * 6 + swapped(x % 6)]).collect()),
        ("transposed", rearranged(|i, j| (j, i))),
        ("shifted by a row", rearranged(|i, j| ((i + 1) % 6, j))),
        ("sign flipped", c.iter().map(|x| -x).collect()),
        ("zero", vec![0.0; 36]),
        ("never written", vec![f32::NAN; 36]),
    ];
    for (name, wrong) in &wrong_results {
        for criterion in BOTH {
            let found = compare(shape, &a, &b, wrong, criterion).unwrap();
            assert!(!found.passed(), "{name}, {criterion:?}: {found:?}");
            let differing = wrong.iter().zip(&c).filter(|(x, y)| x != y).count();
            assert_eq!(found.wrong, differing as u64, "{name}, {criterion:?}");
        }
    }
}

/// One wrong element is found and named at every place: no row and no column is left out.
#[test]
fn one_wrong_element_anywhere() {
    let shape = shape(70, 3, 4);
    let (a, b, right) = closed_form(shape);
    for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 0.5] {
        for index in 0..right.len() {
            let mut c = right.clone();
            c[index] = wrong;
            for criterion in BOTH {
                let found = compare(shape, &a, &b, &c, criterion).unwrap();
                let worst = found.worst.unwrap();
                assert_eq!((found.passed(), found.wrong), (false, 1), "C[{index}] = {wrong}");
                assert_eq!((worst.row, worst.col), (index / 3, index % 3), "C[{index}] = {wrong}");
                assert_eq!((worst.got as f32).to_bits(), wrong.to_bits());
                assert_eq!(worst.want, f64::from(right[index]));
            }
        }
    }
}

#[test]
fn nan_and_infinity_stand_in_the_figures() {
    let shape = shape(40, 3, 4);
    let (a, b, right) = closed_form(shape);
    // Also if other elements before or after it are wrong, in rows that other threads compare.
    for index in [0, 1, 60, 119] {
        let mut c = vec![1e30; right.len()];
        c[index] = f32::NAN;
        for criterion in BOTH {
            let found = compare(shape, &a, &b, &c, criterion).unwrap();
            assert!(found.max_abs_err.is_nan() && found.max_err_over_bound.is_nan(), "{found:?}");
            assert!(found.worst.unwrap().got.is_nan(), "{found:?}");
            assert_eq!(found.wrong, 120);
        }
        let mut c = right.clone();
        c[index] = f32::INFINITY;
        let found = compare(shape, &a, &b, &c, Criterion::Bound).unwrap();
        assert_eq!((found.max_abs_err, found.max_err_over_bound), (f64::INFINITY, f64::INFINITY));
    }
}

/// The bound is neither looser nor tighter than documented.
#[test]
fn twice_the_bound_is_refused_and_half_of_it_is_not() {
    for k in [1, 8, 100, 1000] {
        let shape = shape(40, 5, k);
        let [a, b] = [(1, shape.a_len()), (2, shape.b_len())]
            .map(|(seed, len)| operands::uniform(seed, len).unwrap());
        let want = reference::product(shape, &a, &b);
        let relative = (k as f64 + 3.0) * 2f64.powi(-24);
        let bounds = reference::magnitude(shape, &a, &b)
            .into_iter()
            .map(|magnitude| relative / (1.0 - relative) * magnitude)
            .collect::<Vec<_>>();
        let right = want.iter().map(|&x| x as f32).collect::<Vec<_>>();
        let changed = |index: usize, bounds_off: f64| {
            let mut c = right.clone();
            c[index] = (want[index] + bounds_off * bounds[index]) as f32;
            compare(shape, &a, &b, &c, Criterion::Bound).unwrap()
        };
        for index in [0, 4, 99, 199] {
            for sign in [-1.0, 1.0] {
                let near = changed(index, sign * 0.5);
                assert!(near.passed(), "k = {k}, C[{index}]: {near:?}");
                let far = changed(index, sign * 2.0);
                let place = far.worst.map(|worst| (worst.row, worst.col));
                assert_eq!((far.wrong, place), (1, Some((index / 5, index % 5))), "k = {k}");
                let off = far.max_err_over_bound;
                assert!((1.5..=2.5).contains(&off), "k = {k}, C[{index}]: {off} bounds");
            }
        }
    }
}

/// The reason for the exact criterion: at k = 4096 the bound alone lets a sum pass that lacks a
/// product.
#[test]
fn a_dropped_product_passes_the_bound_and_not_the_exact_criterion() {
    let shape = shape(3, 4, 4096);
    let magnitude = operands::exact_magnitude(shape.k()).unwrap();
    let a = operands::integers(1, shape.a_len(), magnitude).unwrap();
    let b = operands::integers(2, shape.b_len(), magnitude).unwrap();
    let c = reference::product(shape, &a, &b).iter().map(|&x| x as f32).collect::<Vec<_>>();
    let verdict = |c: &[f32], criterion| compare(shape, &a, &b, c, criterion).unwrap();
    assert!(BOTH.iter().all(|&criterion| verdict(&c, criterion).passed()));

    let (i, j) = (1, 2);
    let product = |p: usize| a[i * shape.k() + p] * b[p * shape.n() + j];
    let mut passed_the_bound = 0;
    for p in 0..shape.k() {
        let mut lacking = c.clone();
        lacking[i * shape.n() + j] -= product(p);
        let found: Comparison = verdict(&lacking, Criterion::Exact);
        let place = found.worst.map(|worst| (worst.row, worst.col));
        assert_eq!((found.wrong, place), (1, Some((i, j))), "without p = {p}: {found:?}");
        passed_the_bound += usize::from(verdict(&lacking, Criterion::Bound).passed());
        if p == 64 {
            break; // enough to see both
        }
    }
    assert!(passed_the_bound > 0, "the bound has become tight enough to see this");
}

#[test]
fn zero_has_no_sign() {
    let shape = shape(1, 1, 2);
    let found = compare(shape, &[1.0, -1.0], &[3.0, 3.0], &[-0.0], Criterion::Exact).unwrap();
    assert!(found.passed(), "{found:?}");
}

#[test]
fn without_products_every_element_is_zero() {
    let shape = shape(2, 2, 0);
    for criterion in BOTH {
        assert!(compare(shape, &[], &[], &[0.0; 4], criterion).unwrap().passed());
        let found = compare(shape, &[], &[], &[0.0, 0.0, 1e-30, 0.0], criterion).unwrap();
        let place = found.worst.map(|worst| (worst.row, worst.col));
        assert_eq!((found.passed(), found.wrong, place), (false, 1, Some((1, 0))), "{found:?}");
    }
}

/// A result that was not compared is not verified.
#[test]
fn an_empty_result_is_not_verified() {
    for [m, n, k] in [[0, 3, 2], [3, 0, 2], [0, 0, 0]] {
        let shape = shape(m, n, k);
        let (a, b) = (vec![1.0; shape.a_len()], vec![1.0; shape.b_len()]);
        for criterion in BOTH {
            let found = compare(shape, &a, &b, &[], criterion).unwrap();
            assert_eq!((found.passed(), found.elements, found.worst), (false, 0, None));
        }
    }
}

#[test]
fn operands_of_another_length_are_named() {
    let shape = shape(2, 3, 4);
    let full: [Vec<f32>; 3] = [vec![1.0; 8], vec![1.0; 12], vec![1.0; 6]];
    let names = [("a", "m * k"), ("b", "k * n"), ("c", "m * n")];
    for (which, (name, product)) in names.into_iter().enumerate() {
        for longer in [false, true] {
            let mut operands = full.clone();
            let len = if longer { full[which].len() + 1 } else { full[which].len() - 1 };
            operands[which].resize(len, 1.0);
            let [a, b, c] = &operands;
            let error = compare(shape, a, b, c, Criterion::Exact).unwrap_err().to_string();
            let wanted = full[which].len();
            let expected = format!("{name}.len() = {len}: must be {product} = {wanted} for ");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
