//! Memory and streams of the crate `cust`.

use cust::{
    memory::{DeviceBuffer, DeviceCopy, DeviceSlice},
    stream::Stream,
};

use super::{Foreign, ForeignElement, ForeignMut, ForeignStream, Scope};
use crate::error::Result;

impl<'scope, 'env> Scope<'scope, 'env> {
    /// A buffer of `cust`, which the program uses on `stream`, for reading.
    ///
    /// After the scope `stream` has waited for the work of the scope. A copy to the host waits for
    /// `stream` first (`stream.synchronize()`), as after any launch by `cust`.
    ///
    /// # Errors
    /// As [`raw`](Self::raw).
    pub fn cust<E: ForeignElement + DeviceCopy>(
        &'scope self,
        buffer: &'env DeviceBuffer<E>,
        stream: &'env Stream,
    ) -> Result<Foreign<'scope, E::Element>> {
        // SAFETY: buffer and stream are borrowed longer than the scope. To free the memory the
        // driver waits for all work that was queued before. An element of a sealed type is
        // `E::Element` in the same bytes.
        unsafe { self.cust_slice(buffer, stream) }
    }

    /// As [`cust`](Self::cust), for writing.
    ///
    /// # Errors
    /// As [`raw`](Self::raw).
    pub fn cust_mut<E: ForeignElement + DeviceCopy>(
        &'scope self,
        buffer: &'env mut DeviceBuffer<E>,
        stream: &'env Stream,
    ) -> Result<ForeignMut<'scope, E::Element>> {
        let (address, handle) = (buffer.as_device_ptr().as_raw(), stream.as_inner());
        // SAFETY: as in `cust`; the buffer is borrowed mutably.
        unsafe { self.raw_mut(address, buffer.len(), handle.cast()) }
    }

    /// As [`cust`](Self::cust), for a slice. A slice of `cust` has no lifetime.
    ///
    /// # Errors
    /// As [`raw`](Self::raw).
    ///
    /// # Safety
    /// 1. The memory of the slice exists until the scope has ended, and is freed in the order of
    ///    the stream, by the driver's `cuMemFree`, or after a wait for the stream.
    pub unsafe fn cust_slice<E: ForeignElement + DeviceCopy>(
        &'scope self,
        slice: &DeviceSlice<E>,
        stream: &'env Stream,
    ) -> Result<Foreign<'scope, E::Element>> {
        let (address, handle) = (slice.as_device_ptr().as_raw(), stream.as_inner());
        // SAFETY: condition 1. The stream is borrowed longer than the scope.
        unsafe { self.raw(address, slice.len(), handle.cast()) }
    }

    /// A stream of `cust`.
    ///
    /// # Errors
    /// As [`raw_stream`](Self::raw_stream).
    pub fn cust_stream(&'scope self, stream: &'env Stream) -> Result<ForeignStream<'scope>> {
        // SAFETY: it is borrowed longer than the scope.
        unsafe { self.raw_stream(stream.as_inner().cast()) }
    }
}
