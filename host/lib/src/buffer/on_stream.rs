//! Addresses of buffers for work on a stream. The work waits for other streams that use the buffer.

use super::{AnyView, BufferView, BufferViewMut, Pod, Written};
use crate::{error::Result, stream::Stream};

impl<T: Pod> BufferView<'_, T> {
    /// The address of the first element, for reads that another library queues on `stream`. They
    /// wait on the device for other streams that write the buffer.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for a stream of another device;
    /// [`Error::Driver`](crate::Error::Driver).
    pub fn address_on(&self, stream: &Stream) -> Result<*const T> {
        AnyView::from(*self).address_on(stream).map(|address| address.cast_const().cast())
    }
}

impl<T: Pod> BufferViewMut<'_, T> {
    /// The address of the first element, for writes that another library queues on `stream`. They
    /// wait on the device for other streams that use the buffer.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for a stream of another device;
    /// [`Error::Driver`](crate::Error::Driver).
    pub fn address_on(&mut self, stream: &Stream) -> Result<*mut T> {
        let elements = AnyView::from(Written::from(self.reborrow()));
        elements.address_on(stream).map(|address| address.cast())
    }
}
