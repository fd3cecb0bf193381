//! Bias and activation.

use host::{Activation, Bf16, F16};
use tests::gemm::{Case, Data, INFINITY, NAN, Number, Order, Place, Random, Side, Suite};
use tests::once;

const ACTIVATIONS: [Activation; 5] = [
    Activation::Identity,
    Activation::Relu,
    Activation::Gelu,
    Activation::GeluTanh,
    Activation::Silu,
];
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
    once!(crate::SOURCES);
    combinations::<f32>(Suite::new());
    // On tensor cores, which take long on a CPU.
    combinations::<f64>(Suite::new().in_turns());
    combinations::<Bf16>(Suite::new().in_turns());
    combinations::<F16>(Suite::new().in_turns());
}

/// NaN and infinities in the bias and in C, with each activation.
#[test]
fn nan_and_infinity() {
    once!(crate::SOURCES);
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
                // All but the first map negative infinity to zero.
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
    once!(crate::SOURCES);
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
