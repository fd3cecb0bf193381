//! The shadow of global memory: one for each buffer of a launch, used by all blocks.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    ptr::NonNull,
    sync::atomic::{AtomicU8, Ordering},
};

use super::record::{Hazard, Now, Record, Shadow};
use crate::cpu::mode::Access;

/// A buffer, before it is known whether it overlaps others.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub(super) address: usize,
    pub(super) bytes: usize,
    /// Bytes of an element.
    pub(super) element: usize,
    /// Do its elements hold values at the launch?
    pub(super) written: bool,
    /// The kernel's parameter.
    pub(super) param: usize,
}

impl Region {
    fn end(&self) -> usize {
        self.address + self.bytes
    }
}

/// Memory of one or several overlapping views.
#[doc(hidden)]
#[derive(Debug)]
pub struct Buffer {
    pub(super) address: usize,
    pub(super) bytes: usize,
    /// The binary logarithm of the bytes that one shadow stands for: 4, 2 or 1.
    shift: u32,
    /// The views.
    pub(super) regions: Vec<Region>,
    states: Box<[AtomicU8]>,
    shadows: Zeroed,
}

/// The elements hold values.
const WRITTEN_BEFORE: u8 = 1;
/// Further readers say nothing new: nobody has written, and two blocks have read.
const SATURATED: u8 = 2;
/// Somebody has read.
const READ: u8 = 4;
/// Somebody has written.
const WRITTEN: u8 = 8;
/// A worker is changing the shadow.
const LOCKED: u8 = 128;

/// What is wrong with an access to global memory.
pub(super) enum Wrong {
    Race(Hazard, Record),
    NeverWritten,
}

impl Buffer {
    /// Joins regions that overlap.
    pub(super) fn join(mut regions: Vec<Region>) -> Vec<Buffer> {
        regions.retain(|region| region.bytes > 0);
        regions.sort_by_key(|region| region.address);
        let mut groups = Vec::<(usize, Vec<Region>)>::new();
        for region in regions {
            match groups.last_mut() {
                Some((end, group)) if region.address < *end => {
                    *end = region.end().max(*end);
                    group.push(region);
                }
                _ => groups.push((region.end(), vec![region])),
            }
        }
        let mut buffers: Vec<_> =
            groups.into_iter().map(|(end, group)| Buffer::new(group, end)).collect();
        // As the kernel lists them, wherever they lie.
        buffers.sort_by_key(|buffer| buffer.regions.iter().map(|region| region.param).min());
        buffers
    }

    fn new(regions: Vec<Region>, end: usize) -> Buffer {
        let address = regions[0].address;
        let bytes = end - address;
        let granule = regions
            .iter()
            .map(|region| super::shared::granule(region.element | (region.address - address)))
            .min()
            .unwrap_or(1);
        let states: Box<[AtomicU8]> =
            (0..bytes.div_ceil(granule)).map(|_| AtomicU8::new(0)).collect();
        for region in &regions {
            let first = (region.address - address) / granule;
            let written = if region.written { WRITTEN_BEFORE } else { 0 };
            for state in &states[first..first + region.bytes.div_ceil(granule)] {
                state.fetch_or(written, Ordering::Relaxed);
            }
        }
        let shadows = Zeroed::new(states.len());
        Buffer { address, bytes, shift: granule.ilog2(), regions, states, shadows }
    }

    /// Does a read of these bytes say nothing new?
    #[inline(always)]
    pub(super) fn is_saturated(&self, address: usize, bytes: usize) -> bool {
        const KNOWN: u8 = WRITTEN_BEFORE | SATURATED;
        let first = (address - self.address) >> self.shift;
        let last = (address + bytes - 1 - self.address) >> self.shift;
        self.states[first..=last]
            .iter()
            .all(|state| state.load(Ordering::Relaxed) & (KNOWN | LOCKED) == KNOWN)
    }

    /// Takes note of an access and reports what is wrong with it, with the offset in bytes.
    pub(super) fn access(
        &self,
        now: &Now,
        (address, bytes): (usize, usize),
        access: Access,
        mut report: impl FnMut(usize, Wrong),
    ) {
        let first = (address - self.address) >> self.shift;
        let last = (address + bytes - 1 - self.address) >> self.shift;
        for number in first..=last {
            let state = &self.states[number];
            let mut flags = lock(state);
            // SAFETY: inside the buffer, and only the worker that has locked the granule looks at it.
            let shadow = unsafe { &mut *self.shadows.get(number) };
            let unwritten = access != Access::Write && flags & (WRITTEN_BEFORE | WRITTEN) == 0;
            let hazard = shadow.access(now, access, 1);
            match access {
                Access::Read => {
                    flags |= READ;
                    if shadow.is_read_by_two_blocks(now) {
                        flags |= SATURATED;
                    }
                }
                Access::Write => flags = (flags | WRITTEN) & !SATURATED,
                Access::Atomic => flags = (flags | READ | WRITTEN) & !SATURATED,
            }
            state.store(flags, Ordering::Release);
            if let Some((hazard, other)) = hazard {
                report(number << self.shift, Wrong::Race(hazard, other));
            } else if unwritten {
                report(number << self.shift, Wrong::NeverWritten);
            }
        }
    }

    /// The elements of a region that the launch has not read, or not written: how many and the first.
    pub(super) fn untouched(&self, region: &Region, access: Access) -> Option<(usize, usize)> {
        let flag = if access == Access::Read { READ } else { WRITTEN };
        let touched = |element: usize| {
            let start = region.address - self.address + element * region.element;
            let granules = start >> self.shift..(start + region.element).div_ceil(1 << self.shift);
            self.states[granules].iter().all(|state| state.load(Ordering::Relaxed) & flag != 0)
        };
        let mut elements =
            (0..region.bytes / region.element.max(1)).filter(|element| !touched(*element));
        let first = elements.next()?;
        Some((1 + elements.count(), first))
    }
}

/// Bytes of shadow memory that a checked launch takes at most for `bytes` bytes of global memory, whose
/// elements have this size.
pub fn shadow_bytes(bytes: usize, element: usize) -> usize {
    bytes.div_ceil(super::shared::granule(element)).saturating_mul(size_of::<Shadow>() + 1)
}

/// Locks a granule and gives its flags.
fn lock(state: &AtomicU8) -> u8 {
    loop {
        let flags = state.load(Ordering::Relaxed) & !LOCKED;
        let locked = flags | LOCKED;
        match state.compare_exchange_weak(flags, locked, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return flags,
            Err(_) => std::hint::spin_loop(),
        }
    }
}

/// Shadows of no access. The system gives zeroed pages when they are first touched, so that a buffer's
/// shadow costs no more memory than the launch uses of it.
#[derive(Debug)]
struct Zeroed {
    shadows: NonNull<Shadow>,
    layout: Option<Layout>,
}

// SAFETY: the memory is its own; `get` leaves to the caller who uses what is there.
unsafe impl Send for Zeroed {}
// SAFETY: as above.
unsafe impl Sync for Zeroed {}

impl Zeroed {
    fn new(len: usize) -> Self {
        match Layout::array::<Shadow>(len) {
            Ok(layout) if layout.size() > 0 => {
                // SAFETY: the layout is not empty. All bytes zero are `Shadow::NONE`.
                let memory = unsafe { alloc_zeroed(layout) }.cast();
                let shadows = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout));
                Zeroed { shadows, layout: Some(layout) }
            }
            _ => Zeroed { shadows: NonNull::dangling(), layout: None },
        }
    }

    /// # Safety
    /// `number` is below the length.
    unsafe fn get(&self, number: usize) -> *mut Shadow {
        // SAFETY: inside the allocation.
        unsafe { self.shadows.as_ptr().add(number) }
    }
}

impl Drop for Zeroed {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated by `new` with this layout.
            unsafe { dealloc(self.shadows.as_ptr().cast(), layout) };
        }
    }
}
