//! Matrix multiplication on NVIDIA GPUs, and on the CPU. Every kernel is written in Rust. A GPU
//! needs its driver, no CUDA toolkit.
//!
//! ```
//! use gpu_gemm::{Device, Gemm, Matrix};
//!
//! // The first GPU, or the CPU. `Best::why_no_gpu` says why it is no GPU.
//! let device = Device::best().device;
//! let stream = device.stream()?;
//!
//! // C = A B. A is m x k, B is k x n, C is m x n.
//! let a = Matrix::from_row_major(&device, 2, 3, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let b = Matrix::from_row_major(&device, 3, 2, &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0])?;
//! let mut c = Matrix::zeros(&device, 2, 2)?;
//! Gemm::new().run(&stream, a.view(), b.view(), c.view_mut())?;
//! assert_eq!(c.to_row_major()?, [4.0, 5.0, 10.0, 11.0]);
//! # Ok::<(), gpu_gemm::Error>(())
//! ```
//!
//! # Guide
//! **Devices.** [`Device::best`] is the first GPU that can run the kernels. Without a GPU it is the
//! CPU. [`Device::cuda`] is the GPU with an index, [`Device::cpu`] the CPU. A program is the same
//! for all of them. Without the feature `cpu` there is [`Device::cuda`] alone, and no kernel is
//! compiled for the CPU: the library builds in a fraction of the time.
//!
//! **Operands.** A [`Matrix`] is in the memory of a device. It is row-major or column-major and has
//! a leading dimension. A [`MatrixView`] is a matrix, a part of it ([`sub`](MatrixView::sub)) or
//! its transpose ([`t`](MatrixView::t)). Views copy nothing. A view that is written can be
//! [split](MatrixViewMut::split_rows_at) in two. A [`SliceView`] is a matrix in host memory: a
//! slice, or a matrix of the crates `nalgebra` and `ndarray`.
//!
//! **Products.** [`Gemm`] computes `C = activation(alpha op(A) op(B) + beta C + bias)` in f32, f64,
//! bf16, f16, i8, e4m3 or e5m2, for one product or a batch.
//!
//! ```
//! use gpu_gemm::{Activation, Bias, Device, Gemm, Matrix};
//!
//! let device = Device::best().device;
//! let stream = device.stream()?;
//! let x = Matrix::from_row_major(&device, 2, 3, &[1.0f32, -2.0, 3.0, 0.0, 1.0, -1.0])?;
//! let w = Matrix::from_row_major(&device, 3, 2, &[1.0, 0.5, 0.0, 1.0, -1.0, 0.25])?;
//! let bias = device.upload(&[0.5, -0.5])?;
//! let mut y = Matrix::zeros(&device, 2, 2)?;
//!
//! // A layer: relu(X W + bias). On a GPU this call only queues work.
//! let layer = Gemm::new().bias(Bias::PerCol(bias.view(..)?)).activation(Activation::Relu);
//! layer.launch(&stream, x.view(), w.view(), y.view_mut())?;
//!
//! // 2 Y^T Y. Y stays on the device.
//! let mut gram = Matrix::zeros(&device, 2, 2)?;
//! Gemm::new().alpha(2.0).launch(&stream, y.view().t(), y.view(), gram.view_mut())?;
//!
//! // Reading a matrix waits for the products that write it.
//! assert_eq!(y.to_row_major()?, [0.0, 0.0, 1.5, 0.25]);
//! assert_eq!(gram.to_row_major()?, [4.5, 0.75, 0.75, 0.125]);
//! # Ok::<(), gpu_gemm::Error>(())
//! ```
//!
//! [`quantise`] rounds a matrix to 8 bits, and gives the scales that [`Gemm::scales`] takes.
//!
//! **Streams and threads.** Work on one [`Stream`] runs in order. Where two streams use one matrix,
//! and one of them writes it, the later work waits on the device for the earlier. Every type of
//! this crate is `Send` and `Sync`. A program can use several devices at once; each has its own
//! matrices. On a GPU the library works in the device's primary context, and leaves the thread's
//! current context as it was.
//!
//! **Several devices.** [`Gemm::run_sharded`] multiplies matrices in shards ([`Sharded`]) over
//! [`Devices`] of this process, with the bits of one device. [`Gemm::prepare_sharded`] is for a
//! product that runs more than once.
//!
//! **Graphs.** [`Stream::capture`] makes a CUDA [`Graph`] of launches, which is launched by one
//! call of the driver. [`Gemm::prepare`] loads and allocates before what a capture cannot.
//!
//! **Other libraries.** [`interchange`] shares memory and streams with cudarc, cust and, by DLPack,
//! with PyTorch, CuPy, JAX and others.
//!
//! **Memory.** An allocation that fails is [`Error::OutOfMemory`], with the bytes needed and the
//! bytes free. Some kernels copy or convert an operand first. The copies are the workspace
//! ([`gemm::Choice::workspace_bytes`]), and [`Gemm::workspace_limit`] limits it. The module
//! [`blocks`] multiplies matrices that do not fit in the device's memory.
//!
//! **Errors** name the argument, its value and the limit. Arguments are checked before anything is
//! launched or changed.
//!
//! # How it works
//! A [`Matrix`] is a [`Buffer`] with a shape, on a [`Device`]. [`Gemm`] checks the operands,
//! [selects](gemm::choose) a kernel of [`gpu::registry`], plans its launches, and runs the plan on
//! a [`Stream`]. [`product::multiply`] computes `A B` by a kernel of the course. [`blocks`] reads,
//! multiplies and writes one block at a time.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `cpu` | The CPU device and the checker; on by default. Without it there are no [`Device::cpu`], [`Device::best`], [`gemm::checked`], [`Error::Kernel`] and `simt::check`, and a `#[kernel]` is its declaration. |
//! | `cuda` | The CUDA device; on by default. At least one of `cpu` and `cuda` is on. Neither the build nor the program needs a CUDA toolkit. Without a driver [`Device::cuda`] returns an error. |
//! | `cudarc` | Slices and streams of the crate `cudarc` as operands, without a copy. |
//! | `cust` | The driver through the crate `cust`, and its buffers and streams, without a copy. Its build needs a CUDA toolkit. |
//! | `npy` | Matrices in NumPy's files. |
//! | `nalgebra`, `ndarray` | Matrices of these crates as operands, without a copy. |
//! | `serde` | [`blocks::BlockPlan`] and [`gemm::Reason`] by serde. |

#![deny(missing_docs)]
// What the CPU device and the checker alone use.
#![cfg_attr(not(feature = "cpu"), allow(dead_code))]

#[cfg(not(any(feature = "cpu", feature = "cuda")))]
compile_error!("gpu-gemm has no device: it needs its feature `cuda`, its feature `cpu`, or both");

pub mod blocks;
mod boxes;
mod buffer;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod devices;
mod error;
pub mod gemm;
mod graph;
#[cfg(feature = "npy")]
mod input;
pub mod interchange;
mod launch;
mod matrix;
// For the command's allocator.
#[doc(hidden)]
pub mod memory;
// For messages of the library and of the command.
#[doc(hidden)]
pub mod names;
#[cfg(feature = "npy")]
mod new_file;
#[cfg(feature = "npy")]
pub mod npy;
// For the command's `errors`.
#[doc(hidden)]
pub mod parallel;
mod pinned;
mod pitched;
pub mod product;
// The command shows its own steps by it, too.
#[doc(hidden)]
pub mod progress;
pub mod ptx;
mod quantise;
mod rows;
mod shape;
mod stream;
mod symbol;
#[doc(hidden)]
pub mod testing;

use std::sync::atomic::{AtomicBool, Ordering};

pub use boxes::{BoxElement, BoxShape, Boxes, BoxesMut};
pub use buffer::{Buffer, BufferView, BufferViewMut, Pod};
#[cfg(feature = "cuda")]
pub use cuda::Properties as CudaProperties;
#[cfg(feature = "cpu")]
pub use device::Best;
pub use device::Device;
pub use devices::{Devices, ShardLayout, Sharded};
pub use error::{Error, Result};
pub use gemm::{
    Activation, Batch, BatchMut, Bias, Compute, Gemm, PlannedGemm, PreparedMatrix, TuningCache,
};
pub use graph::{Graph, GraphOperand};
#[cfg(feature = "npy")]
pub use input::open_input;
pub use launch::{Argument, Arguments};
// For the Python package, and for the functions of C.
pub use matrix::{Layout, Matrix, MatrixView, MatrixViewMut, SliceView, SliceViewMut};
#[doc(hidden)]
pub use matrix::{check_written, extent};
#[cfg(feature = "npy")]
pub use new_file::{NewFile, NewSet, without_unfinished};
pub use pinned::{Lines, Pinned};
pub use pitched::{Pitched, Region};
pub use progress::{progress, work};
pub use quantise::{Granularity, quantise};
pub use shape::Shape;
pub use simt::{Bf16, E4m3, E5m2, F16, types::Type};
pub use stream::{Event, Stream};
pub use symbol::{PointerSymbol, Symbol};
pub use {gpu, simt};

/// Set by [`interrupt`]. Launches on the CPU device look at it.
#[doc(hidden)]
pub static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Stops the work of this crate, in all threads, until [`resume`]: it ends with
/// [`Error::Interrupted`]. For a handler of Ctrl-C.
///
/// Work looks at it now and then. A launch on the CPU device does so at each barrier, a comparison
/// for each row, and copies of operands and files every few MiB.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Takes [`interrupt`] back, for a caller that has stopped the interrupted work and now writes its
/// results.
pub fn resume() {
    INTERRUPTED.store(false, Ordering::Relaxed);
}

/// Checks whether [`interrupt`] was called.
///
/// # Errors
/// [`Error::Interrupted`] if it was.
pub fn check_interrupt() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
}

/// The package's page, whose programs are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
