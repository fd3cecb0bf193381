//! Products of a warp on tensor cores, and asynchronous copies of 4, 8 and 16 bytes.

use simt::{
    Bf16, Element, F16, Kernel, LaunchConfig, Tf32,
    check::{self, Kind, Order},
    checked,
    device::{In, Out},
};

use super::{Aligned, tensor_cores::truncated};

mod atoms;
mod kernels;
mod on_gpu;

use simt::device;

#[path = "."]
mod watched {
    use simt::checked as device;

    #[path = "kernels.rs"]
    pub mod kernels;
}

type Watched<T> = Kernel<(checked::In<T>, checked::In<T>, checked::Out<f32>)>;

/// A kernel, its version for checked launches, and whether A and B are transposed.
type Case<T> = (&'static Kernel<(In<T>, In<T>, Out<f32>)>, &'static Watched<T>, [bool; 2]);

const BF16: [Case<Bf16>; 4] = [
    (&kernels::plain_by_plain, &watched::kernels::plain_by_plain, [false, false]),
    (&kernels::plain_by_transposed, &watched::kernels::plain_by_transposed, [false, true]),
    (&kernels::transposed_by_plain, &watched::kernels::transposed_by_plain, [true, false]),
    (&kernels::transposed_by_transposed, &watched::kernels::transposed_by_transposed, [true, true]),
];

const OF_F16: Case<F16> = (&kernels::of_f16, &watched::kernels::of_f16, [false, true]);

/// For tf32: f32 that is rounded.
const OF_F32: [Case<f32>; 4] = [
    (&kernels::along_by_along, &watched::kernels::along_by_along, [false, false]),
    (&kernels::along_by_across, &watched::kernels::along_by_across, [false, true]),
    (&kernels::across_by_along, &watched::kernels::across_by_along, [true, false]),
    (&kernels::across_by_across, &watched::kernels::across_by_across, [true, true]),
];

/// 32 outer elements by as many k-steps as 32 bytes have.
fn operand<T: Element, const LEN: usize>(
    transposed: bool,
    value: impl Fn(usize, usize) -> T,
) -> Box<Aligned<[T; LEN]>> {
    const { assert!(LEN == 32 * 32 / size_of::<T>(), "an instruction multiplies 32 bytes of k") };
    let steps = LEN / 32;
    Box::new(Aligned(std::array::from_fn(|at| match transposed {
        false => value(at / steps, at % steps),
        true => value(at % 32, at / 32),
    })))
}

/// Twice A B, computed fast, and by checked launches in several orders, which find nothing and give
/// the same bits.
fn run<T: Element, const LEN: usize>(
    (kernel, watched, lie): Case<T>,
    a: impl Fn(usize, usize) -> T,
    b: impl Fn(usize, usize) -> T,
) -> Vec<f32> {
    let (a, b) = (operand::<T, LEN>(lie[0], a), operand::<T, LEN>(lie[1], b));
    let mut c = vec![0.0; 1024];
    let params = (super::read(&a.0), super::read(&b.0), super::write(&mut c));
    super::launch(kernel, [1; 3], [32, 1, 1], params).unwrap();
    for order in [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)] {
        let mut found = vec![0.0; 1024];
        let mut options = check::Options::default();
        (options.order, options.complete) = (order, true);
        // SAFETY: the operands and `found` outlive the launch, and nobody else uses them.
        let report = unsafe {
            let params = (
                checked::In::new(a.0.as_ptr(), LEN),
                checked::In::new(b.0.as_ptr(), LEN),
                checked::Out::uninit(found.as_mut_ptr(), 1024),
            );
            check::launch(watched, &LaunchConfig::new([1; 3], [32, 1, 1]), params, &options)
        };
        let report = report.unwrap();
        assert!(report.is_clean(), "{order}: {report}");
        assert!(c.iter().zip(&found).all(|(x, y)| x.to_bits() == y.to_bits()), "{order}");
    }
    c
}

#[test]
fn products_of_integers_are_exact_whatever_way_operands_lie() {
    let a = |row: usize, p: usize| ((row * 7 + p * 3) % 17) as f32 - 8.0;
    let b = |col: usize, p: usize| ((p * 5 + col * 11) % 13) as f32 - 6.0;
    let is_right = |c: Vec<f32>, steps: usize| {
        for (at, sum) in c.into_iter().enumerate() {
            let (row, col) = (at / 32, at % 32);
            let expected: f32 = (0..steps).map(|p| a(row, p) * b(col, p)).sum();
            assert_eq!(sum, 2.0 * expected, "({row}, {col})");
        }
    };
    for case in BF16 {
        let bf16 = |value: f32| Bf16::from_f32(value);
        is_right(run::<_, 512>(case, |row, p| bf16(a(row, p)), |col, p| bf16(b(col, p))), 16);
    }
    let f16 = |value: f32| F16::from_f32(value);
    is_right(run::<_, 512>(OF_F16, |row, p| f16(a(row, p)), |col, p| f16(b(col, p))), 16);
    for case in OF_F32 {
        is_right(run::<_, 256>(case, a, b), 8);
    }
}

/// Three numbers between two tf32 neighbours: below the middle, in it, and above it. Truncated, all
/// would be 1.
#[test]
fn f32_is_rounded_to_the_nearest_tf32() {
    let below = 2f32.powi(-11);
    for (value, factor) in [
        (1.0 + below - 2f32.powi(-23), 1.0),
        (1.0 + below, 1.0 + 2.0 * below),
        (-1.0 - below, -1.0 - 2.0 * below),
        (1.0 + below + 2f32.powi(-23), 1.0 + 2.0 * below),
        (f32::MAX, f32::INFINITY),
        (f32::NEG_INFINITY, f32::NEG_INFINITY),
    ] {
        let one = |_: usize, p: usize| if p == 5 { 1.0 } else { 0.0 };
        // Elsewhere there would be a zero, whose product with an infinity is NaN.
        let number = |_: usize, p: usize| if p == 5 { value } else { 0.0 };
        for case in OF_F32 {
            let sums = [run::<_, 256>(case, number, one), run::<_, 256>(case, one, number)];
            let wrong = sums.iter().flatten().find(|&&sum| sum != 2.0 * factor);
            assert_eq!(wrong, None, "{value} is {factor}");
        }
    }
    // A quiet NaN stays one, with any sign.
    for nan in [f32::NAN, -f32::NAN, f32::from_bits(0x7fff_ffff), f32::from_bits(0xffff_ffff)] {
        for case in OF_F32 {
            let sums = run::<_, 256>(case, |_, _| nan, |_, _| 1.0);
            assert!(sums.into_iter().all(f32::is_nan), "{:#x}", nan.to_bits());
        }
    }
}

#[test]
fn sums_are_rounded_as_on_hopper() {
    let number = |i: usize, p: usize, salt: usize| {
        let bits = (i * 2_654_435_761 + p * 40_503 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let fraction = (bits >> 40) as f32 / (1 << 23) as f32 - 1.0;
        Bf16::from_f32(fraction * 2f32.powi((bits >> 20) as i32 % 6))
    };
    let (a, b) =
        (|row: usize, p: usize| number(row, p, 1), |col: usize, p: usize| number(col, p, 999));
    for case in BF16 {
        for (at, sum) in run::<_, 512>(case, a, b).into_iter().enumerate() {
            let (row, col) = (at / 32, at % 32);
            let products: [_; 16] =
                std::array::from_fn(|p| (a(row, p).to_f32(), b(col, p).to_f32()));
            let expected = truncated(truncated(0.0, products), products);
            assert_eq!(sum.to_bits(), expected.to_bits(), "({row}, {col}): {sum}, {expected}");
        }
    }
    // With a fraction that tf32 does not have.
    let f32 = |value: Bf16, p: usize| value.to_f32() * (1.0 + (p + 1) as f32 * 2f32.powi(-13));
    let (a, b) =
        (|row: usize, p: usize| f32(a(row, p), p), |col: usize, p: usize| f32(b(col, p), p));
    for case in OF_F32 {
        for (at, sum) in run::<_, 256>(case, a, b).into_iter().enumerate() {
            let (row, col) = (at / 32, at % 32);
            let factor = |value: f32| Tf32::from_f32(value).to_f32();
            let products: [_; 8] = std::array::from_fn(|p| (factor(a(row, p)), factor(b(col, p))));
            let expected = truncated(truncated(0.0, products), products);
            assert_eq!(sum.to_bits(), expected.to_bits(), "({row}, {col}): {sum}, {expected}");
        }
    }
}

#[test]
fn all_lanes_come_to_a_load() {
    let mut c = vec![0.0; 32];
    let params = (super::write(&mut c),);
    let fault = super::fault(super::launch(&kernels::a_lane_less, [1; 3], [32, 1, 1], params));
    let text = fault.to_string();
    assert!(text.contains("load_fragment") && text.contains("lane 5 has ended"), "{text}");
}

type Copies = (
    &'static Kernel<(u32, u32, In<Bf16>, Out<f32>)>,
    &'static Kernel<(u32, u32, checked::In<Bf16>, checked::Out<f32>)>,
);

/// For two, four and eight elements.
const COPIES: [(usize, Copies); 3] = [
    (2, (&kernels::copy_two, &watched::kernels::copy_two)),
    (4, (&kernels::copy_four, &watched::kernels::copy_four)),
    (8, (&kernels::copy_eight, &watched::kernels::copy_eight)),
];

/// All bytes of a copy must be in the buffer, or it reads none; and it is aligned to its size.
#[test]
fn copies_are_of_four_eight_or_sixteen_bytes() {
    // An odd number, so that the last element is half of four bytes.
    let x = Aligned::<[_; 13]>(std::array::from_fn(|i| Bf16::from_f32((i + 1) as f32)));
    for (width, (kernel, watched)) in COPIES {
        for (from, valid) in [(0, 1), (16, 0), (1 << 20, 0)] {
            let mut y = [f32::NAN; 8];
            let params = (valid, from, super::read(&x.0), super::write(&mut y));
            super::launch(kernel, [1; 3], [1; 3], params).unwrap();
            let expected = |i: usize| if valid == 1 { (i + 1) as f32 } else { 0.0 };
            assert!((0..width).all(|i| y[i] == expected(i)), "{width} from {from} on: {y:?}");
        }
        // The last one that is partly inside, and one that starts in the middle.
        let (partly, between) = (13 / width * width, width / 2);
        for (valid, from, words, kind) in [
            (1, partly, "outside", Kind::OutOfBounds),
            (1, between, "-byte aligned", Kind::Misaligned),
            (0, between, "-byte aligned", Kind::Misaligned),
        ] {
            let from = from as u32;
            let mut y = [0.0; 8];
            let params = (valid, from, super::read(&x.0), super::write(&mut y));
            let text = super::fault(super::launch(kernel, [1; 3], [1; 3], params)).to_string();
            assert!(text.contains(words), "{width} from {from} on: {text}");
            let options = check::Options::default();
            // SAFETY: the vectors outlive the launch, and nobody else uses them.
            let report = unsafe {
                let params = (
                    valid,
                    from,
                    checked::In::new(x.0.as_ptr(), x.0.len()),
                    checked::Out::new(y.as_mut_ptr(), 8),
                );
                check::launch(watched, &LaunchConfig::new([1; 3], [1; 3]), params, &options)
            };
            let report = report.unwrap();
            let kinds = report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
            assert_eq!(kinds, [kind], "{width} from {from} on: {report}");
        }
    }
}
