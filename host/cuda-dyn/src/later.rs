//! Functions that came after CUDA 11.4, whose bindings `cust_raw`'s are: their types are declared here.
//!
//! Nobody declares these as external, so they are no symbols of the program: call them by their path.

#![allow(
    non_snake_case,
    reason = "these are the driver's names, by which its documentation has them"
)]

use crate::launch_config::CUlaunchConfig;
use crate::library::call;
use crate::tensor_map::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
use cust_raw::{CUfunction, CUresult};
use std::ffi::c_void;

/// Defines each function as a call of the driver's, and notes the CUDA version that it came with.
macro_rules! later {
    ($(
        $(#[$attribute:meta])*
        since $version:tt fn $name:ident($($argument:ident: $type:ty),* $(,)?);
    )*) => {
        $(
            $(#[$attribute])*
            pub unsafe fn $name($($argument: $type),*) -> CUresult {
                // SAFETY: the driver's function of that name has these arguments, after NVIDIA's
                // documentation, and an int for its result. What it asks of them the caller promises.
                unsafe { call!($name($($argument: $type),*)) }
            }
        )*

        /// The CUDA version (major, minor) that a function here came with, where that is later than 11.4. A driver of
        /// an older one lacks it.
        pub fn since(function: &str) -> Option<(u32, u32)> {
            match function {
                $(stringify!($name) => Some($version),)*
                _ => None,
            }
        }
    };
}

later! {
    /// Launches a kernel as `cuLaunchKernel` does, with attributes besides.
    ///
    /// # Safety
    /// 1. `config` and the attributes that it points to are there, as many as it says.
    /// 2. `function` is a kernel whose module is loaded. `params` has a pointer for each of its parameters, in order,
    ///    to a value of that parameter's size; `extra` is null.
    /// 3. What the kernel does with these values is sound.
    since (11, 8) fn cuLaunchKernelEx(
        config: *const CUlaunchConfig,
        function: CUfunction,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    );

    /// Encodes the description of a tensor of `rank` dimensions, innermost first, and of the boxes in which TMA
    /// copies it. It is refused with `CUDA_ERROR_INVALID_VALUE` where TMA cannot.
    ///
    /// # Safety
    /// 1. `extents`, `box_extents` and `element_strides` have `rank` numbers, `strides`, in bytes, one less.
    /// 2. `map` may be written.
    since (12, 0) fn cuTensorMapEncodeTiled(
        map: *mut CUtensorMap,
        data_type: CUtensorMapDataType,
        rank: u32,
        address: *mut c_void,
        extents: *const u64,
        strides: *const u64,
        box_extents: *const u32,
        element_strides: *const u32,
        interleave: CUtensorMapInterleave,
        swizzle: CUtensorMapSwizzle,
        l2_promotion: CUtensorMapL2promotion,
        fill: CUtensorMapFloatOOBfill,
    );
}
