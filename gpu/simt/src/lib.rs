//! The device library for kernels written in Rust, on a GPU and on the CPU.
//!
//! A kernel imports [`device`]: the thread's indices and barrier ([`device::thread`]), views of
//! global memory ([`device::In`], [`device::Out`]), shared arrays ([`device::shared`]), variables
//! that outlive a launch ([`device::global`], [`device::constant`], [`device::global_pointer`]), a
//! fused multiply-add ([`device::fma`]) and the attribute [`device::kernel`]. The names and
//! signatures in `thread` are those of Rust-CUDA's `cuda_std`.
//!
//! ```
//! use simt::device::*;
//!
//! /// y = a x + y, one thread an element.
//! #[kernel(block = (256), len(x = n, y = n))]
//! pub fn saxpy(n: u32, a: f32, x: In<f32>, mut y: Out<f32>) {
//!     let i = (thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x()) as usize;
//!     if i < n as usize {
//!         y[i] = fma(a, x[i], y[i]);
//!     }
//! }
//!
//! let x = vec![1.0; 1000];
//! let mut y = vec![0.5; 1000];
//! let config = simt::LaunchConfig::new([4, 1, 1], [256, 1, 1]);
//! // SAFETY: the vectors outlive the launch, and a thread touches its own element of `y` alone.
//! unsafe {
//!     let params = (1000, 2.0, In::new(x.as_ptr(), x.len()), Out::new(y.as_mut_ptr(), y.len()));
//!     simt::cpu::launch(&saxpy, &config, params, &Default::default())
//! }?;
//! assert!(y.iter().all(|&y| y == 2.5));
//! # Ok::<(), simt::cpu::Stop>(())
//! ```
//!
//! # One source, two targets
//! For `nvptx64` the library consists of intrinsics and plain pointers, and [`device::kernel`]
//! makes a PTX entry point. For every other target a kernel becomes a [`Kernel`] value: its
//! declaration, its parameter types, and the function that a thread runs ([`cpu`]). Blocks run in
//! parallel on the cores. The threads of a block are fibers on one core, and a barrier waits for
//! all of them.
//!
//! The feature `cpu` is the half for the CPU; it is on by default. Without it a [`Kernel`] is its
//! declaration and its parameter types, for launches on a GPU, and kernels' bodies are left out.
//! [`device`] has the same names. In a crate of kernels the compiler then sees no use of what the
//! bodies call: `#![cfg_attr(not(feature = "cpu"), allow(unused))]`, where `cpu` is the crate's own
//! feature.
//!
//! # What this does not promise
//! `In` and `Out` are indexed like slices, in safe code, but they are not slices: every thread of a
//! launch has the same `Out`. The author of a kernel must ensure that no two threads write one
//! element, except atomically, and that a barrier, or a release and an acquire, stands between a
//! write and another thread's read. So a launch is `unsafe`. On the CPU every access is
//! bounds-checked; on the GPU none is.

#![deny(missing_docs)]
#![cfg_attr(
    target_arch = "nvptx64",
    allow(missing_docs, reason = "`cpu/device` documents the same items")
)]
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(
        asm_experimental_arch,
        core_intrinsics,
        link_llvm_intrinsics,
        repr_simd,
        stdarch_nvptx
    )
)]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

mod atomic;
pub mod atoms;
mod element;
mod float;
mod float8;
mod in_order;
mod macros;
pub mod mma;

#[cfg(target_arch = "nvptx64")]
#[path = "nvptx/mod.rs"]
pub mod device;

#[cfg(not(target_arch = "nvptx64"))]
mod argument;
#[cfg(not(target_arch = "nvptx64"))]
mod bound;
#[cfg(not(target_arch = "nvptx64"))]
mod constants;
#[cfg(not(target_arch = "nvptx64"))]
mod count;
#[cfg(not(target_arch = "nvptx64"))]
#[cfg_attr(not(feature = "cpu"), allow(unused, reason = "no thread runs here"))]
pub mod cpu;
#[cfg(not(target_arch = "nvptx64"))]
mod declaration;
#[cfg(not(target_arch = "nvptx64"))]
mod halves;
#[cfg(not(target_arch = "nvptx64"))]
mod kernel;
// Only Hopper has operands in shared memory, and the CPU device.
#[cfg_attr(
    not(any(target_feature = "sm_90a", all(feature = "cpu", not(target_arch = "nvptx64")))),
    allow(dead_code)
)]
mod operand;
mod pace;
#[cfg(not(target_arch = "nvptx64"))]
mod params;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod pipeline;
#[cfg(not(target_arch = "nvptx64"))]
mod shortfall;
#[cfg(not(target_arch = "nvptx64"))]
mod size;
#[cfg(not(target_arch = "nvptx64"))]
mod type_choice;
pub mod types;

#[cfg(not(target_arch = "nvptx64"))]
pub use argument::{Bound, Elements, Map};
#[cfg(not(target_arch = "nvptx64"))]
pub use bound::{AnyKernel, Named};
#[cfg(not(target_arch = "nvptx64"))]
pub use constants::{ConstantDeclaration, Constants, MOST_CONSTANTS, MOST_SPECIALISATIONS, Value};
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub use count::count_of;
#[cfg(not(target_arch = "nvptx64"))]
pub use cpu::{device, symbol, symbol::Symbol};
#[cfg(not(target_arch = "nvptx64"))]
pub use declaration::{Declaration, LaunchConfig, Limits, ParamDeclaration};
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
#[doc(hidden)]
pub use kernel::ThreadFn;
#[cfg(not(target_arch = "nvptx64"))]
pub use kernel::{Code, Kernel};
#[cfg(not(target_arch = "nvptx64"))]
pub use params::*;
#[cfg(not(target_arch = "nvptx64"))]
pub use shortfall::Shortfall;
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub use size::Size;
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
pub use {
    bound::AnyCheckedKernel,
    cpu::{check, check::Order, checked},
};

pub use atomic::{Atomic, AtomicInteger};
pub use element::{Bf16, Element, F16, Half, Shuffle, Tf32};
pub use float8::{E4m3, E5m2, Fp8};

/// Makes a test of a function that launches a kernel under the checker, and a case that
/// `cargo gpu-check` finds.
///
/// The test runs the function in ten orders of blocks, warps and lanes, for each value in the
/// attribute. It fails with all that the launches found, shown as the compiler shows errors. The
/// last parameter is the launch's [`Options`](cpu::check::Options), with the order in it. A
/// function of several parameters before it has values such as `(3, 5)`; one of none has `#[check]`
/// alone.
///
/// A panic fails the test, too: the function compares what the kernel has computed. (If the checker
/// found something, that is reported and the panic is not.) It returns nothing, a
/// [`Report`](cpu::check::Report), or a `Result` of these.
///
/// ```
/// use simt::{LaunchConfig, check, checked::*};
///
/// /// y = 2 x, a thread an element.
/// #[kernel(block = (32), len(x = n, y = n))]
/// pub fn twice(n: u32, x: In<f32>, mut y: Out<f32>) {
///     let i = (thread::block_idx_x() * 32 + thread::thread_idx_x()) as usize;
///     if i < n as usize {
///         y[i] = 2.0 * x[i];
///     }
/// }
///
/// #[check(1, 31, 100)]
/// fn twice_is_right(n: usize, options: check::Options) -> Result<(), simt::cpu::Stop> {
///     let (x, mut y) = (vec![1.5; n], vec![0.0; n]);
///     let config = LaunchConfig::new([n.div_ceil(32) as u32, 1, 1], [32, 1, 1]);
///     // SAFETY: the vectors outlive the launch, and nothing else uses them.
///     unsafe {
///         let (x, y) = (In::new(x.as_ptr(), n), Out::uninit(y.as_mut_ptr(), n));
///         check::launch(&twice, &config, (n as u32, x, y), &options)?;
///     }
///     assert!(y.iter().all(|&y| y == 3.0));
///     Ok(())
/// }
/// # twice_is_right(100, check::Options::default()).unwrap();
/// ```
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
pub use simt_macros::check;

// Rust-CUDA's paths, for kernels that import this crate under the name `cuda_std`.
pub use device::{kernel, thread};

/// The package's page, whose programs are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
