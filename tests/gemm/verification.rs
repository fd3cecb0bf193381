//! The reference and the comparison themselves: right results are accepted, and every kind of wrong
//! result is refused.

use tests::gemm::{
    Case, Data, INFINITY, NAN, Number, Operand, Order, Place, Side, Want, counted, same_bits,
};

/// A and B with a closed form: `a(i, p) = i + 1`, `b(p, j) = p - 2 j`, so that
/// `c(i, j) = (i + 1) (k (k - 1) / 2 - 2 k j)`. No two elements of C are equal.
fn closed_form<T: Number>([m, n, k]: [usize; 3]) -> (Case<T>, Vec<T>) {
    let matrix = |size, order, element: &dyn Fn(i64, i64) -> i64| {
        let value = |_, row, col| T::nearest(element(row as i64, col as i64) as f64);
        Operand::new(size, Place::padded(size, order, 3), value)
    };
    let a = matrix((m, k), Order::Columns, &|i, _| i + 1);
    let b = matrix((k, n), Order::Rows, &|p, j| p - 2 * j);
    let twice = k as i64;
    let c =
        matrix((m, n), Order::Rows, &|i, j| (i + 1) * (twice * (twice - 1) / 2 - 2 * twice * j));
    let place = c.place;
    (Case::plain(a, b, place), c.values())
}

/// By plain loops, and by nalgebra where that would take long: the last shapes.
fn accepted<T: Number>() -> usize {
    let shapes =
        [[1, 1, 1], [6, 6, 4], [5, 7, 3], [33, 40, 16], [70, 3, 9], [41, 43, 40], [50, 30, 60]];
    for sizes in shapes {
        let (case, c) = closed_form::<T>(sizes);
        Want::exact(&case).check(&c).unwrap();
        Want::bounded(&case).check(&c).unwrap();
        assert_eq!(same_bits(&case).unwrap(), c);
    }
    shapes.len()
}

#[test]
fn a_closed_form_is_accepted() {
    counted("verification::a_closed_form_is_accepted", accepted::<f32>() + accepted::<f64>());
}

#[test]
fn a_result_that_is_wrong_as_a_whole() {
    let (case, c) = closed_form::<f32>([6, 6, 4]);
    let swapped = |i: usize| if i < 2 { 1 - i } else { i };
    let at = |place: &dyn Fn(usize, usize) -> (usize, usize)| {
        let from = |index: usize| place(index / 6, index % 6);
        (0..36).map(|index| c[from(index).0 * 6 + from(index).1]).collect::<Vec<_>>()
    };
    let wrong = [
        ("rows swapped", at(&|i, j| (swapped(i), j))),
        ("columns swapped", at(&|i, j| (i, swapped(j)))),
        ("transposed", at(&|i, j| (j, i))),
        ("shifted by a row", at(&|i, j| ((i + 1) % 6, j))),
        ("of the other sign", c.iter().map(|x| -x).collect()),
        ("doubled", c.iter().map(|x| 2.0 * x).collect()),
        ("zero", vec![0.0; 36]),
        ("never written", case.c.values()),
        ("too short", c[1..].to_vec()),
        ("empty", vec![]),
    ];
    for want in [Want::exact(&case), Want::bounded(&case)] {
        want.check(&c).unwrap();
        for (name, c) in &wrong {
            assert!(want.check(c).is_err(), "{name}");
        }
    }
    counted("verification::a_result_that_is_wrong_as_a_whole", wrong.len());
}

/// A case with everything.
fn full() -> Case<f64> {
    let case = Case::dense([7, 9, 33], Data::Uniform, 24).scaled(0.7, 1.3, Data::Uniform, 25);
    case.biased(Side::Col, Data::Uniform, 26)
}

/// A wrong element at any place is found and named. The bound is neither looser nor tighter than
/// documented.
#[test]
fn one_wrong_element_anywhere() {
    let (want, mut refused) = (Want::bounded(&full()), 0);
    for at in 0..want.values.len() {
        let (value, bound) = (want.values[at], want.bounds[at]);
        let changed = |to: f64| {
            let mut c = want.values.clone();
            c[at] = to;
            want.check::<f64>(&c)
        };
        for fine in [value, value + bound / 2.0, value - bound / 2.0] {
            changed(fine).unwrap();
        }
        for wrong in [value + 2.0 * bound, value - 2.0 * bound, NAN, INFINITY, -INFINITY, f64::MAX]
        {
            let error = changed(wrong).unwrap_err();
            let place = format!("row {} (of all products), column {}: ", at / 9, at % 9);
            assert!(error.starts_with(&place), "{error}");
            refused += 1;
        }
    }
    counted("verification::one_wrong_element_anywhere", refused);
}

/// If an element must be NaN or infinite, no other value is accepted.
#[test]
fn another_class_of_number() {
    let mut refused = 0;
    for class in [NAN, INFINITY, -INFINITY] {
        let mut case = full();
        case.c.set(0, 3, 4, class);
        let want = Want::bounded(&case);
        want.check(&want.values).unwrap();
        for other in [NAN, INFINITY, -INFINITY, 0.0, f64::MAX] {
            let mut c = want.values.clone();
            c[3 * 9 + 4] = other;
            let same = other == class || other.is_nan() && class.is_nan();
            assert_eq!(want.check(&c).is_ok(), same, "{other} for {class}");
            refused += usize::from(!same);
        }
    }
    counted("verification::another_class_of_number", refused);
}

/// A single bit in padding, in a guard band, or in an operand.
#[test]
fn a_changed_bit_around_a_matrix() {
    let place = Place::padded((3, 4), Order::Rows, 2).at(1).batch(2, 20);
    let operand = Operand::<f32>::draw((3, 4), place, Data::Uniform, 27);
    let elements = operand.places().map(|(i, row, col)| operand.index(i, row, col));
    let elements = elements.collect::<Vec<_>>();
    assert_eq!(operand.written(&operand.stored).unwrap(), operand.values());
    let (first, last) = (elements[0], elements[elements.len() - 1]);
    let (near, end) = (first - 30..last + 30, operand.stored.len());
    let mut refused = 0;
    for at in (0..30).chain(near).chain(end - 30..end) {
        let mut after = operand.stored.clone();
        after[at] = f32::from_bits(after[at].to_bits() ^ 1 << (at % 32));
        assert!(operand.unchanged(&after).is_err(), "element {at}");
        let inside = elements.contains(&at);
        assert_eq!(operand.written(&after).is_ok(), inside, "element {at}");
        refused += 1 + usize::from(!inside);
    }
    counted("verification::a_changed_bit_around_a_matrix", refused);
}

/// At this k a dropped product passes the bound. The exact criterion and the comparison of bits
/// find it.
#[test]
fn a_dropped_product() {
    let case = Case::<f32>::dense([2, 3, 4096], Data::exact(4096), 28);
    let c = same_bits(&case).unwrap();
    let (exact, bounded) = (Want::exact(&case), Want::bounded(&case));
    exact.check(&c).unwrap();
    let (mut passed, count) = (0, 64);
    for p in 0..count {
        let mut lacking = c.clone();
        lacking[4] -= case.a.get(0, 1, p) * case.b.get(0, p, 1);
        assert!(exact.check(&lacking).is_err(), "without product {p}");
        passed += usize::from(bounded.check(&lacking).is_ok());
    }
    assert!(passed > 0, "the bound has become tight enough to see this");
    counted("verification::a_dropped_product", count);
}
