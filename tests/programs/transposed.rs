//! B transposed by the CPU first.

use host::{Shape, operands};
use tests::{reference, streams};

#[allow(dead_code, reason = "its `main` is for people")]
#[path = "../../host/examples/transposed_b.rs"]
mod example;

#[test]
fn a_transposed_b_gives_the_same_product() {
    for (device, stream) in streams() {
        for [m, n, k] in [[1, 1, 1], [16, 16, 16], [17, 33, 15], [70, 40, 51], [0, 6, 5], [5, 6, 0]]
        {
            let shape = Shape::new(m, n, k).unwrap();
            let a = operands::integers(1, shape.a_len(), 8).unwrap();
            let b = operands::integers(2, shape.b_len(), 8).unwrap();
            let expected = reference::product(shape, &a, &b);
            let bt = example::transpose(&b, [shape.k(), shape.n()]);
            let (a, bt) = (device.upload(&a).unwrap(), device.upload(&bt).unwrap());
            let mut c = device.zeros(shape.c_len()).unwrap();
            c.fill_bytes(0xff).unwrap();
            example::multiply_transposed(&stream, shape, &a, &bt, &mut c).unwrap();
            let c = c.to_vec().unwrap();
            assert!(c.iter().map(|&c| f64::from(c)).eq(expected), "{device}: {shape}");
        }
    }
}
