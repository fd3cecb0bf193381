//! Small kernels that are wrong in one way each, and small kernels that only look as if they were.
//!
//! They test the checked launch, and on a GPU they are run under compute-sanitizer, so that what the two
//! find can be compared. All take `(n, x, y)`, and y is `n` elements that nobody has written yet.
//!
//! This is also what a kernel crate of one's own looks like.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]

pub mod kernels;
#[cfg(not(target_arch = "nvptx64"))]
pub mod list;

use simt::device;

/// The same kernels, compiled a second time for [`simt::check`].
#[cfg(not(target_arch = "nvptx64"))]
#[path = "."]
pub mod checked {
    use simt::checked as device;

    #[path = "kernels/mod.rs"]
    pub mod kernels;
}
