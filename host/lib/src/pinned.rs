//! Asynchronous copies between host and device.

use std::{
    marker::PhantomData,
    mem::{self, ManuallyDrop},
};

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{
    buffer::{BufferView, BufferViewMut, Pod},
    device::{Device, Kind},
    error::{Error, Result},
    memory::HostMemory,
    stream::{Event, Stream},
};

/// An array in host memory for asynchronous copies: [`Stream::upload`] and [`Stream::download`].
///
/// For a GPU the memory is page-locked. The system has less memory for other programs then, so do
/// not allocate more than needed. For the CPU device it is ordinary memory, and a copy has ended
/// when the call returns.
///
/// Access to the elements, and drop, wait for the last copy.
///
/// ```
/// use gpu_gemm::{Device, Lines};
///
/// let device = Device::best().device;
/// let stream = device.stream()?;
/// let mut host = device.pinned::<f32>(4)?;
/// host.as_mut_slice()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
///
/// // Two lines of two elements, which start three elements apart in the buffer.
/// let mut buffer = device.zeros::<f32>(6)?;
/// let lines = Lines { count: 2, len: 2, stride: 3 };
/// stream.upload(&mut host, buffer.all_mut(), lines)?;
/// assert_eq!(buffer.to_vec()?, [1.0, 2.0, 0.0, 3.0, 4.0, 0.0]);
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct Pinned<T> {
    device: Device,
    len: usize,
    /// Never freed if a copy may still run.
    storage: ManuallyDrop<Storage>,
    last: Last,
    element: PhantomData<T>,
}

#[derive(Debug)]
enum Storage {
    Host(HostMemory),
    #[cfg(feature = "cuda")]
    Cuda(cuda::PinnedMemory),
}

/// The last copy.
#[derive(Debug)]
enum Last {
    /// It has ended.
    Ended,
    /// It has ended when the event is reached.
    #[cfg_attr(
        not(feature = "cuda"),
        expect(dead_code, reason = "only a GPU copies asynchronously")
    )]
    Until(Event),
    /// The driver failed during it. It may still run.
    Lost,
}

/// Lines of contiguous elements in a buffer: the rows of a part of a row-major matrix, for example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The number of lines.
    pub count: usize,
    /// Elements of a line.
    pub len: usize,
    /// Elements from the start of one line to the start of the next.
    pub stride: usize,
}

impl Device {
    /// An array of `len` zeros in host memory, for copies to and from this device.
    ///
    /// # Errors
    /// [`Error::Argument`] for more elements than can be addressed; [`Error::OutOfMemory`]; those
    /// of the driver.
    pub fn pinned<T: Pod>(&self, len: usize) -> Result<Pinned<T>> {
        const { assert!(size_of::<T>() > 0, "an element has a size") };
        let limit = isize::MAX as usize / size_of::<T>();
        if len > limit {
            return Err(Error::argument("len", len, format!("must be at most {limit}")));
        }
        let bytes = len * size_of::<T>();
        let storage = ManuallyDrop::new(match &*self.0 {
            Kind::Cpu(_) => Storage::Host(HostMemory::zeroed(bytes)?),
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => Storage::Cuda(cuda::PinnedMemory::zeroed(&gpu.context, bytes)?),
        });
        Ok(Pinned { device: self.clone(), len, storage, last: Last::Ended, element: PhantomData })
    }
}

impl<T: Pod> Pinned<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements, for reading. Waits for the last copy.
    ///
    /// # Errors
    /// Those of the copy, and of kernels launched before it.
    pub fn as_slice(&mut self) -> Result<&[T]> {
        self.as_mut_slice().map(|slice| &*slice)
    }

    /// The elements, for writing. Waits for the last copy.
    ///
    /// # Errors
    /// As [`Pinned::as_slice`].
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        self.wait()?;
        if self.len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the memory has `len` elements, aligned as all allocations here are. Its bytes
        // were zeroed once, and any bytes that a copy has written are values. No copy runs, and
        // none is queued while the slice borrows `self`.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len) })
    }

    fn as_ptr(&self) -> *mut T {
        match &*self.storage {
            Storage::Host(memory) => memory.as_ptr().cast(),
            #[cfg(feature = "cuda")]
            Storage::Cuda(memory) => memory.as_ptr().cast(),
        }
    }
}

impl<T> Pinned<T> {
    /// Waits for the last copy.
    fn wait(&mut self) -> Result<()> {
        self.last.wait()
    }
}

impl Last {
    /// Waits for it.
    fn wait(&mut self) -> Result<()> {
        if let Last::Until(event) = self {
            let ended = event.wait();
            *self = if ended.is_ok() { Last::Ended } else { Last::Lost };
            ended?;
        }
        match self {
            Last::Lost => {
                let value = "a copy that the driver has lost";
                Err(Error::argument("pinned memory", value, "cannot be used any more"))
            }
            _ => Ok(()),
        }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        let last = mem::replace(&mut self.last, Last::Ended);
        // SAFETY: it is not used after this.
        let storage = ManuallyDrop::new(unsafe { ManuallyDrop::take(&mut self.storage) });
        let free = move || {
            let (mut last, storage) = (last, storage);
            // If the wait fails, a copy may still run. Then the memory is leaked: the copy could
            // write to it after it is reused.
            if last.wait().is_ok() {
                drop(ManuallyDrop::into_inner(storage));
            }
        };
        #[cfg(feature = "cuda")]
        cuda::release(free);
        #[cfg(not(feature = "cuda"))]
        free();
    }
}

impl Stream {
    /// Queues a copy of the first `lines.count * lines.len` elements of `from` to lines of a
    /// buffer. On the CPU device it has ended when this returns.
    ///
    /// The copy waits for work on other streams that uses the buffer, and later work there waits
    /// for the copy.
    ///
    /// # Errors
    /// [`Error::Argument`] for lines that overlap or that are beyond the buffer's end, for too few
    /// elements, and for memory of another device: nothing is copied. Those of the driver.
    pub fn upload<T: Pod>(
        &self,
        from: &mut Pinned<T>,
        mut to: BufferViewMut<T>,
        lines: Lines,
    ) -> Result<()> {
        self.check_copy(from, "to", to.device(), to.len(), lines)?;
        let address = to.address_on(self)?;
        // SAFETY: the lines are inside the view and inside the pinned memory.
        unsafe { self.queue(Way::ToDevice, from, address, lines) }
    }

    /// Queues a copy of lines of a buffer to the first `lines.count * lines.len` elements of `to`.
    /// On the CPU device it has ended when this returns.
    ///
    /// The copy waits for work on other streams that writes the buffer, and later work there waits
    /// for the copy.
    ///
    /// # Errors
    /// As [`Stream::upload`].
    pub fn download<T: Pod>(
        &self,
        from: BufferView<T>,
        to: &mut Pinned<T>,
        lines: Lines,
    ) -> Result<()> {
        self.check_copy(to, "from", from.device(), from.len(), lines)?;
        let address = from.address_on(self)?.cast_mut();
        // SAFETY: as in `upload`.
        unsafe { self.queue(Way::ToHost, to, address, lines) }
    }

    /// Lets what is queued on this stream from now on wait for an event of another stream.
    ///
    /// # Errors
    /// Those of the driver. [`Error::Capture`] in the capture of a graph.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        self.refuse_in_capture("a wait for an event: the stream that launches the graph can wait")?;
        #[cfg(feature = "cuda")]
        if let (Some(stream), Some(event)) = (self.cuda(), event.cuda()) {
            return stream.wait_for(event);
        }
        // An event of the CPU device has been reached. What is launched on a stream of that device
        // has no later time to wait.
        event.wait()
    }

    /// Checks the arguments of a copy, and waits for the last one.
    fn check_copy<T: Pod>(
        &self,
        pinned: &mut Pinned<T>,
        name: &str,
        device: &Device,
        len: usize,
        lines: Lines,
    ) -> Result<()> {
        // A graph would read and write the host's memory at each launch.
        self.refuse_in_capture(
            "a copy from or to pinned memory: queue it before and after the launch of the graph",
        )?;
        for (name, of) in [("pinned memory", &pinned.device), (name, device)] {
            self.device().refuse_elsewhere(name, of, "the stream's device")?;
        }
        let Lines { count, len: line, stride } = lines;
        if count > 1 && stride < line {
            let limit = format!("lines of {line} elements would overlap");
            return Err(Error::argument("lines.stride", stride, limit));
        }
        let (dense, apart) = (count as u128 * line as u128, (count as u128).saturating_sub(1));
        let needed = match dense {
            0 => 0,
            _ => apart * stride as u128 + line as u128,
        };
        for (name, len, needed) in [("pinned memory", pinned.len, dense), (name, len, needed)] {
            if needed > len as u128 {
                let value = format!("{len} elements");
                return Err(Error::argument(name, value, format!("{needed} are copied")));
            }
        }
        pinned.wait()
    }

    /// Queues a copy between the pinned elements and lines at a device address.
    ///
    /// # Safety
    /// 1. The lines are inside a buffer of this device, do not overlap, and have no more elements
    ///    than `pinned`.
    /// 2. No copy from or to `pinned` runs.
    unsafe fn queue<T: Pod>(
        &self,
        way: Way,
        pinned: &mut Pinned<T>,
        address: *mut T,
        Lines { count, len, stride }: Lines,
    ) -> Result<()> {
        if count * len == 0 {
            return Ok(());
        }
        let host = pinned.as_ptr();
        #[cfg(feature = "cuda")]
        if let Some(stream) = self.cuda() {
            let bytes = len * size_of::<T>();
            let way = match way {
                Way::ToDevice => cuda::Way::ToDevice,
                Way::ToHost => cuda::Way::ToHost,
            };
            let rows = |start, pitch| cuda::Pitched { start, pitch };
            let pitch = if count == 1 { bytes } else { stride * size_of::<T>() };
            let (host, device) = (rows(host as u64, bytes), rows(address as u64, pitch));
            // The event is made before the copy: after that only recording it can fail.
            let event = cuda::Event::new(stream.context())?;
            // SAFETY: the caller's promises. `pinned` is not accessed or freed before the event is
            // reached. The driver frees the buffer's memory after all work that was queued before.
            // Every bit pattern is a valid `T`. So a race with another stream on the device gives
            // wrong values, never invalid ones.
            let queued = unsafe { stream.copy(way, host, device, [bytes, count]) };
            match queued.and_then(|()| event.record(stream)) {
                Ok(()) => pinned.last = Last::Until(Event::of_cuda(event)),
                Err(error) => {
                    // A part of the copy may run.
                    if stream.synchronize().is_err() {
                        pinned.last = Last::Lost;
                    }
                    return Err(error);
                }
            }
            return Ok(());
        }
        for line in 0..count {
            let (host, device) =
                (host.wrapping_add(line * len), address.wrapping_add(line * stride));
            let (from, to) = match way {
                Way::ToDevice => (host, device),
                Way::ToHost => (device, host),
            };
            // SAFETY: the caller's promises. A buffer of the CPU device is memory of this process,
            // borrowed by the view. It is another allocation than the pinned one.
            unsafe { to.copy_from_nonoverlapping(from, len) };
        }
        Ok(())
    }
}

/// The direction of a copy.
#[derive(Clone, Copy)]
enum Way {
    ToDevice,
    ToHost,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_there_and_come_back() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        let mut pinned = device.pinned::<f32>(6).unwrap();
        pinned.as_mut_slice().unwrap().copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let mut buffer = device.zeros::<f32>(12).unwrap();
        let lines = Lines { count: 3, len: 2, stride: 4 };
        stream.upload(&mut pinned, buffer.view_mut(1..).unwrap(), lines).unwrap();
        let values = [0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 5.0, 6.0, 0.0];
        assert_eq!(buffer.to_vec().unwrap(), values);
        let lines = Lines { count: 2, len: 3, stride: 5 };
        stream.download(buffer.view(..).unwrap(), &mut pinned, lines).unwrap();
        assert_eq!(pinned.as_slice().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 0.0]);
        stream.wait_for(&stream.record().unwrap()).unwrap();
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        let mut pinned = device.pinned::<f32>(6).unwrap();
        let mut buffer = device.zeros::<f32>(9).unwrap();
        for (count, len, stride, message) in [
            (2, 3, 2, "lines.stride = 2: lines of 3 elements would overlap"),
            (2, 4, 4, "pinned memory = 6 elements: 8 are copied"),
            (2, 3, 7, "to = 9 elements: 10 are copied"),
            (usize::MAX, usize::MAX, usize::MAX, "pinned memory = 6 elements: "),
            (2, 3, usize::MAX, "to = 9 elements: "),
        ] {
            let lines = Lines { count, len, stride };
            let error =
                stream.upload(&mut pinned, buffer.view_mut(..).unwrap(), lines).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
        }
        for (count, len) in [(0, usize::MAX), (usize::MAX, 0)] {
            let lines = Lines { count, len, stride: usize::MAX };
            stream.upload(&mut pinned, buffer.view_mut(..).unwrap(), lines).unwrap();
        }
        assert!(device.pinned::<f32>(usize::MAX).is_err());
        assert!(device.pinned::<f32>(0).unwrap().as_slice().unwrap().is_empty());
    }
}
