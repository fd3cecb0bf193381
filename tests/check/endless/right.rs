//! Correct kernels that wait and poll. x is 0, 1, 2 and so on. A kernel may use y after its results as it likes.

mod blocks;
mod clusters;
mod flags;
mod mbarriers;

use simt::checked::thread;

use super::Checked;

/// A kernel, the number of results that it writes to the beginning of y, and the value of each.
pub(super) struct Right {
    pub(super) kernel: &'static dyn Checked,
    pub(super) results: usize,
    pub(super) expected: fn(usize) -> f32,
}

const fn right(kernel: &'static dyn Checked, results: usize, expected: fn(usize) -> f32) -> Right {
    Right { kernel, results, expected }
}

/// The thread of 64, and its element of x and y.
#[inline(always)]
fn here() -> (usize, usize) {
    let t = thread::thread_idx_x() as usize;
    (t, thread::block_idx_x() as usize * 64 + t)
}

/// The number of the element that lies as far from the end of a part of 64 as that one from its beginning.
fn mirrored(i: usize) -> usize {
    i / 64 * 64 + 63 - i % 64
}

/// A test for each module: what is right is clean and right, in every order and with every number of workers.
macro_rules! tests {
    ($($name:ident: $module:ident)*) => {$(
        #[test]
        fn $name() {
            for Right { kernel, results, expected } in $module::ALL {
                super::each(*kernel, super::MOST_WAITS, super::orders(), |name, report, y| {
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

/// How many there are.
pub(super) fn count() -> usize {
    [blocks::ALL, clusters::ALL, mbarriers::ALL, flags::ALL].iter().map(|all| all.len()).sum()
}
