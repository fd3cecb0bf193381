//! The launch that adds partial products: right and clean in every order, for any size, number and
//! epilogue.

use std::{any::TypeId, fmt::Debug};

use gpu::{
    checked::kernels::reduce::{reduce_f32, reduce_f64, reduce_half, reduce_i32},
    kernels::reduce::{BLOCK, COLS},
    params::{COL_BIAS, GemmParams, NO_BIAS, RELU, ROW_BIAS},
};
use simt::{
    Bf16, Constants, Element, F16, Kernel, LaunchConfig,
    check::{self, Options, Order},
    checked::{In, Out},
};

/// m, n, partial products, rows of blocks. Some have fewer rows of blocks than rows.
const CASES: [(usize, usize, usize, u32); 6] =
    [(1, 1, 2, 1), (3, 5, 8, 3), (2, 128, 9, 1), (5, 130, 17, 2), (1, 515, 3, 1), (7, 4, 256, 7)];

/// Element i of a partial product: small integers, so that all sums are exact.
fn partial(number: usize, i: usize) -> f32 {
    ((number * 7 + i * 3) % 11) as f32 - 5.0
}

/// The old C, and the bias.
fn before(i: usize) -> f32 {
    (i % 5) as f32
}

/// Element (row, col) of C: `relu(2 sum - C + bias)`, or the sum alone.
fn expected((n, count): (usize, usize), bias: u32, i: usize) -> f32 {
    let sum = (0..count).map(|number| partial(number, i)).sum::<f32>();
    match bias {
        NO_BIAS => sum,
        ROW_BIAS => (2.0 * sum - before(i) + before(i / n)).max(0.0),
        _ => (2.0 * sum - before(i) + before(i % n)).max(0.0),
    }
}

fn config(m: usize, n: usize, rows: u32) -> LaunchConfig {
    LaunchConfig::new([n.div_ceil(COLS) as u32, rows.min(m as u32), 1], BLOCK)
}

fn params(m: usize, n: usize, bias: u32) -> GemmParams {
    let plain = GemmParams::dense(m as u32, n as u32, 1);
    match bias {
        NO_BIAS => plain,
        _ => GemmParams { bias, activation: RELU, alpha: 2.0, beta: -1.0, ..plain },
    }
}

type Params<P, O> = (GemmParams, u32, In<P>, Out<O>, In<O>);

/// Adds partial products of `P` with that kernel, whose C is of `O`. It is stored as `S`, which
/// rounds to the nearest.
fn reduces<P: Element, O: Element, S: Copy + PartialEq + Debug>(
    kernel: &Kernel<Params<P, O>>,
    constants: Constants,
    of_sums: fn(f32) -> P,
    stored: fn(f32) -> S,
) -> usize {
    // Sums of integers have no bias and no activation.
    let biases = if TypeId::of::<P>() == TypeId::of::<i32>() { 1 } else { 3 };
    let mut runs = 0;
    for (m, n, count, rows) in CASES {
        let partials = (0..count * m * n).map(|i| partial(i / (m * n), i % (m * n)));
        let partials = partials.map(of_sums).collect::<Vec<_>>();
        let of_bias = (0..m.max(n)).map(|i| stored(before(i))).collect::<Vec<_>>();
        for bias in [NO_BIAS, ROW_BIAS, COL_BIAS].into_iter().take(biases) {
            for order in [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)] {
                let mut options = Options::default();
                options.order = order;
                let config = LaunchConfig { constants, ..config(m, n, rows) };
                let mut c = (0..m * n).map(|i| stored(before(i))).collect::<Vec<_>>();
                // SAFETY: the vectors outlive the launch, and nobody else uses them; `S` has the
                // bits of `O`.
                let report = unsafe {
                    let partials = In::new(partials.as_ptr(), partials.len());
                    let c = Out::new(c.as_mut_ptr().cast::<O>(), c.len());
                    let biases = In::new(of_bias.as_ptr().cast::<O>(), of_bias.len());
                    let params = (params(m, n, bias), count as u32, partials, c, biases);
                    check::launch(kernel, &config, params, &options)
                };
                let report = report.expect("not cancelled");
                let context = format!("{m} x {n}, {count} of them, bias {bias}, {order}");
                assert!(report.is_clean(), "{context}: {report}");
                for (i, &got) in c.iter().enumerate() {
                    let wanted = stored(expected((n, count), bias, i));
                    assert_eq!(got, wanted, "{context}: element {i}");
                }
                runs += 1;
            }
        }
    }
    runs
}

#[test]
fn partial_products_are_added() {
    assert_eq!(reduces(&reduce_f32, Constants::NONE, |value| value, |value| value), 72);
    assert_eq!(reduces(&reduce_f64, Constants::NONE, f64::from, f64::from), 72);
    let i32s = |value| value as i32;
    assert_eq!(reduces(&reduce_i32, Constants::NONE, i32s, i32s), 24);
    let half = |word| Constants::NONE.with_word("half", word);
    assert_eq!(reduces(&reduce_half, half("bf16"), |value| value, Bf16::from_f32), 72);
    assert_eq!(reduces(&reduce_half, half("f16"), |value| value, F16::from_f32), 72);
}
