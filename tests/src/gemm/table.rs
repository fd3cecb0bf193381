//! docs/testing/gemm.md: which test runs how many cases. The numbers there are what the tests are held to.

use crate::{everything, full};

/// The text.
pub const TABLE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/testing/gemm.md"));

/// The tests of the table and their cases, in its order. Of `60 of 500` the first is the number by default, and the other
/// that with `FULL=1`, and where a GPU is required.
pub fn cases() -> Vec<(&'static str, usize)> {
    let rows = TABLE.lines().filter(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let cases = cells.filter_map(|cells| {
        let [_, _, _, test, number, _] = cells[..] else { return None };
        let test = test.strip_prefix('`')?.strip_suffix('`')?;
        let number = match number.split_once(" of ") {
            Some((_, all)) if everything() || full() => all,
            Some((by_default, _)) => by_default,
            None => number,
        };
        let number = number.replace(',', "");
        Some((test, number.parse().unwrap_or_else(|_| panic!("{test} has {number} cases?"))))
    });
    cases.collect()
}

/// The test has run so many cases; the table says as many.
///
/// # Panics
/// Where it does not.
pub fn counted(test: &str, count: usize) {
    let (_, wanted) = cases()
        .into_iter()
        .find(|(name, _)| *name == test)
        .unwrap_or_else(|| panic!("docs/testing/gemm.md has no row for {test}, of {count} cases"));
    assert_eq!(
        count, wanted,
        "{test}: so many cases were run, and so many docs/testing/gemm.md says"
    );
}
