//! Launching a kernel: its arguments, typed; the checks before; the driver or the fibers.

mod argument;
mod counters;
mod halves;
mod named;

#[cfg(feature = "cuda")]
use std::{ffi::c_void, sync::Arc};
use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

#[cfg(feature = "cuda")]
use simt::Slots;
use simt::{Declaration, Kernel, LaunchConfig, Params};

pub use self::argument::{Argument, Arguments, Unbound};
pub(crate) use self::{argument::check_device, named::Named};
use self::{counters::Counters, halves::with_half};
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{
    buffer::{Buffer, Pod},
    device::{Device, Kind},
    error::{Error, Result},
};

/// A queue of work on a device: launches on it run one after another.
///
/// On the CPU device a launch has ended when it returns.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    /// What products keep in the device's memory while they are computed. Those of a stream follow one another, and so one
    /// memory does for all of them.
    workspace: Mutex<Option<Buffer<u8>>>,
    /// The same for sums of partial products.
    partials: Mutex<Option<Buffer<u8>>>,
    /// Words that are zero between launches.
    zeros: Mutex<Option<Buffer<u32>>>,
    counters: Counters,
    #[cfg(feature = "cuda")]
    cuda: Option<Arc<cuda::Stream>>,
}

/// A moment in a stream.
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
            workspace: Mutex::default(),
            partials: Mutex::default(),
            zeros: Mutex::default(),
            counters: Counters::default(),
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
    /// The device that it belongs to.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The driver's handle, a `CUstream`, for libraries of NVIDIA's that are to run in this stream's order. `None` for the CPU. It is
    /// valid while this stream lives.
    #[cfg(feature = "cuda")]
    pub fn raw_cuda_stream(&self) -> Option<*mut c_void> {
        self.cuda.as_ref().map(|stream| stream.raw().cast())
    }

    /// The driver's stream, of a GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn cuda(&self) -> Option<&Arc<cuda::Stream>> {
        self.cuda.as_ref()
    }

    /// Hands `launch` a memory of so many elements, which nobody else uses before what it launches on this stream. It is
    /// kept for the next that asks.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; those of `launch`.
    pub(crate) fn with_workspace<T: Pod, R>(
        &self,
        len: usize,
        launch: impl FnOnce(&mut Buffer<T>) -> Result<R>,
    ) -> Result<R> {
        self.with_kept(&self.workspace, len, launch)
    }

    /// The same for sums of partial products.
    ///
    /// # Errors
    /// As [`with_workspace`](Self::with_workspace).
    pub(crate) fn with_partials<R>(
        &self,
        len: usize,
        launch: impl FnOnce(&mut Buffer<f32>) -> Result<R>,
    ) -> Result<R> {
        self.with_kept(&self.partials, len, launch)
    }

    fn with_kept<T: Pod, R>(
        &self,
        kept: &Mutex<Option<Buffer<u8>>>,
        len: usize,
        launch: impl FnOnce(&mut Buffer<T>) -> Result<R>,
    ) -> Result<R> {
        let mut workspace = kept.lock().unwrap_or_else(PoisonError::into_inner);
        // What is too small goes first: it may be what leaves no room.
        let kept =
            workspace.take().map(Buffer::cast).filter(|memory: &Buffer<T>| memory.len() >= len);
        let mut memory = match kept {
            Some(memory) => memory,
            None => self.device.uninit(len)?,
        };
        let outcome = launch(&mut memory);
        *workspace = Some(memory.cast());
        outcome
    }

    /// Hands `launch` words that are zero, for kernels that make them so again, one behind the other on this stream.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; those of `launch`, behind which nobody knows what they are.
    pub(crate) fn with_zeros<const WORDS: usize>(
        &self,
        launch: impl FnOnce(&mut Buffer<u32>) -> Result<()>,
    ) -> Result<()> {
        let mut zeros = self.zeros.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = zeros.take().filter(|words| words.len() == WORDS);
        let mut words = match kept {
            Some(words) => words,
            None => self.device.zeros(WORDS)?,
        };
        launch(&mut words)?;
        *zeros = Some(words);
        Ok(())
    }

    /// Waits until all work on it has ended.
    ///
    /// # Errors
    /// Those of the kernels launched on it: a fault on a GPU is seen here at the earliest.
    pub fn synchronize(&self) -> Result<()> {
        #[cfg(feature = "cuda")]
        if let Some(stream) = &self.cuda {
            return stream.synchronize();
        }
        Ok(())
    }

    /// Marks the moment when all work before it has ended.
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

    /// Launches a kernel: `arguments` is the tuple of its arguments, numbers by value, `&Buffer` or a view
    /// for what it reads, `&mut Buffer` or a mutable view for what it writes, [`Boxes`](crate::Boxes) for matrices
    /// that it copies box by box, or an array of them, [`BoxesMut`](crate::BoxesMut) for those that it writes so.
    ///
    /// The types are checked by the compiler. Before anything is launched, the configuration is checked
    /// against what the kernel declares and the device allows, and each buffer against the length that
    /// the kernel declares and the device that it lies on.
    ///
    /// On a GPU it returns at once; [`Stream::synchronize`] and everything that reads a buffer wait. On the device it
    /// comes after all that was queued here, and after what other streams do with the same buffers, one of both
    /// writing.
    ///
    /// # Errors
    /// [`Error::Launch`], naming what is wrong with the launch; [`Error::Ptx`] where the driver refuses
    /// the kernels; on the CPU device [`Error::Kernel`] for a kernel that goes wrong.
    ///
    /// # Safety
    /// 1. The kernel keeps inside its buffers. (On the CPU device views are bounds-checked; on a GPU
    ///    nothing is.)
    /// 2. No two threads of it access one element, one of them writing, without a barrier between.
    /// 3. No work on another stream that has not been waited for touches the same variables, one of both writing,
    ///    except through [`Symbol`](crate::Symbol). (What it does with the buffers is waited for.)
    /// 4. What the kernel's pointer variables point to is there until the kernel has ended, and used by it as the
    ///    other conditions say.
    /// 5. A thread of the kernel holds no two references into one `Out` or shared array, one of them mutable, and none where it waits
    ///    for threads that write there. No reference, view, tensor map or shared array outlives the thread.
    /// 6. Where a thread waits, or makes an atomic operation, it holds nothing whose destructor must run, and lends nothing to another
    ///    thread of the process: on the CPU device it is abandoned there when another one goes wrong, and wherever it is where its stack
    ///    is too small.
    pub unsafe fn launch<P: Params, A: Arguments<P>>(
        &self,
        kernel: &Kernel<P>,
        config: &LaunchConfig,
        arguments: A,
    ) -> Result<()> {
        let declaration = &kernel.declaration;
        let refuse = |what| refused(declaration, config, what);
        let names = declaration.params.iter().map(|param| param.name);
        let constants = with_half(declaration, config.constants, || arguments.halves());
        let config = &LaunchConfig { constants: constants.map_err(refuse)?, ..*config };
        // SAFETY: the arguments are borrowed until this returns, and what is launched uses them as this function's contract says.
        let params = unsafe { arguments.bind(self, &mut { names }) }
            .map_err(|unbound| unbound.into_error(declaration, config))?;
        kernel.check(config, &self.device.limits(), &params).map_err(refuse)?;
        crate::testing::launched();
        match &*self.device.0 {
            Kind::Cpu(cpu) => {
                let options = cpu_options(cpu.workers, config);
                // SAFETY: the caller's promises; the buffers are borrowed until this returns.
                unsafe { simt::cpu::launch(kernel, config, params, &options) }
                    .map_err(|stop| Error::from_stop(called(declaration, config), stop))
            }
            // SAFETY: the caller's promises; the slots hold the values of the kernel's parameters.
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => unsafe { self.begin(gpu, declaration, config, params.slots()) },
        }
    }

    /// Launches a kernel on a GPU.
    ///
    /// # Safety
    /// As for [`launch`](Self::launch), and the slots hold the values of the kernel's parameters.
    #[cfg(feature = "cuda")]
    unsafe fn begin(
        &self,
        gpu: &crate::device::Cuda,
        declaration: &Declaration,
        config: &LaunchConfig,
        mut slots: Slots,
    ) -> Result<()> {
        let Some(stream) = &self.cuda else {
            let what = "a CUDA device's stream has no CUDA stream".to_owned();
            return Err(refused(declaration, config, what));
        };
        let function = gpu.function(declaration, &config.constants)?;
        if config.dynamic_shared > 0 {
            function.set_max_dynamic_shared(config.dynamic_shared)?;
        }
        // A cluster that the kernel declares stands in its PTX.
        let cluster = if declaration.cluster.is_some() { [1; 3] } else { config.cluster };
        let config = LaunchConfig { cluster, ..*config };
        let mut pointers = slots.pointers().map(<*mut u64>::cast).collect::<Vec<_>>();
        // SAFETY: the slots hold the values of the kernel's parameters (`Param`, and the
        // declaration in the PTX is the source's). The rest is the caller's promise.
        unsafe { function.launch(stream, &config, &mut pointers) }
    }
}

/// What the kernel of a launch is called.
fn called(declaration: &Declaration, config: &LaunchConfig) -> &'static str {
    config.constants.variant().unwrap_or(declaration.name)
}

/// The error of a launch with which something is wrong.
fn refused(declaration: &Declaration, config: &LaunchConfig, what: String) -> Error {
    Error::Launch { kernel: called(declaration, config), what }
}

/// How a launch on the CPU device is carried out.
fn cpu_options(workers: Option<usize>, config: &LaunchConfig) -> simt::cpu::Options<'static> {
    let mut options = simt::cpu::Options::default();
    options.workers = workers;
    options.cancel = Some(&crate::INTERRUPTED);
    options.done = Some(crate::progress::begin(config.blocks()));
    options
}

impl Event {
    #[cfg(feature = "cuda")]
    pub(crate) fn of_cuda(event: cuda::Event) -> Self {
        Event(Moment::Cuda(event))
    }

    /// The driver's event, of a GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn cuda(&self) -> Option<&cuda::Event> {
        match &self.0 {
            Moment::Host(_) => None,
            Moment::Cuda(event) => Some(event),
        }
    }

    /// Waits until it has come.
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

    /// Time from `start` to this event, after waiting for both.
    ///
    /// # Errors
    /// Those of kernels launched before.
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
