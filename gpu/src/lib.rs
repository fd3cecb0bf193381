//! The project's kernels.
//!
//! * [`lessons`]: the kernels of the course, one idea a file.
//! * [`collective`]: what families of fast kernels share. All families have its epilogue. Only
//!   `wgmma`, `wgmma_tf32` and `emulated` have its tile scheduler and TMA operands: in `gemm`,
//!   `mma` and `tma` the block index says which tile of C a CTA computes.
//! * [`kernels`]: the fast kernels, a folder a family: its main loop and its table of kernels.
//! * [`registry`]: the list of all kernels. Commands, tests and benchmarks find kernels there.
//! * [`params`]: the parameters of a GEMM kernel besides its matrices.
//!
//! Kernel files are compiled twice: for `nvptx64`, which gives the PTX in `gpu/ptx/`, and for the
//! host, where the CPU device runs them. They import [`device`], the vocabulary of `simt`.
//!
//! Dimensions are those of BLAS: `C = A B`, where A is `m x k`, B is `k x n`, C is `m x n`. In the
//! lessons all three are row-major: element (i, j) of C is at `i * n + j`.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]
// Without the CPU device the kernels' bodies are left out, and all uses of what they call.
#![cfg_attr(not(any(feature = "cpu", target_arch = "nvptx64")), allow(unused))]

// The device library. Cargo.toml names it `cuda_std` so that a file in Rust-CUDA's idiom compiles
// unchanged (`lessons::rust_cuda`); all other files call it `simt`.
extern crate cuda_std as simt;

#[macro_use]
mod table;

pub mod collective;
pub mod kernels;
pub mod lessons;
pub mod params;
#[cfg(not(target_arch = "nvptx64"))]
pub mod registry;

use simt::device;

/// The same files, compiled a second time for [`simt::check`](mod@simt::check).
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
#[path = "."]
pub mod checked {
    use simt::checked as device;

    // The list is that of `kernels` outside, whose rows name these kernels, too.
    macro_rules! designs {
        ($($row:tt)*) => {};
    }

    #[path = "collective/mod.rs"]
    pub mod collective;
    #[path = "kernels/mod.rs"]
    pub mod kernels;
    #[path = "lessons/mod.rs"]
    pub mod lessons;
}
