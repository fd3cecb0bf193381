//! The use of a memory by work on streams.

use std::any::{TypeId, type_name};
#[cfg(feature = "cuda")]
use std::sync::Arc;

use simt::types::Typed;

use super::{Buffer, Pod, Storage};
use crate::error::Result;
#[cfg(feature = "cuda")]
use crate::{cuda, device::Device, error::Error};

/// A range of addresses that a kernel reads, or reads and writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsedRange {
    /// The first address.
    pub(crate) start: u64,
    /// The address after the last.
    pub(crate) end: u64,
    pub(crate) is_written: bool,
    /// The type of its elements.
    pub(crate) element: ElementType,
}

/// A type of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElementType {
    pub(crate) id: TypeId,
    path: &'static str,
    pub(crate) bytes: usize,
    /// The driver's number for TMA, if TMA copies elements of it.
    pub(crate) tma: Option<u32>,
}

impl ElementType {
    pub(crate) fn of<T: 'static>() -> Self {
        let (id, path, bytes) = (TypeId::of::<T>(), type_name::<T>(), size_of::<T>());
        ElementType { id, path, bytes, tma: None }
    }

    /// One that TMA copies.
    pub(crate) fn of_boxes<T: Typed>() -> Self {
        ElementType { tma: Some(T::TYPE.tma()), ..ElementType::of::<T>() }
    }

    /// The name, without the path.
    pub(crate) fn name(&self) -> &'static str {
        self.path.rsplit("::").next().unwrap_or(self.path)
    }
}

impl PartialEq for ElementType {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl UsedRange {
    /// `len` elements from `start` on.
    pub(crate) fn new<T: 'static>(start: u64, len: usize, is_written: bool) -> Self {
        UsedRange::of(ElementType::of::<T>(), start, len, is_written)
    }

    /// The same of elements of that type.
    pub(crate) fn of(element: ElementType, start: u64, len: usize, is_written: bool) -> Self {
        let bytes = (len as u64).saturating_mul(element.bytes as u64);
        UsedRange { start, end: start.saturating_add(bytes), is_written, element }
    }

    /// The number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// Whether whoever may use the memory of this range may use that of the other one. Their
    /// elements may differ.
    pub(crate) fn covers(&self, other: &UsedRange) -> bool {
        self.start <= other.start && other.end <= self.end && (self.is_written || !other.is_written)
    }
}

impl Storage {
    /// The address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        match self {
            Storage::Host(memory) => memory.as_ptr() as u64,
            #[cfg(feature = "cuda")]
            Storage::Cuda(memory) => memory.address(),
        }
    }

    /// All of it, to be read and written.
    pub(crate) fn range(&self) -> UsedRange {
        let bytes = match self {
            Storage::Host(memory) => memory.bytes().len(),
            #[cfg(feature = "cuda")]
            Storage::Cuda(memory) => memory.len(),
        };
        UsedRange::new::<u8>(self.address(), bytes, true)
    }

    /// Lets what is queued on `stream` from now on wait for other streams that write this memory
    /// or, before a write, use it.
    ///
    /// # Errors
    /// Those of the driver.
    #[cfg(feature = "cuda")]
    pub(crate) fn used_by(&self, stream: &Arc<cuda::Stream>, is_written: bool) -> Result<()> {
        match self {
            Storage::Host(_) => Ok(()),
            Storage::Cuda(memory) if memory.len() == 0 => Ok(()),
            Storage::Cuda(memory) if is_written => memory.uses().written_by(stream),
            Storage::Cuda(memory) => memory.uses().read_by(stream),
        }
    }
}

impl<T: Pod> Buffer<T> {
    /// Waits on the host for all work that may use the buffer.
    ///
    /// # Errors
    /// Those of the kernels.
    pub(crate) fn wait_for_uses(&self) -> Result<()> {
        match &self.storage {
            Storage::Host(_) => Ok(()),
            #[cfg(feature = "cuda")]
            Storage::Cuda(memory) => memory.uses().synchronize(),
        }
    }

    /// As [`Device::foreign`], after the work on a stream of the memory's owner. With the uses, by
    /// which the owner's stream can wait.
    ///
    /// # Errors
    /// As there; [`Error::Argument`] for memory of another device.
    ///
    /// # Safety
    /// As there.
    #[cfg(feature = "cuda")]
    pub(crate) unsafe fn foreign_on(
        device: &Device,
        address: u64,
        len: usize,
        owner: &Arc<cuda::Stream>,
    ) -> Result<(Self, Arc<cuda::Uses>)> {
        cuda::check_address(owner.context(), address)?;
        // SAFETY: the caller's promise.
        let buffer = unsafe { device.foreign(address, len) }?;
        let Storage::Cuda(memory) = &buffer.storage else {
            return Err(Error::argument("device", device.name(), "must be a GPU"));
        };
        let uses = memory.uses().clone();
        uses.written_by(owner)?;
        Ok((buffer, uses))
    }
}
