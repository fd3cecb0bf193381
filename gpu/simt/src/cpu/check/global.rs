//! The shadow of global memory: one for each buffer of a launch, shared by all blocks.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    ops::Range,
    ptr::NonNull,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
};

use super::{
    more::{self, More},
    record::Record,
    shadow::{Found, Hazard, Now, Pair, Shadow, Third, granule},
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
    /// Whether no thread writes it: then a read is in no race, and nobody remembers it.
    pub(super) is_read_only: bool,
    states: Zeroed<AtomicU16>,
    /// The parts of the shadows, apart: of most memory a launch touches one.
    writers: Zeroed<Record>,
    readers: Zeroed<Pair>,
    atomics: Zeroed<Pair>,
    /// Accesses for which a shadow has no room, of granules that are [`CROWDED`].
    more: Mutex<More>,
}

// The flags of a granule's state.

/// It holds a value from before the launch.
const WRITTEN_BEFORE: u16 = 1;
/// Further reads add nothing new: no thread has written, and two blocks have read.
const SATURATED: u16 = 2;
/// A thread has read.
const READ: u16 = 4;
/// A thread has written.
const WRITTEN: u16 = 8;
/// It is in a gap between the elements of a view.
const GAP: u16 = 16;
/// The buffer keeps more accesses of it than its shadow does.
const CROWDED: u16 = 32;
/// An atomic operation has been made since the last write.
const ATOMIC: u16 = 64;

// Of the first granule of a line, for all of it.

/// Its granules have shadows of their own. Otherwise the first one's is that of all.
const SPLIT: u16 = 128;
/// A worker is changing shadows of the line.
const LOCKED: u16 = 256;
const OF_LINE: u16 = SPLIT | LOCKED;

/// Bytes of a line.
const LINE: usize = 16;

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
        let buffer = Buffer {
            address,
            bytes,
            shift: granule_bytes.ilog2(),
            regions,
            is_early: false,
            is_read_only: false,
            states: Zeroed::new(granules)?,
            writers: Zeroed::new(granules)?,
            readers: Zeroed::new(granules)?,
            atomics: Zeroed::new(granules)?,
            more: Mutex::default(),
        };
        for region in buffer.regions.iter().filter(|region| region.written) {
            let first = (region.address - address) / granule_bytes;
            let last = first + region.bytes.div_ceil(granule_bytes) - 1;
            for state in buffer.states(first, last) {
                state.store(WRITTEN_BEFORE, Ordering::Relaxed);
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
    fn states(&self, first: usize, last: usize) -> &[AtomicU16] {
        assert!(first <= last && last < self.states.len);
        // SAFETY: inside the allocation; all zero is a state, and they are atomic.
        unsafe {
            std::slice::from_raw_parts(self.states.start.as_ptr().add(first), last - first + 1)
        }
    }

    /// Whether a read of these bytes adds nothing new.
    #[inline(always)]
    pub(super) fn is_saturated(&self, address: usize, bytes: usize) -> bool {
        const KNOWN: u16 = WRITTEN_BEFORE | SATURATED;
        let first = (address - self.address) >> self.shift;
        let last = (address + bytes - 1 - self.address) >> self.shift;
        self.states(first, last)
            .iter()
            .all(|state| state.load(Ordering::Relaxed) & (KNOWN | LOCKED | GAP) == KNOWN)
    }

    /// The granules of the line of a granule.
    #[inline]
    fn line(&self, number: usize) -> (usize, usize) {
        let (before, shift) = ((self.address % LINE) >> self.shift, LINE.ilog2() - self.shift);
        let line = (number + before) >> shift;
        (
            (line << shift).saturating_sub(before),
            (((line + 1) << shift) - before).min(self.states.len),
        )
    }

    /// Notes that a thread has read these bytes, which nobody writes. Further reads add nothing
    /// new. Gives the first granule that is in a gap.
    #[inline]
    pub(super) fn mark_read(&self, (address, bytes): (usize, usize)) -> Option<usize> {
        let first = (address - self.address) >> self.shift;
        let last = (address + bytes - 1 - self.address) >> self.shift;
        let mut all = 0;
        for state in self.states(first, last) {
            let flags = state.load(Ordering::Relaxed);
            all |= flags;
            // What two workers store at once is equal.
            state.store(flags | READ | SATURATED, Ordering::Relaxed);
        }
        let is_gap = |at: &usize| self.states(*at, *at)[0].load(Ordering::Relaxed) & GAP != 0;
        if all & GAP == 0 { None } else { (first..=last).find(is_gap) }
    }

    /// Records an access and reports what is wrong with it, with the offset in bytes.
    pub(super) fn access(
        &self,
        now: &Now,
        (address, bytes): (usize, usize),
        (access, keep): (Access, Third),
        mut report: impl FnMut(usize, Wrong),
    ) {
        let mut number = (address - self.address) >> self.shift;
        let all = ((address + bytes - 1 - self.address) >> self.shift) + 1;
        if self.is_read_only && access == Access::Read {
            if let Some(gap) = self.mark_read((address, bytes)) {
                report(gap << self.shift, Wrong::InGap);
            }
            return;
        }
        while number < all {
            let (first, end) = self.line(number);
            let stop = end.min(all);
            let states = self.states(first, end - 1);
            let mut of_line = lock(&states[0]) & SPLIT;
            let state = |at: usize| states[at - first].load(Ordering::Relaxed) & !OF_LINE;
            if of_line == 0 {
                let alike = (first + 1..end).all(|at| state(at) == state(first));
                if !alike || (number, stop) != (first, end) {
                    self.split(first, end, state(first));
                    of_line = SPLIT;
                }
            }
            let is_split = of_line == SPLIT;
            let is_filled = (number, stop) == (first, end);
            while number < stop {
                let unit = number..if is_split { number + 1 } else { stop };
                let flags = state(number);
                // Of most memory the first access is a write.
                const OTHERS: u16 = READ | WRITTEN | ATOMIC | CROWDED | GAP;
                if access == Access::Write && flags & OTHERS == 0 {
                    // SAFETY: inside, and this worker has locked the line.
                    unsafe { *self.writers.at(number) = now.record };
                    for at in unit.clone() {
                        let locked = if at == first { LOCKED } else { 0 };
                        states[at - first].store(flags | WRITTEN | locked, Ordering::Relaxed);
                    }
                    number = unit.end;
                    continue;
                }
                let mut found = Found::default();
                let (too_many, new) =
                    self.access_unit((&unit, flags), now, (access, keep), &mut found);
                for at in unit.clone() {
                    let locked = if at == first { LOCKED } else { 0 };
                    states[at - first].store(new | locked, Ordering::Relaxed);
                }
                let unwritten = matches!(access, Access::Read | Access::Atomic)
                    && flags & (WRITTEN_BEFORE | WRITTEN) == 0;
                if flags & GAP != 0 {
                    report(number << self.shift, Wrong::InGap);
                } else if let Some((hazard, other)) = found.race {
                    report(number << self.shift, Wrong::Race(hazard, other));
                } else if unwritten {
                    report(number << self.shift, Wrong::NeverWritten);
                } else if too_many {
                    report(number << self.shift, Wrong::TooMany);
                }
                number = unit.end;
            }
            if access == Access::Write && is_filled {
                of_line = 0;
            }
            states[0].store(state(first) | of_line, Ordering::Release);
        }
    }

    /// Gives each granule of a line, which has that state, a shadow of its own.
    fn split(&self, first: usize, end: usize, state: u16) {
        if state & CROWDED != 0 {
            self.more().spread(first, first + 1..end);
        }
        for at in first + 1..end {
            // SAFETY: inside, and this worker has locked the line.
            unsafe {
                if state & WRITTEN != 0 {
                    *self.writers.at(at) = *self.writers.at(first);
                }
                if state & READ != 0 {
                    *self.readers.at(at) = *self.readers.at(first);
                }
                if state & ATOMIC != 0 {
                    *self.atomics.at(at) = *self.atomics.at(first);
                }
            }
        }
    }

    /// Records an access to granules that have one shadow, and this state. Gives whether not all
    /// earlier accesses are remembered, and the new state.
    #[inline]
    fn access_unit(
        &self,
        (unit, state): (&Range<usize>, u16),
        now: &Now,
        (access, keep): (Access, Third),
        found: &mut Found,
    ) -> (bool, u16) {
        // SAFETY: inside, and this worker has locked the line. A part that no access has touched
        // is not looked at: the first access to its page is a write. (A page whose first access is
        // a read faults twice, and at the second fault, when it gets memory of its own, the other
        // processors must forget it.)
        let (writer, readers, atomics) = unsafe {
            let at = unit.start;
            (self.writers.at(at), self.readers.at(at), self.atomics.at(at))
        };
        let mut shadow = Shadow::NONE;
        // SAFETY: as above.
        unsafe {
            if state & WRITTEN != 0 {
                shadow.writer = *writer;
            }
            if state & READ != 0 {
                shadow.readers = *readers;
            }
            if state & ATOMIC != 0 {
                shadow.atomics = *atomics;
            }
        }
        shadow.access(now, access, 1, found);
        let mut flags = state;
        let mut too_many = false;
        if flags & CROWDED != 0 {
            match self.more().access(unit.start, now, access, 1) {
                more::Found::Nothing => {}
                more::Found::Race(kind, old) => found.race = found.race.or(Some((kind, old))),
                more::Found::TooMany => too_many = true,
            }
            if access == Access::Write {
                flags &= !CROWDED;
            }
        }
        if let Some(third) = found.third
            && shadow.needs(&third, access, keep, now)
        {
            self.more().keep(unit.start, third, access, now, 1);
            flags |= CROWDED;
        }
        // SAFETY: as above.
        unsafe {
            match access {
                Access::Read => {
                    *readers = shadow.readers;
                    flags |= READ;
                    if keep != Third::Any && shadow.is_read_by_two_blocks(now) {
                        flags |= SATURATED;
                    }
                }
                Access::Write => {
                    *writer = shadow.writer;
                    if flags & READ != 0 {
                        *readers = Pair::NONE;
                    }
                    flags = (flags | WRITTEN) & !(SATURATED | ATOMIC);
                }
                Access::Atomic | Access::AtomicStore => {
                    *atomics = shadow.atomics;
                    flags = (flags | READ | WRITTEN | ATOMIC) & !SATURATED;
                }
            }
        }
        (too_many, flags)
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
    bytes.div_ceil(granule(element)).saturating_mul(size_of::<Shadow>() + size_of::<AtomicU16>())
}

/// Locks a line, and gives the state of its first granule.
#[inline]
fn lock(state: &AtomicU16) -> u16 {
    loop {
        let free = state.load(Ordering::Relaxed) & !LOCKED;
        match state.compare_exchange_weak(free, free | LOCKED, Ordering::Acquire, Ordering::Relaxed)
        {
            Ok(_) => return free,
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

    /// The address of an element.
    ///
    /// # Safety
    /// 1. There is one.
    #[inline]
    unsafe fn at(&self, number: usize) -> *mut T {
        // SAFETY: inside the allocation.
        unsafe { self.start.as_ptr().add(number) }
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
