//! Every kernel of the project, one idea a file.
//!
//! The same files are compiled twice: for `nvptx64` into the PTX that `gpu/ptx/` holds, and for the
//! machine at hand into what the CPU device runs. What they import is [`device`]: `simt`'s vocabulary.
//!
//! Dimensions are BLAS's: `C = A B`, A is `m x k`, B is `k x n`, C is `m x n`, all row-major, so that
//! element (i, j) of C stands at `i * n + j`.
//!
//! [`registry`] is the list of all kernels; whoever shows, tests or times kernels goes through it.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]

extern crate cuda_std as simt;

pub mod kernels;
pub mod problem;
#[cfg(not(target_arch = "nvptx64"))]
pub mod registry;

use simt::device;

/// The same kernels, compiled a second time for [`simt::check`].
#[cfg(not(target_arch = "nvptx64"))]
#[path = "."]
pub mod checked {
    use simt::checked as device;

    #[path = "kernels/mod.rs"]
    pub mod kernels;
}
