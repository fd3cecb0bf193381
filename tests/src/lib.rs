//! What the tests share: the devices under test, products between guard bands, references.
//!
//! The tests themselves are listed in `Cargo.toml`, each with what it is for. They run on the CPU device
//! and on every CUDA device there is. Without one, what was left out is counted and told at the end of
//! each test program; `REQUIRE_GPU=1` makes that a failure. Of kernels that differ little each case has one or few, in turn:
//! that is told at the end, too, and `FULL=1` runs all.

pub mod beside;
mod devices;
pub mod does_not_compile;
pub mod gemm;
mod guarded;
pub mod kernels;
pub mod passed;
mod products;
#[cfg(doctest)]
mod quoted;
pub mod reference;
pub mod scratch;
mod skip;
mod thin;

pub use devices::{cuda_devices, devices, full};
pub use guarded::multiply_guarded;
pub use products::products;
pub use skip::skip;
pub use thin::{Turns, everything, ran};
