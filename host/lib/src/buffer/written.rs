//! What launches write: elements of a buffer, and not those between them.

use std::marker::PhantomData;

use super::{Buffer, BufferView, BufferViewMut, Pod, check_part};
use crate::{device::Device, error::Result};

/// Elements that launches write, the first and the last of `len`; those between them may be another's, as the left and
/// the right half of a row-major matrix take turns in memory. So the buffer itself is borrowed to be read, several may
/// have it, and nobody takes the range as a whole, in this machine's memory either: kernels alone write here, and they
/// keep to their elements.
#[derive(Debug)]
pub struct Written<'a, T> {
    pub(super) buffer: &'a Buffer<T>,
    pub(super) start: usize,
    len: usize,
    elements: PhantomData<&'a mut T>,
}

impl<'a, T> From<BufferViewMut<'a, T>> for Written<'a, T> {
    fn from(view: BufferViewMut<'a, T>) -> Self {
        let BufferViewMut { buffer, start, len } = view;
        Written { buffer, start, len, elements: PhantomData }
    }
}

impl<'a, T: Pod> Written<'a, T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn device(&self) -> &'a Device {
        &self.buffer.device
    }

    /// As [`BufferViewMut::into_part`].
    pub(crate) fn into_part(self, start: usize, len: usize) -> Result<Self> {
        check_part(start, len, self.len)?;
        Ok(Written { start: self.start + start, len, ..self })
    }

    /// As many from the first on, or all.
    pub(crate) fn shortened(self, len: usize) -> Self {
        Written { len: self.len.min(len), ..self }
    }

    /// The same, for a while.
    pub(crate) fn reborrow(&mut self) -> Written<'_, T> {
        let Written { buffer, start, len, elements } = *self;
        Written { buffer, start, len, elements }
    }

    /// The same, to be read; again by kernels alone.
    pub(crate) fn as_view(&self) -> BufferView<'_, T> {
        BufferView { buffer: self.buffer, start: self.start, len: self.len }
    }

    /// The same, twice.
    ///
    /// # Safety
    /// 1. No element is written through one of them that is read or written through the other.
    pub(crate) unsafe fn twice(self) -> [Self; 2] {
        let Written { buffer, start, len, elements } = self;
        [(); 2].map(|()| Written { buffer, start, len, elements })
    }
}
