//! Streams and events.

#[cfg(feature = "cuda")]
mod foreign;
mod kept;

#[cfg(feature = "cuda")]
use std::{ffi::c_void, sync::Arc};
use std::{
    sync::MutexGuard,
    time::{Duration, Instant},
};

use self::kept::Kept;
use crate::{
    buffer::{Buffer, Pod},
    device::Device,
    error::Result,
};
#[cfg(feature = "cuda")]
use crate::{cuda, device::Kind, error::Error};

/// A queue of work on a device. Work on one stream runs in order.
///
/// On a GPU a launch returns at once. On the CPU device it has ended when it returns. Where two streams use a buffer, and one of them
/// writes it, the later work waits on the device for the earlier.
///
/// ```
/// use gpu_gemm::{Device, Gemm, Matrix};
///
/// let device = Device::best().device;
/// let stream = device.stream()?;
/// let a = Matrix::<f32>::zeros(&device, 64, 64)?;
/// let mut c = Matrix::zeros(&device, 64, 64)?;
///
/// let start = stream.record()?;
/// Gemm::new().launch(&stream, a.view(), a.view(), c.view_mut())?;
/// let end = stream.record()?;
/// println!("the product took {:?}", end.since(&start)?);
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    device: Device,
    kept: Kept,
    #[cfg(feature = "cuda")]
    cuda: Option<Arc<cuda::Stream>>,
}

/// A point in a stream: it is reached when all work before it has ended.
#[derive(Debug)]
pub struct Event(Moment);

#[derive(Debug)]
enum Moment {
    Host(Instant),
    #[cfg(feature = "cuda")]
    Cuda(cuda::Event),
}

impl Device {
    /// A new stream.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn stream(&self) -> Result<Stream> {
        #[cfg(feature = "cuda")]
        let cuda = match &*self.0 {
            Kind::Cpu(_) => None,
            Kind::Cuda(gpu) => Some(Arc::new(cuda::Stream::new(&gpu.context)?)),
        };
        Ok(Stream {
            device: self.clone(),
            kept: Kept::default(),
            #[cfg(feature = "cuda")]
            cuda,
        })
    }
}

#[cfg(feature = "cuda")]
impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(stream) = &self.cuda {
            stream.close();
        }
    }
}

impl Stream {
    /// The stream's device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The driver's handle, a `CUstream`, for NVIDIA's libraries. It is valid while this stream lives. `None` on the CPU.
    #[cfg(feature = "cuda")]
    pub fn raw_cuda_stream(&self) -> Option<*mut c_void> {
        self.cuda.as_ref().map(|stream| stream.raw().cast())
    }

    /// The driver's stream. `None` on the CPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn cuda(&self) -> Option<&Arc<cuda::Stream>> {
        self.cuda.as_ref()
    }

    /// Hands `launch` a workspace of `len` elements. Nothing else uses it before the launches on this stream that `launch` makes. The
    /// stream keeps it for the next one.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); those of `launch`.
    pub(crate) fn with_workspace<T: Pod, R>(
        &self,
        len: usize,
        launch: impl FnOnce(&mut Buffer<T>) -> Result<R>,
    ) -> Result<R> {
        self.kept.with_workspace(&self.device, len, launch)
    }

    /// As [`with_workspace`](Self::with_workspace), for the sums of partial products.
    ///
    /// # Errors
    /// As [`with_workspace`](Self::with_workspace).
    pub(crate) fn with_partials<R>(
        &self,
        len: usize,
        launch: impl FnOnce(&mut Buffer<f32>) -> Result<R>,
    ) -> Result<R> {
        self.kept.with_partials(&self.device, len, launch)
    }

    /// Hands `launch` words that are zero. The kernels that it launches leave them zero.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); those of `launch`.
    pub(crate) fn with_zeros<const WORDS: usize>(
        &self,
        launch: impl FnOnce(&mut Buffer<u32>) -> Result<()>,
    ) -> Result<()> {
        self.kept.with_zeros::<WORDS>(&self.device, launch)
    }

    /// Hands `launch` the stream's counters: `len` words that are zero at first.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); those of `launch`.
    pub(crate) fn with_counters<R>(
        &self,
        len: usize,
        launch: impl FnOnce(&mut Buffer<u32>) -> Result<R>,
    ) -> Result<R> {
        self.kept.with_counters(&self.device, len, launch)
    }

    /// Reads the counters `first` and `first + 1` as one number, the low word first. 0 if no kernel has counted. Waits for all work on
    /// the device.
    ///
    /// # Errors
    /// Those of the kernels.
    pub(crate) fn read_counter(&self, first: usize) -> Result<u64> {
        self.kept.read_counter(first)
    }

    /// Locks what the program knows of the counters. `None`: after a launch that nobody waited for.
    pub(crate) fn known_counter(&self) -> MutexGuard<'_, Option<u64>> {
        self.kept.known_counter()
    }

    /// Waits until all work on the stream has ended.
    ///
    /// # Errors
    /// Those of the kernels: a call that waits is the first to see a fault on a GPU.
    pub fn synchronize(&self) -> Result<()> {
        #[cfg(feature = "cuda")]
        if let Some(stream) = &self.cuda {
            return stream.synchronize();
        }
        Ok(())
    }

    /// Records an event after all work that was queued before.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn record(&self) -> Result<Event> {
        #[cfg(feature = "cuda")]
        if let Some(stream) = &self.cuda {
            let event = cuda::Event::new(stream.context())?;
            event.record(stream)?;
            return Ok(Event(Moment::Cuda(event)));
        }
        Ok(Event(Moment::Host(Instant::now())))
    }
}

impl Event {
    #[cfg(feature = "cuda")]
    pub(crate) fn of_cuda(event: cuda::Event) -> Self {
        Event(Moment::Cuda(event))
    }

    /// The driver's event. `None` on the CPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn cuda(&self) -> Option<&cuda::Event> {
        match &self.0 {
            Moment::Host(_) => None,
            Moment::Cuda(event) => Some(event),
        }
    }

    /// Waits until the event is reached.
    ///
    /// # Errors
    /// Those of kernels launched before.
    pub fn wait(&self) -> Result<()> {
        match &self.0 {
            Moment::Host(_) => Ok(()),
            #[cfg(feature = "cuda")]
            Moment::Cuda(event) => event.synchronize(),
        }
    }

    /// The time from `start` to this event, on the device's clock. Waits for both.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for an event of another kind of device; errors of kernels launched before.
    pub fn since(&self, start: &Event) -> Result<Duration> {
        match (&start.0, &self.0) {
            (Moment::Host(start), Moment::Host(end)) => Ok(end.saturating_duration_since(*start)),
            #[cfg(feature = "cuda")]
            (Moment::Cuda(start), Moment::Cuda(end)) => {
                end.synchronize()?;
                let microseconds = cuda::Event::elapsed_us(start, end)?;
                Ok(Duration::from_secs_f64(microseconds.max(0.0) * 1e-6))
            }
            #[cfg(feature = "cuda")]
            _ => Err(Error::argument("start", "an event of another device", "one of this device")),
        }
    }
}
