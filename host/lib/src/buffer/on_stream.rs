//! Buffers in the order of streams: the address of elements for work on a stream, which waits for other streams.

#[cfg(feature = "cuda")]
use super::Storage;
use super::{Buffer, BufferView, BufferViewMut, Pod, Written};
use crate::{error::Result, stream::Stream};

impl<T: Pod> Buffer<T> {
    /// What is queued on `stream` from now on reads it, after what other streams write.
    fn read_on(&self, stream: &Stream) -> Result<()> {
        let _ = stream; // on the CPU device all has ended
        #[cfg(feature = "cuda")]
        if let (Storage::Cuda(memory), Some(stream)) = (&self.storage, stream.cuda()) {
            memory.uses().read_by(stream)?;
        }
        Ok(())
    }

    /// What is queued on `stream` from now on writes it, after what other streams do with it.
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
    /// The address of its first element, for work that another library queues on `stream`. Other streams' is waited for.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn address_on(&self, stream: &Stream) -> Result<*const T> {
        self.buffer.read_on(stream)?;
        Ok(self.address())
    }
}

impl<T: Pod> BufferViewMut<'_, T> {
    /// The address of its first element, for work that another library queues on `stream`. Other streams' is waited for.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn address_on(&mut self, stream: &Stream) -> Result<*mut T> {
        self.buffer.written_on(stream)?;
        Ok(self.address())
    }
}

impl<T: Pod> Written<'_, T> {
    /// Its first element's address, for work that is queued on `stream`: other streams' is waited for.
    pub(crate) fn address_on(&mut self, stream: &Stream) -> Result<*mut T> {
        self.buffer.written_on(stream)?;
        Ok((self.buffer.address() as *mut T).wrapping_add(self.start))
    }
}
