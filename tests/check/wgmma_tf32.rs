//! Products of f32 as tf32 on tensor cores, as the kernels are launched: whole and partial tiles,
//! several of them for each block. Factors are rounded to the nearest as they are copied.

use gpu::{
    params::GemmParams,
    registry::{Family, Scheme},
};
use simt::{
    Tf32,
    check::{Operation, Order},
};
use tests::{
    Turns,
    kernels::{Kernel, kernels},
    once,
};

use super::{
    given::{
        Given,
        Work::{Parts, Walkers},
    },
    operand::{INTEGERS, integer, real},
};

/// The sources that these tests depend on.
const SOURCES: &[&str] = &["gpu/src/collective", "gpu/src/kernels/wgmma_tf32", "tests/check"];

fn cases() -> Vec<Kernel> {
    let cases = kernels(|product| {
        let of = product.variant;
        of.family == Family::Wgmma && of.scheme == Scheme::Tf32
    });
    assert!(!cases.is_empty());
    cases
}

fn name((entry, _): Kernel) -> &'static str {
    entry.name()
}

fn is_of_classes((_, product): &Kernel) -> bool {
    product.variant.access.classes() > 1
}

/// A product. A has no padding between rows that are unaligned.
fn given(
    case: Kernel,
    shape: [usize; 3],
    scales: (f64, f64),
    full: bool,
    values: (impl Fn(usize, usize, usize) -> f32, usize),
) -> Given<f32, f32> {
    Given::with_pitch(|cols| cols, case, shape, scales, full, values)
}

/// Element `i` of `C = A B` for these factors, and the sum of the absolute values of its terms.
fn expected(given: &Given<f32, f32>, i: usize, factor: fn(f32) -> f32) -> (f64, f64) {
    let GemmParams { n, k, .. } = given.problem;
    let (row, col) = (i / n as usize, i % n as usize);
    let products = (0..k as usize).map(|p| {
        let [a, b] = [given.a.element(row, p), given.b.element(p, col)].map(factor);
        f64::from(a) * f64::from(b)
    });
    products.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()))
}

#[test]
fn integers_are_exact_and_no_access_is_out_of_order() {
    once!(SOURCES);
    let orders = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];
    // By itself, and watched by the checker.
    let mut ways = Turns::of(2);
    for (number, case) in cases().into_iter().enumerate() {
        for (shape, blocks, scales, full) in [
            ([260, 132, 130], 1, (1.0, 0.0), false),
            ([130, 300, 280], 3, (2.0, -1.0), false),
            ([256, 128, 96], 1, (1.0, 0.0), false),
            // C's rows are unaligned.
            ([261, 133, 40], 2, (2.0, 0.0), false),
            ([37, 9, 8], 2, (1.0, 1.0), true),
            ([3, 70, 300], 1, (2.0, 1.0), true),
            // Fewer rows than there are classes; and rows of an odd number of elements, of 4k + 2,
            // and of 8k + 4.
            ([5, 139, 3], 1, (1.0, 0.0), true),
            ([1, 3, 1], 1, (1.0, 0.0), true),
            ([11, 70, 166], 1, (1.0, 0.0), true),
            ([2100, 34, 44], 3, (1.0, 0.0), true),
            // One class has one row more than a tile, so others have tiles without a row.
            ([2049, 10, 9], 2, (1.0, 0.0), true),
        ] {
            let given = given(case, shape, scales, full, (integer, INTEGERS));
            let split = Walkers(blocks);
            let order = orders[(number + shape[0]) % 4];
            for way in ways.next_case() {
                let c = match way {
                    0 => given.run(case, split),
                    _ => given.run_watched(case, split, order),
                };
                given.is_exact(case, &c);
            }
        }
    }
}

/// With unaligned rows, the elements before a row's first k-step are the end of the row before.
#[test]
fn what_is_no_part_of_a_row_may_be_infinite() {
    once!(SOURCES);
    let shifted = cases().into_iter().filter(is_of_classes).collect::<Vec<_>>();
    assert!(!shifted.is_empty());
    for case in shifted {
        // The last seven elements of every second row of A.
        let value = |row: usize, p: usize, salt: usize| match salt {
            1 if row.is_multiple_of(2) && p >= 30 => f32::INFINITY,
            _ => integer(row, p, salt).abs() + 1.0,
        };
        let given = given(case, [40, 9, 37], (1.0, 0.0), false, (value, usize::MAX));
        let c = given.run_watched(case, Walkers(1), Order::Random(1));
        given.is_exact(case, &c);
        assert!(c.iter().enumerate().all(|(i, value)| value.is_finite() == (i / 9 % 2 == 1)));
    }
}

/// As many blocks as there are rows or not, one of them without a k-step; more stages than the ring
/// has.
#[test]
fn blocks_of_a_cluster_split_k() {
    once!(SOURCES);
    let orders = [Order::Forward, Order::Reverse, Order::Random(3)];
    for case in cases().into_iter().filter(|(_, product)| product.most_splits > 1) {
        for (number, (shape, parts, scales, full)) in [
            ([64, 64, 200], 2, (1.0, 0.0), false),
            ([70, 133, 1200], 2, (2.0, 0.0), false),
            ([21, 70, 300], 3, (2.0, -1.0), true),
            ([7, 9, 40], 8, (1.0, 0.0), true),
        ]
        .into_iter()
        .enumerate()
        {
            let given = given(case, shape, scales, full, (integer, INTEGERS));
            let split = Parts(parts);
            given.is_exact(case, &given.run(case, split));
            let order = orders[number % 3];
            given.is_exact(case, &given.run_watched(case, split, order));
        }
    }
}

#[test]
fn checked_launches_are_clean_in_ten_random_orders() {
    once!(SOURCES);
    let mut turns = Turns::of(10);
    for case in cases() {
        let shape = if case.1.most_splits > 1 { [70, 70, 300] } else { [270, 140, 300] };
        let given = given(case, shape, (2.0, 1.0), true, (integer, INTEGERS));
        for seed in turns.next_case().into_iter().map(|order| order as u64 + 1) {
            let parts = 1 + seed as u32 % 3;
            let split = match case.1.most_splits {
                1 => Walkers(1),
                _ => Parts(parts),
            };
            let c = given.run_watched(case, split, Order::Random(seed));
            given.is_exact(case, &c);
        }
    }
}

/// There is no bank conflict. A row of 64 columns with any start is written in at most nine
/// sectors.
#[test]
fn accesses_are_as_few_as_can_be() {
    once!(SOURCES);
    for case in cases() {
        let splits = case.1.most_splits > 1;
        for n in [128, 133] {
            // Some unaligned rows are cleared first.
            let k = if is_of_classes(&case) { 67 } else { 64 };
            let shape = if splits { [40, n, k] } else { [300, n, k] };
            let given = given(case, shape, (1.0, 0.0), false, (integer, INTEGERS));
            let profile = given.profile(case, if splits { Parts(2) } else { Walkers(1) });
            for line in &profile.lines {
                let is_shared = line.operation.is_shared();
                // At most as many wavefronts as 32 lanes' bytes have lines of 128 bytes.
                let most = line.requests * u64::from(line.width / 4);
                assert!(!is_shared || line.units <= most, "{}: {line:?}", name(case));
            }
            let sectors = profile.total(Operation::GlobalStore, |line| line.units);
            let most = shape[0] * (9 * (n / 64) + n % 64);
            assert!(splits || sectors <= most as f64, "{}: {sectors} of {most}", name(case));
        }
    }
}

/// Sums of real numbers, which depend on the order in which parts are added: the same in every
/// order of the threads.
#[test]
fn parts_are_added_in_the_order_of_ranks() {
    once!(SOURCES);
    for case in cases().into_iter().filter(|(_, product)| product.most_splits > 1) {
        let given = given(case, [20, 70, 700], (1.0, 0.0), false, (real, usize::MAX));
        for parts in [1, 3] {
            let bits = |c: Vec<f32>| c.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            let first = bits(given.run_watched(case, Parts(parts), Order::Forward));
            for order in [Order::Reverse, Order::Random(4), Order::Random(5)] {
                assert_eq!(bits(given.run_watched(case, Parts(parts), order)), first);
            }
        }
    }
}

/// Factors are rounded to the nearest, ties away from zero. The sum is truncated at each of `k / 8`
/// steps, and each of 8 products once more: at most 2^-23 of the largest sum each. The error of C
/// is that of rounded factors, half of that of truncated factors.
#[test]
fn factors_are_rounded_to_the_nearest_and_sums_cut_off() {
    once!(SOURCES);
    let case = cases()[0];
    let k = 1000;
    let given = given(case, [70, 40, k], (1.0, 0.0), false, (real, usize::MAX));
    let c = given.run(case, Walkers(1));
    let steps = k.div_ceil(8) as f64;
    let (mut error, mut of_cut_off, mut size) = (0.0, 0.0, 0.0);
    for (i, &c) in c.iter().enumerate() {
        let (want, magnitude) = expected(&given, i, |value| Tf32::from_f32(value).to_f32());
        let bound = (steps + 9.0) * 2f64.powi(-23) * magnitude;
        let off = (f64::from(c) - want).abs();
        assert!(off <= bound, "element {i}: {c} is {off:e} off, over {bound:e}");
        let (exact, _) = expected(&given, i, |value| value);
        let (cut_off, _) = expected(&given, i, |value| Tf32::from_bits(value.to_bits()).to_f32());
        error += (f64::from(c) - exact).powi(2);
        of_cut_off += (cut_off - exact).powi(2);
        size += exact.powi(2);
    }
    let [error, of_cut_off] = [error, of_cut_off].map(|sum: f64| (sum / size).sqrt());
    assert!((1e-4..4e-4).contains(&error) && error < 0.6 * of_cut_off, "{error:e} {of_cut_off:e}");
}
