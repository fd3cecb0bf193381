//! Launches that the compiler refuses.
//!
//! Each example that must not compile differs in one place from this one, which does:
//!
//! ```
//! # use host::{Buffer, Device, Result, simt::LaunchConfig};
//! # use host::gpu::kernels::basic::basic;
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
//! # use host::gpu::kernels::basic::basic;
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
//! # use host::gpu::kernels::basic::basic;
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
//! # use host::gpu::kernels::basic::basic;
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
//! # use host::gpu::kernels::basic::basic;
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
//! # use host::gpu::kernels::basic::basic;
//! fn launch(device: &Device, a: &Buffer<f32>, b: &Buffer<f32>, c: &mut Buffer<f32>) -> Result<()> {
//!     let config = LaunchConfig::new([1, 1, 1], [16, 16, 1]);
//!     // SAFETY: the buffers' lengths are checked, and this kernel keeps to them.
//!     device.stream()?.launch(&basic, &config, (1, 1, 1, a, b, c))
//! }
//! ```
