//! Memory on the device for the blocks of a product.

use std::ops::Range;

use super::plan::BlockPlan;
use crate::{buffer::Buffer, device::Device, error::Result, gemm::Scalar, stream::Stream};

/// Memory for a block on the device, and the stream of the copies from and to it.
pub(super) struct Place<T> {
    pub(super) buffer: Buffer<T>,
    pub(super) copies: Stream,
}

impl<T: Scalar> Place<T> {
    pub(super) fn new(device: &Device, len: usize) -> Result<Self> {
        Ok(Place { buffer: device.uninit(len)?, copies: device.stream()? })
    }

    /// Puts the copies that follow behind the product that was just launched, and behind that one alone: at their turn
    /// there may be others.
    pub(super) fn launched(&mut self) -> Result<()> {
        self.buffer.view_mut(..)?.address_on(&self.copies).map(drop)
    }
}

/// A tile of C whose last product is launched.
pub(super) struct Tile<T> {
    pub(super) place: Place<T>,
    pub(super) rows: Range<usize>,
    pub(super) cols: Range<usize>,
}

/// Memory for the tiles of C that are on the device at a time.
pub(super) fn places_of_c<T: Scalar>(device: &Device, plan: &BlockPlan) -> Result<Vec<Place<T>>> {
    let len = plan.block()[0] * plan.block()[1];
    (0..plan.places()[2]).map(|_| Place::new(device, len)).collect()
}
