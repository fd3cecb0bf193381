//! Addresses of buffers for work on a stream. The work waits for other streams that use the buffer.

#[cfg(feature = "cuda")]
use super::Storage;
use super::{Buffer, BufferView, BufferViewMut, Pod, Written};
use crate::{error::Result, stream::Stream};

impl<T: Pod> Buffer<T> {
    /// Lets what is queued on `stream` from now on wait for other streams that write this buffer.
    fn read_on(&self, stream: &Stream) -> Result<()> {
        let _ = stream; // on the CPU device all work has ended
        #[cfg(feature = "cuda")]
        if let (Storage::Cuda(memory), Some(stream)) = (&self.storage, stream.cuda()) {
            memory.uses().read_by(stream)?;
        }
        Ok(())
    }

    /// Lets what is queued on `stream` from now on wait for other streams that read or write this buffer.
    fn written_on(&self, stream: &Stream) -> Result<()> {
        let _ = stream;
        #[cfg(feature = "cuda")]
        if let (Storage::Cuda(memory), Some(stream)) = (&self.storage, stream.cuda()) {
            memory.uses().written_by(stream)?;
        }
        Ok(())
    }
}

impl<T: Pod> BufferView<'_, T> {
    /// The address of the first element, for reads that another library queues on `stream`. They wait on the device for other streams
    /// that write the buffer.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver).
    pub fn address_on(&self, stream: &Stream) -> Result<*const T> {
        self.buffer.read_on(stream)?;
        Ok(self.address())
    }
}

impl<T: Pod> BufferViewMut<'_, T> {
    /// The address of the first element, for writes that another library queues on `stream`. They wait on the device for other streams
    /// that use the buffer.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver).
    pub fn address_on(&mut self, stream: &Stream) -> Result<*mut T> {
        self.buffer.written_on(stream)?;
        Ok(self.address())
    }
}

impl<T: Pod> Written<'_, T> {
    /// As [`BufferViewMut::address_on`].
    pub(crate) fn address_on(&mut self, stream: &Stream) -> Result<*mut T> {
        self.buffer.written_on(stream)?;
        Ok((self.buffer.address() as *mut T).wrapping_add(self.start))
    }
}
