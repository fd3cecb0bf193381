//! Device memory.

use super::binding::{DeviceBytes, cuMemAllocPitch_v2};
use super::failure::{INVALID_VALUE, OUT_OF_MEMORY, Outcome, Raw, check};
use super::{Context, Uses, release};
use crate::error::{Error, Result};
use crate::testing;
use std::ffi::c_uint;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

/// The largest access for which rows of pitched memory are aligned, in bytes. The driver accepts 4,
/// 8 and 16.
const LARGEST_ELEMENT: c_uint = 16;

/// Bytes on a device, freed on drop.
///
/// Reading and writing wait for all work on the device, and are complete when they return.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Dropping it frees the memory. Foreign memory is not dropped.
    buffer: ManuallyDrop<DeviceBytes>,
    foreign: bool,
    uses: Arc<Uses>,
    context: Arc<Context>,
}

impl Memory {
    /// Memory that is not initialised, aligned for every type. For 0 bytes the driver is not
    /// called, and the address is null.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(crate) fn alloc(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        let _current = if bytes > 0 { Some(context.enter()?) } else { None };
        if bytes > 0 && testing::refuses() {
            return Err(out_of_memory(context, bytes));
        }
        let buffer =
            DeviceBytes::uninitialized(bytes).map_err(|raw| refusal(context, raw, bytes))?;
        if bytes > 0 {
            testing::allocated();
        }
        // No stream is noted as a user of no bytes (`Storage::used_by`). Each launch allocates some
        // such memories, so they share this.
        static NOBODY: LazyLock<Arc<Uses>> = LazyLock::new(Arc::default);
        let uses = if bytes == 0 { NOBODY.clone() } else { Arc::default() };
        Ok(Memory::new(buffer, uses, context))
    }

    fn new(buffer: DeviceBytes, uses: Arc<Uses>, context: &Arc<Context>) -> Self {
        let buffer = ManuallyDrop::new(buffer);
        Memory { buffer, foreign: false, uses, context: context.clone() }
    }

    /// Memory of this context that somebody else owns and frees.
    ///
    /// # Safety
    /// 1. `bytes` bytes at `address` are valid until this value is dropped and all work that was
    ///    launched with it has ended. Until then nobody else writes them, and nobody else reads
    ///    them while they are written through this value.
    pub(crate) unsafe fn foreign(context: &Arc<Context>, address: u64, bytes: usize) -> Self {
        // SAFETY: the caller's promise; it is never dropped.
        let buffer = unsafe { DeviceBytes::from_raw_parts(address, bytes) };
        let mut memory = Memory::new(buffer, Arc::default(), context);
        memory.foreign = true;
        memory
    }

    /// Memory for `rows` rows of `row_bytes` bytes, not initialised, and the pitch: the bytes from
    /// one row to the next, which the driver chooses. Neither argument is 0.
    ///
    /// # Errors
    /// As [`Memory::alloc`].
    pub(crate) fn alloc_pitched(
        context: &Arc<Context>,
        row_bytes: usize,
        rows: usize,
    ) -> Result<(Self, usize)> {
        let _current = context.enter()?;
        let bytes = row_bytes.saturating_mul(rows);
        if testing::refuses() {
            return Err(out_of_memory(context, bytes));
        }
        let (mut address, mut pitch) = (0, 0);
        // SAFETY: the driver writes an address and a size.
        let result = unsafe {
            cuMemAllocPitch_v2(&mut address, &mut pitch, row_bytes, rows, LARGEST_ELEMENT)
        };
        result.outcome().map_err(|raw| refusal(context, raw, bytes))?;
        testing::allocated();
        // SAFETY: `pitch * rows` bytes were allocated in this context, and nobody else frees them.
        let buffer = unsafe { DeviceBytes::from_raw_parts(address, pitch * rows) };
        Ok((Memory::new(buffer, Arc::default(), context), pitch))
    }

    /// The device address, for a kernel's parameter.
    pub(crate) fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// The streams whose work may still use it.
    pub(crate) fn uses(&self) -> &Arc<Uses> {
        &self.uses
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Copies `source` to the bytes from `offset` on.
    pub(crate) fn write(&mut self, offset: usize, source: &[u8]) -> Result<()> {
        self.change(offset, Some(source.len()), |buffer, range| buffer.copy_from(range, source))
    }

    /// Copies the bytes from `offset` on to `target`.
    pub(crate) fn read(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        let range = self.range(offset, Some(target.len()))?;
        if range.is_empty() {
            return Ok(());
        }
        let _current = self.context.enter()?;
        self.context.synchronize()?;
        // A copy to pageable host memory is complete when the call returns.
        check(self.buffer.copy_to(range, target))
    }

    /// Sets `count` bytes from `offset` on.
    pub(crate) fn fill_u8(&mut self, offset: usize, value: u8, count: usize) -> Result<()> {
        self.change(offset, Some(count), |buffer, range| buffer.set(range, value))
    }

    /// Changes `length` bytes from `offset` on by an operation in the default stream.
    fn change(
        &mut self,
        offset: usize,
        length: Option<usize>,
        operation: impl FnOnce(&mut DeviceBytes, Range<usize>) -> std::result::Result<(), Raw>,
    ) -> Result<()> {
        let range = self.range(offset, length)?;
        if range.is_empty() {
            return Ok(());
        }
        let _current = self.context.enter()?;
        self.context.synchronize()?;
        self.uses.ended();
        check(operation(&mut self.buffer, range))?;
        // A fill may return before it is complete. So may a copy from pageable host memory: it
        // returns when the driver has the bytes. A kernel in another stream would wait for neither.
        self.context.synchronize()
    }

    /// The bytes `offset .. offset + length`. `length` is `None` if it has overflowed.
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

/// The error for an allocation that failed.
fn refusal(context: &Context, raw: Raw, bytes: usize) -> Error {
    // For a size that cannot be addressed the driver reports an invalid value.
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
        // SAFETY: it is not used after this.
        let buffer = unsafe { ManuallyDrop::take(&mut self.buffer) };
        // The driver would wait for what hangs, and that may still use it.
        if buffer.len() == 0 || self.context.hung().is_some() {
            std::mem::forget(buffer);
            return;
        }
        let context = self.context.clone();
        release(move || {
            testing::freed();
            // The memory is freed in the current context. A failure cannot be handled here.
            let _current = context.enter();
            drop(buffer);
        });
    }
}
