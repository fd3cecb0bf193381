//! Products by TMA: right and clean in every order, for each layout of the operands, for whole and
//! partial tiles, with k split over clusters and not.

use gpu::{
    params::{COL_BIAS, GemmParams, RELU},
    registry::Family,
};
use simt::{
    Bound, LaunchConfig,
    check::{self, Order},
};
use tests::{
    Turns, everything,
    kernels::{Kernel, kernels, read, watch, write},
    once,
};

use super::operand::Operand;

/// The sources that these tests depend on.
const SOURCES: &[&str] = &["gpu/src/kernels/tma", "tests/check"];

/// m, n, k, products, blocks that split k.
const CASES: [(usize, usize, usize, usize, u32); 6] = [
    (64, 128, 16, 1, 1),
    (37, 90, 150, 1, 1),
    (130, 20, 333, 1, 4),
    (1, 1, 1, 2, 1),
    (70, 70, 80, 2, 3),
    (75, 82, 600, 1, 1),
];

fn products() -> Vec<Kernel> {
    kernels(|product| product.variant.family == Family::Tma)
}

/// The distance between rows: a multiple of four elements. Unaligned rows are padded by three
/// elements.
fn pitch(anywhere: bool) -> impl Fn(usize) -> usize {
    move |inner| if anywhere { inner + 3 } else { inner.next_multiple_of(4) }
}

/// Small integers, whose sums are exact in any order.
fn a(i: usize, row: usize, p: usize) -> f32 {
    ((i + row * 7 + p * 5) % 9) as f32 - 4.0
}

fn b(i: usize, p: usize, col: usize) -> f32 {
    ((i * 3 + p * 11 + col * 2) % 7) as f32 - 3.0
}

/// Multiplies in that order, with every access checked.
fn is_clean_and_right(
    (entry, product): Kernel,
    (m, n, k, count, splits): (usize, usize, usize, usize, u32),
    with_bias: bool,
    order: Order,
) {
    let (name, k_major) = (entry.name(), product.variant.k_major());
    let classes = product.variant.access.classes();
    let [shape_a, shape_b] = product.boxes;
    let a_values = Operand::new([count, m, k], k_major[0], pitch(classes > 1), shape_a, a);
    let b_values =
        Operand::new([count, n, k], k_major[1], pitch(false), shape_b, |i, col, p| b(i, p, col));
    let bias = (0..n).map(|col| col as f32).collect::<Vec<_>>();
    let before = (0..m * n * count).map(|i| (i % 5) as f32).collect::<Vec<_>>();
    let problem = GemmParams {
        m: m as u32,
        n: n as u32,
        k: k as u32,
        alpha: 2.0,
        beta: -1.0,
        bias: if with_bias { COL_BIAS } else { 0 },
        activation: if with_bias { RELU } else { 0 },
        a: [a_values.pitch as u64, 1],
        c: [n as u64, 1],
        batch: [0, 0, (m * n) as u64],
        ..GemmParams::default()
    };
    let splits = splits.min(product.most_splits);
    let tiles = |size: usize, tile: u32| size.div_ceil(tile as usize) as u32;
    let [rows, cols] = product.tile();
    let grid = [tiles(n, cols), tiles(m, rows), count as u32 * splits];
    let config = LaunchConfig {
        dynamic_shared: entry.declaration().dynamic_shared.unwrap(),
        cluster: [1, 1, splits],
        ..LaunchConfig::new(grid, product.block)
    };
    let mut c = before.clone();
    let mut options = check::Options::default();
    options.order = order;
    options.workers = Some(1);
    // SAFETY: the operands outlive the launch, and C has as many elements as the problem says.
    let report = unsafe {
        let arguments = [
            ("problem", Bound::Value(&problem)),
            ("a", a_values.maps(classes)),
            ("b", b_values.maps(1)),
            ("c", write(&mut c)),
            ("bias", read(&bias)),
        ];
        watch(entry, &config, arguments, &options)
    };
    let what = format!("{name}, {m} x {n} x {k} by {splits}, {order}");
    assert!(report.is_clean(), "{what}: {report}");
    // Every ninth row of A is the same, and every seventh column of B.
    let sum = |i, row, col| (0..k).map(|p| a(i, row, p) * b(i, p, col)).sum::<f32>();
    let sums = (0..count * 9 * 7).map(|at| sum(at / 63, at / 7 % 9, at % 7)).collect::<Vec<_>>();
    for (at, value) in c.iter().enumerate() {
        let (i, row, col) = (at / (m * n), at / n % m, at % n);
        let sum = sums[i * 63 + row % 9 * 7 + col % 7];
        let expected = 2.0 * sum - before[at];
        let expected = if with_bias { (expected + col as f32).max(0.0) } else { expected };
        assert_eq!(*value, expected, "{what}: product {i}, ({row}, {col})");
    }
}

#[test]
fn products_by_tensor_copies_are_clean_and_right() {
    once!(SOURCES);
    let mut seen = 0;
    let mut turns = Turns::of(4);
    for kernel in products() {
        for (number, case) in CASES.into_iter().enumerate() {
            // One of the epilogues: the others are the same code as another family's.
            let with_bias = number % 2 == 1;
            let orders = [
                Order::Forward,
                Order::Reverse,
                Order::Random(1),
                Order::Random(number as u64 + 7),
            ];
            for order in turns.next_case().into_iter().map(|order| orders[order]) {
                is_clean_and_right(kernel, case, with_bias, order);
                seen += 1;
            }
        }
    }
    let each = if everything() { 4 } else { 1 };
    assert_eq!(seen, products().len() * CASES.len() * each);
}

/// Partial tiles of 72 x 80 in both directions, and more stages than the ring has.
#[test]
fn tiles_of_72_x_80_are_clean_in_ten_random_orders() {
    once!(SOURCES);
    let names = ["tma_f32_72x80x8_nn", "tma_f32_72x80x8_ua4_nn"];
    let mut turns = Turns::of(names.len());
    for seed in 1..=10 {
        for name in turns.next_case().into_iter().map(|name| names[name]) {
            let mut products = products().into_iter();
            let kernel = products.find(|(entry, _)| entry.name() == name).unwrap();
            is_clean_and_right(kernel, (75, 82, 600, 1, 1), true, Order::Random(seed));
        }
    }
}
