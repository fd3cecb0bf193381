//! Matrix products on a GPU through its driver alone, or on the CPU, with kernels written in Rust.
//!
//! ```
//! use gpu_gemm::{Device, Gemm, Matrix};
//!
//! // A GPU where there is one; `why_no_gpu` says why not.
//! let device = Device::best().device;
//! let stream = device.stream()?;
//!
//! // C = A B: A is m x k, B is k x n, C is m x n.
//! let a = Matrix::from_row_major(&device, 2, 3, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let b = Matrix::from_row_major(&device, 3, 2, &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0])?;
//! let mut c = Matrix::zeros(&device, 2, 2)?;
//! Gemm::new().run(&stream, a.view(), b.view(), c.view_mut())?;
//! assert_eq!(c.to_row_major()?, [4.0, 5.0, 10.0, 11.0]);
//! # Ok::<(), gpu_gemm::Error>(())
//! ```
//!
//! # A guide
//! **Devices**: [`Device::best`] is the first GPU that can run the kernels, or [`Device::cpu`]; [`Device::cuda`] is the GPU
//! of an index. The same program runs on either.
//!
//! **Operands**: a [`Matrix`] lies in the memory of a device, row- or column-major, with any leading dimension. A
//! [`MatrixView`] is one, a part of one ([`sub`](MatrixView::sub)) or a transpose ([`t`](MatrixView::t)), and costs
//! nothing; one that is written can be [split](MatrixViewMut::split_rows_at) in two. A [`SliceView`] is a matrix in this
//! machine's memory: a slice, or with the features `nalgebra` and `ndarray` one of theirs.
//!
//! **Products**: [`Gemm`] is `C = activation(alpha op(A) op(B) + beta C + bias)`, f32, f64, bf16 or f16, one or a batch.
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
//! // A layer: relu(X W + bias). On a GPU this returns at once.
//! let layer = Gemm::new().bias(Bias::PerCol(bias.view(..)?)).activation(Activation::Relu);
//! layer.launch(&stream, x.view(), w.view(), y.view_mut())?;
//!
//! // The next product takes Y as it lies on the device: its transpose, times 2.
//! let mut gram = Matrix::zeros(&device, 2, 2)?;
//! Gemm::new().alpha(2.0).launch(&stream, y.view().t(), y.view(), gram.view_mut())?;
//!
//! // Whoever reads a matrix waits for what was launched with it.
//! assert_eq!(y.to_row_major()?, [0.0, 0.0, 1.5, 0.25]);
//! assert_eq!(gram.to_row_major()?, [4.5, 0.75, 0.75, 0.125]);
//! # Ok::<(), gpu_gemm::Error>(())
//! ```
//!
//! **Streams and threads**: work on one [`Stream`] runs in order. Of two streams the later work waits for the earlier
//! where both use a matrix and one writes it, on the device, without anybody's help. Devices, streams, matrices, views and
//! products are `Send` and `Sync`; several devices can be used at once, each with its own matrices.
//!
//! **Memory**: what does not fit is [`Error::OutOfMemory`], with the bytes needed and free. The kernels `tma_..` may
//! need a workspace ([`gemm::Choice::workspace_bytes`]), for copies of operands that do not lie as they read them; it has a
//! limit ([`Gemm::workspace_limit`]). Products larger than the device's memory: [`blocks`].
//!
//! **Errors** name the argument, its value and the limit, and come before anything is launched or changed.
//!
//! **A crate outside this workspace** needs a line in its `Cargo.toml` where no CUDA toolkit is installed: docs/guide/gemm.md, "The
//! manifest".
//!
//! # The house
//! A [`Matrix`] lies in a [`Buffer`] on a [`Device`]. [`Gemm`] checks the operands, [chooses](gemm::choose) a kernel of
//! [`gpu::registry`], plans its launches, and executes the plan on a [`Stream`]. [`product::multiply`] is one kernel's `A B`, for
//! the lessons. [`blocks`] multiplies what does not fit, a block at a time.
//!
//! # Features
//! `cuda` (on by default): the CUDA device. Without a driver it answers with an error; nothing of a CUDA
//! toolkit is needed, neither to build nor to run. Without the feature the CPU device remains.
//!
//! `npy`: matrices in NumPy's files. `nalgebra`, `ndarray`: their matrices as operands.

pub mod blocks;
mod boxes;
mod buffer;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod error;
pub mod gemm;
#[cfg(feature = "npy")]
mod input;
mod launch;
mod matrix;
// For the command's allocator.
#[doc(hidden)]
pub mod memory;
// For the library's messages and the command's.
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
// Steps of the laboratory are shown by the same.
#[doc(hidden)]
pub mod progress;
pub mod ptx;
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
pub use device::{Best, Device};
pub use error::{Error, Result};
pub use gemm::{Activation, Batch, BatchMut, Bias, Compute, Gemm, PreparedMatrix};
#[cfg(feature = "npy")]
pub use input::open_input;
pub use launch::{Argument, Arguments};
pub use matrix::{Layout, Matrix, MatrixView, MatrixViewMut, SliceView, SliceViewMut};
#[cfg(feature = "npy")]
pub use new_file::{NewFile, NewSet, without_unfinished};
pub use pinned::{Lines, Pinned};
pub use pitched::{Pitched, Region};
pub use progress::{progress, work};
pub use shape::Shape;
pub use simt::{Bf16, F16};
pub use stream::{Event, Stream};
pub use symbol::{PointerSymbol, Symbol};
pub use {gpu, occupancy, simt};

/// Raised by [`interrupt`]: for the options of launches on the CPU device.
#[doc(hidden)]
pub static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Ends what this crate is doing, and whatever is begun from now on, with [`Error::Interrupted`]: launches
/// on the CPU device at the next barrier, comparisons at the next rows, draws and copies of operands after
/// some MiB, blocks of files likewise. For a handler of Ctrl-C.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Takes [`interrupt`] back: for a caller that has ended what was interrupted, and now writes what it has.
pub fn resume() {
    INTERRUPTED.store(false, Ordering::Relaxed);
}

/// [`Error::Interrupted`] after [`interrupt`].
///
/// # Errors
/// That one.
pub fn check_interrupt() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
}
