//! Device memory, as bytes.

use super::failure::{INVALID_VALUE, OUT_OF_MEMORY, Raw, check, outcome};
use super::{Context, Uses};
use crate::error::{Error, Result};
use crate::testing;
use cust::memory::{CopyDestination, DeviceBuffer, DevicePointer, DeviceSlice};
use cust::sys::cuMemAllocPitch_v2;
use std::ffi::c_uint;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the largest access that rows of pitched memory are to be aligned for: the driver takes 4, 8 and 16.
const LARGEST_ELEMENT: c_uint = 16;

/// Bytes on a device, freed on drop.
///
/// Reading and writing are blocking: they wait for all work on the device before, and what they did is
/// done when they return. They are for preparing operands and fetching results, not for overlapping.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Dropped, which frees it, unless somebody else does.
    buffer: ManuallyDrop<DeviceBuffer<u8>>,
    foreign: bool,
    uses: Uses,
    context: Arc<Context>,
}

impl Memory {
    /// Memory with unspecified contents, aligned for every type. No bytes need no driver: the address is
    /// then null.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] names what was asked for and what is free.
    pub(crate) fn alloc(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        if bytes > 0 {
            context.make_current()?;
        }
        if bytes > 0 && testing::refuses() {
            return Err(out_of_memory(context, bytes));
        }
        // SAFETY: the contents are only ever taken as bytes, and any byte is one.
        let buffer = outcome(unsafe { DeviceBuffer::uninitialized(bytes) })
            .map_err(|raw| refusal(context, raw, bytes))?;
        if bytes > 0 {
            testing::allocated();
        }
        Ok(Memory::new(buffer, context))
    }

    fn new(buffer: DeviceBuffer<u8>, context: &Arc<Context>) -> Self {
        let (buffer, uses) = (ManuallyDrop::new(buffer), Uses::default());
        Memory { buffer, foreign: false, uses, context: context.clone() }
    }

    /// Memory that somebody else has allocated in this context, and frees.
    ///
    /// # Safety
    /// 1. There are so many bytes as long as this is there and what was launched with it has not ended; nobody else
    ///    writes them meanwhile, nor reads them while they are written through this.
    pub(crate) unsafe fn foreign(context: &Arc<Context>, address: u64, bytes: usize) -> Self {
        let start = DevicePointer::from_raw(address);
        // SAFETY: the caller's promise; it is never dropped.
        let buffer = unsafe { DeviceBuffer::from_raw_parts(start, bytes) };
        let mut memory = Memory::new(buffer, context);
        memory.foreign = true;
        memory
    }

    /// Memory for that many rows, each of so many bytes, with unspecified contents; and the bytes from one row to
    /// the next, which the driver chooses. Neither is zero.
    ///
    /// # Errors
    /// As [`Memory::alloc`].
    pub(crate) fn alloc_pitched(
        context: &Arc<Context>,
        row_bytes: usize,
        rows: usize,
    ) -> Result<(Self, usize)> {
        context.make_current()?;
        let bytes = row_bytes.saturating_mul(rows);
        if testing::refuses() {
            return Err(out_of_memory(context, bytes));
        }
        let (mut address, mut pitch) = (0, 0);
        // SAFETY: the driver writes an address and a size.
        let result = unsafe {
            cuMemAllocPitch_v2(&mut address, &mut pitch, row_bytes, rows, LARGEST_ELEMENT)
        };
        outcome(result).map_err(|raw| refusal(context, raw, bytes))?;
        testing::allocated();
        let start = DevicePointer::from_raw(address);
        // SAFETY: so many bytes were allocated in this context, and nobody else frees them.
        let buffer = unsafe { DeviceBuffer::from_raw_parts(start, pitch * rows) };
        Ok((Memory::new(buffer, context), pitch))
    }

    /// The device address, for a kernel's parameter.
    pub(crate) fn address(&self) -> u64 {
        self.buffer.as_device_ptr().as_raw()
    }

    /// The streams whose work may still be at it.
    pub(crate) fn uses(&self) -> &Uses {
        &self.uses
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Copies `source` to the bytes from `offset` on.
    pub(crate) fn write(&mut self, offset: usize, source: &[u8]) -> Result<()> {
        self.change(offset, Some(source.len()), |mut target| check(target.copy_from(source)))
    }

    /// Copies the bytes from `offset` on to `target`.
    pub(crate) fn read(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        let range = self.range(offset, Some(target.len()))?;
        if range.is_empty() {
            return Ok(());
        }
        self.context.synchronize()?;
        // To ordinary host memory the driver returns only when all is copied.
        check(self.buffer.index(range).copy_to(target))
    }

    /// Sets `count` bytes from `offset` on.
    pub(crate) fn fill_u8(&mut self, offset: usize, value: u8, count: usize) -> Result<()> {
        self.change(offset, Some(count), |mut target| check(target.set_8(value)))
    }

    /// Changes `length` bytes from `offset` on by an operation in the default stream.
    fn change(
        &mut self,
        offset: usize,
        length: Option<usize>,
        operation: impl FnOnce(DeviceSlice<u8>) -> Result<()>,
    ) -> Result<()> {
        let range = self.range(offset, length)?;
        if range.is_empty() {
            return Ok(());
        }
        self.context.synchronize()?;
        self.uses.ended();
        operation(self.buffer.index(range))?;
        // A fill returns before it is done, and so does a copy from ordinary host memory: as soon as the
        // bytes are in the driver's own. A kernel in another stream would not wait for either.
        self.context.synchronize()
    }

    /// The bytes `offset .. offset + length`; no length stands for one that overflows.
    fn range(&self, offset: usize, length: Option<usize>) -> Result<Range<usize>> {
        let end = length.and_then(|length| offset.checked_add(length));
        match end {
            Some(end) if end <= self.len() => Ok(offset..end),
            _ => Err(Error::argument(
                "offset + length",
                end.map_or("more than any memory has".into(), |end| end.to_string()),
                format!("at most the {} bytes of this device memory", self.len()),
            )),
        }
    }
}

/// The error for memory that cannot be had.
fn refusal(context: &Context, raw: Raw, bytes: usize) -> Error {
    // A size beyond what can be addressed at all is an invalid value to the driver.
    let beyond = raw.code == INVALID_VALUE && bytes as u64 > context.properties().memory;
    if raw.code != OUT_OF_MEMORY && !beyond {
        return raw.error();
    }
    out_of_memory(context, bytes)
}

fn out_of_memory(context: &Context, bytes: usize) -> Error {
    match context.memory_info() {
        Ok((free, _)) => Error::OutOfMemory { device: context.label(), needed: bytes as u64, free },
        Err(error) => error,
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.foreign {
            return;
        }
        // Freed in the context that is current. Nobody could act on a failure.
        if self.len() > 0 {
            let _ = self.context.make_current();
            testing::freed();
        }
        // SAFETY: not used after this.
        unsafe { ManuallyDrop::drop(&mut self.buffer) };
    }
}
