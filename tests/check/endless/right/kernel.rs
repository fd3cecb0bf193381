//! The description of a correct kernel, and what such kernels share.

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

/// Kernels, with the thread and, in blocks of 64, its element of x and y.
macro_rules! kernels {
    ($(
        $(#[$doc:meta])*
        $name:ident($($attribute:tt)*):
            |$t:ident, $i:ident, $x:ident: $of_x:ident<f32>, $y:ident: $of_y:ident<f32>,
            $words:ident| $body:block
    )*) => {$(
        $(#[$doc])*
        #[kernel($($attribute)*)]
        fn $name($x: $of_x<f32>, mut $y: $of_y<f32>, mut $words: Out<u32>) {
            let $t = thread::thread_idx_x() as usize;
            let $i = thread::block_idx_x() as usize * 64 + $t;
            $body
        }
    )*};
}
pub(super) use kernels;

/// The index mirrored within its part of 64 elements.
pub(super) fn mirrored(i: usize) -> usize {
    i / 64 * 64 + 63 - i % 64
}
