//! Memory and streams of the crate `cudarc`.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DevicePtrMut};

use super::{Foreign, ForeignElement, ForeignMut, ForeignStream, Scope};
use crate::error::{Error, Result};

/// A slice that is written in the scope. Dropped at the end, it notes that it was written on its
/// stream.
struct Written<'env, E> {
    slice: &'env mut CudaSlice<E>,
    stream: Arc<CudaStream>,
}

impl<E> Drop for Written<'_, E> {
    fn drop(&mut self) {
        let (_, record) = self.slice.device_ptr_mut(&self.stream);
        drop(record);
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// A slice of `cudarc`, for reading. Its stream, and with `cudarc`'s events every other stream
    /// of `cudarc`, is waited for, and waits after the scope.
    ///
    /// # Errors
    /// As [`raw`](Self::raw).
    pub fn cudarc<E: ForeignElement>(
        &'scope self,
        slice: &'env CudaSlice<E>,
    ) -> Result<Foreign<'scope, E::Element>> {
        let (stream, len) = (slice.stream(), slice.len());
        self.check_context(stream.context())?;
        // Lets the slice's stream wait for others. Dropped at the end, `record` notes that the
        // slice was read on it.
        let (address, record) = slice.device_ptr(stream);
        let handle = stream.cu_stream();
        self.keep(record);
        // SAFETY: the slice is borrowed longer than the scope, and has its stream. `cudarc` frees
        // and writes it in the order of that stream, or after the event that is recorded there at
        // the end. An element of a sealed type is `E::Element` in the same bytes.
        unsafe { self.raw(address, len, handle.cast()) }
    }

    /// As [`cudarc`](Self::cudarc), for writing.
    ///
    /// # Errors
    /// As [`raw`](Self::raw).
    pub fn cudarc_mut<E: ForeignElement + Send>(
        &'scope self,
        slice: &'env mut CudaSlice<E>,
    ) -> Result<ForeignMut<'scope, E::Element>> {
        let (stream, len) = (slice.stream().clone(), slice.len());
        self.check_context(stream.context())?;
        let handle = stream.cu_stream();
        // Lets the slice's stream wait for others.
        let (address, _) = slice.device_ptr_mut(&stream);
        self.keep(Written { slice, stream });
        // SAFETY: as in `cudarc`; the slice is borrowed mutably.
        unsafe { self.raw_mut(address, len, handle.cast()) }
    }

    /// A stream of `cudarc`.
    ///
    /// # Errors
    /// As [`raw_stream`](Self::raw_stream).
    pub fn cudarc_stream(
        &'scope self,
        stream: &'env Arc<CudaStream>,
    ) -> Result<ForeignStream<'scope>> {
        self.check_context(stream.context())?;
        // SAFETY: it is borrowed longer than the scope.
        unsafe { self.raw_stream(stream.cu_stream().cast()) }
    }

    /// Refuses a context that is not the device's. For the default stream the driver does not say
    /// whose it is.
    fn check_context(&self, context: &CudaContext) -> Result<()> {
        let its = context.cu_ctx().cast();
        if self.device().raw_cuda_context() == Some(its) {
            return Ok(());
        }
        let limit = format!("must be the primary one of {}", self.device().name());
        let value = format!("that of cudarc's device {}", context.ordinal());
        Err(Error::argument("context", value, limit))
    }
}
