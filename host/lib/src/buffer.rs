//! Buffers: arrays in a device's memory, and views of them.

mod any;
mod host;
mod on_stream;
mod used;
mod written;

use std::{
    marker::PhantomData,
    ops::{Bound, RangeBounds},
};

use simt::{Element, count_of};

pub use self::written::Written;
pub(crate) use self::{
    any::AnyView,
    used::{ElementType, UsedRange},
};
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{
    device::{Device, Kind},
    error::{Error, Result},
    memory,
    memory::HostMemory,
};

/// Bytes copied between two checks for an interrupt: some milliseconds.
const CHUNK: usize = 64 << 20;

/// An element that can be copied as bytes: every bit pattern is a value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no element of a buffer or matrix",
    label = "elements are numbers, or arrays of numbers, that kernels can read"
)]
pub trait Pod: Element + bytemuck::Pod {}
impl<T: Element + bytemuck::Pod> Pod for T {}

/// An array in the memory of a device. Its first element is 256-byte aligned.
///
/// Reading and writing wait for all work on the device.
///
/// ```
/// use gpu_gemm::Device;
///
/// let device = Device::best().device;
/// let mut buffer = device.zeros::<f32>(4)?;
/// buffer.write(1, &[1.0, 2.0])?;
/// assert_eq!(buffer.to_vec()?, [0.0, 1.0, 2.0, 0.0]);
/// assert_eq!(buffer.view(1..3)?.to_vec()?, [1.0, 2.0]);
///
/// let error = buffer.view(2..5).unwrap_err();
/// assert_eq!(error.to_string(), "range = 2..5: the buffer has 4 elements");
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct Buffer<T> {
    device: Device,
    len: usize,
    storage: Storage,
    element: PhantomData<T>,
}

/// The memory of a buffer.
#[derive(Debug)]
pub(crate) enum Storage {
    Host(HostMemory),
    #[cfg(feature = "cuda")]
    Cuda(cuda::Memory),
}

/// A part of a buffer, for reading.
#[derive(Debug)]
pub struct BufferView<'a, T> {
    buffer: &'a Buffer<T>,
    start: usize,
    len: usize,
}

// Not derived: `T` need not be `Copy`.
impl<T> Clone for BufferView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for BufferView<'_, T> {}

/// A part of a buffer, for writing.
#[derive(Debug)]
pub struct BufferViewMut<'a, T> {
    buffer: &'a mut Buffer<T>,
    start: usize,
    len: usize,
}

impl Device {
    /// A buffer of `len` zeros.
    ///
    /// # Errors
    /// [`Error::Argument`] for more elements than can be addressed; [`Error::OutOfMemory`].
    pub fn zeros<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = self.uninit(len)?;
        match &mut buffer.storage {
            Storage::Host(_) => {} // fresh pages are zeros
            #[cfg(feature = "cuda")]
            Storage::Cuda(memory) => memory.fill_u8(0, 0, memory.len())?,
        }
        Ok(buffer)
    }

    /// A buffer of `len` elements that are not initialised: on a GPU they hold any values, on the
    /// CPU zeros. For a buffer that a kernel writes before it reads. compute-sanitizer's initcheck
    /// finds a read before.
    ///
    /// # Errors
    /// As [`Device::zeros`].
    pub fn uninit<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        const { assert!(size_of::<T>() > 0, "an element of no bytes") };
        let limit = isize::MAX as usize / size_of::<T>();
        if len > limit {
            let limit = format!("a buffer has at most {limit} elements");
            return Err(Error::argument("len", len, limit));
        }
        let bytes = len * size_of::<T>();
        let storage = match &*self.0 {
            Kind::Cpu(_) => Storage::Host(HostMemory::zeroed(bytes)?),
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => Storage::Cuda(cuda::Memory::alloc(&gpu.context, bytes)?),
        };
        Ok(Buffer { device: self.clone(), len, storage, element: PhantomData })
    }

    /// A buffer in memory that another library, or on the CPU device a slice, owns. Dropping the
    /// buffer does not free it.
    ///
    /// # Errors
    /// [`Error::Argument`] for an address that is null or not aligned for the elements, and for
    /// more elements than can be addressed.
    ///
    /// # Safety
    /// 1. `len` elements at `address` are in this device's memory and initialised, until the buffer
    ///    is dropped and all work that was launched with it has ended.
    /// 2. Until then nobody else writes them, and nobody else reads them while this buffer is
    ///    written.
    pub unsafe fn foreign<T: Pod>(&self, address: u64, len: usize) -> Result<Buffer<T>> {
        if address == 0 && len > 0 {
            return Err(Error::argument(
                "address",
                "null",
                format!("must be the address of {len} elements"),
            ));
        }
        if !address.is_multiple_of(align_of::<T>() as u64) {
            let limit = format!("must be a multiple of {}", align_of::<T>());
            return Err(Error::argument("address", format!("{address:#x}"), limit));
        }
        let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
        let Some(bytes) = bytes else {
            return Err(Error::argument("len", len, "more than can be addressed"));
        };
        let storage = match &*self.0 {
            Kind::Cpu(_) => {
                // SAFETY: the caller's promises.
                Storage::Host(unsafe { HostMemory::foreign(address as *mut u8, bytes) })
            }
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => {
                // SAFETY: the caller's promises.
                Storage::Cuda(unsafe { cuda::Memory::foreign(&gpu.context, address, bytes) })
            }
        };
        Ok(Buffer { device: self.clone(), len, storage, element: PhantomData })
    }

    /// A buffer with a copy of `values`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Interrupted`].
    pub fn upload<T: Pod>(&self, values: &[T]) -> Result<Buffer<T>> {
        let mut buffer = self.zeros(values.len())?;
        buffer.write(0, values)?;
        Ok(buffer)
    }
}

impl<T: Pod> Buffer<T> {
    /// A buffer in memory that the driver has allocated.
    #[cfg(feature = "cuda")]
    pub(crate) fn from_cuda(device: &Device, memory: cuda::Memory) -> Self {
        let len = memory.len() / size_of::<T>();
        Buffer { device: device.clone(), len, storage: Storage::Cuda(memory), element: PhantomData }
    }

    /// The device whose memory it is in.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A range of it, for reading.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range beyond the end.
    pub fn view(&self, range: impl RangeBounds<usize>) -> Result<BufferView<'_, T>> {
        let (start, len) = self.resolve(range)?;
        Ok(BufferView { buffer: self, start, len })
    }

    /// A range of it, for writing.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range beyond the end.
    pub fn view_mut(&mut self, range: impl RangeBounds<usize>) -> Result<BufferViewMut<'_, T>> {
        let (start, len) = self.resolve(range)?;
        Ok(BufferViewMut { buffer: self, start, len })
    }

    /// All of it, for reading.
    pub fn all(&self) -> BufferView<'_, T> {
        BufferView { buffer: self, start: 0, len: self.len }
    }

    /// All of it, for writing.
    pub fn all_mut(&mut self) -> BufferViewMut<'_, T> {
        BufferViewMut { start: 0, len: self.len, buffer: self }
    }

    /// The start and the length of a range.
    fn resolve(&self, range: impl RangeBounds<usize>) -> Result<(usize, usize)> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&end) => end.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        if start > end || end > self.len {
            let limit = format!("the buffer has {}", count_of(self.len, "element"));
            return Err(Error::argument("range", format!("{start}..{end}"), limit));
        }
        Ok((start, end - start))
    }

    /// Copies `values` to the elements from `start` on. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range beyond the end; [`Error::Interrupted`]; errors of kernels
    /// launched before.
    pub fn write(&mut self, start: usize, values: &[T]) -> Result<()> {
        self.resolve(start..start.saturating_add(values.len()))?;
        let bytes = bytemuck::cast_slice::<T, u8>(values);
        let offsets = (start * size_of::<T>()..).step_by(CHUNK);
        for (offset, bytes) in offsets.zip(bytes.chunks(CHUNK)) {
            crate::check_interrupt()?;
            match &mut self.storage {
                Storage::Host(memory) => {
                    memory.bytes_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
                }
                #[cfg(feature = "cuda")]
                Storage::Cuda(memory) => memory.write(offset, bytes)?,
            }
        }
        Ok(())
    }

    /// Copies the elements from `start` on to `values`. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range beyond the end; [`Error::Interrupted`]; errors of kernels
    /// launched before.
    pub fn read(&self, start: usize, values: &mut [T]) -> Result<()> {
        self.resolve(start..start.saturating_add(values.len()))?;
        let bytes = bytemuck::cast_slice_mut::<T, u8>(values);
        let offsets = (start * size_of::<T>()..).step_by(CHUNK);
        for (offset, bytes) in offsets.zip(bytes.chunks_mut(CHUNK)) {
            crate::check_interrupt()?;
            match &self.storage {
                Storage::Host(memory) => {
                    bytes.copy_from_slice(&memory.bytes()[offset..offset + bytes.len()]);
                }
                #[cfg(feature = "cuda")]
                Storage::Cuda(memory) => memory.read(offset, bytes)?,
            }
        }
        Ok(())
    }

    /// A copy of all elements. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] of the host; [`Error::Interrupted`]; errors of kernels launched
    /// before.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut values = memory::filled(T::zeroed(), self.len)?;
        self.read(0, &mut values)?;
        Ok(values)
    }

    /// Sets every byte. With 0xff every float becomes NaN.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; errors of kernels launched before.
    pub fn fill_bytes(&mut self, byte: u8) -> Result<()> {
        self.fill_part(0, self.len, byte)
    }

    fn fill_part(&mut self, start: usize, len: usize, byte: u8) -> Result<()> {
        let (start, len) = (start * size_of::<T>(), len * size_of::<T>());
        match &mut self.storage {
            Storage::Host(memory) => {
                memory.bytes_mut()[start..start + len].chunks_mut(CHUNK).try_for_each(|bytes| {
                    crate::check_interrupt()?;
                    bytes.fill(byte);
                    Ok(())
                })
            }
            #[cfg(feature = "cuda")]
            Storage::Cuda(memory) => memory.fill_u8(start, byte, len),
        }
    }

    /// The device address of the first element.
    pub(crate) fn address(&self) -> u64 {
        self.storage.address()
    }

    /// Its memory.
    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Its memory alone.
    #[cfg(feature = "cuda")]
    pub(crate) fn into_storage(self) -> Storage {
        self.storage
    }
}

impl<'a, T: Pod> BufferView<'a, T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device whose memory it is in.
    pub fn device(&self) -> &'a Device {
        &self.buffer.device
    }

    /// `len` elements of it from `start` on, for reading.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range beyond the end.
    pub fn view(&self, start: usize, len: usize) -> Result<BufferView<'a, T>> {
        check_part(start, len, self.len)?;
        Ok(BufferView { buffer: self.buffer, start: self.start + start, len })
    }

    /// A copy of the elements. Waits for all work on the device.
    ///
    /// # Errors
    /// As [`Buffer::to_vec`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut values = memory::filled(T::zeroed(), self.len)?;
        self.buffer.read(self.start, &mut values)?;
        Ok(values)
    }

    /// The buffer that it is a part of.
    pub(crate) fn buffer(&self) -> &'a Buffer<T> {
        self.buffer
    }

    /// At most its first `len` elements.
    pub(crate) fn shortened(self, len: usize) -> Self {
        BufferView { len: self.len.min(len), ..self }
    }

    /// The device address of the first element.
    pub(crate) fn address(&self) -> *const T {
        (self.buffer.address() as *const T).wrapping_add(self.start)
    }
}

impl<'a, T: Pod> BufferViewMut<'a, T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device whose memory it is in.
    pub fn device(&self) -> &Device {
        &self.buffer.device
    }

    /// `len` elements of it from `start` on, for writing.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range beyond the end.
    pub fn view_mut(&mut self, start: usize, len: usize) -> Result<BufferViewMut<'_, T>> {
        check_part(start, len, self.len)?;
        Ok(BufferViewMut { start: self.start + start, len, buffer: self.buffer })
    }

    /// As [`view_mut`](Self::view_mut), with the borrow of the view itself.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range beyond the end.
    pub fn into_part(self, start: usize, len: usize) -> Result<BufferViewMut<'a, T>> {
        check_part(start, len, self.len)?;
        Ok(BufferViewMut { start: self.start + start, len, buffer: self.buffer })
    }

    /// As [`Buffer::write`]; `start` counts from the view's first element.
    ///
    /// # Errors
    /// As [`Buffer::write`].
    pub fn write(&mut self, start: usize, values: &[T]) -> Result<()> {
        check_part(start, values.len(), self.len)?;
        self.buffer.write(self.start + start, values)
    }

    /// Sets every byte, as [`Buffer::fill_bytes`].
    ///
    /// # Errors
    /// As [`Buffer::fill_bytes`].
    pub fn fill_bytes(&mut self, byte: u8) -> Result<()> {
        self.buffer.fill_part(self.start, self.len, byte)
    }

    /// The same view, with a shorter borrow.
    pub fn reborrow(&mut self) -> BufferViewMut<'_, T> {
        BufferViewMut { start: self.start, len: self.len, buffer: self.buffer }
    }

    /// The same elements, for reading.
    pub fn as_view(&self) -> BufferView<'_, T> {
        BufferView { start: self.start, len: self.len, buffer: self.buffer }
    }

    /// The device address of the first element.
    pub(crate) fn address(&mut self) -> *mut T {
        (self.buffer.address() as *mut T).wrapping_add(self.start)
    }
}

fn check_part(start: usize, len: usize, whole: usize) -> Result<()> {
    match start.checked_add(len) {
        Some(end) if end <= whole => Ok(()),
        _ => {
            let limit = format!("the view has {}", count_of(whole, "element"));
            Err(Error::argument("range", format!("{start}, {}", count_of(len, "element")), limit))
        }
    }
}
