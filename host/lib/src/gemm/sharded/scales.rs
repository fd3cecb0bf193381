//! Scales of a product over several places. They are in the first place's memory; each place gets
//! a copy of those of the rows of A and of the columns of B that it multiplies.

use std::ops::Range;

use super::plan::{COMPUTE, LANES, ShardedPlan, What};
use crate::{
    buffer::Buffer,
    devices::Devices,
    error::Result,
    gemm::{
        Scales,
        scales::{NAMES, elements},
    },
    stream::{Stream, lane::transfer},
};

/// The scales of a place's products.
pub(super) struct PlaceScales {
    /// Rows and columns of C, from the first that the place computes to the last.
    computed: [Range<usize>; 2],
    /// Those of A and of B, with the strides that they have at the first place.
    copies: [Buffer<f32>; 2],
}

/// Refuses scales that are elsewhere.
pub(super) fn check(scales: Option<Scales>, devices: &Devices) -> Result<()> {
    let first = devices.at(0);
    for (name, of) in NAMES.into_iter().zip(elements(scales).iter().flatten()) {
        first.refuse_elsewhere(name, of.device(), "the first of the devices")?;
    }
    Ok(())
}

/// Rows and columns of C that the products of a place compute, from the first to the last.
fn computed_at(plan: &ShardedPlan, place: usize) -> [Range<usize>; 2] {
    let parts = plan.steps.iter().filter(|step| step.place == place);
    let parts = parts.filter_map(|step| match &step.what {
        What::Multiply { at, c, .. } => Some([0, 1].map(|side| at[side]..at[side] + c.size[side])),
        _ => None,
    });
    let both = |[a, b]: [Range<usize>; 2], [c, d]: [Range<usize>; 2]| {
        [a.start.min(c.start)..a.end.max(c.end), b.start.min(d.start)..b.end.max(d.end)]
    };
    parts.reduce(both).unwrap_or([0..0, 0..0])
}

/// Allocates what each place needs. Nothing where there are no scales.
///
/// # Errors
/// [`Error::Device`] with an [`Error::OutOfMemory`]; those of the driver.
pub(super) fn reserve(
    scales: Option<Scales>,
    plan: &ShardedPlan,
    devices: &Devices,
) -> Result<Vec<PlaceScales>> {
    let Some(scales) = scales else { return Ok(Vec::new()) };
    let of_place = |place: usize| {
        let computed = computed_at(plan, place);
        let [a, b] = scales.part(&computed)?.both();
        let buffer = |len| devices.at(place).uninit(len).map_err(devices.failed(place));
        let copies = [buffer(a.elements.len())?, buffer(b.elements.len())?];
        Ok(PlaceScales { computed, copies })
    };
    (0..devices.len()).map(of_place).collect()
}

impl PlaceScales {
    /// Queues the copies to a place, before its products.
    ///
    /// # Errors
    /// Those of the driver.
    pub(super) fn bring(&mut self, scales: Scales, lanes: &[Stream; LANES]) -> Result<()> {
        for (of, copy) in scales.part(&self.computed)?.both().into_iter().zip(&mut self.copies) {
            let len = of.elements.len();
            let to = (copy.all_mut(), len);
            // SAFETY: `run` waits for all lanes before the scales are given back, or the copies are
            // freed. Nobody else writes those, and the products follow on the same lane.
            unsafe { transfer(&lanes[COMPUTE], (of.elements, len), to, [1, len])? };
        }
        Ok(())
    }

    /// Those of a part of C, of which `scales` has all.
    ///
    /// # Errors
    /// None: a place has those of all parts that it computes.
    pub(super) fn of<'s>(
        &'s self,
        scales: Scales<'s>,
        at: [usize; 2],
        size: [usize; 2],
    ) -> Result<Scales<'s>> {
        let copied =
            scales.part(&self.computed)?.of_elements(self.copies.each_ref().map(Buffer::all));
        let start = [0, 1].map(|side| at[side] - self.computed[side].start);
        copied.part(&[0, 1].map(|side| start[side]..start[side] + size[side]))
    }
}
