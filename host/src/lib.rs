//! The command and its laboratory: products timed, verified, checked and counted.
//!
//! The library is [`gpu_gemm`], which this crate re-exports: `host::Gemm` is its `Gemm`.
//!
//! # The house
//! [`verify::compare`] holds a result against the product in float64. [`check`] holds a kernel against what CUDA demands of one,
//! without a GPU, and [`profile`] counts what it does to memory. [`timing`] times, and [`baseline`] calls cuBLAS, where it is, to
//! compare with. [`phases`], [`padding`] and [`blur`] are experiments of the course.
//!
//! # Features
//! `cli`, on by default: what the command needs. `cuda`, on by default, and `npy`, `testing`: the library's. `baselines`: other
//! people's products on the CPU.

pub mod baseline;
pub mod blur;
pub mod check;
pub mod operands;
pub mod padding;
pub mod phases;
pub mod profile;
mod roof;
pub mod timing;
pub mod verify;

pub use gpu_gemm::*;
pub use occupancy;
pub use roof::Roof;
