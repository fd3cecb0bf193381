//! A call that failed.

/// A call of the driver that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The driver's function, under its linker name: `cuMemAlloc_v2`.
    pub function: &'static str,
    /// Its result as the driver returned it, also where `cust` was given 999 in its place.
    pub code: i32,
}
