//! docs/testing/gemm.md: the number of cases of each test. The tests check these numbers.

use host::Device;

use crate::{devices, everything, full};

/// The text.
pub const TABLE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/testing/gemm.md"));

/// The tests of the table and their cases, in order. Of `60 of 500` the first is the number by
/// default. The second is for `FULL=1`, and if a GPU is required.
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

/// Checks that the test has run the number of cases in the table.
///
/// # Panics
/// If the number differs.
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

/// Runs a test on every device, which counts its cases, and checks the number for a device.
///
/// # Panics
/// As [`counted`].
pub fn each_device(test: &str, mut run: impl FnMut(Device, &mut usize)) {
    let (devices, mut count) = (devices(), 0);
    for device in &devices {
        run(device.clone(), &mut count);
    }
    counted(test, count / devices.len());
}
