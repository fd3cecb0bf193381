//! Random sizes and values. A failing case is shrunk, and its seed is kept in
//! `proptest-regressions/`, to be run first from then on.

use std::cell::Cell;

use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, FileFailurePersistence, TestError, TestRunner},
};
use tests::{devices, products};

use crate::check::{Data, check_all, shape};

/// A size: zero, one, about a tile, a prime, or any up to a little more than three tiles of 32.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        1 => Just(0),
        1 => Just(1),
        4 => select(&[15, 16, 17, 31, 32, 33, 63, 64, 65][..]),
        4 => select(&[2, 3, 5, 7, 11, 13, 37, 61, 97, 101, 127][..]),
        4 => 2usize..=100,
    ]
}

/// A size of at least two tiles: a grid has several blocks along its axis, and a sum several
/// phases.
fn large() -> impl Strategy<Value = usize> {
    33usize..=130
}

/// Checks `cases` (or `PROPTEST_CASES`) random products with every kernel on every device.
fn check_random<S: Strategy<Value = [usize; 3]>>(
    regressions: &'static str,
    data: Data,
    cases: u32,
    sizes: S,
) {
    let from_environment = Config::default().cases;
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { from_environment } else { cases };
    let config = Config {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(regressions))),
        ..Config::default()
    };
    let (devices, checked) = (devices(), Cell::new(0));
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&(sizes, any::<u64>()), |([m, n, k], seed)| {
        for device in &devices {
            let count = check_all(device, shape(m, n, k), data, seed);
            checked.set(checked.get() + count.map_err(TestCaseError::fail)?);
        }
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("{why}\nsizes and seed: {case:?}"),
        Err(other) => panic!("{other}"),
    }
    // The regressions are run in addition to the cases.
    let expected = cases as usize * products().len() * devices.len();
    assert!(checked.get() >= expected, "{} of {expected} products", checked.get());
}

/// The file of a property's regressions.
macro_rules! regressions {
    ($name:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/", $name, ".txt")
    };
}

#[test]
fn any_sizes_exact() {
    check_random(regressions!("any_sizes_exact"), Data::Integers, 64, [size(), size(), size()]);
}

#[test]
fn many_blocks_exact() {
    check_random(
        regressions!("many_blocks_exact"),
        Data::Integers,
        32,
        [large(), large(), large()],
    );
}

#[test]
fn any_sizes_within_the_bound() {
    let sizes = [size(), size(), size()];
    check_random(regressions!("any_sizes_within_the_bound"), Data::Uniform, 48, sizes);
}

#[test]
fn many_blocks_within_the_bound() {
    let sizes = [large(), large(), large()];
    check_random(regressions!("many_blocks_within_the_bound"), Data::Uniform, 32, sizes);
}
