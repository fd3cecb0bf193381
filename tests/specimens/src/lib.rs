//! Small kernels that are wrong in one way each, and small correct kernels that look wrong.
//!
//! They test the checked launch. On a GPU they run under compute-sanitizer, so that the findings of
//! both can be compared. All take `(n, x, y)`, and y is `n` elements that were not written yet.
//!
//! This is also an example of a kernel crate outside the repository.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]

pub mod kernels;
#[cfg(not(target_arch = "nvptx64"))]
pub mod list;

use simt::device;

/// The same kernels, compiled a second time for [`simt::check`](mod@simt::check).
#[cfg(not(target_arch = "nvptx64"))]
#[path = "."]
pub mod checked {
    use simt::checked as device;

    #[path = "kernels/mod.rs"]
    pub mod kernels;
}
