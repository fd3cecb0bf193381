//! The programs of README and of the guide are compiled and run.

#[doc = include_str!("../../README.md")]
mod readme {}

#[doc = include_str!("../../docs/guide/gemm.md")]
mod gemm {}

// Parts of a separate crate, which are marked not to be compiled here.
#[doc = include_str!("../../docs/guide/your-kernel.md")]
mod your_kernel {}
