//! Memory and streams that are shared with other libraries, without copies.
//!
//! | what | how |
//! |---|---|
//! | raw handles, out | [`BufferView::address_on`](crate::BufferView::address_on), [`Stream::raw_cuda_stream`](crate::Stream::raw_cuda_stream), [`Device::raw_cuda_context`](crate::Device::raw_cuda_context) |
//! | raw handles, in | [`Device::foreign`](crate::Device::foreign), [`Device::foreign_stream`](crate::Device::foreign_stream); within a [`scope`]: `Scope::raw`, `Scope::raw_stream` |
//! | the crate `cust`: `DeviceBuffer`, `Stream` | within a [`scope`], feature `cust` |
//! | the crate `cudarc`: `CudaSlice`, `CudaStream` | within a [`scope`], feature `cudarc` |
//! | DLPack, in and out | [`dlpack`] |
//!
//! All these libraries must use the device's primary context, as they do by default. Memory and
//! streams of another context are refused.

pub mod dlpack;
#[cfg(feature = "cuda")]
mod scope;

#[cfg(feature = "cudarc")]
mod through_cudarc;
#[cfg(feature = "cust")]
mod through_cust;

#[cfg(any(feature = "cudarc", feature = "cust"))]
mod element;

#[cfg(any(feature = "cudarc", feature = "cust"))]
pub use element::ForeignElement;
#[cfg(feature = "cuda")]
pub use scope::{Foreign, ForeignMut, ForeignStream, Scope, scope};
