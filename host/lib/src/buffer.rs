//! Buffers: elements in a device's memory, and views of them.

mod host;
mod on_stream;
mod written;

use std::{
    marker::PhantomData,
    ops::{Bound, RangeBounds},
};

use simt::Element;

pub use self::written::Written;
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{
    device::{Device, Kind},
    error::{Error, Result},
    memory,
    memory::HostMemory,
};

/// Bytes copied between two looks at whether to stop: some milliseconds.
const CHUNK: usize = 64 << 20;

/// An element that can be copied as bytes.
pub trait Pod: Element + bytemuck::Pod {}
impl<T: Element + bytemuck::Pod> Pod for T {}

/// `len` elements in the memory of a device, the first of them at a 256-byte boundary.
#[derive(Debug)]
pub struct Buffer<T> {
    device: Device,
    len: usize,
    storage: Storage,
    element: PhantomData<T>,
}

#[derive(Debug)]
enum Storage {
    Host(HostMemory),
    #[cfg(feature = "cuda")]
    Cuda(cuda::Memory),
}

/// A part of a buffer, to be read.
#[derive(Debug)]
pub struct BufferView<'a, T> {
    buffer: &'a Buffer<T>,
    start: usize,
    len: usize,
}

// Not derived: a view of anything can be copied.
impl<T> Clone for BufferView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for BufferView<'_, T> {}

/// A part of a buffer, to be written.
#[derive(Debug)]
pub struct BufferViewMut<'a, T> {
    buffer: &'a mut Buffer<T>,
    start: usize,
    len: usize,
}

impl<T: Pod> Buffer<T> {
    /// The same memory as elements of another type, as many as fit. It is not somebody else's, so that it begins where any
    /// element may.
    pub(crate) fn cast<U: Pod>(self) -> Buffer<U> {
        let len = self.len * size_of::<T>() / size_of::<U>();
        Buffer { device: self.device, len, storage: self.storage, element: PhantomData }
    }
}

impl Device {
    /// A buffer of zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], naming the bytes needed and free.
    pub fn zeros<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = self.uninit(len)?;
        match &mut buffer.storage {
            Storage::Host(_) => {} // fresh pages are zeros
            #[cfg(feature = "cuda")]
            Storage::Cuda(memory) => memory.fill_u8(0, 0, memory.len())?,
        }
        Ok(buffer)
    }

    /// A buffer that nobody has written: it holds what happens to be there (on the CPU, zeros). For what a
    /// kernel writes all of; and compute-sanitizer's initcheck sees what a kernel reads of it before.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], naming the bytes needed and free.
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

    /// Memory of this device that somebody else has allocated, and frees: another library's, or on the CPU device a
    /// slice's. It is left as it is when the buffer is dropped.
    ///
    /// # Errors
    /// [`Error::Argument`] for an address that is null or not a multiple of an element's alignment.
    ///
    /// # Safety
    /// 1. From `address` on there are `len` elements, in this device's memory, for as long as the buffer is there and
    ///    work that was launched with it has not ended.
    /// 2. Nobody else writes them meanwhile; nobody else reads them while this buffer is written.
    pub unsafe fn foreign<T: Pod>(&self, address: u64, len: usize) -> Result<Buffer<T>> {
        if address == 0 && len > 0 {
            return Err(Error::argument(
                "address",
                "null",
                format!("{len} elements must be there"),
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
    /// [`Error::OutOfMemory`], naming the bytes needed and free.
    pub fn upload<T: Pod>(&self, values: &[T]) -> Result<Buffer<T>> {
        let mut buffer = self.zeros(values.len())?;
        buffer.write(0, values)?;
        Ok(buffer)
    }
}

impl<T: Pod> Buffer<T> {
    /// What a GPU's driver has allocated.
    #[cfg(feature = "cuda")]
    pub(crate) fn from_cuda(device: &Device, memory: cuda::Memory) -> Self {
        let len = memory.len() / size_of::<T>();
        Buffer { device: device.clone(), len, storage: Storage::Cuda(memory), element: PhantomData }
    }

    /// The device that it lies on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements of that range.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range that reaches past the end.
    pub fn view(&self, range: impl RangeBounds<usize>) -> Result<BufferView<'_, T>> {
        let (start, len) = self.resolve(range)?;
        Ok(BufferView { buffer: self, start, len })
    }

    /// The elements of that range, to be written.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range that reaches past the end.
    pub fn view_mut(&mut self, range: impl RangeBounds<usize>) -> Result<BufferViewMut<'_, T>> {
        let (start, len) = self.resolve(range)?;
        Ok(BufferViewMut { buffer: self, start, len })
    }

    /// All of it.
    pub fn all(&self) -> BufferView<'_, T> {
        BufferView { buffer: self, start: 0, len: self.len }
    }

    /// All of it, to be written.
    pub fn all_mut(&mut self) -> BufferViewMut<'_, T> {
        BufferViewMut { start: 0, len: self.len, buffer: self }
    }

    /// Start and length of a range of it.
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
            let limit = format!("the buffer has {} elements", self.len);
            return Err(Error::argument("range", format!("{start}..{end}"), limit));
        }
        Ok((start, end - start))
    }

    /// Copies `values` to the elements from `start` on, after all work on the device.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range that reaches past the end; [`Error::Interrupted`]; those of kernels
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

    /// Copies the elements from `start` on to `values`, after all work on the device.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range that reaches past the end; [`Error::Interrupted`]; those of kernels
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

    /// All its elements, after all work on the device.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; those of kernels launched before.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut values = memory::filled(T::zeroed(), self.len)?;
        self.read(0, &mut values)?;
        Ok(values)
    }

    /// Sets every byte: with 0xff, every float becomes NaN.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; those of kernels launched before.
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

    /// Its first element's address, on its device.
    pub(crate) fn address(&self) -> u64 {
        match &self.storage {
            Storage::Host(memory) => memory.as_ptr() as u64,
            #[cfg(feature = "cuda")]
            Storage::Cuda(memory) => memory.address(),
        }
    }
}

impl<'a, T: Pod> BufferView<'a, T> {
    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that it lies on.
    pub fn device(&self) -> &'a Device {
        &self.buffer.device
    }

    /// A part of it.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range that reaches past its end.
    pub fn view(&self, start: usize, len: usize) -> Result<BufferView<'a, T>> {
        check_part(start, len, self.len)?;
        Ok(BufferView { buffer: self.buffer, start: self.start + start, len })
    }

    /// Its elements, after all work on the device.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; those of kernels launched before.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut values = memory::filled(T::zeroed(), self.len)?;
        self.buffer.read(self.start, &mut values)?;
        Ok(values)
    }

    /// As many of its elements from the first on, or all.
    pub(crate) fn shortened(self, len: usize) -> Self {
        BufferView { len: self.len.min(len), ..self }
    }

    /// Its first element's address, on its device.
    pub(crate) fn address(&self) -> *const T {
        (self.buffer.address() as *const T).wrapping_add(self.start)
    }
}

impl<'a, T: Pod> BufferViewMut<'a, T> {
    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that it lies on.
    pub fn device(&self) -> &Device {
        &self.buffer.device
    }

    /// A part of it.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range that reaches past its end.
    pub fn view_mut(&mut self, start: usize, len: usize) -> Result<BufferViewMut<'_, T>> {
        check_part(start, len, self.len)?;
        Ok(BufferViewMut { start: self.start + start, len, buffer: self.buffer })
    }

    /// A part of it, in its place.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range that reaches past its end.
    pub fn into_part(self, start: usize, len: usize) -> Result<BufferViewMut<'a, T>> {
        check_part(start, len, self.len)?;
        Ok(BufferViewMut { start: self.start + start, len, buffer: self.buffer })
    }

    /// As [`Buffer::write`], from its first element on.
    ///
    /// # Errors
    /// As [`Buffer::write`].
    pub fn write(&mut self, start: usize, values: &[T]) -> Result<()> {
        check_part(start, values.len(), self.len)?;
        self.buffer.write(self.start + start, values)
    }

    /// As [`Buffer::fill_bytes`]: sets every byte of it.
    ///
    /// # Errors
    /// As [`Buffer::fill_bytes`].
    pub fn fill_bytes(&mut self, byte: u8) -> Result<()> {
        self.buffer.fill_part(self.start, self.len, byte)
    }

    /// The same, for a while.
    pub fn reborrow(&mut self) -> BufferViewMut<'_, T> {
        BufferViewMut { start: self.start, len: self.len, buffer: self.buffer }
    }

    /// The same, to be read.
    pub fn as_view(&self) -> BufferView<'_, T> {
        BufferView { start: self.start, len: self.len, buffer: self.buffer }
    }

    /// Its first element's address, on its device.
    pub(crate) fn address(&mut self) -> *mut T {
        (self.buffer.address() as *mut T).wrapping_add(self.start)
    }
}

fn check_part(start: usize, len: usize, whole: usize) -> Result<()> {
    match start.checked_add(len) {
        Some(end) if end <= whole => Ok(()),
        _ => {
            let limit = format!("the view has {whole} elements");
            Err(Error::argument("range", format!("{start}, {len} elements"), limit))
        }
    }
}
