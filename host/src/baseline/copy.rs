//! A copy of C on the device. It stands for a kernel of its own that changes each element: such a
//! kernel reads and writes all of C, too, so it takes no less time.

use std::{cell::RefCell, fmt};

use gpu_gemm::{Buffer, BufferView, Error, Pod, Result, Stream};

/// Copies of buffers with one length, on a stream.
pub struct Copy<'a, T> {
    stream: &'a Stream,
    target: RefCell<Buffer<T>>,
}

impl<T> fmt::Debug for Copy<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Copy(on {:?})", self.stream)
    }
}

impl<'a, T: Pod> Copy<'a, T> {
    /// Allocates what is copied to.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn new(stream: &'a Stream, len: usize) -> Result<Self> {
        Ok(Copy { stream, target: RefCell::new(stream.device().uninit(len)?) })
    }

    /// Queues a copy. Returns at once.
    ///
    /// # Errors
    /// [`Error::Argument`] for a stream of the CPU device, a buffer of another device, and another
    /// length; [`Error::Driver`].
    pub fn launch(&self, from: BufferView<T>) -> Result<()> {
        let (own, mut target) = (self.stream.device(), self.target.borrow_mut());
        if from.device() != own {
            let limit = format!("must lie on {}", own.name());
            return Err(Error::argument("from", from.device().name(), limit));
        }
        if from.len() != target.len() {
            let limit = format!("must be {}", target.len());
            return Err(Error::argument("from.len()", from.len(), limit));
        }
        let Some(queue) = self.stream.raw_cuda_stream() else {
            let limit = "the driver copies on a GPU alone";
            return Err(Error::argument("device", own.name(), limit));
        };
        own.make_current()?;
        let bytes = from.len() * size_of::<T>();
        let target = target.all_mut().address_on(self.stream)? as u64;
        let source = from.address_on(self.stream)? as u64;
        // SAFETY: both have that many bytes on the stream's device. A buffer is freed only after
        // the work that was queued before.
        let copied = unsafe { cuda_dyn::cuMemcpyDtoDAsync_v2(target, source, bytes, queue.cast()) };
        copied.map_err(|failure| Error::Driver {
            call: failure.function,
            code: failure.code,
            name: cuda_dyn::error_name(failure.code).to_owned(),
            text: cuda_dyn::error_text(failure.code).to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::Device;

    #[test]
    fn it_is_for_a_gpu_and_one_length() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        let buffer = device.zeros::<f32>(3).unwrap();
        let error = |len| Copy::new(&stream, len).unwrap().launch(buffer.all()).unwrap_err();
        assert_eq!(error(3).to_string(), "device = cpu: the driver copies on a GPU alone");
        assert_eq!(error(4).to_string(), "from.len() = 3: must be 4");
    }
}
