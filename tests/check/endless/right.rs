//! Correct kernels that wait and poll. x is 0, 1, 2 and so on. After its results a kernel may use y
//! freely.

#![allow(unused_mut, reason = "not all write to y and to the words")]

mod blocks;
mod clusters;
mod flags;
mod kernel;
mod mbarriers;

use self::kernel::Right;
use super::launches::{MOST_WAITS, each, orders};

/// A test for each module: correct kernels have no findings and right results, in every order and
/// with every number of workers.
macro_rules! tests {
    ($($name:ident: $module:ident)*) => {$(
        #[test]
        fn $name() {
            for Right { kernel, results, expected } in $module::ALL {
                each(*kernel, MOST_WAITS, orders(), |name, report, y| {
                    assert!(report.is_clean(), "{name}: {report}");
                    for (i, &got) in y[..*results].iter().enumerate() {
                        assert_eq!(got, expected(i), "{name}: element {i}");
                    }
                });
            }
        }
    )*};
}

tests! {
    barriers_and_warps: blocks
    blocks_of_a_cluster: clusters
    phases_and_copies: mbarriers
    flags_of_the_grid: flags
}

/// The number of kernels.
pub(super) fn count() -> usize {
    [blocks::ALL, clusters::ALL, mbarriers::ALL, flags::ALL].iter().map(|all| all.len()).sum()
}
