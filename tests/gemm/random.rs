//! Random cases: sizes, places, scalars, biases, activations and batches. A failing case is shrunk,
//! and its seed is kept in `proptest-regressions/`, to be run first from then on.

use std::cell::{Cell, RefCell};

use gpu::{
    collective::activation::half,
    params::{GELU, GELU_TANH, SILU},
};
use host::{Activation, Bf16, F16, gemm::Scalar};
use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, FileFailurePersistence, TestError, TestRunner},
};
use tests::{
    devices, everything, full,
    gemm::{Bench, Case, Data, Number, Operand, Order, Place, Random, Side, Suite, bytes, counted},
};

/// The number of cases of a test.
fn cases() -> u32 {
    if everything() || full() { 500 } else { 60 }
}

/// A size: zero, one, about a tile, a prime, or any up to a little more than three tiles of 32.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        1 => Just(0),
        2 => Just(1),
        4 => select(&[3, 4, 8, 31, 32, 33, 63, 64, 65, 127, 128, 129][..]),
        4 => 2usize..=100,
    ]
}

/// A place for a matrix that is written, or read.
fn place(random: &mut Random, size: (usize, usize), count: Option<usize>, read: bool) -> Place {
    let order = random.choose(&Order::BOTH);
    let place = match random.below(if read { 4 } else { 3 }) {
        0 => Place::dense(size, order),
        1 => Place::padded(size, order, random.below(9)),
        2 => {
            let apart = 1 + random.below(4);
            let run = if order == Order::Rows { size.1 } else { size.0 };
            let between = run.max(1) * apart + random.below(5);
            Place::strided(if order == Order::Rows { [between, apart] } else { [apart, between] })
        }
        _ => Place::strided([random.below(6), random.below(6)]),
    };
    let step = match random.below(4) {
        0 if read => 0,
        1 if read => random.below(7),
        _ => place.extent(size) + random.below(5),
    };
    let place = match count {
        None => place,
        Some(count) => place.batch(count, step),
    };
    let place = place.at(random.below(5));
    if random.below(2) == 0 { place } else { place.transposed() }
}

/// A case of these sizes. Everything else is drawn from the seed.
fn case<T: Number>([m, n, k]: [usize; 3], seed: u64, exact: bool) -> Case<T> {
    let random = &mut Random::new(seed);
    let data = if exact { Data::exact(k) } else { Data::Uniform };
    let count = if random.below(3) == 0 { Some(random.below(4)) } else { None };
    let a = Operand::draw((m, k), place(random, (m, k), count, true), data, random.next());
    let b = Operand::draw((k, n), place(random, (k, n), count, true), data, random.next());
    let case = Case::plain(a, b, place(random, (m, n), count, false));
    let scalars = if exact { [0.0, 1.0, -1.0, 2.0, 0.5] } else { [0.0, 1.0, -1.0, 0.7, -1.3] };
    let (alpha, beta) = (random.choose(&scalars), random.choose(&scalars));
    let case = match beta {
        0.0 => Case { alpha, ..case },
        _ => case.scaled(alpha, beta, data, random.next()),
    };
    let case = match random.below(3) {
        0 => case,
        1 => case.biased(Side::Row, data, random.next()),
        _ => case.biased(Side::Col, data, random.next()),
    };
    let activations = [
        Activation::Identity,
        Activation::Relu,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::Silu,
    ];
    case.activated(activations[random.below(if exact { 2 } else { 5 })])
}

/// Runs this number of cases, or `PROPTEST_CASES`.
fn anything<T: Number>(test: &str, regressions: &'static str, exact: bool) {
    let config = Config {
        cases: std::env::var_os("PROPTEST_CASES").map_or_else(cases, |_| Config::default().cases),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(regressions))),
        ..Config::default()
    };
    let cases = config.cases as usize;
    let (suite, checked) = (RefCell::new(Suite::<T>::new()), Cell::new(0));
    let outcome =
        TestRunner::new(config).run(&([size(), size(), size()], any::<u64>()), |(sizes, seed)| {
            let case = case::<T>(sizes, seed, exact);
            match exact {
                true => suite.borrow_mut().exact(&case),
                false => suite.borrow_mut().bounded(&case),
            };
            checked.set(checked.get() + 1);
            Ok(())
        });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("{why}\nsizes and seed: {case:?}"),
        Err(other) => panic!("{other}"),
    }
    // The regressions come on top of the cases.
    assert!(checked.get() >= cases, "{} of {cases}", checked.get());
    counted(test, self::cases() as usize);
}

/// The file of a property's regressions.
macro_rules! regressions {
    ($name:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/gemm_", $name, ".txt")
    };
}

#[test]
fn anything_exact() {
    anything::<f32>("random::anything_exact", regressions!("exact"), true);
}

#[test]
fn anything_within_the_bound() {
    anything::<f32>("random::anything_within_the_bound", regressions!("bound"), false);
}

#[test]
fn anything_of_f64_exact() {
    anything::<f64>("random::anything_of_f64_exact", regressions!("f64_exact"), true);
}

#[test]
fn anything_of_f64_within_the_bound() {
    anything::<f64>("random::anything_of_f64_within_the_bound", regressions!("f64_bound"), false);
}

#[test]
fn anything_of_bf16_exact() {
    anything::<Bf16>("random::anything_of_bf16_exact", regressions!("bf16_exact"), true);
}

#[test]
fn anything_of_bf16_within_the_bound() {
    let regressions = regressions!("bf16_bound");
    anything::<Bf16>("random::anything_of_bf16_within_the_bound", regressions, false);
}

#[test]
fn anything_of_f16_exact() {
    anything::<F16>("random::anything_of_f16_exact", regressions!("f16_exact"), true);
}

#[test]
fn anything_of_f16_within_the_bound() {
    let regressions = regressions!("f16_bound");
    anything::<F16>("random::anything_of_f16_within_the_bound", regressions, false);
}

/// With C of f32, a product of 16-bit numbers has the bits of the same product in f32. With C of
/// their type, those bits rounded once, except that smooth activations are those of 16 bits. The
/// kernels are those of either C.
fn that_of_f32<T: Number<Sum = f32> + Scalar<f32>>([own, wide]: [&str; 2]) -> usize {
    let mut checked = 0;
    for device in devices() {
        let mut of_own = Bench::<T>::new(&device);
        let mut of_both = Bench::<T, f32>::of_types(&device);
        let mut of_f32 = Bench::<f32>::new(&device);
        let mut random = Random::new(3);
        let sizes = [0, 1, 3, 16, 17, 33, 64, 65, 100, 129];
        for _ in 0..cases() {
            let sizes = [random.choose(&sizes), random.choose(&sizes), random.choose(&sizes)];
            let narrow = case::<T>(sizes, random.next(), false);
            let both = narrow.widened();
            let (a, b) = (both.a.widened(), both.b.widened());
            let Case { c, alpha, beta, bias, activation, .. } = both.clone();
            let in_f32 = Case { a, b, c, alpha, beta, bias, activation };
            let want = of_f32.run(&in_f32, Some("gemm_f32_64x64x16")).unwrap();
            let found = of_both.run(&both, Some(wide)).unwrap();
            assert!(same(&found, &want), "{device}: {both}");
            let found = of_own.run(&narrow, Some(own)).unwrap();
            let kind = match narrow.activation {
                Activation::Gelu => Some(GELU),
                Activation::GeluTanh => Some(GELU_TANH),
                Activation::Silu => Some(SILU),
                _ => None,
            };
            let want = match kind {
                None => want,
                Some(kind) => {
                    let plain = in_f32.activated(Activation::Identity);
                    let sums = of_f32.run(&plain, Some("gemm_f32_64x64x16")).unwrap();
                    sums.into_iter().map(|x| half::activated(kind, [x; 4])[0]).collect()
                }
            };
            let want = want.into_iter().map(T::narrowed).collect::<Vec<_>>();
            assert!(same(&found, &want), "{device}: {narrow}");
            checked += 1;
        }
    }
    checked / devices().len()
}

#[test]
fn anything_of_bf16_is_that_of_f32() {
    let checked = that_of_f32::<Bf16>(["gemm_bf16_64x64x16", "gemm_bf16_f32_64x64x16"]);
    counted("random::anything_of_bf16_is_that_of_f32", checked);
}

#[test]
fn anything_of_f16_is_that_of_f32() {
    let checked = that_of_f32::<F16>(["gemm_f16_64x64x16", "gemm_f16_f32_64x64x16"]);
    counted("random::anything_of_f16_is_that_of_f32", checked);
}

/// Whether the bits are the same, except for NaN.
fn same<T: Number>(found: &[T], want: &[T]) -> bool {
    let nan = |x: &T| -> bool { (*x).into().is_nan() };
    let same = |x: &T, y: &T| nan(x) && nan(y) || bytes(&[*x]) == bytes(&[*y]);
    found.len() == want.len() && found.iter().zip(want).all(|(x, y)| same(x, y))
}
