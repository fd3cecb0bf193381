//! The shadow of global memory: one for each buffer of a launch, shared by all blocks.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    ptr::NonNull,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};

use super::{
    more::{Found, More},
    record::Record,
    shadow::{Hazard, Now, Shadow, Third, granule},
};
use crate::cpu::{access::Access, fault::Stop};

/// The memory of one parameter or variable. Regions that overlap are joined to a [`Buffer`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub(super) address: usize,
    pub(super) bytes: usize,
    /// Bytes of an element.
    pub(super) element: usize,
    /// Whether its elements hold values at the launch.
    pub(super) written: bool,
    /// The number of the kernel's parameter.
    pub(super) param: usize,
    /// The variable's name, where it is no parameter.
    pub(super) variable: Option<&'static str>,
}

impl Region {
    fn end(&self) -> usize {
        self.address + self.bytes
    }
}

/// The memory of one region or several overlapping ones, with its shadow.
#[doc(hidden)]
#[derive(Debug)]
pub struct Buffer {
    pub(super) address: usize,
    pub(super) bytes: usize,
    /// The binary logarithm of a granule's bytes (4, 2 or 1).
    shift: u32,
    /// Its regions.
    pub(super) regions: Vec<Region>,
    /// Whether no earlier launch of the stream writes it.
    pub(super) is_early: bool,
    states: Zeroed<AtomicU8>,
    shadows: Zeroed<Shadow>,
    /// Accesses for which a shadow has no room, of granules that are [`CROWDED`].
    more: Mutex<More>,
}

// The flags of a granule.

/// It holds a value from before the launch.
const WRITTEN_BEFORE: u8 = 1;
/// Further reads add nothing new: no thread has written, and two blocks have read.
const SATURATED: u8 = 2;
/// A thread has read.
const READ: u8 = 4;
/// A thread has written.
const WRITTEN: u8 = 8;
/// It is in a gap between the elements of a view.
const GAP: u8 = 16;
/// The buffer keeps more accesses of it than its shadow does.
const CROWDED: u8 = 32;
/// A worker is changing its shadow.
const LOCKED: u8 = 128;

/// What is wrong with an access to global memory.
pub(super) enum Wrong {
    Race(Hazard, Record),
    NeverWritten,
    InGap,
    /// Nothing is known to be wrong, but not all accesses before it are remembered.
    TooMany,
}

impl Buffer {
    /// Joins overlapping regions to buffers. Fails where there is no memory for the shadows.
    pub(super) fn join(mut regions: Vec<Region>) -> Result<Vec<Buffer>, Stop> {
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
        let buffers = groups.into_iter().map(|(end, group)| Buffer::new(group, end));
        let mut buffers = buffers.collect::<Result<Vec<_>, _>>()?;
        // In the order of the kernel's parameters.
        buffers.sort_by_key(|buffer| buffer.regions.iter().map(|region| region.param).min());
        Ok(buffers)
    }

    fn new(regions: Vec<Region>, end: usize) -> Result<Buffer, Stop> {
        let address = regions[0].address;
        let bytes = end - address;
        let granule_bytes = regions
            .iter()
            .map(|region| granule(region.element | (region.address - address)))
            .min()
            .unwrap_or(1);
        let granules = bytes.div_ceil(granule_bytes);
        let states = Zeroed::<AtomicU8>::new(granules)?;
        let shadows = Zeroed::<Shadow>::new(granules)?;
        let (shift, more, is_early) = (granule_bytes.ilog2(), Mutex::default(), false);
        let buffer = Buffer { address, bytes, shift, regions, is_early, states, shadows, more };
        for region in buffer.regions.iter().filter(|region| region.written) {
            let first = (region.address - address) / granule_bytes;
            for number in first..first + region.bytes.div_ceil(granule_bytes) {
                buffer.states(number, number)[0].fetch_or(WRITTEN_BEFORE, Ordering::Relaxed);
            }
        }
        Ok(buffer)
    }

    /// Makes these bytes a gap, as far as the buffer has them: an access there is wrong.
    pub(super) fn set_gap(&self, address: usize, bytes: usize) {
        let first = address.max(self.address);
        let end = (address + bytes).min(self.address + self.bytes);
        if first < end {
            let granules = (first - self.address) >> self.shift..;
            let count = (end - first).div_ceil(1 << self.shift);
            let last = granules.start + count - 1;
            for state in self.states(granules.start, last) {
                state.fetch_or(GAP, Ordering::Relaxed);
            }
        }
    }

    /// The flags of the granules from `first` to `last`.
    #[inline(always)]
    fn states(&self, first: usize, last: usize) -> &[AtomicU8] {
        assert!(first <= last && last < self.states.len);
        // SAFETY: inside the allocation; all zero is a state, and they are atomic.
        unsafe {
            std::slice::from_raw_parts(self.states.start.as_ptr().add(first), last - first + 1)
        }
    }

    /// Whether a read of these bytes adds nothing new.
    #[inline(always)]
    pub(super) fn is_saturated(&self, address: usize, bytes: usize) -> bool {
        const KNOWN: u8 = WRITTEN_BEFORE | SATURATED;
        let first = (address - self.address) >> self.shift;
        let last = (address + bytes - 1 - self.address) >> self.shift;
        self.states(first, last)
            .iter()
            .all(|state| state.load(Ordering::Relaxed) & (KNOWN | LOCKED | GAP) == KNOWN)
    }

    /// Records an access and reports what is wrong with it, with the offset in bytes.
    pub(super) fn access(
        &self,
        now: &Now,
        (address, bytes): (usize, usize),
        (access, keep): (Access, Third),
        mut report: impl FnMut(usize, Wrong),
    ) {
        let first = (address - self.address) >> self.shift;
        let last = (address + bytes - 1 - self.address) >> self.shift;
        for number in first..=last {
            let state = &self.states(number, number)[0];
            let mut flags = lock(state);
            // SAFETY: inside, as many as states, and only the worker that has locked the granule
            // looks at it.
            let shadow = unsafe { &mut *self.shadows.start.as_ptr().add(number) };
            if flags & (READ | WRITTEN) == 0 {
                // It holds these zeros already; the write makes the first access to its page no
                // read. A page whose first access is a read faults twice, and at the second fault,
                // when it gets memory of its own, the other processors must forget it.
                *shadow = Shadow::NONE;
            }
            let reads = matches!(access, Access::Read | Access::Atomic);
            let unwritten = reads && flags & (WRITTEN_BEFORE | WRITTEN) == 0;
            let (mut hazard, third) = shadow.access(now, access, 1);
            let mut too_many = false;
            if flags & CROWDED != 0 {
                match self.more().access(number, now, access, 1) {
                    Found::Nothing => {}
                    Found::Race(kind, old) => hazard = hazard.or(Some((kind, old))),
                    Found::TooMany => too_many = true,
                }
                if access == Access::Write {
                    flags &= !CROWDED;
                }
            }
            if let Some(third) = third.filter(|third| shadow.needs(third, access, keep, now)) {
                self.more().keep(number, third, access, now, 1);
                flags |= CROWDED;
            }
            match access {
                Access::Read => {
                    flags |= READ;
                    if keep != Third::Any && shadow.is_read_by_two_blocks(now) {
                        flags |= SATURATED;
                    }
                }
                Access::Write => flags = (flags | WRITTEN) & !SATURATED,
                Access::Atomic | Access::AtomicStore => {
                    flags = (flags | READ | WRITTEN) & !SATURATED
                }
            }
            state.store(flags, Ordering::Release);
            if flags & GAP != 0 {
                report(number << self.shift, Wrong::InGap);
            } else if let Some((hazard, other)) = hazard {
                report(number << self.shift, Wrong::Race(hazard, other));
            } else if unwritten {
                report(number << self.shift, Wrong::NeverWritten);
            } else if too_many {
                report(number << self.shift, Wrong::TooMany);
            }
        }
    }

    fn more(&self) -> std::sync::MutexGuard<'_, More> {
        self.more.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The elements of a region that the launch has not read, or not written: their number and the
    /// first of them. Gaps have none.
    pub(super) fn untouched(&self, region: &Region, access: Access) -> Option<(usize, usize)> {
        let flag = if access == Access::Read { READ } else { WRITTEN };
        let touched = |element: usize| {
            let start = region.address - self.address + element * region.element;
            let granules = start >> self.shift..(start + region.element).div_ceil(1 << self.shift);
            self.states(granules.start, granules.end - 1)
                .iter()
                .all(|state| state.load(Ordering::Relaxed) & (flag | GAP) != 0)
        };
        let mut elements =
            (0..region.bytes / region.element.max(1)).filter(|element| !touched(*element));
        let first = elements.next()?;
        Some((1 + elements.count(), first))
    }
}

/// The most bytes of shadow memory that a checked launch takes for `bytes` bytes of global memory
/// whose elements have `element` bytes.
pub fn shadow_bytes(bytes: usize, element: usize) -> usize {
    bytes.div_ceil(granule(element)).saturating_mul(size_of::<Shadow>() + 1)
}

/// Locks a granule, and gives its flags.
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

/// Zeroed memory. The system provides pages when they are first touched, so that a buffer's shadow
/// takes no more memory than the launch uses of it.
#[derive(Debug)]
struct Zeroed<T> {
    start: NonNull<T>,
    len: usize,
    layout: Layout,
}

// SAFETY: the memory is its own; the code that uses it takes care of data races.
unsafe impl<T> Send for Zeroed<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Zeroed<T> {}

impl<T> Zeroed<T> {
    fn new(len: usize) -> Result<Self, Stop> {
        let none = || Stop::OutOfMemory((len as u64).saturating_mul(size_of::<T>() as u64));
        let layout = Layout::array::<T>(len).map_err(|_| none())?;
        if layout.size() == 0 {
            return Ok(Zeroed { start: NonNull::dangling(), len: 0, layout });
        }
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }.cast()).ok_or_else(none)?;
        Ok(Zeroed { start, len, layout })
    }
}

impl<T> Drop for Zeroed<T> {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: allocated by `new` with this layout.
            unsafe { dealloc(self.start.as_ptr().cast(), self.layout) };
        }
    }
}
