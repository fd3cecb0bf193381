//! Elements of C that emulated fp32 recomputes, in slices of f16: which ones, how many, and that
//! they are right.

use host::{Compute, Gemm, Matrix};
use tests::{
    Turns,
    gemm::{Bench, Case, Operand, Order, Place, Random, each_device},
    once,
};

use super::{
    sliced::{computes_again, run},
    sliced_f16::exact_sums,
};

/// The kernels' tiles, as their names have them.
const TILES: [&str; 3] = ["64x128x64", "256x128x64_c2", "256x192x64_c2"];

/// Rows and columns of zeros give +0, next to numbers that are too small for their patch's slices:
/// these sums are certain. With infinity a zero gives NaN.
#[test]
fn rows_and_columns_of_zeros() {
    once!(crate::SOURCES);
    // A wide tile and a narrow one, of the kernels that have both.
    const SIZES: [usize; 3] = [150, 260, 300];
    let [m, n, k] = SIZES;
    let is_zero = |outer: usize| outer.is_multiple_of(7) || outer == 149;
    each_device("recomputed::rows_and_columns_of_zeros", |device, count| {
        let mut bench = Bench::<f32>::new(&device);
        for infinite in [false, true] {
            let mut random = Random::new(8);
            let mut draw = |outer: usize, p: usize| {
                let number = (random.next() >> 40) as f32 * 2f32.powi(-24) - 0.5;
                // Next to the others this number has no bit.
                let number = if (outer + p).is_multiple_of(89) { number * 1e-12 } else { number };
                if is_zero(outer) { -0.0 * number } else { number }
            };
            let a = (0..m * k).map(|at| draw(at / k, at % k)).collect::<Vec<_>>();
            let mut b = (0..k * n).map(|at| draw(at % n, at / n)).collect::<Vec<_>>();
            if infinite {
                b[33 * n + 5] = f32::INFINITY;
            }
            for (name, by_rows) in [
                ("wgmma_f16x3_256x192x64_c2_nn", true),
                ("wgmma_f16x3_256x128x64_c2_nn", true),
                ("wgmma_f16x3_64x128x64_nn", true),
                ("wgmma_f16x3_64x128x64_tt", false),
            ] {
                let order = if by_rows { Order::Rows } else { Order::Columns };
                let of = |size: (usize, usize), values: &[f32]| {
                    let rows = Operand::dense(size, values);
                    Operand::new(size, Place::dense(size, order), |_, row, col| {
                        rows.get(0, row, col)
                    })
                };
                let (of_a, of_b) = (of((m, k), &a), of((k, n), &b));
                let case = Case::plain(of_a, of_b, Place::dense((m, n), Order::Rows));
                let c = run(&mut bench, &case, name);
                for (at, c) in c.iter().enumerate() {
                    let (row, col) = (at / n, at % n);
                    let of_infinity = infinite && col == 5;
                    if is_zero(row) || is_zero(col) {
                        let right = if of_infinity { c.is_nan() } else { c.to_bits() == 0 };
                        assert!(right, "{name}: ({row}, {col}): {c:e}");
                    } else {
                        assert!(*c != 0.0, "{name}: ({row}, {col})");
                    }
                    *count += 1;
                }
            }
        }
    });
}

/// The number of recomputed elements is reported: none for integers, those of a column that is
/// small compared with its neighbours, and for numbers of all sizes all of a tile.
#[test]
fn what_is_computed_again_is_counted() {
    once!(crate::SOURCES);
    const SIZES: [usize; 3] = [64, 192, 130];
    let [m, n, k] = SIZES;
    each_device("recomputed::what_is_computed_again_is_counted", |device, count| {
        let names = TILES.map(|of| format!("wgmma_f16x3_{of}_nn"));
        let mut turns = Turns::on(&device, names.len());
        let mut random = Random::new(17);
        let mut uniform = || (random.next() >> 40) as f32 * 2f32.powi(-24) + 0.5;
        let (x, y) = (
            (0..m * k).map(|_| uniform()).collect::<Vec<_>>(),
            (0..k * n).map(|_| uniform()).collect::<Vec<_>>(),
        );
        let integers = |x: &[f32]| x.iter().map(|x| (x * 15.0).round()).collect::<Vec<_>>();
        let small = y.iter().enumerate();
        let small = small.map(|(at, y)| if at % n == 3 { 1e-12 * y } else { *y });
        let wide = |x: &[f32]| {
            let by = |at: usize| 2f32.powi((at * 7919 % 41) as i32 - 20);
            x.iter().enumerate().map(|(at, x)| x * by(at)).collect::<Vec<_>>()
        };
        for (a, b, wanted) in [
            (integers(&x), integers(&y), 0),
            (x.clone(), y.clone(), 0),
            (x.clone(), small.collect(), m as u64),
            (wide(&x), wide(&y), (m * n) as u64),
        ] {
            for name in turns.next_case() {
                computes_again(&device, &names[name], SIZES, [&a, &b], wanted);
            }
            *count += 1;
        }
        turns.each_had_one();
        // Other kernels recompute nothing, even if emulation is allowed.
        let stream = device.stream().unwrap();
        let a = Matrix::from_row_major(&device, 1, 1, &[f32::NAN]).unwrap();
        let mut c = Matrix::zeros(&device, 1, 1).unwrap();
        for compute in [Compute::Native, Compute::Fp32F16x3] {
            let gemm = Gemm::new().compute(compute).kernel("gemm_f32_64x64x16").unwrap();
            let choice = gemm.run(&stream, a.view(), a.view(), c.view_mut()).unwrap();
            assert_eq!(choice.recomputed, None);
            *count += 1;
        }
        assert_eq!(stream.recomputed().unwrap(), 0);
    });
}

/// Checks that each element of C is within the bound of the exact sum.
fn all_within_the_bound(
    name: &str,
    [m, n, k]: [usize; 3],
    (a, b, c): (&[f32], &[f32], &[f32]),
    at_least: f64,
) {
    for (at, (c, (sum, size))) in c.iter().zip(exact_sums([m, n, k], a, b)).enumerate() {
        let bound = ((k as f64 / 64.0).ceil() + 55.0) * 2f64.powi(-24) * size + at_least;
        // If terms exceed f32, fused multiply-adds give NaN or infinity.
        let is_right =
            (f64::from(*c) - sum).abs() <= bound || size > f32::MAX.into() && !c.is_finite();
        assert!(is_right, "{name}: {:?}: {c:e}, {sum:e}", (at / n, at % n));
    }
}

/// Each block has several tiles. Some are uncertain, or uncertain for two of four warps. A warp's
/// certain part is stored while the next tile is multiplied, the others before.
#[test]
fn some_tiles_are_doubted() {
    once!(crate::SOURCES);
    const M: usize = 64;
    const K: usize = 70;
    const TILE: usize = 128;
    each_device("recomputed::some_tiles_are_doubted", |device, count| {
        let blocks = device.sms() as usize;
        let n = 3 * blocks * TILE;
        let mut random = Random::new(9);
        let mut uniform = || (random.next() >> 40) as f32 * 2f32.powi(-24) - 0.5;
        // Half of the rows have a zero in the first k-step.
        let mut a = (0..M * K).map(|_| uniform()).collect::<Vec<_>>();
        (0..M / 2).for_each(|row| a[row * K] = 0.0);
        let mut doubted = 0;
        let mut b = (0..K * n).map(|_| uniform()).collect::<Vec<_>>();
        for tile in 0..n / TILE {
            // Alternating for a block's tiles, and for neighbouring blocks.
            if (tile / blocks + tile % blocks) % 2 == 1 {
                (1..K).for_each(|p| b[p * n + tile * TILE + 3] *= 1e-12);
                doubted += M / 2;
            }
        }
        let case = Case::of([M, n, K], &a, (&b, Order::Rows));
        let mut bench = Bench::<f32>::new(&device);
        for tiles in TILES {
            let name = format!("wgmma_f16x3_{tiles}_nn");
            let c = run(&mut bench, &case, &name);
            all_within_the_bound(&name, [M, n, K], (&a, &b, &c), 0.0);
            let stream = device.stream().unwrap();
            let gemm = Gemm::new().compute(Compute::Fp32F16x3).kernel(&name).unwrap();
            let of_a = Matrix::from_row_major(&device, M, K, &a).unwrap();
            let of_b = Matrix::from_row_major(&device, K, n, &b).unwrap();
            let mut c = Matrix::zeros(&device, M, n).unwrap();
            let choice = gemm.run(&stream, of_a.view(), of_b.view(), c.view_mut()).unwrap();
            assert_eq!(choice.recomputed, Some(doubted as u64), "{name}");
            *count += 1;
        }
    });
}

/// Scales at the ends of f32's range. A part is uncertain if the last steps' part of a sum, times
/// its factor, is infinite, or so small that a test by division would give zero.
#[test]
fn scales_at_the_ends() {
    once!(crate::SOURCES);
    const M: usize = 64;
    const N: usize = 128;
    let two = |exponent: i32| 2f32.powi(exponent);
    each_device("recomputed::scales_at_the_ends", |device, count| {
        let mut bench = Bench::<f32>::new(&device);
        // Infinite: 2^130 is in both patches of k, next to sums up to 2^124.
        let k = 128;
        let (mut large_a, mut large_b) = (vec![0.0; M * k], vec![0.0; k * N]);
        for row in 0..M {
            large_a[row * k] = -(2.0 - two(-6)) * two(65);
            large_a[row * k + 64] = two(66);
            large_a[row * k + 1] = two(79);
        }
        for (p, exponent) in [(0, 65), (64, 65), (2, 79), (66, 79)] {
            large_b[p * N..][..N].fill(two(exponent));
        }
        let large = ("large", k, large_a, large_b);
        // Small: the first patch of k gives 2^-124 in the first row, and the last one's factor is
        // 2^51.
        let k = 192;
        let (mut small_a, mut small_b) = (vec![0.0; M * k], vec![0.0; k * N]);
        small_a[0] = two(-94);
        small_a[k] = two(-30);
        small_a[k + 128] = two(40);
        small_b[..N].fill(two(-30));
        small_b[128 * N..][..N].fill(two(39));
        let small = ("small", k, small_a, small_b);
        for (kind, k, a, b) in [large, small] {
            for tiles in TILES {
                let name = format!("wgmma_f16x3_{tiles}_nn");
                let case = Case::of([M, N, k], &a, (&b, Order::Rows));
                let c = run(&mut bench, &case, &name);
                let name = format!("{device:?}, {name}, {kind}");
                all_within_the_bound(&name, [M, N, k], (&a, &b, &c), 2f64.powi(-149));
                *count += 1;
            }
        }
    });
}
