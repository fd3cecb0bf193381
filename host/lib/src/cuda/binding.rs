//! How this layer reaches the driver: by the functions of `cuda-dyn`, or with the feature `cust`
//! through that crate.
//!
//! Both have the same types and functions by the same names, so the rest of the layer does not know
//! which it is. `cuLaunchKernelEx` and `cuTensorMapEncodeTiled`, which `cust` does not have, are
//! `cuda-dyn`'s in either case.

#[cfg(not(feature = "cust"))]
mod own;
#[cfg(feature = "cust")]
mod through_cust;

#[cfg(not(feature = "cust"))]
pub(super) use own::*;
#[cfg(feature = "cust")]
pub(super) use through_cust::*;
