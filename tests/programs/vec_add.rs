//! The example `vec_add`. Its function runs here as in the example.

use host::{gpu::lessons::vec_add::BLOCK, operands};
use tests::devices;

#[allow(dead_code, reason = "its `main` is for people")]
#[path = "../../host/examples/vec_add.rs"]
mod example;

#[test]
fn sums_are_exact_where_the_last_block_is_not_full() {
    for device in devices() {
        for n in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 100_003] {
            let (a, b) = (operands::uniform(1, n).unwrap(), operands::uniform(2, n).unwrap());
            let c = example::add(&device, &a, &b).unwrap();
            let expected = a.iter().zip(&b).map(|(a, b)| (a + b).to_bits());
            assert!(c.iter().map(|c| c.to_bits()).eq(expected), "{device}: n = {n}");
        }
    }
}

#[test]
fn vectors_of_two_lengths_are_refused() {
    for device in devices() {
        let error = example::add(&device, &[1.0; 5], &[1.0; 4]).unwrap_err();
        assert!(error.to_string().contains("b has 4 elements, n = 5 are needed"), "{error}");
    }
}
