//! The command and its laboratory: products are timed, verified, checked and counted.
//!
//! The library is [`gpu_gemm`], which this crate re-exports: `host::Gemm` is its `Gemm`.
//!
//! # Modules
//! [`verify::compare`] compares a result with the product in float64. [`check`] finds races and
//! other errors of a kernel without a GPU. [`profile`] counts its memory accesses. [`timing`]
//! times. [`baseline`] calls cuBLAS, if it is there. [`phases`], [`picture`], [`padding`] and
//! [`blur`] are experiments of the course.
//!
//! # Features
//! `cli`, on by default: the command. `cuda`, on by default, and `npy`, `testing`: as in the
//! library. `baselines`: products by other crates on the CPU.

pub mod baseline;
pub mod blur;
pub mod check;
pub mod operands;
pub mod padding;
pub mod phases;
pub mod picture;
pub mod profile;
mod roof;
pub mod scaling;
pub mod timing;
pub mod verify;

pub use gpu_gemm::*;
pub use occupancy;
pub use roof::Roof;
