//! Copies between the host and a device that go on while the host does something else.

use std::{marker::PhantomData, mem::ManuallyDrop};

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{
    buffer::{BufferView, BufferViewMut, Pod},
    device::{Device, Kind},
    error::{Error, Result},
    memory::HostMemory,
    stream::{Event, Stream},
};

/// `len` elements of this machine's memory that a device's copies read and write by themselves:
/// [`Stream::upload`] and [`Stream::download`]. On a GPU it is page-locked, of which there should not be more than
/// is needed; on the CPU device it is memory like any other, and a copy has ended when it returns.
///
/// A copy may still be on its way when the call that queued it has returned. Whatever looks at the elements waits
/// for it, and so does drop.
#[derive(Debug)]
pub struct Pinned<T> {
    device: Device,
    len: usize,
    /// Left as it is where nobody knows whether a copy has ended.
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
    /// Has ended.
    Ended,
    /// Has ended when this has come.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "a GPU's copies alone go on"))]
    Until(Event),
    /// The driver has failed while one was on its way.
    Lost,
}

/// Runs of elements in the memory of a device, side by side within each: those of a part of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// How many.
    pub count: usize,
    /// Elements of each.
    pub len: usize,
    /// Elements from the start of one to the start of the next.
    pub stride: usize,
}

impl Device {
    /// Zeros for this device's copies.
    ///
    /// # Errors
    /// [`Error::Argument`] for more elements than can be addressed, [`Error::OutOfMemory`], or the driver's.
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
    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements, after the last copy from or to them.
    ///
    /// # Errors
    /// Those of the copy, and of kernels launched before it.
    pub fn as_slice(&mut self) -> Result<&[T]> {
        self.as_mut_slice().map(|slice| &*slice)
    }

    /// The elements, to be written, after the last copy from or to them.
    ///
    /// # Errors
    /// As [`Pinned::as_slice`].
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        self.wait()?;
        if self.len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: so many elements, whose bytes were zeroed once and are plain data whatever a copy has written.
        // They are aligned as the driver's and our own allocations are. No copy is on its way, and while the slice
        // is there `self` is borrowed, so none is queued.
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
        if let Last::Until(event) = &self.last {
            let ended = event.wait();
            self.last = if ended.is_ok() { Last::Ended } else { Last::Lost };
            ended?;
        }
        match self.last {
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
        // A copy that may still be on its way must not find somebody else's memory: rather is it never freed.
        if self.wait().is_ok() {
            // SAFETY: not used after this.
            unsafe { ManuallyDrop::drop(&mut self.storage) };
        }
    }
}

impl Stream {
    /// Copies the first `lines.count * lines.len` elements of `from` to lines of a buffer, when all work queued
    /// here before has ended, and returns at once. On the CPU device it has ended when it returns.
    ///
    /// It waits for what other streams do with the buffer, and they for it.
    ///
    /// # Errors
    /// [`Error::Argument`] for lines that overlap or reach outside, too few elements, or another device's memory:
    /// nothing is copied; then those of the driver.
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

    /// Copies lines of a buffer to the first `lines.count * lines.len` elements of `to`, when all work queued here
    /// before has ended, and returns at once. On the CPU device it has ended when it returns.
    ///
    /// It waits for what other streams do with the buffer, and they for it.
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

    /// Makes the work that is queued here from now on wait for an event of another stream.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        #[cfg(feature = "cuda")]
        if let (Some(stream), Some(event)) = (self.cuda(), event.cuda()) {
            return stream.wait_for(event);
        }
        // On the CPU device it has come.
        let _ = event;
        Ok(())
    }

    /// Waits for the copy before, and refuses what cannot be copied.
    fn check_copy<T: Pod>(
        &self,
        pinned: &mut Pinned<T>,
        name: &str,
        device: &Device,
        len: usize,
        lines: Lines,
    ) -> Result<()> {
        for (name, of) in [("pinned memory", &pinned.device), (name, device)] {
            if of != self.device() {
                let limit = format!("the stream is of {}", self.device().name());
                return Err(Error::argument(name, format!("of {}", of.name()), limit));
            }
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

    /// Queues a copy between the pinned elements and lines at that address of the device's.
    ///
    /// # Safety
    /// 1. The lines are inside a buffer of this device, do not overlap, and have no more elements than `pinned`.
    /// 2. No copy from or to `pinned` is on its way.
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
            // Made before: behind a copy that is on its way nothing but its mark may fail.
            let event = cuda::Event::new(stream.context())?;
            // SAFETY: the caller's promises. `pinned` is not looked at nor freed before the event has come. The
            // buffer's memory is freed by the driver behind all work that was queued before. Its elements are plain
            // data, so what another stream does with them can make them wrong, but nothing unsound.
            let queued = unsafe { stream.copy(way, host, device, [bytes, count]) };
            match queued.and_then(|()| event.record(stream)) {
                Ok(()) => pinned.last = Last::Until(Event::of_cuda(event)),
                Err(error) => {
                    // Some of it may be on its way.
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
            // SAFETY: the caller's promises; a buffer of the CPU device is memory of this process, borrowed by the
            // view, and another allocation than the pinned one.
            unsafe { to.copy_from_nonoverlapping(from, len) };
        }
        Ok(())
    }
}

/// Where a copy goes.
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
