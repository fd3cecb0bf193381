//! Kernels, and the PTX that was compiled from them.
//!
//! [`kernels`] is compiled three times: as plain functions for the CPU device, with every access
//! watched ([`checked`]), and to PTX by `cargo xtask build-ptx` of rust-gpu-gemm. So it takes its
//! words from `super::device`, and uses no `std`.

#![allow(clippy::duplicate_mod, reason = "`kernels` is compiled a second time, for the checker")]
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]

pub mod kernels;

use simt::device;

/// The same kernels for the checker.
#[cfg(not(target_arch = "nvptx64"))]
#[path = "."]
pub mod checked {
    use simt::checked as device;

    pub mod kernels;
}

/// The PTX for a GPU of that compute capability (major, minor). The driver compiles it for the GPU
/// when it is loaded.
///
/// PTX for `sm_80` runs on every GPU from 8.0 on. PTX for `sm_90a` may use what only Hopper has,
/// and runs on 9.0 alone.
#[cfg(not(target_arch = "nvptx64"))]
pub fn ptx(capability: (u32, u32)) -> &'static str {
    match capability {
        (9, 0) => include_str!("../ptx/mykernels.sm_90a.ptx"),
        _ => include_str!("../ptx/mykernels.sm_80.ptx"),
    }
}
