//! Parts of buffers whose element type is known when the program runs.
//!
//! What plans and launches do is the same for all types. With this view it is compiled once, and
//! not for each type.

use simt::types::Typed;

use super::{Buffer, BufferView, Pod, Storage, UsedRange, Written, check_part, used::ElementType};
use crate::{
    device::Device,
    error::{Error, Result},
    stream::Stream,
};

/// A part of a buffer, of any element type, for kernels to read or to write.
///
/// Copies of one that is written are [`Written`] of the same elements: the launches that use them
/// are `unsafe`, and say that no two write an element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnyView<'a> {
    device: &'a Device,
    storage: &'a Storage,
    /// The address of the first element.
    address: u64,
    len: usize,
    element: ElementType,
    is_written: bool,
}

impl<'a, T: Pod> From<BufferView<'a, T>> for AnyView<'a> {
    fn from(view: BufferView<'a, T>) -> Self {
        AnyView::of(view.buffer, view.start, view.len, ElementType::of::<T>())
    }
}

impl<'a, T: Pod> From<Written<'a, T>> for AnyView<'a> {
    fn from(elements: Written<'a, T>) -> Self {
        AnyView { is_written: true, ..AnyView::from(elements.into_view()) }
    }
}

impl<'a> AnyView<'a> {
    fn of<T: Pod>(buffer: &'a Buffer<T>, start: usize, len: usize, element: ElementType) -> Self {
        let Buffer { device, storage, .. } = buffer;
        let address = storage.address().wrapping_add((start * size_of::<T>()) as u64);
        AnyView { device, storage, address, len, element, is_written: false }
    }

    /// All of a memory as elements of that type, to be written. The memory is not
    /// [foreign](Device::foreign): so it is aligned for any element.
    pub(crate) fn of_memory(memory: &'a mut Buffer<u8>, element: ElementType) -> Self {
        let len = memory.len() / element.bytes;
        AnyView { is_written: true, ..AnyView::of(memory, 0, len, element) }
    }

    /// No elements of that type.
    pub(crate) fn nothing(memory: &'a Buffer<u8>, element: ElementType) -> Self {
        AnyView::of(memory, 0, 0, element)
    }

    /// The same elements, which TMA copies.
    pub(crate) fn for_boxes<T: Typed>(self) -> Self {
        debug_assert!(self.element.bytes == size_of::<T>(), "its own type");
        AnyView { element: ElementType::of_boxes::<T>(), ..self }
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The device whose memory it is in.
    pub(crate) fn device(&self) -> &'a Device {
        self.device
    }

    /// The type of its elements.
    pub(crate) fn element(&self) -> ElementType {
        self.element
    }

    pub(crate) fn is_written(&self) -> bool {
        self.is_written
    }

    /// The device address of the first element.
    pub(crate) fn address(&self) -> *mut u8 {
        self.address as *mut u8
    }

    /// The same elements, for reading.
    pub(crate) fn as_read(self) -> Self {
        AnyView { is_written: false, ..self }
    }

    /// `len` elements of it from `start` on.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range beyond the end.
    pub(crate) fn part(self, start: usize, len: usize) -> Result<Self> {
        check_part(start, len, self.len)?;
        let address = self.address.wrapping_add((start * self.element.bytes) as u64);
        Ok(AnyView { address, len, ..self })
    }

    /// The address of the first element, for what is queued on `stream` from now on. That waits for
    /// other streams that write the buffer or, before a write, use it.
    ///
    /// # Errors
    /// [`Error::Argument`] for a stream of another device, which could wait for nobody; those of
    /// the driver.
    pub(crate) fn address_on(&self, stream: &Stream) -> Result<*mut u8> {
        if stream.device() != self.device {
            let limit = format!("must be of {}, as the memory", self.device.name());
            return Err(Error::argument("stream", stream.device().name(), limit));
        }
        let range = UsedRange::of(self.element, self.address, self.len, self.is_written);
        if let Some(lane) = stream.lane() {
            lane.note(self.device, range)?;
            return Ok(self.address());
        }
        if stream.notes_use(range) {
            // On the CPU device all work has ended.
            #[cfg(feature = "cuda")]
            if let Some(stream) = stream.cuda() {
                self.storage.used_by(stream, self.is_written)?;
            }
        }
        Ok(self.address())
    }
}
