//! Addresses of buffers for work on a stream. The work waits for other streams that use the buffer.

use super::{Buffer, BufferView, BufferViewMut, Pod, UsedRange, Written};
use crate::{
    error::{Error, Result},
    stream::Stream,
};

impl<T: Pod> Buffer<T> {
    /// The address of the element at `start`, of which `len` are read or, if `is_written`, written
    /// by what is queued on `stream` from now on. That waits for other streams that write the
    /// buffer or, before a write, use it.
    ///
    /// # Errors
    /// [`Error::Argument`] for a stream of another device, which could wait for nobody; those of
    /// the driver.
    fn used_on(&self, stream: &Stream, start: usize, len: usize, is_written: bool) -> Result<u64> {
        if stream.device() != self.device() {
            let limit = format!("must be of {}, as the memory", self.device().name());
            return Err(Error::argument("stream", stream.device().name(), limit));
        }
        let address = self.address().wrapping_add((start * size_of::<T>()) as u64);
        let range = UsedRange::new::<T>(address, len, is_written);
        if let Some(lane) = stream.lane() {
            lane.note(self.device(), range)?;
            return Ok(address);
        }
        if stream.notes_use(range) {
            // On the CPU device all work has ended.
            #[cfg(feature = "cuda")]
            if let Some(stream) = stream.cuda() {
                self.storage.used_by(stream, is_written)?;
            }
        }
        Ok(address)
    }
}

impl<T: Pod> BufferView<'_, T> {
    /// The address of the first element, for reads that another library queues on `stream`. They
    /// wait on the device for other streams that write the buffer.
    ///
    /// # Errors
    /// [`Error::Argument`] for a stream of another device; [`Error::Driver`].
    pub fn address_on(&self, stream: &Stream) -> Result<*const T> {
        self.buffer.used_on(stream, self.start, self.len, false).map(|address| address as *const T)
    }
}

impl<T: Pod> BufferViewMut<'_, T> {
    /// The address of the first element, for writes that another library queues on `stream`. They
    /// wait on the device for other streams that use the buffer.
    ///
    /// # Errors
    /// [`Error::Argument`] for a stream of another device; [`Error::Driver`].
    pub fn address_on(&mut self, stream: &Stream) -> Result<*mut T> {
        self.buffer.used_on(stream, self.start, self.len, true).map(|address| address as *mut T)
    }
}

impl<T: Pod> Written<'_, T> {
    /// As [`BufferViewMut::address_on`].
    pub(crate) fn address_on(&mut self, stream: &Stream) -> Result<*mut T> {
        self.buffer.used_on(stream, self.start, self.len(), true).map(|address| address as *mut T)
    }
}
