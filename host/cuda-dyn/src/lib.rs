//! The CUDA driver's functions for `cust`, found in `libcuda.so.1` at run time.
//!
//! # Why
//! `cust` declares the driver's functions (`cuInit`, `cuMemAlloc_v2`, ...) as external and expects the
//! linker to find them in the `libcuda` of an installed CUDA toolkit. A program linked like that does not
//! build without a toolkit and does not start without a driver. With this crate it does both, and can say
//! what is missing, or compute on the CPU.
//!
//! # How
//! This crate *defines* those functions, under their own names, in the program itself. Each looks the real
//! function up in the driver's library when it is first called, keeps the address, and passes its
//! arguments on. Three things make the whole:
//!
//! * The stand-in for `find_cuda_helper` next to this crate keeps `cust`'s build from looking for a
//!   toolkit.
//! * The program has to depend on this crate *and name it*: the linker takes no object from a crate that
//!   nothing refers to. Calling [`driver`] does it; so does `use cuda_dyn as _;`.
//! * What is defined here is what `cust` 0.3.2 calls, and what `host` calls through `cust::sys`. Anything
//!   else is an error of the linker, "undefined symbol", cured by one more line in `symbols.rs`. The
//!   compiler compares every line with `cust_raw`'s declaration.
//!
//! Of functions that are newer than `cust_raw`, which knows CUDA 11.4, nobody expects a symbol. Those that `host`
//! calls are found in the same way, as functions of this crate: [`cuLaunchKernelEx`], [`cuTensorMapEncodeTiled`].
//!
//! The library is searched as `libcuda.so.1`, as any program would (`LD_LIBRARY_PATH`, then the system's
//! directories), then where WSL and NixOS keep it. It is never unloaded. Only Linux is looked after.
//!
//! # Cost
//! After the first call of a function: one load, one indirect call and one comparison with zero, together
//! a few nanoseconds.
//!
//! # Errors
//! * Without the library every function returns `CUDA_ERROR_SHARED_OBJECT_INIT_FAILED` (303), and
//!   [`driver`] says why. A function that the library lacks, because the driver is older than it, returns
//!   `CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND` (302); [`since`] knows which CUDA the newer ones came with.
//! * `cust_raw`'s result type is an `enum` of CUDA 11.4, and any other number in it would be undefined
//!   behaviour. A driver does return others: 46 for a device that another process holds exclusively, say.
//!   They become `CUDA_ERROR_UNKNOWN` (999). [`take_failure`] has the number as the driver returned it,
//!   together with the name of the function, and [`error_name`] and [`error_text`] the driver's words.
//!
//! ```
//! match cuda_dyn::driver() {
//!     Ok(library) => println!("using {library}"),
//!     Err(reason) => println!("no driver: {reason}"),
//! }
//! ```

mod codes;
mod later;
mod launch_config;
mod library;
mod symbols;
mod tensor_map;

pub use codes::{Failure, error_name, error_text, take_failure};
pub use later::{cuLaunchKernelEx, cuTensorMapEncodeTiled, since};
pub use launch_config::{CUlaunchAttribute, CUlaunchConfig};
pub use library::driver;
pub use tensor_map::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
