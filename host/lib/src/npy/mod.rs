//! Matrices in NumPy's `.npy` files. Blocks of them can be read and written.
//!
//! The format is NumPy's (`numpy.lib.format`): a header, then the elements in C or Fortran order.
//!
//! * [`Reader`] accepts versions 1.0 to 3.0, two dimensions, and floats of 16, 32 or 64 bits in
//!   either byte order. It accepts every spelling of these types that NumPy accepts. Arrays of one
//!   dimension, and the bfloat16 of `ml_dtypes`, need a [`Meaning`]. Bytes after the last element
//!   are ignored, and counted.
//! * [`Writer`] writes version 1.0, little-endian.
//!
//! ```
//! use gpu_gemm::{Layout, Type, npy};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("a.npy");
//! let mut writer = npy::Writer::create("--out", &path, 2, 3, Type::F32, Layout::RowMajor)?;
//! writer.write(0..2, 0..3, Layout::RowMajor, &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! writer.finish()?; // Now there is a file of that name.
//!
//! let reader = npy::Reader::open("--a", &path)?;
//! let mut column = [0f32; 2];
//! reader.read(0..2, 1..2, Layout::RowMajor, &mut column)?;
//! assert_eq!(column, [2.0, 5.0]);
//! # Ok::<(), gpu_gemm::Error>(())
//! ```

mod descr;
mod dtype;
mod header;
mod literal;
mod meaning;
mod reader;
mod refusal;
mod runs;
#[cfg(test)]
mod tests;
mod writer;

pub use dtype::{Element, computed, name, types};
pub use header::Header;
pub use meaning::{Meaning, Vector};
pub use reader::Reader;
pub use writer::Writer;
