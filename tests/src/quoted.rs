//! The programs of README and of the guide are compiled and run.

#[doc = include_str!("../../README.md")]
mod readme {}

#[doc = include_str!("../../docs/guide/gemm.md")]
mod gemm {}
