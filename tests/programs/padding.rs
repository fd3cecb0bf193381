//! Padding in place of boundary checks.

use host::{Shape, operands, padding};
use tests::{devices, reference, streams};

/// Below, at and above a tile along each dimension, empty, and many tiles.
const SIZES: [[u64; 3]; 12] = [
    [1, 1, 1],
    [16, 16, 16],
    [17, 16, 16],
    [16, 17, 16],
    [16, 16, 17],
    [15, 31, 33],
    [70, 40, 51],
    [1, 100, 7],
    [100, 1, 7],
    [5, 6, 0],
    [0, 6, 5],
    [130, 150, 170],
];

#[test]
fn both_ways_are_exact_at_any_size() {
    for (device, stream) in streams() {
        for [m, n, k] in SIZES {
            let shape = Shape::new(m, n, k).unwrap();
            let a = operands::integers(1, shape.a_len(), 8).unwrap();
            let b = operands::integers(2, shape.b_len(), 8).unwrap();
            let expected = reference::product(shape, &a, &b);
            for way in [padding::with_checks, padding::with_padding] {
                let measured = way(&stream, shape, &a, &b, 2).unwrap();
                let c = measured.c.iter().map(|&c| f64::from(c));
                assert!(c.eq(expected.iter().copied()), "{device}: {shape}");
            }
        }
    }
}

/// One more than a tile is the worst case: nearly a whole tile of padding on each side.
#[test]
fn padding_costs_the_bytes_that_the_rounding_adds() {
    let stream = devices()[0].stream().unwrap();
    let of = |m, n, k| {
        let shape = Shape::new(m, n, k).unwrap();
        let (a, b) = (vec![1.0; shape.a_len()], vec![1.0; shape.b_len()]);
        let checked = padding::with_checks(&stream, shape, &a, &b, 1).unwrap();
        let padded = padding::with_padding(&stream, shape, &a, &b, 1).unwrap();
        assert_eq!(checked.bytes, shape.bytes());
        assert!(checked.pad.is_zero() && checked.cut.is_zero() && !padded.pad.is_zero());
        padded.bytes as f64 / checked.bytes as f64
    };
    assert_eq!(of(32, 48, 16), 1.0);
    assert_eq!(of(17, 17, 17), (32.0 * 32.0) / (17.0 * 17.0));
    // The larger the matrices, the smaller the share.
    assert_eq!(of(177, 177, 177), (192.0 * 192.0) / (177.0 * 177.0));
}
