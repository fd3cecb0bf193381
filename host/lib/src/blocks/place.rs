//! Buffers on the device for the blocks of a product.

use std::ops::Range;

use super::plan::BlockPlan;
use crate::{buffer::Buffer, device::Device, error::Result, gemm::Scalar, stream::Stream};

/// A buffer for a block, and the stream of the copies from and to it.
pub(super) struct Place<T> {
    pub(super) buffer: Buffer<T>,
    pub(super) copies: Stream,
}

impl<T: Scalar> Place<T> {
    pub(super) fn new(device: &Device, len: usize) -> Result<Self> {
        Ok(Place { buffer: device.uninit(len)?, copies: device.stream()? })
    }

    /// Lets the copies that follow wait for the product that was launched last. This is called now,
    /// so that they do not wait for products that are launched before the copies are.
    pub(super) fn launched(&mut self) -> Result<()> {
        self.buffer.view_mut(..)?.address_on(&self.copies).map(drop)
    }
}

/// A block of C whose last product was launched.
pub(super) struct Tile<T> {
    pub(super) place: Place<T>,
    pub(super) rows: Range<usize>,
    pub(super) cols: Range<usize>,
}

/// The buffers for blocks of C.
pub(super) fn places_of_c<T: Scalar>(device: &Device, plan: &BlockPlan) -> Result<Vec<Place<T>>> {
    let len = plan.block()[0] * plan.block()[1];
    (0..plan.places()[2]).map(|_| Place::new(device, len)).collect()
}
