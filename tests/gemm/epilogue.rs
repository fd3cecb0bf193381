//! Bias and activation.

use host::{Activation, Bf16, F16};
use tests::gemm::{
    Case, Data, INFINITY, NAN, Number, Operand, Order, Place, Random, Side, Suite, Want, counted,
};
use tests::passed::once;

const ACTIVATIONS: [Activation; 3] = [Activation::Identity, Activation::Relu, Activation::Gelu];
const SIDES: [Option<Side>; 3] = [None, Some(Side::Row), Some(Side::Col)];

/// Sizes that no tile divides; a single row and a single column, of which it does not show how they lie.
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
                // Else the activation would have had nothing to do.
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
    // On tensor cores, which a CPU takes long for.
    combinations::<Bf16>(Suite::new().in_turns());
    combinations::<F16>(Suite::new().in_turns());
}

/// NaN and infinities in the bias, in C, under each activation.
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
                // ReLU makes zeros of the negative ones.
                let all_stay = activation != Activation::Relu || value != -INFINITY;
                assert_eq!(changed, if all_stay { 21 } else { 0 }, "{case}");
            }
        }
    }
    suite.done("epilogue::nan_and_infinity");
}

/// Each number of a wide choice, as it is: `alpha = 0` and `beta = 1`.
fn gelu<T: Number>(largest: i32, smallest: i32) -> usize {
    let mut suite = Suite::<T>::new();
    // Sixty-four numbers of each power of two, of both signs; and densely where the curve is.
    let powers = (smallest..=largest).flat_map(|power| (0..64).map(move |i| (power, f64::from(i))));
    let wide = powers.map(|(power, i)| (1.0 + i / 64.0) * 2f64.powi(power));
    let dense = (0..8000).map(|i| f64::from(i) / 1000.0 + 1e-5 * f64::from(i % 7));
    let values = wide.chain(dense).flat_map(|x| [x, -x]).map(T::nearest).collect::<Vec<_>>();
    let (rows, cols) = (values.len() / 16, 16);
    let place = Place::dense((rows, cols), Order::Rows);
    let c = Operand::new((rows, cols), place, |_, row, col| values[row * cols + col]);
    let case = Case::<T>::dense([rows, cols, 0], Data::Uniform, 1).activated(Activation::Gelu);
    let case = Case { c, beta: 1.0, ..case };
    // The number itself is not off at all, so that only GELU's own error counts; in f64 the reference's, too, which
    // has a product and an error function of less than a unit in the last place.
    let roundings = if T::SLACK == 1.0 { 4.0 } else { 6.0 };
    let x = |at: usize| -> f64 { case.c.get(0, at / cols, at % cols).into() };
    let mut want = Want::bounded(&case);
    for (at, bound) in want.bounds.iter_mut().enumerate() {
        *bound = roundings * T::U * x(at).abs() + 2.0 * T::TINY;
    }
    let c = suite.check(&case, &want);
    // Far out it is x, or nothing.
    for (at, &c) in c.iter().enumerate() {
        let far = if x(at) > 0.0 { x(at) } else { 0.0 };
        assert!(x(at).abs() <= 8.5 || c.into() == far, "GELU({:?}) = {c:?}", x(at));
    }
    values.len()
}

/// GELU against the error function of another library, over all powers of two: off by at most four roundings of its
/// argument. (What can be said without trying is in `tests/src/gemm/want.rs`.)
#[test]
fn gelu_is_off_by_a_few_roundings() {
    let Some(_note) = once("gemm::epilogue::gelu_is_off_by_a_few_roundings", crate::SOURCES) else {
        return;
    };
    let numbers = gelu::<f32>(127, -148) + gelu::<f64>(1022, -1073);
    counted("epilogue::gelu_is_off_by_a_few_roundings", numbers);
}
