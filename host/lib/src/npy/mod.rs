//! Matrices in NumPy's `.npy` files, read and written in blocks.
//!
//! The format is NumPy's (`numpy.lib.format`), versions 1.0 to 3.0: a header, then the elements in C or
//! Fortran order. Taken are arrays of two dimensions with elements of 16, 32 and 64 bits in either byte order, in every
//! spelling of these that NumPy takes; where [`Meaning`] says what they are, also arrays of one dimension, and
//! `ml_dtypes`'s bfloat16. Bytes behind the elements are ignored, and counted. Written is version 1.0, little-endian.
//!
//! ```
//! use gpu_gemm::{Layout, npy};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("a.npy");
//! let mut writer = npy::Writer::create("--out", &path, 2, 3, npy::Dtype::F4, Layout::RowMajor)?;
//! writer.write(0..2, 0..3, Layout::RowMajor, &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! writer.finish()?; // Before this there is no such file.
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

pub use dtype::{Dtype, Element};
pub use header::Header;
pub use meaning::{Meaning, Vector};
pub use reader::Reader;
pub use writer::Writer;
