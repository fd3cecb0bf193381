//! Products of e4m3, e5m2 and i8 with a C of f32, bf16 or f16, by every kernel, in every layout.

mod case;
mod quantise;
mod scales;

use host::{Bf16, Device, E4m3, E5m2, F16, Matrix, gemm::Scalar};
use tests::{
    Turns, devices,
    gemm::{Random, counted, each_device},
    once, streams,
};

use self::case::{Case, Element, of_short_sums};
use super::{
    integers::{gemm, kernels, size},
    sliced::step_to,
};

/// A row whose greatest addend has a subnormal factor: it is aligned as if it were larger, so more
/// of the others is cut off than without such a factor.
#[test]
fn subnormal_factors_keep_to_the_bound() {
    once!(crate::SOURCES);
    fn check<T: Element + Scalar<f32>>(parts: &[(usize, [f32; 2])]) {
        let row = |of: usize| -> Vec<T> {
            let of_part = |&(count, factors): &(usize, [f32; 2])| {
                std::iter::repeat_n(T::of(factors[of]), count)
            };
            parts.iter().flat_map(of_part).collect()
        };
        let (a, b) = (row(0), row(1));
        let wide = |x: T| -> f64 { x.into() };
        let terms = || a.iter().zip(&b).map(|(&a, &b)| wide(a) * wide(b));
        let (want, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
        let mut most = 0f64;
        for (device, stream) in streams() {
            let of_a = Matrix::from_row_major(&device, 1, a.len(), &a).unwrap();
            let of_b = Matrix::from_row_major(&device, 1, b.len(), &b).unwrap();
            for kernel in kernels::<T, f32>() {
                let mut c = Matrix::<f32>::zeros(&device, 1, 1).unwrap();
                let gemm = gemm::<T, f32>(kernel);
                gemm.run(&stream, of_a.view(), of_b.view().t(), c.view_mut()).unwrap();
                let off = (f64::from(c.to_row_major().unwrap()[0]) - want).abs();
                assert!(
                    off <= (of_short_sums(T::FORMAT) + 1e-4) * size,
                    "{kernel:?} on {device}: {off}"
                );
                most = most.max(off / size);
            }
        }
        // Without the subnormal factor it would be less.
        assert!(most > 4.0 * 34.0 / 8192.0, "{most}");
    }
    let two = |exponent: i32| 2f32.powi(exponent);
    check::<E4m3>(&[(1, [256.0, two(-9)]), (31, [1.75 * two(-6), 1.125 * two(-6)])]);
    let small = (96, [1.5 * two(-7), 1.25 * two(-8)]);
    check::<E5m2>(&[(1, [two(15), two(-16)]), (31, [1.5 * two(-6), 1.25 * two(-7)]), small]);
}

/// Products of some types, each by one of the kernels in turn, or by all.
fn check_types<T: Element + Scalar<O>, O: Element>(cases: usize, seed: u64) {
    let kernels = kernels::<T, O>();
    for (device, stream) in streams() {
        let mut turns = Turns::on(&device, kernels.len());
        let mut random = Random::new(seed);
        for _ in 0..cases {
            let sizes = [140, 140, 400].map(|most| size(&mut random, most));
            let products = random.choose(&[1, 1, 1, 2]);
            let case = Case::<T, O>::draw(&mut random, sizes, products);
            for kernel in turns.next_case().into_iter().map(|number| kernels[number]) {
                case.check(&stream, &gemm(kernel), kernel.unwrap_or("auto"));
            }
        }
    }
}

#[test]
fn random_products_keep_to_the_bound() {
    check_types::<E4m3, f32>(24, 801);
    check_types::<E5m2, f32>(12, 802);
    check_types::<E4m3, Bf16>(12, 803);
    check_types::<E5m2, Bf16>(6, 804);
    check_types::<E4m3, F16>(6, 805);
    check_types::<E5m2, F16>(6, 806);
    check_types::<i8, f32>(12, 809);
    check_types::<i8, Bf16>(6, 810);
    counted("float8::random_products_keep_to_the_bound", 84);
}

/// K is split by the blocks of a cluster, and by partial products.
#[test]
fn split_sums_keep_to_the_bound() {
    once!(crate::SOURCES);
    each_device("float8::split_sums_keep_to_the_bound", |device, count| {
        let stream = device.stream().unwrap();
        let mut random = Random::new(807);
        for sizes in [[3, 100, 700], [65, 40, 513]] {
            let case = Case::<E4m3, f32>::draw(&mut random, sizes, 1);
            for kernel in kernels::<E4m3, f32>().into_iter().flatten() {
                let gemm = gemm(Some(kernel));
                case.check(&stream, &gemm.partials(3).unwrap(), kernel);
                if kernel.starts_with("wgmma") && !kernel.contains("_c2") {
                    case.check(&stream, &gemm.split_k(3).unwrap(), kernel);
                }
            }
            *count += 1;
        }
    });
}

/// A B of normal numbers, as the tensor cores and the additions outside of them give it: 128
/// products in four steps, whose sum has 13 bits after the point, then an f32.
fn of_tensor_cores(a: &[f32], b: &[f32]) -> f32 {
    let of_stage = |(a, b): (&[f32], &[f32])| {
        a.chunks(32).zip(b.chunks(32)).fold(0.0, |sum, (a, b)| {
            f32::from_bits(step_to(13, sum, a, b).to_bits() & !0x3ff) + 0.0
        })
    };
    a.chunks(128).zip(b.chunks(128)).map(of_stage).fold(0.0, |sum, stage| sum + stage)
}

fn has_the_bits<T: Element + Scalar<f32> + Into<f32>>(device: &Device) -> usize {
    let mut count = 0;
    let [m, n, k] = [70, 40, 413];
    let mut random = Random::new(808);
    // From 1/32 to 2, of either sign.
    let mut numbers = |count: usize| {
        let draw = |_| {
            let bits = random.next();
            let value = (1.0 + (bits % 8) as f32 / 8.0) / (1 << (bits >> 8 & 3)) as f32;
            T::of(if bits >> 20 & 1 == 0 { value } else { -value })
        };
        (0..count).map(draw).collect::<Vec<_>>()
    };
    let (a, b) = (numbers(m * k), numbers(n * k));
    let stream = device.stream().unwrap();
    let of_a = Matrix::from_row_major(device, m, k, &a).unwrap();
    let of_b = Matrix::from_row_major(device, n, k, &b).unwrap();
    for kernel in kernels::<T, f32>().into_iter().flatten() {
        if !kernel.starts_with("wgmma") {
            continue;
        }
        let mut c = Matrix::<f32>::zeros(device, m, n).unwrap();
        let gemm = gemm::<T, f32>(Some(kernel)).split_k(1).unwrap();
        gemm.run(&stream, of_a.view(), of_b.view().t(), c.view_mut()).unwrap();
        let wide = |of: &[T]| of.iter().map(|x| (*x).into()).collect::<Vec<f32>>();
        for (at, got) in c.to_row_major().unwrap().into_iter().enumerate() {
            let (row, col) = (at / n, at % n);
            let want = of_tensor_cores(&wide(&a[row * k..][..k]), &wide(&b[col * k..][..k]));
            assert_eq!(got.to_bits(), want.to_bits(), "{kernel} on {device}: ({row}, {col})");
        }
        count += 1;
    }
    count
}

#[test]
fn sums_of_tensor_cores_have_the_bits_of_the_model() {
    for device in devices() {
        // Three tiles.
        assert_eq!([has_the_bits::<E4m3>(&device), has_the_bits::<E5m2>(&device)], [3, 3]);
    }
    counted("float8::sums_of_tensor_cores_have_the_bits_of_the_model", 2);
}

/// A NaN of A makes its row of C NaN, an infinity of B its column infinite, and no other element.
#[test]
fn nan_and_infinities_are_where_they_belong() {
    once!(crate::SOURCES);
    each_device("float8::nan_and_infinities_are_where_they_belong", |device, count| {
        let stream = device.stream().unwrap();
        for kernel in kernels::<E5m2, f32>() {
            let [m, n, k] = [5, 6, 130];
            let [mut a, mut b] = [m * k, n * k].map(|len| vec![E5m2::from_f32(1.0); len]);
            (a[2 * k + 129], b[3 * k + 7]) =
                (E5m2::from_f32(f32::NAN), E5m2::from_f32(f32::INFINITY));
            let a = Matrix::from_row_major(&device, m, k, &a).unwrap();
            let b = Matrix::from_row_major(&device, n, k, &b).unwrap();
            let mut c = Matrix::<f32>::zeros(&device, m, n).unwrap();
            gemm(kernel).run(&stream, a.view(), b.view().t(), c.view_mut()).unwrap();
            for (at, got) in c.to_row_major().unwrap().into_iter().enumerate() {
                let is_right = match (at / n, at % n) {
                    (2, _) => got.is_nan(),
                    (_, 3) => got == f32::INFINITY,
                    _ => got == 130.0,
                };
                assert!(is_right, "{kernel:?} on {device}: {at}: {got}");
            }
        }
        *count += 1;
    });
}
