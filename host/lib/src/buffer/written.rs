//! Elements that kernels write, with gaps between them.

use std::marker::PhantomData;

use super::{Buffer, BufferView, BufferViewMut, Pod, check_part};
use crate::{device::Device, error::Result};

/// A range of a buffer of which kernels write some elements.
///
/// The elements between them may belong to another `Written`: the rows of the left and of the right
/// half of a row-major matrix alternate in memory. So this borrows the buffer shared, and several
/// can exist at once. Nobody takes the range as one slice, not even on the CPU device. Only kernels
/// write here, and a kernel writes its own elements alone.
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
    /// The buffer that it is a part of.
    pub(crate) fn buffer(&self) -> &'a Buffer<T> {
        self.buffer
    }

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

    /// At most its first `len` elements.
    pub(crate) fn shortened(self, len: usize) -> Self {
        Written { len: self.len.min(len), ..self }
    }

    /// The same range, with a shorter borrow.
    pub(crate) fn reborrow(&mut self) -> Written<'_, T> {
        let Written { buffer, start, len, elements } = *self;
        Written { buffer, start, len, elements }
    }

    /// The same range, for kernels to read.
    pub(crate) fn as_view(&self) -> BufferView<'_, T> {
        BufferView { buffer: self.buffer, start: self.start, len: self.len }
    }

    /// The same range with its whole borrow, for what kernels are given.
    pub(super) fn into_view(self) -> BufferView<'a, T> {
        BufferView { buffer: self.buffer, start: self.start, len: self.len }
    }

    /// The same range twice.
    ///
    /// # Safety
    /// 1. No element is written through one of the two and read or written through the other.
    pub(crate) unsafe fn twice(self) -> [Self; 2] {
        let Written { buffer, start, len, elements } = self;
        [(); 2].map(|()| Written { buffer, start, len, elements })
    }
}
