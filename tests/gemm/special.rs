//! NaN and infinities reach the elements of C that depend on them, and no others; overflow;
//! subnormal numbers; the sign of zero.

use host::{Bf16, Compute, Device, F16, Gemm, Matrix, gemm::Scalar};
use tests::{
    devices,
    gemm::{Case, Data, INFINITY, NAN, Number, Operand, Order, Place, Random, Suite, counted},
    once,
};

/// Corners, and edges of tiles, of a 37 x 41 by 41 x 39 product.
const PLACES: [(usize, usize); 6] = [(0, 0), (15, 16), (16, 15), (31, 32), (32, 31), (36, 38)];
const M: usize = 37;
const N: usize = 39;
const K: usize = 41;

/// `C = 2 A B - C` of integers, with A, B and C in different orders.
fn case<T: Number>() -> Case<T> {
    let data = Data::exact(K);
    let a = Operand::draw((M, K), Place::padded((M, K), Order::Columns, 2), data, 14);
    let b = Operand::draw((K, N), Place::padded((K, N), Order::Rows, 1), data, 15);
    let c = Place::padded((M, N), Order::Columns, 3);
    Case::plain(a, b, c).scaled(2.0, -1.0, data, 16)
}

/// The elements of C for which `is` is true.
fn elements<T: Number>(c: &[T], is: fn(f64) -> bool) -> Vec<(usize, usize)> {
    let found = (0..c.len()).filter(|&at| is(c[at].into()));
    found.map(|at| (at / N, at % N)).collect()
}

fn planted<T: Number>() {
    let mut suite = Suite::<T>::new();
    let row = |i| (0..N).map(|j| (i, j)).collect::<Vec<_>>();
    let column = |j| (0..M).map(|i| (i, j)).collect::<Vec<_>>();
    for (i, j) in PLACES {
        let mut in_a = case::<T>();
        in_a.a.set(0, i, j, T::nearest(NAN));
        assert_eq!(elements(&suite.exact(&in_a), f64::is_nan), row(i), "A({i}, {j})");

        let mut in_b = case::<T>();
        in_b.b.set(0, i, j, T::nearest(NAN));
        assert_eq!(elements(&suite.exact(&in_b), f64::is_nan), column(j), "B({i}, {j})");

        let mut in_c = case::<T>();
        in_c.c.set(0, i, j, T::nearest(NAN));
        assert_eq!(elements(&suite.exact(&in_c), f64::is_nan), [(i, j)], "C({i}, {j})");

        // An infinity times a zero is NaN, times any other number it is infinite.
        let mut zero = case::<T>();
        zero.a.set(0, i, j, T::nearest(INFINITY));
        zero.b.set(0, j, 3, T::nearest(0.0));
        let c = suite.exact(&zero);
        assert_eq!(elements(&c, f64::is_nan), [(i, 3)], "A({i}, {j})");
        assert_eq!(elements(&c, f64::is_infinite).len(), N - 1, "A({i}, {j})");
    }
    // Infinities of both signs in one sum.
    let mut both = case::<T>();
    for (p, sign) in [(0, 1.0), (K - 1, -1.0)] {
        both.a.set(0, 7, p, T::nearest(INFINITY));
        (0..N).for_each(|j| both.b.set(0, p, j, T::nearest(sign)));
    }
    assert_eq!(elements(&suite.exact(&both), f64::is_nan), row(7));
    // In A B and in C.
    let mut meeting = case::<T>();
    meeting.a.set(0, 7, 5, T::nearest(INFINITY));
    (0..N).for_each(|j| meeting.b.set(0, 5, j, T::nearest(1.0)));
    meeting.c.set(0, 7, 3, T::nearest(INFINITY));
    assert_eq!(elements(&suite.exact(&meeting), f64::is_nan), [(7, 3)]);
    suite.done("special::nan_and_infinity_go_where_they_belong");
}

#[test]
fn nan_and_infinity_go_where_they_belong() {
    once!(crate::SOURCES);
    planted::<f32>();
    planted::<f64>();
    planted::<Bf16>();
    planted::<F16>();
}

/// `C = alpha A B + beta C` of 1 x k and k x 1, with every kernel on every device.
fn single<T: Number>(suite: &mut Suite<T>, a: &[f64], b: &[f64], scalars: [f64; 3]) -> f64 {
    let [alpha, beta, before] = scalars;
    let side = |values: &[f64], size| {
        let place = Place::dense(size, Order::Rows);
        Operand::new(size, place, |_, row, col| T::nearest(values[row + col]))
    };
    let (a, b) = (side(a, (1, a.len())), side(b, (b.len(), 1)));
    let case = Case::plain(a, b, Place::strided([1, 1]));
    let case = Case { c: side(&[before], (1, 1)), alpha, beta, ..case };
    let mut found = None;
    suite.each(|bench, kernel| {
        let c: f64 = bench.run(&case, Some(kernel)).unwrap()[0].into();
        let first = *found.get_or_insert(c);
        assert!(
            first.to_bits() == c.to_bits(),
            "{kernel} on {}: {c:?} or {first:?}",
            bench.device()
        );
    });
    found.unwrap()
}

/// A, B, alpha, beta and what C is before, and what it must be after.
type Single<'a> = (&'a [f64], &'a [f64], [f64; 3], f64);

fn give<T: Number>(test: &str, cases: &[Single]) {
    let mut suite = Suite::<T>::new();
    for &(a, b, scalars, want) in cases {
        let got = single(&mut suite, a, b, scalars);
        assert_eq!(got, want, "{a:?} {b:?} {scalars:?}");
    }
    suite.done(test);
}

/// A result that is too large is infinite, also where float64 would not be: in a product, in a sum,
/// by alpha, by beta. Later operations do not undo it.
#[test]
fn overflow() {
    once!(crate::SOURCES);
    let large = 2f64.powi(127);
    let cases: &[Single] = &[
        (&[2f64.powi(64)], &[2f64.powi(64)], [1.0, 0.0, 0.0], INFINITY),
        (&[large, large], &[1.0, 1.0], [1.0, 0.0, 0.0], INFINITY),
        (&[large, large, -large], &[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], INFINITY),
        (&[-large], &[1.0], [2.0, 0.0, 0.0], -INFINITY),
        (&[large], &[2.0], [0.5, 0.0, 0.0], INFINITY),
        (&[large], &[1.0], [2.0, -1.0, large], INFINITY),
        // No intermediate overflow: a fused multiply-add is rounded once.
        (&[-large], &[1.0], [1.0, 2.0, large], large),
        (&[large], &[1.0], [0.5, 1.0, 0.0], large / 2.0),
    ];
    give::<f32>("special::overflow", cases);
}

/// Sums of f16 are in f32, so only C is infinite: from 65520 on, which is as near to 2^16 as to
/// 65504, the largest number.
#[test]
fn overflow_of_f16() {
    once!(crate::SOURCES);
    let large = 65504.0;
    let cases: &[Single] = &[
        (&[large, 16.0 - 2f64.powi(-7)], &[1.0, 1.0], [1.0, 0.0, 0.0], large),
        (&[large, 16.0], &[1.0, 1.0], [1.0, 0.0, 0.0], INFINITY),
        (&[256.0], &[-256.0], [1.0, 0.0, 0.0], -INFINITY),
        // No intermediate overflow, by a sum, a product or beta.
        (&[large, large, -large], &[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], large),
        (&[large], &[large], [2f64.powi(-16), 0.0, 0.0], 65472.0),
        (&[-large], &[1.0], [1.0, 2.0, large], large),
        (&[16.0], &[1.0], [1.0, 1.0, large], INFINITY),
    ];
    give::<F16>("special::overflow_of_f16", cases);
}

/// Subnormal numbers are kept: none is flushed to zero, neither when read nor as a result.
#[test]
fn subnormal_numbers_are_kept() {
    once!(crate::SOURCES);
    let (normal, tiny) = (2f64.powi(-126), 2f64.powi(-149));
    let cases: &[Single] = &[
        (&[normal / 8.0], &[1.0], [1.0, 0.0, 0.0], normal / 8.0),
        (&[tiny], &[1.0], [1.0, 0.0, 0.0], tiny),
        (&[2f64.powi(-75)], &[2f64.powi(-74)], [1.0, 0.0, 0.0], tiny),
        (&[normal], &[0.5], [1.0, 0.0, 0.0], normal / 2.0),
        (&[normal, -normal / 4.0], &[1.0, 1.0], [1.0, 0.0, 0.0], normal * 0.75),
        (&[normal], &[1.0], [0.25, 0.0, 0.0], normal / 4.0),
        (&[0.0], &[1.0], [1.0, 0.5, normal], normal / 2.0),
        (&[tiny], &[1.0], [3.0, 4.0, tiny], 7.0 * tiny),
        // A tie goes to the even neighbour, which is zero here.
        (&[tiny], &[0.5], [1.0, 0.0, 0.0], 0.0),
        (&[tiny * 3.0], &[0.5], [1.0, 0.0, 0.0], 2.0 * tiny),
    ];
    give::<f32>("special::subnormal_numbers_are_kept", cases);
}

/// The same for f16, whose products have bits down to 2^-48. C is rounded to multiples of its
/// smallest number.
#[test]
fn subnormal_numbers_of_f16_are_kept() {
    once!(crate::SOURCES);
    let (normal, tiny) = (2f64.powi(-14), 2f64.powi(-24));
    let cases: &[Single] = &[
        (&[tiny], &[1.0], [1.0, 0.0, 0.0], tiny),
        (&[normal, -normal / 4.0], &[1.0, 1.0], [1.0, 0.0, 0.0], normal * 0.75),
        (&[2f64.powi(-12)], &[2f64.powi(-12)], [1.0, 0.0, 0.0], tiny),
        (&[tiny], &[tiny], [2f64.powi(24), 0.0, 0.0], tiny),
        (&[tiny], &[1.0], [3.0, 4.0, tiny], 7.0 * tiny),
        // A tie goes to the even neighbour.
        (&[tiny], &[0.5], [1.0, 0.0, 0.0], 0.0),
        (&[tiny * 3.0], &[0.5], [1.0, 0.0, 0.0], 2.0 * tiny),
    ];
    give::<F16>("special::subnormal_numbers_of_f16_are_kept", cases);
}

/// A sum starts with +0, so a sum of zeros is +0, whatever their signs. Later operations may change
/// the sign.
#[test]
fn the_sign_of_zero() {
    once!(crate::SOURCES);
    let mut suite = Suite::<f32>::new();
    for (a, scalars, negative) in [
        (&[-0.0][..], [1.0, 0.0, 0.0], false),
        (&[-0.0, -0.0], [1.0, 0.0, 0.0], false),
        (&[1.0, -1.0], [1.0, 0.0, 0.0], false),
        (&[1.0, -1.0], [-1.0, 0.0, 0.0], true),
        (&[0.0], [-1.0, 0.0, 1.0], true),
        (&[1.0], [-0.0, 0.0, 1.0], true),
        // +0 + -0 is +0, -0 + -0 is -0.
        (&[0.0], [1.0, 1.0, -0.0], false),
        (&[0.0], [-1.0, 1.0, -0.0], true),
        (&[0.0], [-1.0, 1.0, 0.0], false),
        // With beta = -0 C is not read.
        (&[0.0], [1.0, -0.0, NAN], false),
    ] {
        let got = single(&mut suite, a, &[1.0; 2][..a.len()], scalars);
        assert!(got == 0.0 && got.is_sign_negative() == negative, "{a:?} {scalars:?}: {got:?}");
    }
    suite.done("special::the_sign_of_zero");
}

/// Subnormal sums on tensor cores, which truncate addends: the bits of an H100, for every
/// instruction, on every device.
#[test]
fn subnormal_sums_on_tensor_cores() {
    once!(crate::SOURCES);
    let bf16 = Gemm::<Bf16, f32>::of_types;
    let tf32 = || Gemm::<f32, f32>::of_types().compute(Compute::Tf32);
    // Hashes of C: measured on an H100 80GB HBM3, driver 580.159.04, 2026-11-27.
    for (k, of_bf16, of_tf32) in [
        (16, 0x0ba2_2c56_f052_e1fe, 0xf6e5_4250_4c7a_3337),
        (32, 0x3481_1bb7_aae4_8d29, 0xc625_7878_641a_7045),
    ] {
        for device in devices() {
            for name in ["mma_bf16_f32_64x64x64", "wgmma_bf16_f32_64x64x64_nn"] {
                let got = subnormal_sums(&device, bf16(), name, k, Bf16::from_f32);
                assert_eq!(got, of_bf16, "{name} on {device}, k = {k}");
            }
            for name in ["mma_tf32_64x64x32", "wgmma_tf32_64x32x32_nn"] {
                let got = subnormal_sums(&device, tf32(), name, k, |x| x);
                assert_eq!(got, of_tf32, "{name} on {device}, k = {k}");
            }
        }
    }
    counted("special::subnormal_sums_on_tensor_cores", 8);
}

/// A hash of the bits of all elements of a product with factors of 2^-74 to 2^-66.
fn subnormal_sums<T: Scalar<f32>>(
    device: &Device,
    gemm: Gemm<T, f32>,
    kernel: &str,
    k: usize,
    of: fn(f32) -> T,
) -> u64 {
    let (m, n, mut random) = (64, 64, Random::new(k as u64));
    let mut factor = || {
        let (exponent, fraction) = (127 - 66 - random.below(9), random.below(128));
        of(f32::from_bits((random.below(2) << 31 | exponent << 23 | fraction << 16) as u32))
    };
    let mut matrix = |rows, cols| {
        let values = (0..rows * cols).map(|_| factor()).collect::<Vec<_>>();
        Matrix::from_row_major(device, rows, cols, &values).unwrap()
    };
    let (a, b) = (matrix(m, k), matrix(k, n));
    let mut c = Matrix::<f32>::zeros(device, m, n).unwrap();
    let gemm = gemm.kernel(kernel).unwrap();
    let stream = device.stream().unwrap();
    gemm.run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
    let c = c.to_row_major().unwrap();
    assert!(c.iter().filter(|x| x.is_subnormal()).count() > 4000, "{kernel}, k = {k}");
    // Fowler, Noll, Vo.
    let hash = |hash: u64, x: &f32| (hash ^ u64::from(x.to_bits())).wrapping_mul(0x100_0000_01b3);
    c.iter().fold(0xcbf2_9ce4_8422_2325, hash)
}
