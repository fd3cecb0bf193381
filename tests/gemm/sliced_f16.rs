//! Factors of f32 that are split into two scaled slices of f16: numbers of different sizes, sums to
//! the bit, and the reason for the number of promotions.

use gpu::{kernels::emulated::scales::PATCH_COLS, registry::Scheme};
use host::{
    Compute, F16, Gemm, Shape,
    gemm::{Request, Target},
};
use tests::{
    devices,
    gemm::{Bench, Case, Operand, Order, Place, Random, counted, each_device},
};

use super::sliced::{Kind, errors, of_two_widths, run, step};
use tests::once;

/// Each element's sum, and the sum of its terms' absolute values.
pub(super) fn exact_sums([m, n, k]: [usize; 3], a: &[f32], b: &[f32]) -> Vec<(f64, f64)> {
    let mut sums = vec![(0.0, 0.0); m * n];
    for (of_a, of_row) in a.chunks(k).zip(sums.chunks_mut(n)) {
        for (x, of_b) in of_a.iter().zip(b.chunks(n)) {
            for ((sum, size), y) in of_row.iter_mut().zip(of_b) {
                let term = f64::from(*x) * f64::from(*y);
                *sum += term;
                *size += term.abs();
            }
        }
    }
    sums
}

/// Two scaled slices hold numbers of similar size. Elements for which they are not enough are
/// recomputed. So every element is within the bound: also for numbers of 2^-20 to 2^20, one by one
/// and row by row, with one far larger than all others, with some far smaller, and with subnormal
/// ones.
#[test]
fn wide_numbers() {
    once!(crate::SOURCES);
    const SIZES: [usize; 3] = [70, 130, 300];
    let [m, n, k] = SIZES;
    each_device("sliced_f16::wide_numbers", |device, count| {
        let mut bench = Bench::<f32>::new(&device);
        for wide in 0..9 {
            let draw = |size: (usize, usize), is_b: bool, salt: u64| {
                let mut random = Random::new(salt);
                let mut uniform = || (random.next() >> 11) as f64 * 2f64.powi(-53);
                let number = |at: usize| {
                    let outer = if is_b { at % size.1 } else { at / size.1 };
                    let (number, exponent) = (2.0 * uniform() - 1.0, 40.0 * uniform() - 20.0);
                    let by = match wide {
                        0 => exponent,
                        1 => (outer % 41) as f64 - 20.0,
                        2 => (outer % 81) as f64 - 40.0,
                        3 if at == 77 => 20.0,
                        4 if at == 77 => 60.0,
                        5 if !is_b => -140.0,
                        // Products are normal numbers, but those of the scales' powers of two are
                        // not.
                        6 => -58.0,
                        // Sums of a patch that overflow, next to others.
                        7 if outer == 5 => 63.0,
                        // Next to a very large one, numbers with few bits, all of which the second
                        // slice holds.
                        8 if at == 77 && !is_b => return 2f32.powi(38),
                        8 if !is_b => return (3.0 * number).round() as f32,
                        _ => 0.0,
                    };
                    (number * by.round().exp2()) as f32
                };
                (0..size.0 * size.1).map(number).collect::<Vec<f32>>()
            };
            let (a, b) = (draw((m, k), false, 5 + wide), draw((k, n), true, 50 + wide));
            let case = Case::of(SIZES, &a, (&b, Order::Rows));
            let c = run(&mut bench, &case, "wgmma_f16x3_64x128x64_nn");
            for (at, (c, (sum, size))) in c.iter().zip(exact_sums([m, n, k], &a, &b)).enumerate() {
                // (Sums of subnormal numbers are off by a part of f32's last digit.)
                let bound = (k as f64 / 32.0 + 58.0) * (2f64.powi(-24) * size + 2f64.powi(-149));
                let off = (f64::from(*c) - sum).abs();
                let place = (at / n, at % n);
                assert!(off <= bound, "{wide}: {place:?}: {c:e}, should be {sum:e}");
                *count += 1;
            }
        }
    });
}

/// The slices of a row (column), for patches of [`PATCH_COLS`] k-steps whose numbers are scaled by
/// powers of two with these exponents.
fn slices(row: &[f32], exponents: &[i32]) -> [Vec<f32>; 2] {
    let cut = |(p, x): (usize, &f32)| {
        let scaled = x * 2f32.powi(-exponents[p / PATCH_COLS]);
        let first = F16::from_f32(scaled).to_f32();
        (first, F16::from_f32(scaled - first).to_f32())
    };
    let (first, second) = row.iter().enumerate().map(cut).unzip();
    [first, second]
}

/// The exponents of rows (columns) of `k` elements. The largest element of a patch is scaled into
/// [2^14, 2^15).
fn exponents(rows: &[f32], k: usize) -> Vec<i32> {
    let patch = |first: usize| {
        let of_row = |row: &[f32]| {
            row[first..k.min(first + PATCH_COLS)].iter().fold(0.0, |most: f32, x| most.max(x.abs()))
        };
        let largest = rows.chunks(k).map(of_row).fold(0.0, f32::max);
        (largest.to_bits() >> 23) as i32 - 127 - 14
    };
    (0..k).step_by(PATCH_COLS).map(patch).collect()
}

/// The sum of the slices' products, in that order within 64 k-steps, promoted after `together`
/// steps: times the scale's power of two, and times `more`.
fn sum(
    [a, b]: [&[Vec<f32>; 2]; 2],
    exponent: impl Fn(usize) -> i32,
    order: &[(usize, usize)],
    together: usize,
    more: f32,
) -> f32 {
    let (mut master, mut sum) = (0.0, 0.0);
    for first in (0..a[0].len()).step_by(64) {
        for &(s, t) in order {
            let (a, b) = (&a[s][first..first + 64], &b[t][first..first + 64]);
            sum = a.chunks(16).zip(b.chunks(16)).fold(sum, |sum, (a, b)| step(sum, a, b));
        }
        if (first + 64).is_multiple_of(together) {
            master = sum.mul_add(2f32.powi(exponent(first)) * more, master);
            sum = 0.0;
        }
    }
    master
}

/// The kernel has the bits of the documented computation. For positive numbers its sums are more
/// accurate than fused multiply-adds in the order of k. If promoted by the power of two only they
/// would not be. And without promotion, or with large products first, the errors would be too large
/// for `errors_are_not_larger_than_those_of_f32`.
#[test]
fn promotion_the_order_and_the_factor_matter() {
    once!(crate::SOURCES);
    const M: usize = 24;
    const N: usize = 40;
    const SMALL_FIRST: [(usize, usize); 3] = [(1, 0), (0, 1), (0, 0)];
    const GREAT_FIRST: [(usize, usize); 3] = [(0, 0), (0, 1), (1, 0)];
    let more = 1.0 + f32::EPSILON;
    let mut count = 0;
    for (kind, k) in [(Kind::Positive, 256), (Kind::Normal, 1024)] {
        let mut random = Random::new(11);
        let (a, b) = (kind.draw(M, k, false, &mut random), kind.draw(N, k, true, &mut random));
        let of = |i: usize| (&a[i / N * k..][..k], &b[i % N * k..][..k]);
        let (of_a, of_b) = (exponents(&a, k), exponents(&b, k));
        let sums = |order: &[(usize, usize)], together: usize, more: f32| {
            let one = |i: usize| {
                let (of_a, of_b) = match together {
                    64 => (of_a.clone(), of_b.clone()),
                    // One sum has one scale.
                    _ => (vec![-12; k.div_ceil(PATCH_COLS)], vec![-12; k.div_ceil(PATCH_COLS)]),
                };
                let (row, col) = of(i);
                let (a, b) = (slices(row, &of_a), slices(col, &of_b));
                sum(
                    [&a, &b],
                    |p| of_a[p / PATCH_COLS] + of_b[p / PATCH_COLS],
                    order,
                    together,
                    more,
                )
            };
            (0..M * N).map(one).collect::<Vec<_>>()
        };
        let want = (0..M * N).map(|i| {
            let terms = || of(i).0.iter().zip(of(i).1).map(|(a, b)| f64::from(*a) * f64::from(*b));
            (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>())
        });
        let want = want.collect::<Vec<_>>();
        let plain = (0..M * N)
            .map(|i| of(i).0.iter().zip(of(i).1).fold(0.0f32, |sum, (a, b)| a.mul_add(*b, sum)))
            .collect::<Vec<_>>();
        let ours = sums(&SMALL_FIRST, 64, more);
        let median = |c: &[f32]| errors(c, &want)[0];
        let [of_ours, cut_off, of_great_first, of_all, of_plain] = [
            median(&ours),
            median(&sums(&SMALL_FIRST, 64, 1.0)),
            median(&sums(&GREAT_FIRST, 64, more)),
            median(&sums(&SMALL_FIRST, k, more)),
            median(&plain),
        ];
        println!(
            "{kind:?} {k}: {of_ours:.1e}, cut off {cut_off:.1e}, great first {of_great_first:.1e}, \
             not promoted {of_all:.1e}; f32 {of_plain:.1e}"
        );
        assert!(of_ours < of_plain && of_ours < cut_off, "{of_ours:e} {cut_off:e} {of_plain:e}");
        if let Kind::Positive = kind {
            assert!(cut_off > of_plain, "{cut_off:e} {of_plain:e}");
        }
        assert!(of_great_first > 2e-7, "{of_great_first:e}");
        assert!(of_all > 5e-7, "{of_all:e}");
        for device in devices() {
            let mut bench = Bench::<f32>::new(&device);
            let case = Case::of([M, N, k], &a, (&b, Order::Columns));
            for name in [
                "wgmma_f16x3_256x192x64_c2_nt",
                "wgmma_f16x3_256x128x64_c2_nt",
                "wgmma_f16x3_64x128x64_nt",
            ] {
                let c = run(&mut bench, &case, name);
                let same = c.iter().zip(&ours).all(|(c, ours)| c.to_bits() == ours.to_bits());
                assert!(same, "{device:?}, {name}, {kind:?}");
                count += 1;
            }
        }
    }
    counted("sliced_f16::promotion_the_order_and_the_factor_matter", count / devices().len());
}

/// Exact sums stay exact, although sums are enlarged by the average of what is truncated: sums of
/// integers so small that 64 products are below 2^24.
#[test]
fn small_integers_are_exact() {
    once!(crate::SOURCES);
    // A wide tile and a narrow one, of the kernels that have both.
    const SIZES: [usize; 3] = [30, 300, 64];
    let [m, n, k] = SIZES;
    each_device("sliced_f16::small_integers_are_exact", |device, count| {
        let mut bench = Bench::<f32>::new(&device);
        // The largest possible integers, in both and in one operand, and times powers of two.
        for (of_a, of_b, exponent) in
            [(511, 511, 0), (4095, 63, 0), (7, 32_767, 0), (511, 511, -90)]
        {
            let mut random = Random::new(3);
            let mut draw = |len: usize, most: u64| {
                let mut number = || most - random.next() % (most / 8 + 1);
                (0..len).map(|_| number() as f32).collect::<Vec<f32>>()
            };
            let (a, b) = (draw(m * k, of_a), draw(k * n, of_b));
            let a = a.iter().map(|x| x * 2f32.powi(exponent)).collect::<Vec<f32>>();
            let case = Case::of(SIZES, &a, (&b, Order::Rows));
            for name in [
                "wgmma_f16x3_256x192x64_c2_nn",
                "wgmma_f16x3_256x128x64_c2_nn",
                "wgmma_f16x3_64x128x64_nn",
            ] {
                let c = run(&mut bench, &case, name);
                for (at, c) in c.iter().enumerate() {
                    let (row, col) = (at / n, at % n);
                    let sum = (0..k).map(|p| f64::from(a[row * k + p]) * f64::from(b[p * n + col]));
                    assert_eq!(
                        f64::from(*c),
                        sum.sum::<f64>(),
                        "{name}, {of_a}, {of_b}: ({row}, {col})"
                    );
                    *count += 1;
                }
            }
        }
    });
}

/// Tiles of two widths in one launch, in every layout of A and B, at a size at which this device
/// has both. A tile at a wrong place, or a missing column, shows: elements are small integers, and
/// exact.
#[test]
fn wide_and_narrow_tiles() {
    once!(crate::SOURCES);
    const K: usize = 70;
    each_device("sliced_f16::wide_and_narrow_tiles", |device, count| {
        let (m, n) = of_two_widths(&device, 1);
        let mut random = Random::new(21);
        let mut draw =
            |len: usize| (0..len).map(|_| (random.next() % 31) as f32 - 15.0).collect::<Vec<f32>>();
        let (a, b) = (draw(m * K), draw(K * n));
        let mut want = vec![0.0; m * n];
        for (row, of_row) in want.chunks_mut(n).enumerate() {
            for p in 0..K {
                let x = a[row * K + p];
                for (sum, y) in of_row.iter_mut().zip(&b[p * n..][..n]) {
                    *sum += x * y;
                }
            }
        }
        let mut bench = Bench::<f32>::new(&device);
        for (way, [of_a, of_b]) in [
            ("nn", [Order::Rows, Order::Rows]),
            ("nt", [Order::Rows, Order::Columns]),
            ("tn", [Order::Columns, Order::Rows]),
            ("tt", [Order::Columns, Order::Columns]),
        ] {
            let of = |size: (usize, usize), order: Order, values: &[f32]| {
                let rows = Operand::dense(size, values);
                let place = Place::dense(size, order);
                Operand::new(size, place, |_, row, col| rows.get(0, row, col))
            };
            let operands = (of((m, K), of_a, &a), of((K, n), of_b, &b));
            let case = Case::plain(operands.0, operands.1, Place::dense((m, n), Order::Rows));
            for kind in ["bf16x6", "f16x3"] {
                let name = format!("wgmma_{kind}_256x192x64_c2_{way}");
                let c = run(&mut bench, &case, &name);
                let wrong = c.iter().zip(&want).position(|(c, want)| c.to_bits() != want.to_bits());
                assert_eq!(wrong.map(|at| (at / n, at % n)), None, "{device:?}, {name}, {m} x {n}");
                *count += 1;
            }
        }
    });
}

/// It is selected on request, on Hopper, and where it is faster; or by its name.
#[test]
fn only_where_it_is_asked_for() {
    once!(crate::SOURCES);
    let mut count = 0;
    for size in [1, 64, 512, 1024, 8192] {
        let request = Request::dense(Shape::new(size, size, size).unwrap());
        for (compute, is_f16) in
            [(Compute::Native, false), (Compute::Fp32Bf16x6, false), (Compute::Fp32F16x3, true)]
        {
            let gemm = Gemm::<f32>::new().compute(compute);
            let taken = gemm.choose(&request, &Target::H200).unwrap().entry;
            assert_eq!(
                (taken.scheme() == Scheme::F16x3),
                is_f16 && size >= 1024,
                "{compute:?} {size}"
            );
            count += 1;
        }
    }
    let request = Request::dense(Shape::new(100, 100, 100).unwrap());
    let name = "wgmma_f16x3_256x128x64_c2_nn";
    let expected =
        format!("kernel = {name}: splits A and B into slices, which compute = fp32-f16x3 allows");
    for compute in [Compute::Native, Compute::Fp32Bf16x6, Compute::Tf32] {
        let gemm = Gemm::<f32>::new().compute(compute).kernel(name).unwrap();
        let refused = gemm.choose(&request, &Target::H200).unwrap_err().to_string();
        assert_eq!(refused, expected);
        count += 1;
    }
    counted("sliced_f16::only_where_it_is_asked_for", count);
}
