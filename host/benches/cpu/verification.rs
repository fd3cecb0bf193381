//! The comparison with the product in float64, on all cores, counted in FLOP of the product.

use divan::{Bencher, counter::ItemsCount};
use host::{
    Shape, operands,
    verify::{Criterion, compare, sample},
};

fn operands(size: u64) -> (Shape, [Vec<f32>; 3]) {
    let shape = Shape::new(size, size, size).unwrap();
    let draw = |seed, len| operands::uniform(seed, len).unwrap();
    (shape, [draw(1, shape.a_len()), draw(2, shape.b_len()), draw(3, shape.c_len())])
}

/// All of C within its bounds. (It is wrong everywhere, which takes the same time.)
#[divan::bench(args = [64, 256, 512])]
fn every_element(bencher: Bencher, size: u64) {
    let (shape, [a, b, c]) = operands(size);
    bencher
        .counter(ItemsCount::new(2 * size.pow(3)))
        .bench_local(|| compare(shape, &a, &b, &c, Criterion::Bound).unwrap());
}

/// On integers: one product in place of two.
#[divan::bench(args = [64, 256, 512])]
fn every_integer(bencher: Bencher, size: u64) {
    let (shape, [a, b, c]) = operands(size);
    bencher
        .counter(ItemsCount::new(2 * size.pow(3)))
        .bench_local(|| compare(shape, &a, &b, &c, Criterion::Exact).unwrap());
}

/// Some elements, and random projections of all.
#[divan::bench(args = [64, 256, 512])]
fn a_sample(bencher: Bencher, size: u64) {
    let (shape, [a, b, c]) = operands(size);
    bencher
        .counter(ItemsCount::new(2 * size.pow(3)))
        .bench_local(|| sample(shape, &a, &b, &c, Criterion::Bound, 1).unwrap());
}
