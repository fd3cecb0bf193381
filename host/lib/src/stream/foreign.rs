//! Streams of other libraries.

use std::{ffi::c_void, sync::Arc};

use super::{Kept, Stream};
use crate::{
    cuda,
    device::{Device, Kind},
    error::{Error, Result},
};

impl Device {
    /// A stream that another library owns: a `CUstream`, as PyTorch, CuPy, cudarc and NVIDIA's libraries have it. Null, and the driver's
    /// handles 1 and 2, are the default streams. Dropping the value does not destroy the stream.
    ///
    /// The value keeps the workspace of its products. So a program keeps one value for a handle. The handle 2 is another stream in each
    /// thread, so there it keeps one for each thread, and uses it in that thread alone.
    ///
    /// ```
    /// use std::ptr::null_mut;
    ///
    /// use gpu_gemm::Device;
    ///
    /// // SAFETY: the CPU refuses every stream.
    /// let error = unsafe { Device::cpu().foreign_stream(null_mut()) }.unwrap_err();
    /// assert_eq!(error.to_string(), "stream = 0x0: the CPU has no streams of other libraries");
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] on the CPU.
    ///
    /// # Safety
    /// 1. `raw` is a default stream, or a stream of this device's primary context. It exists until the value is dropped, and until
    ///    every buffer that was used on it is dropped or its work has been waited for.
    /// 2. With the handle 2 the value is used in one thread alone.
    pub unsafe fn foreign_stream(&self, raw: *mut c_void) -> Result<Stream> {
        match &*self.0 {
            Kind::Cpu(_) => {
                let limit = "the CPU has no streams of other libraries";
                Err(Error::argument("stream", format!("{:#x}", raw.addr()), limit))
            }
            Kind::Cuda(gpu) => {
                // SAFETY: the caller's promises.
                let stream = unsafe { cuda::Stream::foreign(&gpu.context, raw.cast()) };
                let (device, kept) = (self.clone(), Kept::default());
                Ok(Stream { device, kept, cuda: Some(Arc::new(stream)) })
            }
        }
    }
}
