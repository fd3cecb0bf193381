//! Streams and events.

mod capture;
mod kept;
pub(crate) mod lane;
pub(crate) mod ledger;
mod mode;

#[cfg(feature = "cuda")]
use std::{ffi::c_void, sync::Arc};
use std::{
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use self::kept::Allocator;
pub(crate) use self::{kept::Kept, mode::Mode};
use crate::{
    buffer::{Buffer, Pod},
    device::Device,
    error::{Error, Result},
};
#[cfg(feature = "cuda")]
use crate::{cuda, device::Kind};

/// A queue of work on a device. Work on one stream runs in order.
///
/// On a GPU a launch returns at once. On the CPU device it has ended when it returns. Where two
/// streams use a buffer, and one of them writes it, the later work waits on the device for the
/// earlier.
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
    mode: Mode,
    kept: Kept,
    /// What is kept for the next graph: [`Stream::prepare`] allocates it.
    reserved: Mutex<Kept>,
    /// A plan orders what is launched, where there is one.
    lane: Option<ledger::Lane>,
    #[cfg(feature = "cuda")]
    cuda: Option<Arc<cuda::Stream>>,
    /// Whether it belongs to another value: then dropping this one does not close it.
    #[cfg(feature = "cuda")]
    borrowed: bool,
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
        if let Kind::Cuda(gpu) = &*self.0 {
            let cuda = Arc::new(cuda::Stream::new(&gpu.context)?);
            return Ok(Stream::of_cuda(self, cuda, false));
        }
        Ok(Stream::new(self, Mode::Launching, Kept::default()))
    }

    /// A stream of another library, whose handle is `raw`, a `CUstream`. Null is the default
    /// stream. Dropping the result does not destroy it, and waits for nothing: what waits for its
    /// work later waits for that which was queued until then.
    ///
    /// # Errors
    /// [`Error::Argument`] for the CPU device, and for a stream of another context than the primary
    /// one of this device.
    ///
    /// A product that needs workspace is refused while another library captures the stream. Each
    /// launch asks the driver whether somebody captures the stream. A kernel that is launched in
    /// such a capture stays loaded until the device's primary context ends, also after the device
    /// is dropped: the graph of that library has it. All other kernels are unloaded with the
    /// device.
    ///
    /// # Safety
    /// 1. `raw` is a stream, or null, until the result is dropped. It is dropped: forgetting it is
    ///    as keeping it.
    /// 2. If another library captures the stream, the operands of what is launched meanwhile exist
    ///    as long as the graph, and the result is not dropped before the capture has ended.
    /// 3. If `raw` is the default stream of the thread that uses it (2), the result is used in one
    ///    thread alone.
    #[cfg(feature = "cuda")]
    pub unsafe fn foreign_stream(&self, raw: *mut c_void) -> Result<Stream> {
        let Kind::Cuda(gpu) = &*self.0 else {
            return Err(Error::argument(
                "device",
                self.name(),
                "must be a GPU, for a stream of one",
            ));
        };
        // SAFETY: condition 1. `Stream` gives the handle back when it is dropped.
        let cuda = Arc::new(unsafe { cuda::Stream::foreign(&gpu.context, raw.cast()) }?);
        Ok(Stream::of_cuda(self, cuda, false))
    }

    /// Refuses an argument that is not on this device, which is `whose`.
    pub(crate) fn refuse_elsewhere(&self, name: &str, of: &Device, whose: &str) -> Result<()> {
        if of == self {
            return Ok(());
        }
        let limit = format!("must be on {whose}, {}", self.name());
        Err(Error::argument(name, of.name(), limit))
    }
}

impl Stream {
    /// A stream without a stream of the driver.
    fn new(device: &Device, mode: Mode, kept: Kept) -> Self {
        Stream {
            device: device.clone(),
            mode,
            kept,
            reserved: Mutex::default(),
            lane: None,
            #[cfg(feature = "cuda")]
            cuda: None,
            #[cfg(feature = "cuda")]
            borrowed: false,
        }
    }

    /// A stream of the driver. `borrowed`: others close it.
    #[cfg(feature = "cuda")]
    pub(crate) fn of_cuda(device: &Device, cuda: Arc<cuda::Stream>, borrowed: bool) -> Self {
        Stream::new(device, Mode::Launching, Kept::default()).on(Some(cuda), borrowed)
    }

    /// This stream, on a stream of the driver.
    #[cfg(feature = "cuda")]
    fn on(mut self, cuda: Option<Arc<cuda::Stream>>, borrowed: bool) -> Self {
        self.cuda = cuda;
        self.borrowed = borrowed;
        self
    }
}

#[cfg(feature = "cuda")]
impl Drop for Stream {
    fn drop(&mut self) {
        if let (Some(stream), false) = (&self.cuda, self.borrowed) {
            stream.close();
            // Of a stream of another library. After an error all work was waited for, if that was
            // possible.
            let _ = stream.give_back();
        }
    }
}

impl Stream {
    /// The stream's device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Ends the use of a stream of another library ([`Device::foreign_stream`]) whose handle may
    /// exist no more, once its work has ended: waits for all work of the device, and does not use
    /// the handle. Of another stream this is a drop.
    ///
    /// # Errors
    /// Those of the driver. The stream is dropped all the same.
    #[cfg(feature = "cuda")]
    pub fn abandon(self) -> Result<()> {
        match &self.cuda {
            Some(stream) if stream.is_lent() => {
                let outcome = stream.context().synchronize();
                stream.replace(None);
                outcome
            }
            _ => Ok(()),
        }
    }

    /// The driver's handle, a `CUstream`, for NVIDIA's libraries. It is valid while this stream
    /// lives. `None` on the CPU.
    ///
    /// Another library may capture the stream. From now on each launch asks the driver for that,
    /// and a kernel that is launched in such a capture stays loaded, as on a [stream of another
    /// library](Device::foreign_stream).
    ///
    /// In the [capture](Self::capture) of a graph, what another library queues there becomes a part
    /// of the graph. Its operands are those whose addresses come from
    /// [`BufferView::address_on`](crate::BufferView::address_on): the launch of the graph asks for
    /// them.
    #[cfg(feature = "cuda")]
    pub fn raw_cuda_stream(&self) -> Option<*mut c_void> {
        self.cuda.as_ref().map(|stream| {
            stream.share();
            (*stream.raw()).cast()
        })
    }

    /// The driver's stream. `None` on the CPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn cuda(&self) -> Option<&Arc<cuda::Stream>> {
        self.cuda.as_ref()
    }

    /// Hands `launch` memory of `len` elements, which `take` takes from what the stream keeps:
    /// `Kept::with_workspace` and so on. Of no elements there is nothing to keep.
    ///
    /// # Errors
    /// [`Error::Capture`](crate::Error::Capture) in a capture of another library, whose graph would
    /// keep its addresses; [`Error::OutOfMemory`](crate::Error::OutOfMemory); those of `launch`.
    pub(crate) fn of_kept<T: Pod, R, L: FnOnce(&mut Buffer<T>) -> Result<R>>(
        &self,
        take: impl FnOnce(&Kept, Allocator, usize, L) -> Result<R>,
        len: usize,
        launch: L,
    ) -> Result<R> {
        if len == 0 {
            return launch(&mut self.device.uninit(0)?);
        }
        let allocator: Allocator = (&self.device, &|bytes| self.may_allocate(bytes));
        self.in_no_capture(|| take(&self.kept, allocator, len, launch))
    }

    /// Reads the counters `first` and `first + 1` as one number, the low word first. 0 if no kernel
    /// has counted. Waits for all work on the device.
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
    /// [`Error::Capture`](crate::Error::Capture) in the capture of a graph.
    pub fn synchronize(&self) -> Result<()> {
        self.refuse_in_capture("a wait for the stream: launch, do not run")?;
        #[cfg(feature = "cuda")]
        if let Some(stream) = &self.cuda {
            return stream.synchronize();
        }
        Ok(())
    }

    /// Waits for all work on the stream, at most until then. Whether it has ended.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    pub(crate) fn ends_by(&self, deadline: Option<Instant>) -> Result<bool> {
        #[cfg(feature = "cuda")]
        if let Some(stream) = &self.cuda {
            // The driver has no wait with a limit. A sleep takes 0.1 ms more than the work.
            const AWAKE: Duration = Duration::from_millis(20);
            let begin = Instant::now();
            while !stream.has_ended()? {
                let now = Instant::now();
                if deadline.is_some_and(|deadline| deadline <= now) {
                    return Ok(false);
                }
                match now - begin < AWAKE {
                    true => std::thread::yield_now(),
                    false => std::thread::sleep(Duration::from_micros(50)),
                }
            }
        }
        let _ = deadline;
        Ok(true)
    }

    /// Records an event after all work that was queued before.
    ///
    /// # Errors
    /// Those of the driver. [`Error::Capture`](crate::Error::Capture) in the capture of a graph.
    pub fn record(&self) -> Result<Event> {
        self.refuse_in_capture("an event: record it before and after the launch of the graph")?;
        #[cfg(feature = "cuda")]
        if let Some(stream) = &self.cuda {
            return Ok(Event(Moment::Cuda(cuda::Event::of(stream)?)));
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
    /// [`Error::Argument`](crate::Error::Argument) for an event of another kind of device; errors
    /// of kernels launched before.
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
