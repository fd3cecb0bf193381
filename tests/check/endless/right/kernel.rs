//! A correct kernel, and what such kernels share.

use simt::checked::thread;

use crate::endless::launches::Checked;

/// A kernel, the number of results that it writes to the beginning of y, and the value of each.
pub(super) struct Right {
    pub(super) kernel: &'static dyn Checked,
    pub(super) results: usize,
    pub(super) expected: fn(usize) -> f32,
}

pub(super) const fn right(
    kernel: &'static dyn Checked,
    results: usize,
    expected: fn(usize) -> f32,
) -> Right {
    Right { kernel, results, expected }
}

/// The thread of 64, and its element of x and y.
#[inline(always)]
pub(super) fn here() -> (usize, usize) {
    let t = thread::thread_idx_x() as usize;
    (t, thread::block_idx_x() as usize * 64 + t)
}

/// The number of the element that lies as far from the end of a part of 64 as that one from its beginning.
pub(super) fn mirrored(i: usize) -> usize {
    i / 64 * 64 + 63 - i % 64
}
