//! The reference is nalgebra's product. It is compared with three plain loops: an error of both
//! would have to be the same in two unrelated programs.

use tests::reference;

use crate::check::{Data, operands, shape};

#[test]
fn nalgebra_and_three_loops_agree() {
    let shapes =
        [[1, 1, 1], [2, 3, 4], [17, 5, 33], [40, 65, 7], [64, 64, 64], [3, 0, 2], [2, 3, 0]];
    for [m, n, k] in shapes {
        let shape = shape(m, n, k);
        let (a, b) = operands(shape, Data::Integers, 11);
        assert_eq!(reference::product(shape, &a, &b), reference::naive(shape, &a, &b), "{shape}");

        // Sums of real numbers depend on their order in float64, too, but much less than in
        // float32.
        let (a, b) = operands(shape, Data::Uniform, 12);
        let (one, other) = (reference::product(shape, &a, &b), reference::naive(shape, &a, &b));
        let magnitude = reference::magnitude(shape, &a, &b);
        for ((x, y), magnitude) in one.iter().zip(&other).zip(magnitude) {
            assert!((x - y).abs() <= 1e-14 * magnitude, "{shape}: {x} and {y}");
        }
    }
}

/// Values computed by hand: they show which matrix is which, and its layout.
#[test]
fn rows_and_columns_are_where_they_should_be() {
    let shape = shape(2, 3, 2);
    let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
    let c = [21.0, 24.0, 27.0, 47.0, 54.0, 61.0];
    assert_eq!(reference::product(shape, &a, &b), c);
    assert_eq!(reference::naive(shape, &a, &b), c);
    assert_eq!(reference::magnitude(shape, &a.map(|x| -x), &b), c);
}
