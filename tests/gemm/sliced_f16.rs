//! Factors of f32 that are cut into two scaled slices of f16: numbers of all sizes beside each other, what sums are to the bit,
//! and why they are promoted as often as they are.

use host::{
    Compute, F16, Gemm, Shape,
    gemm::{Request, Target},
};
use tests::{
    devices,
    gemm::{Bench, Case, Operand, Order, Place, Random, counted},
};

use super::sliced::{Kind, errors, run, step};

/// Two scaled slices hold numbers of one size; what they do not hold is computed again. So every element is as near as the
/// bound says: also of numbers of 2^-20 to 2^20, one by one and row by row, of one that is far larger than all others, of some
/// that are far smaller, and of subnormal ones.
#[test]
fn wide_numbers() {
    const SIZES: [usize; 3] = [70, 130, 300];
    let [m, n, k] = SIZES;
    let mut count = 0;
    for device in devices() {
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
                        // Products are normal numbers, and those of the scales' powers of two are not.
                        6 => -58.0,
                        // Sums of a patch that overflow beside others.
                        7 if outer == 5 => 63.0,
                        // Beside one that is very large, few bits, all of which the second slice has.
                        8 if at == 77 && !is_b => return 2f32.powi(38),
                        8 if !is_b => return (3.0 * number).round() as f32,
                        _ => 0.0,
                    };
                    (number * by.round().exp2()) as f32
                };
                (0..size.0 * size.1).map(number).collect::<Vec<f32>>()
            };
            let (a, b) = (draw((m, k), false, 5 + wide), draw((k, n), true, 50 + wide));
            let case = Case::plain(
                Operand::dense((m, k), &a),
                Operand::dense((k, n), &b),
                Place::dense((m, n), Order::Rows),
            );
            let c = run(&mut bench, &case, "gemm_sliced_f16x3_64x128_nn");
            for (at, c) in c.iter().enumerate() {
                let (row, col) = (at / n, at % n);
                let (mut sum, mut size) = (0.0f64, 0.0f64);
                for p in 0..k {
                    let x = f64::from(a[row * k + p]) * f64::from(b[p * n + col]);
                    (sum, size) = (sum + x, size + x.abs());
                }
                // (Sums of subnormal numbers are off by some of an f32's last digit.)
                let bound =
                    (k as f64 * 3.0 / 64.0 + 32.0) * (2f64.powi(-24) * size + 2f64.powi(-149));
                let off = (f64::from(*c) - sum).abs();
                assert!(off <= bound, "{wide}: ({row}, {col}): {c:e}, should be {sum:e}");
                count += 1;
            }
        }
    }
    counted("sliced_f16::wide_numbers", count / devices().len());
}

/// A row's (column's) slices, of patches of 256 steps of k whose numbers are scaled by 2 to so much.
fn slices(row: &[f32], exponents: &[i32]) -> [Vec<f32>; 2] {
    let cut = |(p, x): (usize, &f32)| {
        let scaled = x * 2f32.powi(-exponents[p / 256]);
        let first = F16::from_f32(scaled).to_f32();
        (first, F16::from_f32((scaled - first) * 2048.0).to_f32())
    };
    let (first, second) = row.iter().enumerate().map(cut).unzip();
    [first, second]
}

/// The exponents of rows (columns) of `k` elements: their largest becomes one of [2^13, 2^14).
fn exponents(rows: &[f32], k: usize) -> Vec<i32> {
    let patch = |first: usize| {
        let of_row = |row: &[f32]| {
            row[first..k.min(first + 256)].iter().fold(0.0, |most: f32, x| most.max(x.abs()))
        };
        let largest = rows.chunks(k).map(of_row).fold(0.0, f32::max);
        (largest.to_bits() >> 23) as i32 - 127 - 13
    };
    (0..k).step_by(256).map(patch).collect()
}

/// The sum of slices' products: of every 64 steps of k the small ones, then the large ones, `together` at a time.
fn sum(
    a: &[Vec<f32>; 2],
    b: &[Vec<f32>; 2],
    exponent: impl Fn(usize) -> i32,
    together: usize,
) -> f32 {
    let product = |sum: f32, a: &[f32], b: &[f32]| {
        a.chunks(16).zip(b.chunks(16)).fold(sum, |sum, (a, b)| step(sum, a, b))
    };
    let (mut master, mut large) = (0.0, 0.0);
    for first in (0..a[0].len()).step_by(64) {
        let of = |slice: &Vec<f32>| slice[first..first + 64].to_vec();
        let ([a0, a1], [b0, b1]) = ([of(&a[0]), of(&a[1])], [of(&b[0]), of(&b[1])]);
        let scale = 2f32.powi(exponent(first));
        let small = product(product(0.0, &a1, &b0), &a0, &b1);
        master = small.mul_add(scale * 2f32.powi(-11), master);
        for (number, (a, b)) in
            a0.chunks(together.min(64)).zip(b0.chunks(together.min(64))).enumerate()
        {
            large = product(large, a, b);
            if (first + (number + 1) * together.min(64)).is_multiple_of(together) {
                master = large.mul_add(scale, master);
                large = 0.0;
            }
        }
    }
    master
}

/// The kernel computes, to the bit, what it says. Of positive numbers and 256 steps of k, sums of 32 are nearer than fused
/// multiply-adds in the order of k, sums of 64 are not; and without promotion the errors would be such as
/// `errors_are_not_larger_than_those_of_f32` does not let pass.
#[test]
fn promotion_every_32_steps() {
    const M: usize = 24;
    const N: usize = 40;
    let mut count = 0;
    for (kind, k) in [(Kind::Positive, 256), (Kind::Normal, 1024)] {
        let mut random = Random::new(11);
        let (a, b) = (kind.draw(M, k, false, &mut random), kind.draw(N, k, true, &mut random));
        let of = |i: usize| (&a[i / N * k..][..k], &b[i % N * k..][..k]);
        let (of_a, of_b) = (exponents(&a, k), exponents(&b, k));
        let sums = |together: usize| {
            let one = |i: usize| {
                let (of_a, of_b) = match together <= 64 {
                    true => (of_a.clone(), of_b.clone()),
                    // One sum has one scale.
                    false => (vec![-11; k.div_ceil(256)], vec![-11; k.div_ceil(256)]),
                };
                let (row, col) = of(i);
                let (a, b) = (slices(row, &of_a), slices(col, &of_b));
                sum(&a, &b, |p| of_a[p / 256] + of_b[p / 256], together)
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
        let ours = sums(32);
        let median = |c: &[f32]| errors(c, &want)[0];
        let [of_32, of_64, of_all] = [32, 64, k].map(|together| median(&sums(together)));
        let of_plain = median(&plain);
        println!("{kind:?} {k}: {of_32:.1e}, {of_64:.1e}, {of_all:.1e}; f32 {of_plain:.1e}");
        assert!(of_32 < of_plain && of_32 < of_64, "{of_32:e} {of_64:e} {of_plain:e}");
        if let Kind::Positive = kind {
            assert!(of_64 > of_plain, "{of_64:e} {of_plain:e}");
        }
        assert!(of_all > 5e-7, "{of_all:e}");
        for device in devices() {
            let mut bench = Bench::<f32>::new(&device);
            let rows = Operand::dense((N, k), &b);
            let place = Place::dense((k, N), Order::Columns);
            let columns = Operand::new((k, N), place, |_, p, col| rows.get(0, col, p));
            let case =
                Case::plain(Operand::dense((M, k), &a), columns, Place::dense((M, N), Order::Rows));
            for name in ["gemm_sliced_f16x3_256x128_nt", "gemm_sliced_f16x3_64x128_nt"] {
                let c = run(&mut bench, &case, name);
                let same = c.iter().zip(&ours).all(|(c, ours)| c.to_bits() == ours.to_bits());
                assert!(same, "{device:?}, {name}, {kind:?}");
                count += 1;
            }
        }
    }
    counted("sliced_f16::promotion_every_32_steps", count / devices().len());
}

/// Where it is asked for, on Hopper, and where it is fast; and by its own name alone.
#[test]
fn only_where_it_is_asked_for() {
    let mut count = 0;
    for size in [1, 64, 512, 1024, 8192] {
        let request = Request::dense(Shape::new(size, size, size).unwrap());
        for (compute, is_f16) in
            [(Compute::Native, false), (Compute::Fp32Bf16x6, false), (Compute::Fp32F16x3, true)]
        {
            let gemm = Gemm::<f32>::new().compute(compute);
            let taken = gemm.choose(&request, &Target::H200).unwrap().entry;
            assert_eq!(taken.is_f16x3(), is_f16 && size >= 1024, "{compute:?} {size}");
            count += 1;
        }
    }
    let request = Request::dense(Shape::new(100, 100, 100).unwrap());
    let name = "gemm_sliced_f16x3_256x128_nn";
    let expected =
        format!("kernel = {name}: cuts factors into slices, which compute = fp32-f16x3 asks for");
    for compute in [Compute::Native, Compute::Fp32Bf16x6, Compute::Tf32] {
        let gemm = Gemm::<f32>::new().compute(compute).kernel(name).unwrap();
        let refused = gemm.choose(&request, &Target::H200).unwrap_err().to_string();
        assert_eq!(refused, expected);
        count += 1;
    }
    counted("sliced_f16::only_where_it_is_asked_for", count);
}
