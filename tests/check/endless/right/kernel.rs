//! The description of a correct kernel, and what such kernels share.

use simt::checked::thread;

use crate::endless::launches::Checked;

/// A kernel, the number of results that it writes to the start of y, and the value of each.
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

/// The thread, of 64, and its element of x and y.
#[inline(always)]
pub(super) fn here() -> (usize, usize) {
    let t = thread::thread_idx_x() as usize;
    (t, thread::block_idx_x() as usize * 64 + t)
}

/// The index mirrored within its part of 64 elements.
pub(super) fn mirrored(i: usize) -> usize {
    i / 64 * 64 + 63 - i % 64
}
