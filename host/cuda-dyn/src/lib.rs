//! The CUDA driver's functions, found in `libcuda.so.1` at run time.
//!
//! A program that uses them builds without a CUDA toolkit and starts without a driver. It can say
//! what is missing, or compute on the CPU. Types and functions have the driver's names, and
//! NVIDIA's documentation describes them; what the library `gpu-gemm` and its command call is here,
//! and nothing else. The declarations are this crate's own. Its tests compare them with those of
//! `cust_raw`.
//!
//! The library is searched as `libcuda.so.1`, as any program would (`LD_LIBRARY_PATH`, then the
//! system's directories), then where WSL and NixOS keep it. It is never unloaded. Only Linux is
//! looked after.
//!
//! ```
//! match cuda_dyn::driver() {
//!     Ok(library) => println!("using {library}"),
//!     Err(reason) => println!("no driver: {reason}"),
//! }
//! ```
//!
//! # Cost
//! The first call looks all functions up. After that a call takes one load, one indirect call and
//! one comparison with zero, together a few nanoseconds.
//!
//! # Errors
//! A [`Failure`] has the name of the function and the number as the driver returned it.
//! [`error_name`] and [`error_text`] have the driver's words. Without the library every function
//! fails with `CUDA_ERROR_SHARED_OBJECT_INIT_FAILED` (303), and [`driver`] says why. A function
//! that the library lacks, because the driver is older than it, fails with
//! `CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND` (302); [`since`] knows which CUDA the newer ones
//! came with.
//!
//! # The feature `cust`
//! `cust` declares the driver's functions (`cuInit`, `cuMemAlloc_v2`, ...) as external and expects
//! the linker to find them in the `libcuda` of an installed CUDA toolkit. With this feature the
//! crate *defines* those functions, under their own names, in the program itself. Each passes its
//! arguments on to the real one. Without the feature it defines no such symbol. Three things make
//! the whole:
//!
//! * The replacement of `find_cuda_helper` next to this crate keeps `cust`'s build from looking for
//!   a toolkit.
//! * The program must depend on this crate *and name it*: the linker takes no object from a crate
//!   that nothing refers to. A call of [`driver`] does it, and so does `use cuda_dyn as _;`.
//! * This crate defines the functions that `cust` 0.3.2 calls, those that the library calls through
//!   `cust::sys`, and those whose own declarations its tests compare with `cust_raw`'s. Any other
//!   function is an error of the linker, "undefined symbol". One more line in `symbols.rs` defines
//!   it. The compiler compares every line with `cust_raw`'s declaration.
//!
//! `cust_raw`'s result type is an `enum` of CUDA 11.4, and any other number in it would be
//! undefined behaviour. A driver does return others: 46 for a device that another process holds
//! exclusively, say. They become `CUDA_ERROR_UNKNOWN` (999). `take_failure` has the number as the
//! driver returned it, together with the name of the function.

mod codes;
mod failure;
mod functions;
mod launch_config;
mod library;
#[cfg(feature = "cust")]
mod results;
#[cfg(feature = "cust")]
mod symbols;
mod tensor_map;
mod types;

pub use codes::{error_name, error_text};
pub use failure::Failure;
pub use functions::*;
pub use launch_config::{CUlaunchAttribute, CUlaunchConfig};
pub use library::driver;
#[cfg(feature = "cust")]
pub use results::take_failure;
pub use tensor_map::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
pub use types::*;

/// The package's page, whose programs are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
