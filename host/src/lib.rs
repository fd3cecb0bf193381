//! Matrix products on a GPU through its driver alone, or on the CPU, with kernels written in Rust.
//!
//! ```
//! use host::{Device, Matrix, product};
//!
//! // A GPU where there is one; `why_no_gpu` says why not.
//! let device = Device::best().device;
//! let stream = device.stream()?;
//!
//! // C = A B: A is m x k, B is k x n, C is m x n.
//! let a = Matrix::from_row_major(&device, 2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let b = Matrix::from_row_major(&device, 3, 2, &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0])?;
//! let mut c = Matrix::zeros(&device, 2, 2)?;
//! let kernel = product::find("tiled16")?;
//! product::multiply(&stream, kernel, &a, &b, &mut c)?;
//! assert_eq!(c.to_row_major()?, [4.0, 5.0, 10.0, 11.0]);
//! # Ok::<(), host::Error>(())
//! ```
//!
//! # Data's way
//! A [`Matrix`] lies in a [`Buffer`] on a [`Device`]; [`product::multiply`] checks the operands and launches
//! a kernel of [`gpu::registry`] on a [`Stream`]; [`verify::compare`] holds the result against the product
//! in float64. [`check`] holds the kernel itself against what CUDA demands of one, without a GPU, and
//! [`profile`] counts what it does to memory.
//!
//! # Features
//! `cuda` (on by default): the CUDA device. Without a driver it answers with an error; nothing of a CUDA
//! toolkit is needed, neither to build nor to run. Without the feature the CPU device remains.
//!
//! `npy`: matrices in NumPy's files. `cli`, on by default: what the command needs, `npy` among it.

pub mod blocks;
pub mod blur;
mod buffer;
pub mod check;
#[cfg(feature = "cuda")]
pub mod cublas;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod error;
pub mod gemm;
mod launch;
mod matrix;
mod memory;
#[cfg(feature = "npy")]
mod new_file;
#[cfg(feature = "npy")]
pub mod npy;
pub mod operands;
pub mod padding;
pub mod phases;
mod pinned;
mod pitched;
pub mod product;
pub mod profile;
mod progress;
pub mod ptx;
mod roof;
mod symbol;
pub mod timing;
pub mod verify;

use std::sync::atomic::{AtomicBool, Ordering};

pub use buffer::{Buffer, BufferView, BufferViewMut, Pod};
#[cfg(feature = "cuda")]
pub use cuda::Properties as CudaProperties;
pub use device::{Best, Device};
pub use error::{Error, Result};
pub use gemm::{Activation, Batch, BatchMut, Bias, Compute, Gemm};
pub use launch::{Argument, Arguments, Event, Stream};
pub use matrix::{Layout, Matrix, MatrixView, MatrixViewMut, SliceView, SliceViewMut};
#[cfg(feature = "npy")]
pub use new_file::NewFile;
pub use pinned::{Lines, Pinned};
pub use pitched::{Pitched, Region};
pub use product::Shape;
pub use progress::{progress, work};
pub use roof::Roof;
pub use symbol::{PointerSymbol, Symbol};
pub use {gpu, occupancy, simt};

/// Raised by [`interrupt`].
pub(crate) static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Ends what this crate is doing, and whatever is begun from now on, with [`Error::Interrupted`]: launches
/// on the CPU device at the next barrier, comparisons at the next rows, draws and copies of operands after
/// some MiB, blocks of files likewise. For a handler of Ctrl-C.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// [`Error::Interrupted`] after [`interrupt`].
///
/// # Errors
/// That one.
pub fn check_interrupt() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
}
