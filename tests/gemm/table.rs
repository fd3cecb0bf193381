//! docs/testing/gemm.md names every test of this program, and no other.

use std::collections::BTreeSet;

use tests::gemm::cases;

/// The modules' texts.
const MODULES: &[(&str, &str)] = &[
    ("activation", include_str!("activation.rs")),
    ("algebra", include_str!("algebra.rs")),
    ("arguments", include_str!("arguments.rs")),
    ("batches", include_str!("batches.rs")),
    ("choice", include_str!("choice.rs")),
    ("cube", include_str!("cube.rs")),
    ("empty", include_str!("empty.rs")),
    ("epilogue", include_str!("epilogue.rs")),
    ("float8", include_str!("float8.rs")),
    ("integers", include_str!("integers.rs")),
    ("invariant", include_str!("invariant.rs")),
    ("memory", include_str!("memory.rs")),
    ("overlap", include_str!("overlap.rs")),
    ("partials", include_str!("partials.rs")),
    ("parts", include_str!("parts.rs")),
    ("places", include_str!("places.rs")),
    ("random", include_str!("random.rs")),
    ("recomputed", include_str!("recomputed.rs")),
    ("same_bits", include_str!("same_bits.rs")),
    ("scalars", include_str!("scalars.rs")),
    ("shapes", include_str!("shapes.rs")),
    ("sliced", include_str!("sliced.rs")),
    ("sliced_f16", include_str!("sliced_f16.rs")),
    ("special", include_str!("special.rs")),
    ("table", include_str!("table.rs")),
    ("tensor", include_str!("tensor.rs")),
    ("tf32", include_str!("tf32.rs")),
    ("threads", include_str!("threads.rs")),
    ("verification", include_str!("verification.rs")),
    ("wide", include_str!("wide.rs")),
];

/// The functions below `#[test]` in a module.
fn tests(text: &str) -> Vec<&str> {
    let below = text.lines().zip(text.lines().skip(1)).filter(|(line, _)| *line == "#[test]");
    below
        .map(|(_, line)| {
            line.strip_prefix("fn ").and_then(|line| line.strip_suffix("() {")).expect(line)
        })
        .collect()
}

#[test]
fn every_test_is_in_the_table() {
    let declared = include_str!("main.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    assert!(declared.eq(MODULES.iter().map(|(module, _)| *module)), "a module is missing here");
    let listed = cases();
    let names = listed.iter().map(|(test, _)| test.to_string()).collect::<BTreeSet<_>>();
    assert_eq!(names.len(), listed.len(), "a test is listed twice");
    let mut found = BTreeSet::new();
    let within = [
        ("float8::quantise", include_str!("float8/quantise.rs")),
        ("float8::scales", include_str!("float8/scales.rs")),
    ];
    for (module, text) in MODULES.iter().chain(&within) {
        for name in tests(text) {
            let test = format!("{module}::{name}");
            // A test with several cases counts them, under its name.
            let counts = text.contains(&format!("\"{test}\""));
            let one = listed.contains(&(&test, 1));
            assert!(counts || one, "{test} does not count its cases, or is not listed as one");
            found.insert(test);
        }
    }
    assert_eq!(found, names, "the tests that there are, and those of docs/testing/gemm.md");
}
