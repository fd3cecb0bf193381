//! Bias and activation.

use host::{Activation, Bf16, F16};
use tests::gemm::{
    Case, Data, INFINITY, NAN, Number, Operand, Order, Place, Random, Side, Suite, Want, counted,
};
use tests::passed::once;

const ACTIVATIONS: [Activation; 3] = [Activation::Identity, Activation::Relu, Activation::Gelu];
const SIDES: [Option<Side>; 3] = [None, Some(Side::Row), Some(Side::Col)];

/// Sizes that no tile divides; a single row and a single column, for which the layout does not
/// matter.
const SHAPES: [[usize; 3]; 4] = [[37, 70, 19], [1, 37, 5], [37, 1, 5], [65, 132, 0]];

fn combinations<T: Number>(mut suite: Suite<T>) {
    let mut random = Random::new(17);
    for (sizes @ [m, n, _], activation) in
        SHAPES.into_iter().flat_map(|sizes| ACTIVATIONS.map(|activation| (sizes, activation)))
    {
        for (side, order) in
            SIDES.into_iter().flat_map(|side| Order::BOTH.map(|order| (side, order)))
        {
            for beta in [0.0, 1.0, 1.3] {
                let case = Case::anywhere(sizes, Data::Uniform, &mut random);
                let case = case.c_at(Place::padded((m, n), order, 4)).activated(activation);
                let case = match side {
                    None => case,
                    Some(side) => case.biased(side, Data::Uniform, random.next()),
                };
                let c = suite.bounded(&match beta {
                    0.0 => case,
                    _ => case.scaled(0.7, beta, Data::Uniform, random.next()),
                });
                // Otherwise the activation would have no effect.
                let negative = c.iter().any(|&x| x.into() < 0.0);
                assert!(sizes != SHAPES[0] || negative == (activation != Activation::Relu));
            }
        }
    }
    suite.done("epilogue::every_bias_activation_and_order");
}

#[test]
fn every_bias_activation_and_order() {
    let Some(_note) = once("gemm::epilogue::every_bias_activation_and_order", crate::SOURCES)
    else {
        return;
    };
    combinations::<f32>(Suite::new());
    combinations::<f64>(Suite::new());
    // On tensor cores, which take long on a CPU.
    combinations::<Bf16>(Suite::new().in_turns());
    combinations::<F16>(Suite::new().in_turns());
}

/// NaN and infinities in the bias and in C, with each activation.
#[test]
fn nan_and_infinity() {
    let Some(_note) = once("gemm::epilogue::nan_and_infinity", crate::SOURCES) else { return };
    let mut suite = Suite::<f32>::new();
    for activation in ACTIVATIONS {
        for side in Side::BOTH {
            for value in [NAN, INFINITY, -INFINITY] {
                let case = Case::<f32>::dense([20, 20, 3], Data::Uniform, 18);
                let mut case = case.scaled(1.0, 1.0, Data::Uniform, 19).activated(activation);
                case = case.biased(side, Data::Uniform, 20);
                if let Some((_, bias)) = &mut case.bias {
                    bias[17] = value as f32;
                }
                case.c.set(0, 3, 5, value as f32);
                let c = suite.bounded(&case);
                let of_value = |x: &&f32| x.is_nan() || x.is_infinite();
                let changed = c.iter().filter(of_value).count();
                // ReLU and GELU map negative infinity to zero.
                let all_stay = activation == Activation::Identity || value != -INFINITY;
                assert_eq!(changed, if all_stay { 21 } else { 0 }, "{case}");
            }
        }
    }
    suite.done("epilogue::nan_and_infinity");
}

/// A negative zero stays negative with every activation.
#[test]
fn a_zero_keeps_its_sign() {
    let Some(_note) = once("gemm::epilogue::a_zero_keeps_its_sign", crate::SOURCES) else { return };
    let mut suite = Suite::<f32>::new();
    // -1 times a sum of zeros.
    let mut case =
        Case::<f32>::dense([3, 5, 1], Data::Uniform, 1).scaled(-1.0, 0.0, Data::Uniform, 2);
    (0..3).for_each(|row| case.a.set(0, row, 0, 0.0));
    (0..5).for_each(|col| case.b.set(0, 0, col, 1.0));
    for activation in ACTIVATIONS {
        let case = case.clone().activated(activation);
        suite.each(|bench, kernel| {
            let c = bench.run(&case, Some(kernel)).unwrap();
            assert!(c.iter().all(|x| *x == 0.0 && x.is_sign_negative()), "{kernel}, {case}: {c:?}");
        });
    }
    suite.done("epilogue::a_zero_keeps_its_sign");
}

/// Many numbers unchanged as input: `alpha = 0` and `beta = 1`.
fn gelu<T: Number>(largest: i32, smallest: i32) -> usize {
    let mut suite = Suite::<T>::new();
    // Sixty-four numbers for each power of two, of both signs, and densely where the curve bends.
    let powers = (smallest..=largest).flat_map(|power| (0..64).map(move |i| (power, f64::from(i))));
    let wide = powers.map(|(power, i)| (1.0 + i / 64.0) * 2f64.powi(power));
    let end = if T::SLACK == 1.0 { 14.5 } else { 39.0 };
    let dense = (0..8000).map(|i| end * f64::from(i) / 8000.0 + 1e-5 * f64::from(i % 7));
    let values = wide.chain(dense).flat_map(|x| [x, -x]).map(T::nearest).collect::<Vec<_>>();
    let (rows, cols) = (values.len() / 16, 16);
    let place = Place::dense((rows, cols), Order::Rows);
    let c = Operand::new((rows, cols), place, |_, row, col| values[row * cols + col]);
    let case = Case::<T>::dense([rows, cols, 0], Data::Uniform, 1).activated(Activation::Gelu);
    let case = Case { c, beta: 1.0, ..case };
    // The input is exact, so only GELU's own error counts. In f64 also the reference's.
    let ulps = if T::SLACK == 1.0 { 2.0 } else { 4.0 };
    let x = |at: usize| -> f64 { case.c.get(0, at / cols, at % cols).into() };
    let mut want = Want::bounded(&case);
    for (value, bound) in want.values.iter().zip(&mut want.bounds) {
        *bound = (ulps * ulp::<T>(*value)).max(T::TINY);
    }
    let c = suite.check(&case, &want);
    // For large |x| it is x or zero.
    for (at, &c) in c.iter().enumerate() {
        let far = if x(at) > 0.0 { x(at) } else { 0.0 };
        assert!(x(at).abs() <= end || c.into() == far, "GELU({:?}) = {c:?}", x(at));
    }
    values.len()
}

/// A unit in the last place of a number.
fn ulp<T: Number>(value: f64) -> f64 {
    let power = f64::from_bits(value.to_bits() & (0x7ff << 52));
    2.0 * T::U * power
}

/// GELU against the error function of another library, over all powers of two. The error is at most
/// two units in the last place of the result, however small. In f64 it is four, of which two are
/// the reference's.
#[test]
fn gelu_is_off_by_two_units() {
    let Some(_note) = once("gemm::epilogue::gelu_is_off_by_two_units", crate::SOURCES) else {
        return;
    };
    let numbers = gelu::<f32>(127, -148) + gelu::<f64>(1022, -1073);
    counted("epilogue::gelu_is_off_by_two_units", numbers);
}

/// The reference itself, at numbers whose GELU was computed with 60 digits.
#[test]
fn the_reference_of_gelu_is_right() {
    for (x, want) in GELU_IN_SIXTY_DIGITS {
        let got = tests::gemm::gelu(x);
        assert!(
            (got - want).abs() <= 2.0 * ulp::<f64>(want).max(f64::from_bits(1)),
            "GELU({x}) = {got}, not {want}"
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
