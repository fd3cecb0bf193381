//! What the shadow of a few bytes of memory remembers, and when two accesses are in order.

use std::{panic::Location, ptr::null};

use super::order::{FIRST_ENGINE, ThreadOrder};
use crate::cpu::{block::WARP, mode::Access};

/// An access that was made: by whom, when and where in the source.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Record {
    /// The worker's clock, which ticks at every barrier and at every start of a block and never goes back:
    /// nothing has to be cleared between blocks. Zero: no access.
    pub(super) clock: u32,
    /// Bits 0-11 the thread's number in its cluster, 17 whether it goes on, 18-31 the thread's own clock.
    who: u32,
    /// Where in the source; in the address's upper 16 bits, which no address needs, the slot.
    place: *const Location<'static>,
}

const GOES_ON: u32 = 1 << 17;
const OWN_CLOCK: u32 = 18;
const SLOT: u32 = 48;
/// Slots of a checked launch at most.
pub(in crate::cpu) const MOST_SLOTS: u64 = 1 << (usize::BITS - SLOT);

// SAFETY: the place is a reference to what lives as long as the program.
unsafe impl Send for Record {}
// SAFETY: likewise.
unsafe impl Sync for Record {}

impl Record {
    pub(super) const NONE: Record = Record { clock: 0, who: 0, place: null() };

    pub(super) fn thread(&self) -> u32 {
        self.who & 0xfff
    }

    pub(super) fn worker(&self) -> u32 {
        (self.place.addr() >> SLOT) as u32
    }

    pub(super) fn place(&self) -> Option<&'static Location<'static>> {
        let place = self.place.map_addr(|address| address & ((1 << SLOT) - 1));
        // SAFETY: null, or made of such a reference.
        unsafe { place.as_ref() }
    }

    /// Was it made by no thread, but by a copy that came, or by tensor cores?
    pub(super) fn is_engine(&self) -> bool {
        self.thread() >= FIRST_ENGINE
    }

    /// Is it an asynchronous copy that its thread has not yet waited for?
    pub(super) fn goes_on(&self) -> bool {
        self.who & GOES_ON != 0
    }

    pub(super) fn own_clock(&self) -> u16 {
        (self.who >> OWN_CLOCK) as u16
    }
}

/// An access that is being made.
pub(super) struct Now<'a> {
    pub(super) record: Record,
    /// The clock at the start of this block: what is older was another block's.
    block_start: u32,
    order: &'a ThreadOrder,
}

impl<'a> Now<'a> {
    pub(super) fn new(
        (worker, thread): (u32, u32),
        (clock, block_start): (u32, u32),
        order: &'a ThreadOrder,
        place: &'static Location<'static>,
    ) -> Self {
        let own_clock = u32::from(order.clock(thread)) << OWN_CLOCK;
        let place =
            std::ptr::from_ref(place).map_addr(|address| address | (worker as usize) << SLOT);
        Now { record: Record { clock, who: thread | own_clock, place }, block_start, order }
    }

    /// Was it made by another thread of this block, or by this one?
    fn same_block(&self, old: &Record) -> bool {
        old.worker() == self.record.worker() && old.clock >= self.block_start
    }

    /// May readers be in order with each other and not with a writer, so that two do not stand for all?
    pub(super) fn is_general(&self) -> bool {
        self.order.is_general()
    }

    /// Is it in a race with `old`, at `horizon` or after, one of the two being a write?
    pub(super) fn races(&self, old: &Record, horizon: u32) -> bool {
        old.clock >= horizon && !self.is_ordered(old)
    }

    /// Does `old` come before this access in every order of the threads? A copy that goes on comes before nothing,
    /// not even before what its own thread does next; and one that has come only before what its mbarrier tells of it. Nor
    /// is what an engine does in order with what it does next, but for what a wait between has told.
    pub(super) fn is_ordered(&self, old: &Record) -> bool {
        let thread = self.record.thread();
        let in_cluster = self.same_block(old)
            && !old.goes_on()
            && ((old.clock < self.record.clock && !old.is_engine())
                || (old.thread() == thread && !old.is_engine())
                || self.order.knows(thread, old));
        in_cluster || self.order.is_told(old)
    }
}

/// What two unordered accesses are called, by the order in which they were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Hazard {
    ReadAfterWrite,
    WriteAfterRead,
    WriteAfterWrite,
}

/// The shadow of one granule of memory: its last writer, and two readers and two atomic additions since. All
/// bytes zero: no access.
///
/// Two are enough to find that there is a race, though not to name all its threads: a write that is not
/// ordered after all readers is unordered to one of two distinct ones. (Where `sync_warp` orders some lanes of
/// a warp and not others, a third reader of that warp may be missed; of different warps and blocks none is,
/// since those are kept before others.)
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Shadow {
    pub(super) writer: Record,
    readers: Pair,
    /// Apart from `writer`: an addition must not hide a write that it is in a race with.
    atomics: Pair,
}

impl Shadow {
    pub(super) const NONE: Shadow =
        Shadow { writer: Record::NONE, readers: Pair::NONE, atomics: Pair::NONE };

    /// Takes note of an access and gives the earlier one, at `horizon` or after, that it is in a race with.
    #[inline]
    pub(super) fn access(
        &mut self,
        now: &Now,
        access: Access,
        horizon: u32,
    ) -> Option<(Hazard, Record)> {
        let races = |old: &Record| now.races(old, horizon);
        let of = |pair: &Pair| pair.0.into_iter().find(races);
        let writer = Some(self.writer).filter(races);
        match access {
            Access::Read => {
                let hazard = writer.or_else(|| of(&self.atomics));
                self.readers.keep(now, horizon);
                hazard.map(|old| (Hazard::ReadAfterWrite, old))
            }
            Access::Atomic => {
                let hazard = writer.map(|old| (Hazard::WriteAfterWrite, old));
                let hazard =
                    hazard.or_else(|| of(&self.readers).map(|old| (Hazard::WriteAfterRead, old)));
                self.atomics.keep(now, horizon);
                hazard
            }
            Access::Write => {
                let hazard = writer.or_else(|| of(&self.atomics));
                let hazard = hazard.map(|old| (Hazard::WriteAfterWrite, old));
                let hazard =
                    hazard.or_else(|| of(&self.readers).map(|old| (Hazard::WriteAfterRead, old)));
                *self = Shadow { writer: now.record, ..Shadow::NONE };
                hazard
            }
        }
    }

    /// What [`access`](Self::access) does, for what most accesses are: a write, or one of the first two
    /// reads, of memory where the barriers since the last access of the other kind put everything in order.
    /// For the shadow of shared memory, all of whose records are one worker's. `false`: it is another case,
    /// and nothing was done.
    #[inline(always)]
    pub(super) fn ordered_access(&mut self, now: &Now, access: Access, block_start: u32) -> bool {
        let clock = now.record.clock;
        let [first, second] = &mut self.readers.0;
        if self.writer.clock >= clock
            || self.writer.goes_on()
            || self.writer.is_engine()
            || self.atomics.0[0].clock != 0
        {
            return false;
        }
        match access {
            Access::Write
                if first.clock < clock
                    && second.clock < clock
                    && !first.is_engine()
                    && !second.is_engine() =>
            {
                (*first, *second) = (Record::NONE, Record::NONE);
                self.writer = now.record;
            }
            Access::Read
                if self.writer.clock >= block_start
                    && first.clock < clock
                    && !first.is_engine()
                    && !now.record.is_engine() =>
            {
                *first = now.record;
            }
            Access::Read
                if self.writer.clock >= block_start
                    && second.clock < clock
                    && !second.is_engine()
                    && !now.record.is_engine()
                    && first.thread() != now.record.thread()
                    && now.order.is_empty() =>
            {
                *second = now.record;
            }
            _ => return false,
        }
        true
    }

    /// The write that was seen last is an asynchronous copy, which has only begun: until its thread has waited
    /// for it nobody may read or write, that thread included.
    pub(super) fn begin_copy(&mut self) {
        self.writer.who |= GOES_ON;
    }

    /// The thread has waited for its copy. Whoever met it on its way was reported then.
    pub(super) fn end_copy(&mut self, now: &Now) {
        *self = Shadow { writer: now.record, ..Shadow::NONE };
    }

    /// The write by a thread, not by an engine, that is in order with what is done now.
    pub(super) fn ordered_write(&self, now: &Now, horizon: u32) -> Option<Record> {
        let by_a_thread = self.writer.clock >= horizon && !self.writer.is_engine();
        (by_a_thread && now.is_ordered(&self.writer)).then_some(self.writer)
    }

    /// Has anybody written, at `horizon` or after?
    #[inline]
    pub(super) fn is_written(&self, horizon: u32) -> bool {
        self.writer.clock >= horizon || self.atomics.0.iter().any(|old| old.clock >= horizon)
    }

    /// Will further readers of this interval say nothing new? `across` asks for readers of two warps.
    #[inline]
    pub(super) fn is_saturated(&self, now: &Now, across: bool) -> bool {
        let Pair([first, second]) = &self.readers;
        let clock = now.record.clock;
        first.clock == clock
            && second.clock == clock
            && first.thread() != second.thread()
            && (!across || first.thread() / WARP != second.thread() / WARP)
            && self.atomics.0[0].clock == 0
    }

    /// The same for global memory, where blocks run in no order: has it been read by two of them?
    #[inline]
    pub(super) fn is_read_by_two_blocks(&self, now: &Now) -> bool {
        let Pair([first, second]) = &self.readers;
        !self.is_written(1)
            && first.clock != 0
            && second.clock != 0
            && now.same_block(first) != now.same_block(second)
    }
}

/// Two accesses that stand for all of their kind.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Pair([Record; 2]);

impl Pair {
    const NONE: Pair = Pair([Record::NONE; 2]);

    /// An access that is in order with the new one says nothing that the new one does not (Flanagan and
    /// Freund, FastTrack, 2009).
    #[inline]
    fn keep(&mut self, now: &Now, horizon: u32) {
        let replaceable = |old: &Record| old.clock < horizon || now.is_ordered(old);
        let [first, second] = &self.0;
        if replaceable(first) {
            self.0[0] = now.record;
        } else if replaceable(second) || self.is_close(now) {
            self.0[1] = now.record;
        }
    }

    /// Are the two of one warp (or block), and the new one is not?
    fn is_close(&self, now: &Now) -> bool {
        let [first, second] = &self.0;
        if now.same_block(first) && now.same_block(second) {
            let warp = |record: &Record| record.thread() / WARP;
            warp(first) == warp(second) && warp(first) != warp(&now.record)
        } else {
            now.same_block(first) == now.same_block(second)
        }
    }
}
