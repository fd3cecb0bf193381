//! Launches and products that the compiler refuses.
//!
//! Each example that must not compile differs in one place from this one, which does:
//!
//! ```
//! # use host::{Buffer, Device, Result, simt::LaunchConfig};
//! # use host::gpu::lessons::basic::basic;
//! fn launch(device: &Device, a: &Buffer<f32>, b: &Buffer<f32>, c: &mut Buffer<f32>) -> Result<()> {
//!     let config = LaunchConfig::new([1, 1, 1], [16, 16, 1]);
//!     // SAFETY: the buffers' lengths are checked, and this kernel keeps to them.
//!     unsafe { device.stream()?.launch(&basic, &config, (1, 1, 1, a, b, c)) }
//! }
//! ```
//!
//! Float64 for a parameter of float32:
//!
//! ```compile_fail
//! # use host::{Buffer, Device, Result, simt::LaunchConfig};
//! # use host::gpu::lessons::basic::basic;
//! fn launch(device: &Device, a: &Buffer<f64>, b: &Buffer<f32>, c: &mut Buffer<f32>) -> Result<()> {
//!     let config = LaunchConfig::new([1, 1, 1], [16, 16, 1]);
//!     // SAFETY: the buffers' lengths are checked, and this kernel keeps to them.
//!     unsafe { device.stream()?.launch(&basic, &config, (1, 1, 1, a, b, c)) }
//! }
//! ```
//!
//! A buffer that is borrowed to be read, for what the kernel writes:
//!
//! ```compile_fail
//! # use host::{Buffer, Device, Result, simt::LaunchConfig};
//! # use host::gpu::lessons::basic::basic;
//! fn launch(device: &Device, a: &Buffer<f32>, b: &Buffer<f32>, c: &Buffer<f32>) -> Result<()> {
//!     let config = LaunchConfig::new([1, 1, 1], [16, 16, 1]);
//!     // SAFETY: the buffers' lengths are checked, and this kernel keeps to them.
//!     unsafe { device.stream()?.launch(&basic, &config, (1, 1, 1, a, b, c)) }
//! }
//! ```
//!
//! One argument too few:
//!
//! ```compile_fail
//! # use host::{Buffer, Device, Result, simt::LaunchConfig};
//! # use host::gpu::lessons::basic::basic;
//! fn launch(device: &Device, a: &Buffer<f32>, b: &Buffer<f32>, c: &mut Buffer<f32>) -> Result<()> {
//!     let config = LaunchConfig::new([1, 1, 1], [16, 16, 1]);
//!     // SAFETY: the buffers' lengths are checked, and this kernel keeps to them.
//!     unsafe { device.stream()?.launch(&basic, &config, (1, 1, a, b, c)) }
//! }
//! ```
//!
//! One buffer for what is read and what is written:
//!
//! ```compile_fail
//! # use host::{Buffer, Device, Result, simt::LaunchConfig};
//! # use host::gpu::lessons::basic::basic;
//! fn launch(device: &Device, a: &Buffer<f32>, b: &Buffer<f32>, c: &mut Buffer<f32>) -> Result<()> {
//!     let config = LaunchConfig::new([1, 1, 1], [16, 16, 1]);
//!     // SAFETY: the buffers' lengths are checked, and this kernel keeps to them.
//!     unsafe { device.stream()?.launch(&basic, &config, (1, 1, 1, &*c, b, c)) }
//! }
//! ```
//!
//! And a launch that promises nothing, outside `unsafe`:
//!
//! ```compile_fail
//! # use host::{Buffer, Device, Result, simt::LaunchConfig};
//! # use host::gpu::lessons::basic::basic;
//! fn launch(device: &Device, a: &Buffer<f32>, b: &Buffer<f32>, c: &mut Buffer<f32>) -> Result<()> {
//!     let config = LaunchConfig::new([1, 1, 1], [16, 16, 1]);
//!     // SAFETY: the buffers' lengths are checked, and this kernel keeps to them.
//!     device.stream()?.launch(&basic, &config, (1, 1, 1, a, b, c))
//! }
//! ```
//!
//! # General products
//!
//! ```
//! # use host::{Bias, Gemm, Matrix, Result, Stream};
//! fn multiply(stream: &Stream, a: &Matrix<f32>, b: &Matrix<f32>, c: &mut Matrix<f32>) -> Result<()> {
//!     let gemm = Gemm::new().bias(Bias::PerRow(a.buffer().view(..)?));
//!     gemm.run(stream, a.view(), b.view(), c.view_mut()).map(|_| ())
//! }
//! ```
//!
//! C in A's place:
//!
//! ```compile_fail,E0502
//! # use host::{Bias, Gemm, Matrix, Result, Stream};
//! fn multiply(stream: &Stream, a: &Matrix<f32>, b: &Matrix<f32>, c: &mut Matrix<f32>) -> Result<()> {
//!     let gemm = Gemm::new().bias(Bias::PerRow(a.buffer().view(..)?));
//!     gemm.run(stream, c.view(), b.view(), c.view_mut()).map(|_| ())
//! }
//! ```
//!
//! A part of C in B's place, and another part as C:
//!
//! ```compile_fail,E0502
//! # use host::{Bias, Gemm, Matrix, Result, Stream};
//! fn multiply(stream: &Stream, a: &Matrix<f32>, b: &Matrix<f32>, c: &mut Matrix<f32>) -> Result<()> {
//!     let gemm = Gemm::new().bias(Bias::PerRow(a.buffer().view(..)?));
//!     let part = c.view().sub(0..2, 0..2)?;
//!     gemm.run(stream, a.view(), part, c.view_mut().sub(2..4, 0..2)?).map(|_| ())
//! }
//! ```
//!
//! C as the bias:
//!
//! ```compile_fail,E0502
//! # use host::{Bias, Gemm, Matrix, Result, Stream};
//! fn multiply(stream: &Stream, a: &Matrix<f32>, b: &Matrix<f32>, c: &mut Matrix<f32>) -> Result<()> {
//!     let gemm = Gemm::new().bias(Bias::PerRow(c.buffer().view(..)?));
//!     gemm.run(stream, a.view(), b.view(), c.view_mut()).map(|_| ())
//! }
//! ```
//!
//! A C that is borrowed to be read:
//!
//! ```compile_fail,E0308
//! # use host::{Bias, Gemm, Matrix, Result, Stream};
//! fn multiply(stream: &Stream, a: &Matrix<f32>, b: &Matrix<f32>, c: &mut Matrix<f32>) -> Result<()> {
//!     let gemm = Gemm::new().bias(Bias::PerRow(a.buffer().view(..)?));
//!     gemm.run(stream, a.view(), b.view(), c.view()).map(|_| ())
//! }
//! ```
//!
//! Two types in one product:
//!
//! ```compile_fail,E0308
//! # use host::{Bias, Gemm, Matrix, Result, Stream};
//! fn multiply(stream: &Stream, a: &Matrix<f32>, b: &Matrix<f64>, c: &mut Matrix<f32>) -> Result<()> {
//!     let gemm = Gemm::new().bias(Bias::PerRow(a.buffer().view(..)?));
//!     gemm.run(stream, a.view(), b.view(), c.view_mut()).map(|_| ())
//! }
//! ```
//!
//! # Slips of the course that a compiler finds
//!
//! A block's width has one name, `block_dim`:
//!
//! ```
//! # use simt::device::*;
//! #[kernel(block = (16), len(c = n))]
//! pub fn width(n: u32, mut c: Out<u32>) {
//!     c[0] = thread::block_dim_x();
//! }
//! ```
//!
//! and not `thread_dim`:
//!
//! ```compile_fail,E0425
//! # use simt::device::*;
//! #[kernel(block = (16), len(c = n))]
//! pub fn width(n: u32, mut c: Out<u32>) {
//!     c[0] = thread::thread_dim_x();
//! }
//! ```
//!
//! C on the device is called as it was named, here `d_c`:
//!
//! ```
//! # use host::{Matrix, Result};
//! fn read_back(d_c: &Matrix<f32>) -> Result<Vec<f32>> {
//!     d_c.to_row_major()
//! }
//! ```
//!
//! and not by the name that it had in an older edition:
//!
//! ```compile_fail,E0425
//! # use host::{Matrix, Result};
//! fn read_back(d_c: &Matrix<f32>) -> Result<Vec<f32>> {
//!     cd.to_row_major()
//! }
//! ```
//!
//! The phases are counted by `p`:
//!
//! ```
//! fn elements(k: usize, tile: usize, tx: usize) -> usize {
//!     (0..k.div_ceil(tile)).filter(|p| p * tile + tx < k).count()
//! }
//! assert_eq!(elements(33, 16, 0), 3);
//! ```
//!
//! and not by `t`:
//!
//! ```compile_fail,E0425
//! fn elements(k: usize, tile: usize, tx: usize) -> usize {
//!     (0..k.div_ceil(tile)).filter(|p| t * tile + tx < k).count()
//! }
//! ```
