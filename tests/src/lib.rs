//! What the tests share: the devices under test, products between guard bands, references.
//!
//! `Cargo.toml` lists the tests, each with its purpose. They run on the CPU device and on every
//! CUDA device. Without a CUDA device, skipped runs are counted, and reported at the end of each
//! test program. `REQUIRE_GPU=1` makes that a failure. Of similar kernels each case runs one or
//! few, in turn. That is also reported at the end, and `FULL=1` runs all.

pub mod beside;
mod devices;
pub mod does_not_compile;
pub mod gemm;
mod guarded;
pub mod invariant;
pub mod kernels;
pub mod passed;
mod products;
#[cfg(doctest)]
mod quoted;
pub mod reference;
pub mod scratch;
mod skip;
mod thin;

pub use devices::{cuda_devices, devices, full, hoppers, streams};
pub use guarded::multiply_guarded;
pub use products::products;
pub use skip::skip;
pub use thin::{Turns, everything, ran};
