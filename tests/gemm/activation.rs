//! The smooth activations: their errors, in each type of C.

use gpu::{
    collective::activation::half,
    params::{GELU, GELU_TANH, SILU},
};
use host::{Activation, Bf16, F16, verify};
use tests::gemm::{Case, Data, Number, Operand, Order, Place, Suite, Want, counted, own_error};
use tests::once;

/// The smooth activations, their numbers in kernels, and where they are x or zero from in f32 and
/// f64.
const SMOOTH: [(Activation, u32, [f64; 2]); 3] = [
    (Activation::Gelu, GELU, [14.5, 39.0]),
    (Activation::GeluTanh, GELU_TANH, [11.0, 22.0]),
    (Activation::Silu, SILU, [110.0, 760.0]),
];

/// A case whose C is `activation(x)` of these numbers: `alpha = 0` and `beta = 1`.
fn of_numbers<T: Number>(activation: Activation, values: &[T]) -> Case<T> {
    let cols = 16;
    let rows = values.len() / cols;
    let place = Place::dense((rows, cols), Order::Rows);
    let c = Operand::new((rows, cols), place, |_, row, col| values[row * cols + col]);
    let case = Case::<T>::dense([rows, cols, 0], Data::Uniform, 1).activated(activation);
    Case { c, beta: 1.0, ..case }
}

/// What a case of [`of_numbers`] gives. Its input is exact, so only the activation's own error
/// counts, and in f64 also the reference's.
fn want<T: Number>(case: &Case<T>, bound: impl Fn(f64) -> f64) -> Want {
    let mut want = Want::bounded(case);
    for (value, of) in want.values.iter().zip(&mut want.bounds) {
        *of = bound(*value);
    }
    want
}

/// Numbers of all magnitudes, and densely where the curve bends.
fn two_units<T: Number>(largest: i32, smallest: i32) -> usize {
    let mut suite = Suite::<T>::new();
    let mut count = 0;
    for (activation, _, ends) in SMOOTH {
        let (end, ulps) = if T::SLACK == 1.0 { (ends[0], 2.0) } else { (ends[1], 4.0) };
        // Sixty-four numbers for each power of two, of both signs.
        let powers =
            (smallest..=largest).flat_map(|power| (0..64).map(move |i| (power, f64::from(i))));
        let wide = powers.map(|(power, i)| (1.0 + i / 64.0) * 2f64.powi(power));
        let dense = (0..8000).map(|i| end * f64::from(i) / 8000.0 + 1e-5 * f64::from(i % 7));
        let values = wide.chain(dense).flat_map(|x| [x, -x]).map(T::nearest).collect::<Vec<_>>();
        let case = of_numbers(activation, &values);
        let want = want(&case, |value| (ulps * ulp::<T>(value)).max(T::TINY));
        let c = suite.check(&case, &want);
        // For large |x| it is x or zero.
        for (&x, &c) in values.iter().zip(&c) {
            let (x, c): (f64, f64) = (x.into(), c.into());
            let far = if x > 0.0 { x } else { 0.0 };
            assert!(x.abs() <= end || c == far, "{activation}({x:?}) = {c:?}");
        }
        count += values.len();
    }
    count
}

/// A unit in the last place of a number.
fn ulp<T: Number>(value: f64) -> f64 {
    let power = f64::from_bits(value.to_bits() & (0x7ff << 52));
    2.0 * T::U * power
}

/// C of f32 and f64, against the functions of another library, over all powers of two. The error is
/// at most two units in the last place of the result, however small. In f64 it is four, of which
/// two are the reference's.
#[test]
fn off_by_two_units() {
    once!(crate::SOURCES);
    let numbers = two_units::<f32>(127, -148) + two_units::<f64>(1022, -1073);
    counted("activation::off_by_two_units", numbers);
}

/// Half a unit in the last place of a number of 16 bits.
fn half_unit<T: Number>(value: f64) -> f64 {
    (ulp::<T>(value) / 2.0).max(T::TINY / 2.0)
}

/// All numbers of a type of 16 bits, NaNs and infinities too.
fn all_numbers<T: Number>(from_bits: fn(u16) -> T) -> usize {
    let mut suite = Suite::<T>::new().in_turns();
    let values = (0..=u16::MAX).map(from_bits).collect::<Vec<_>>();
    for (activation, ..) in SMOOTH {
        let case = of_numbers(activation, &values);
        let bound = |value: f64| {
            let own = own_error::<T>(value.abs());
            // The value may be rounded where units are larger.
            own + half_unit::<T>(value.abs() + own)
        };
        suite.check(&case, &want(&case, bound));
    }
    SMOOTH.len() * values.len()
}

/// C of 16 bits, of each of its numbers: half a unit in the last place, and a part of the value or
/// a small number.
#[test]
fn all_numbers_of_16_bits() {
    once!(crate::SOURCES);
    let numbers = all_numbers::<Bf16>(Bf16::from_bits) + all_numbers::<F16>(F16::from_bits);
    counted("activation::all_numbers_of_16_bits", numbers);
}

/// Before it is rounded to 16 bits: every 256th f32 between 2^-40 and 64, of both signs. The types
/// of 16 bits have the same function, and every device the same source.
#[test]
fn the_value_before_it_has_16_bits() {
    once!(&[]);
    let range = (2f32.powi(-40).to_bits()..=64f32.to_bits()).step_by(256);
    let mut count = 0;
    for (activation, kind, _) in SMOOTH {
        let mut worst = 0.0;
        for bits in range.clone() {
            let x = f32::from_bits(bits);
            let got = half::activated(kind, [x, -x, x, -x]);
            for (x, y) in [x, -x].into_iter().zip(got) {
                let want = verify::activated(activation, x.into());
                let part = (f64::from(y) - want).abs() / own_error::<Bf16>(want.abs());
                assert!(part <= 1.0, "{activation}({x:?}) = {y:?}, should be {want:?}");
                worst = f64::max(worst, part);
            }
            assert_eq!(got[..2], got[2..], "{activation}({x:?})");
            count += 2;
        }
        // The bound is not far from what is measured.
        assert!(worst > 0.1, "{activation}: {worst}");
    }
    counted("activation::the_value_before_it_has_16_bits", count);
}

/// The special numbers of that function.
#[test]
fn special_values_before_they_have_16_bits() {
    for (activation, kind, _) in SMOOTH {
        let large = [f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN];
        assert_eq!(half::activated(kind, large), [f32::INFINITY, 0.0, f32::MAX, 0.0]);
        let zeros = half::activated(kind, [0.0, -0.0, f32::NAN, -f32::NAN]);
        assert_eq!(zeros.map(f32::to_bits)[..2], [0, 1 << 31], "{activation}");
        assert!(zeros[2].is_nan() && zeros[3].is_nan(), "{activation}");
        let tiny = [2f32.powi(-140), -(2f32.powi(-140)), 1e-30, -1e-30];
        for (x, y) in tiny.into_iter().zip(half::activated(kind, tiny)) {
            assert!((y - x / 2.0).abs() <= x.abs() / 4096.0 + 1e-44, "{activation}({x:?}) = {y:?}");
        }
    }
}

/// Sums of f32 with all their digits: each kernel on each device has the bits of that function.
fn bits_of_sums<T: Number>(suite: Suite<T>) {
    let mut suite = suite;
    let sizes @ [m, n, _] = [96, 100, 1];
    // a b is exact in f32, and alpha gives it the other digits.
    let alpha = 0.3_f32;
    for (activation, kind, _) in SMOOTH {
        let case = Case::<T>::dense(sizes, Data::Uniform, 3).activated(activation);
        let mut case = Case { alpha: alpha.into(), ..case };
        (0..m).for_each(|row| case.a.set(0, row, 0, T::nearest(row as f64 - 48.5)));
        (0..n).for_each(|col| case.b.set(0, 0, col, T::nearest(0.01 + col as f64 / 128.0)));
        let value = |row, col| -> T {
            let (a, b): (f64, f64) = (case.a.get(0, row, 0).into(), case.b.get(0, 0, col).into());
            let [y, ..] = half::activated(kind, [alpha * (a * b) as f32; 4]);
            T::nearest(y.into())
        };
        let want = (0..m).flat_map(|row| (0..n).map(move |col| (row, col)));
        let want = want.map(|(row, col)| value(row, col)).collect::<Vec<_>>();
        suite.each(|bench, kernel| {
            let c = bench.run(&case, Some(kernel)).unwrap();
            for (at, (got, want)) in c.iter().zip(&want).enumerate() {
                assert!(got == want, "{kernel}, {case}, element {at}: {got:?}, should be {want:?}");
            }
        });
    }
    suite.done("activation::sums_have_the_bits_of_the_function");
}

#[test]
fn sums_have_the_bits_of_the_function() {
    once!(crate::SOURCES);
    bits_of_sums::<Bf16>(Suite::new());
    bits_of_sums::<F16>(Suite::new());
}

/// The reference itself, at numbers whose results were computed with 60 digits.
#[test]
fn the_reference_is_right() {
    let of = |activation, numbers: &'static [(f64, f64)]| {
        numbers.iter().map(move |&(x, want)| (activation, x, want))
    };
    let all = of(Activation::Gelu, &GELU_IN_SIXTY_DIGITS)
        .chain(of(Activation::GeluTanh, &GELU_TANH_IN_SIXTY_DIGITS))
        .chain(of(Activation::Silu, &SILU_IN_SIXTY_DIGITS));
    for (activation, x, want) in all {
        let got = verify::activated(activation, x);
        assert!(
            (got - want).abs() <= 2.0 * ulp::<f64>(want).max(f64::from_bits(1)),
            "{activation}({x}) = {got}, not {want}"
        );
    }
}

/// x and `x Phi(x)`, by mpmath 1.3.
const GELU_IN_SIXTY_DIGITS: [(f64, f64); 16] = [
    (-38.5, -5.4e-323),
    (-38.25, -7.9548e-319),
    (-37.1, -5.2114813950124085e-300),
    (-30.0, -1.472014178144456e-196),
    (-22.7, -5.0847488950973965e-113),
    (-14.4, -3.725533332579239e-46),
    (-9.3, -6.530724343610712e-20),
    (-5.5, -1.0444259356238245e-07),
    (-3.1, -0.0029995699609769054),
    (-1.9, -0.05456146365040343),
    (-0.7, -0.1693745565561511),
    (-0.01, -0.004960106436853684),
    (-1e-300, -5e-301),
    (0.3, 0.1853734266566858),
    (1.4, 1.2869406770727205),
    (6.6, 6.599999999864318),
];

/// x and `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`, likewise.
const GELU_TANH_IN_SIXTY_DIGITS: [(f64, f64); 13] = [
    (-21.4, -6.26041e-318),
    (-20.5, -1.3502940601643467e-280),
    (-14.4, -4.425984005789322e-102),
    (-9.3, -3.954101914528499e-31),
    (-5.5, -5.927640263880262e-09),
    (-3.1, -0.002626610230549775),
    (-1.9, -0.05454876554466741),
    (-0.7, -0.16942986529488324),
    (-0.01, -0.0049601064401444276),
    (-1e-300, -5e-301),
    (0.3, 0.18537092354275925),
    (1.4, 1.2867080671611943),
    (6.6, 6.599999999999783),
];

/// x and `x / (1 + exp(-x))`, likewise.
const SILU_IN_SIXTY_DIGITS: [(f64, f64); 15] = [
    (-750.0, -1.5e-323),
    (-735.0, -4.569231e-317),
    (-700.1, -6.245875126994224e-302),
    (-300.7, -7.687457358276481e-129),
    (-88.3, -3.960572352926065e-37),
    (-14.4, -8.026416843632771e-06),
    (-5.5, -0.0223857574374287),
    (-1.9, -0.24720610128969592),
    (-0.7, -0.23226855948228373),
    (-0.01, -0.00497500020833125),
    (-1e-300, -5e-301),
    (0.3, 0.17233275504349768),
    (1.4, 1.1230574439820145),
    (6.6, 6.5910337683271685),
    (40.5, 40.5),
];
