//! The record of an access: which thread made it, when, and where in the source.

use std::{panic::Location, ptr::null};

use super::unit::Unit;

/// The most threads of a cluster in a checked launch. Numbers from here on are *engines*: hardware
/// units that access memory by themselves, such as TMA and the tensor cores
/// ([`clocks`](super::clocks)).
pub(in crate::cpu) const FIRST_ENGINE: u32 = 3072;

/// The last value of a thread's own clock of 14 bits. From there on the clock orders everything:
/// the checker misses a race rather than report a false one.
pub(super) const LAST_CLOCK: u16 = (1 << 14) - 1;

/// An access that was made.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Record {
    /// The worker's clock. It ticks at every barrier and at every start of a block and never goes
    /// back, so that nothing has to be cleared between blocks. Zero: no access.
    pub(super) clock: u32,
    /// Bits 0-11: the thread's number in its cluster. Bits 12-14: the unit that made the access for
    /// it, or zero. Bit 17: whether it is a copy in flight. Bits 18-31: the thread's own clock.
    who: u32,
    /// The place in the source. The upper 16 bits of the address, which no address uses, hold the
    /// slot.
    place: *const Location<'static>,
}

const UNIT: u32 = 12;
const IN_FLIGHT: u32 = 1 << 17;
const OWN_CLOCK: u32 = 18;
const SLOT: u32 = 48;
/// The most slots of a checked launch.
pub(in crate::cpu) const MOST_SLOTS: u64 = 1 << (usize::BITS - SLOT);

// SAFETY: the place is a reference to something that lives as long as the program.
unsafe impl Send for Record {}
// SAFETY: likewise.
unsafe impl Sync for Record {}

impl Record {
    /// No access.
    pub(super) const NONE: Record = Record { clock: 0, who: 0, place: null() };

    /// The number of the thread, or engine, in its cluster.
    pub(super) fn thread(&self) -> u32 {
        self.who & 0xfff
    }

    /// The number of the slot that ran the cluster.
    pub(super) fn slot(&self) -> u32 {
        (self.place.addr() >> SLOT) as u32
    }

    pub(super) fn place(&self) -> Option<&'static Location<'static>> {
        let place = self.place.map_addr(|address| address & ((1 << SLOT) - 1));
        // SAFETY: null, or made of such a reference.
        unsafe { place.as_ref() }
    }

    /// Whether an engine made it, and no thread.
    pub(super) fn is_engine(&self) -> bool {
        self.thread() >= FIRST_ENGINE
    }

    /// Whether it is an asynchronous copy for which its thread has not waited yet.
    pub(super) fn is_in_flight(&self) -> bool {
        self.who & IN_FLIGHT != 0
    }

    /// The thread's own clock at the access.
    pub(super) fn own_clock(&self) -> u16 {
        (self.who >> OWN_CLOCK) as u16
    }

    /// The record of an access by the thread, or engine, of that number in a slot, when the slot's
    /// clock was `clock` and the thread's own clock `own_clock`.
    pub(super) fn new(
        (slot, thread): (u32, u32),
        clock: u32,
        own_clock: u16,
        place: &'static Location<'static>,
    ) -> Self {
        let who = thread | u32::from(own_clock) << OWN_CLOCK;
        let place = std::ptr::from_ref(place).map_addr(|address| address | (slot as usize) << SLOT);
        Record { clock, who, place }
    }

    /// The unit that made it; `None`: its thread made it.
    pub(super) fn unit(&self) -> Option<Unit> {
        Unit::numbered(self.who >> UNIT & 0b111)
    }

    /// Notes that `unit` made it.
    pub(super) fn set_unit(&mut self, unit: Unit) {
        self.who |= (unit as u32) << UNIT;
    }

    /// Marks it as an asynchronous copy in flight, which `unit` makes.
    pub(super) fn set_in_flight(&mut self, unit: Unit) {
        self.set_unit(unit);
        self.who |= IN_FLIGHT;
    }
}

/// The entry of the first engine in a vector clock of that many threads: behind the clocks of the
/// threads, how much of each is behind a fence, and whether all that is older is.
pub(super) fn first_engine(threads: usize) -> usize {
    2 * threads + 1
}

/// Joins two vector clocks: each entry becomes the greater one.
pub(super) fn learn(known: &mut Vec<u16>, more: &[u16]) {
    if known.len() < more.len() {
        known.resize(more.len(), 0);
    }
    for (known, more) in known.iter_mut().zip(more) {
        *known = (*known).max(*more);
    }
}
