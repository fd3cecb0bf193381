//! Shadow memory: what is remembered of the accesses to a few bytes, and when two accesses are in a
//! race.

use std::panic::Location;

use super::{clocks::VectorClocks, record::Record, unit::Unit};
use crate::cpu::{access::Access, limits::WARP};

/// The access that is being made.
pub(super) struct Now<'a> {
    pub(super) record: Record,
    /// The slot's clock at the start of this block: older accesses are another block's.
    block_start: u32,
    clocks: &'a VectorClocks,
    /// What the thread, or engine, knows in the general case.
    known: Option<&'a [u16]>,
}

impl<'a> Now<'a> {
    pub(super) fn new(
        (slot, thread): (u32, u32),
        (clock, block_start): (u32, u32),
        clocks: &'a VectorClocks,
        place: &'static Location<'static>,
    ) -> Self {
        let record = Record::new((slot, thread), clock, clocks.clock(thread), place);
        Now { record, block_start, clocks, known: clocks.known_to(thread) }
    }

    /// The same access, made by a unit.
    pub(super) fn by(mut self, unit: Option<Unit>) -> Self {
        if let Some(unit) = unit {
            self.record.set_unit(unit);
        }
        self
    }

    /// Whether an earlier access was made in this block (or cluster).
    fn same_block(&self, old: &Record) -> bool {
        old.slot() == self.record.slot() && old.clock >= self.block_start
    }

    /// Whether `old` is a record of the thread (of the same run of its block) that made `new`.
    pub(super) fn is_same_thread(&self, old: &Record, new: &Record) -> bool {
        old.slot() == new.slot()
            && old.thread() == new.thread()
            && !old.is_engine()
            && old.clock.min(new.clock) >= self.block_start
            && new.slot() == self.record.slot()
    }

    /// Whether all of these accesses happen before this one, as far as their clocks say: barriers
    /// stand between, or they are older than `horizon`.
    pub(super) fn is_after_all(&self, dropped: &Dropped, horizon: u32) -> bool {
        let of_block =
            dropped.slot == Some(self.record.slot()) && dropped.oldest >= self.block_start;
        dropped.newest < horizon || of_block && dropped.newest < self.record.clock
    }

    /// Whether threads are ordered in other ways than by barriers and `sync_warp`: then two readers
    /// do not stand for all.
    pub(super) fn is_general(&self) -> bool {
        self.clocks.is_general()
    }

    /// Whether it is in a race with `old`, if that is not older than `horizon` and one of the two
    /// is a write.
    #[inline]
    pub(super) fn races(&self, old: &Record, horizon: u32) -> bool {
        old.clock >= horizon && !self.is_ordered(old)
    }

    /// Whether `old` happens before this access in every order of the threads. A copy in flight
    /// happens before nothing, not even before what its own thread does next. A completed copy
    /// happens before what waits at its mbarrier. Two accesses of one engine are ordered only by a
    /// wait between them.
    #[inline]
    pub(super) fn is_ordered(&self, old: &Record) -> bool {
        let thread = self.record.thread();
        let in_cluster = self.same_block(old)
            && !old.is_in_flight()
            && ((old.clock < self.record.clock && !old.is_engine())
                || (old.thread() == thread && !old.is_engine())
                || self.knows(old));
        in_cluster || self.clocks.is_released(thread, old)
    }

    /// Whether its thread knows of `old`, an access of its cluster since the last barrier.
    #[inline]
    fn knows(&self, old: &Record) -> bool {
        match self.known {
            Some(known) => self.clocks.tells(known, old),
            None => self.clocks.knows_lane(self.record.thread(), old),
        }
    }

    /// Whether a proxy fence stands between `old` and this access.
    pub(super) fn is_behind_fence(&self, old: &Record) -> bool {
        self.known.is_some_and(|known| self.clocks.is_behind_fence(known, old))
    }
}

/// Accesses for which there was no room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dropped {
    /// The slot, if all are of one.
    slot: Option<u32>,
    oldest: u32,
    newest: u32,
}

impl Dropped {
    /// Those that there were, and one more.
    pub(super) fn and(before: Option<Dropped>, record: &Record) -> Dropped {
        let (slot, clock) = (Some(record.slot()), record.clock);
        match before {
            None => Dropped { slot, oldest: clock, newest: clock },
            Some(all) => Dropped {
                slot: all.slot.filter(|_| all.slot == slot),
                oldest: all.oldest.min(clock),
                newest: all.newest.max(clock),
            },
        }
    }
}

/// The kinds of races, by the order in which the two accesses were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Hazard {
    ReadAfterWrite,
    WriteAfterRead,
    WriteAfterWrite,
}

/// What an access meets in a shadow.
#[derive(Default)]
pub(super) struct Found {
    /// An earlier access with which it is in a race.
    pub(super) race: Option<(Hazard, Record)>,
    /// An access of the same kind, this one or an earlier one, for which there is no room.
    pub(super) third: Option<Record>,
}

/// Which third accesses are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Third {
    /// None: barriers alone order threads.
    No,
    /// Those where all three are of one warp, some of whose lanes are ordered.
    OfWarp,
    /// Those where all three are of one block (or cluster), whose threads are ordered one by one.
    /// Who is of another block is ordered after none of them.
    OfBlock,
    /// All: blocks are ordered by flags.
    Any,
}

/// The bytes of a granule for elements of that size: the largest of 4, 2 and 1 that divides it.
pub(super) fn granule(element: usize) -> usize {
    [4, 2].into_iter().find(|granule| element.is_multiple_of(*granule)).unwrap_or(1)
}

/// The shadow of one granule of memory: its last writer, and two readers and two atomic additions
/// since. All bytes zero: no access.
///
/// Two readers are enough to find that there is a race, though not to name all its threads: a write
/// that is not ordered after all readers is unordered to one of two distinct ones. That holds where
/// barriers order threads, and whole warps. Elsewhere a third one is given back, and
/// [`More`](super::more) keeps it. (Readers of different warps and blocks are kept here in
/// preference.)
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Shadow {
    pub(super) writer: Record,
    pub(super) readers: Pair,
    /// Kept apart from `writer`: an addition must not hide a write with which it is in a race.
    pub(super) atomics: Pair,
}

impl Shadow {
    pub(super) const NONE: Shadow =
        Shadow { writer: Record::NONE, readers: Pair::NONE, atomics: Pair::NONE };

    /// Records an access, not after accesses older than `horizon`.
    #[inline]
    pub(super) fn access(&mut self, now: &Now, access: Access, horizon: u32, found: &mut Found) {
        let races = |old: &&Record| now.races(old, horizon);
        let of = |pair: &Pair| pair.0.iter().find(races).copied();
        let writer = Some(&self.writer).filter(races).copied();
        // Nearly always there is none, and nothing is copied.
        let mut race = |old: Option<Record>, hazard| {
            if let (Some(old), None) = (old, found.race) {
                found.race = Some((hazard, old));
            }
        };
        match access {
            Access::Read => {
                race(writer.or_else(|| of(&self.atomics)), Hazard::ReadAfterWrite);
                found.third = self.readers.keep(now, horizon);
            }
            Access::Atomic | Access::AtomicStore => {
                race(writer, Hazard::WriteAfterWrite);
                race(of(&self.readers), Hazard::WriteAfterRead);
                found.third = self.atomics.keep(now, horizon);
            }
            Access::Write => {
                race(writer.or_else(|| of(&self.atomics)), Hazard::WriteAfterWrite);
                race(of(&self.readers), Hazard::WriteAfterRead);
                *self = Shadow { writer: now.record, ..Shadow::NONE };
            }
        }
    }

    /// Whether it is written, by no atomic operation, and before a read in every order of the
    /// threads.
    #[inline]
    pub(super) fn is_read_in_order(&self, now: &Now, horizon: u32) -> bool {
        let is_written = self.writer.clock >= horizon && self.atomics.0[0].clock == 0;
        is_written && now.is_ordered(&self.writer)
    }

    /// A fast path of [`access`](Self::access) for the common case: a write, or one of the first
    /// two reads, where barriers since the last access of the other kind order everything. It is
    /// for shared memory, all of whose records are of one slot. `false`: it is another case, and
    /// nothing was recorded.
    #[inline(always)]
    pub(super) fn ordered_access(&mut self, now: &Now, access: Access, block_start: u32) -> bool {
        let clock = now.record.clock;
        let [first, second] = &mut self.readers.0;
        if self.writer.clock >= clock
            || self.writer.is_in_flight()
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
                    && now.clocks.is_empty() =>
            {
                *second = now.record;
            }
            _ => return false,
        }
        true
    }

    /// The last write is an asynchronous copy in flight: until its thread has waited for it, no
    /// thread may read or write, not even that thread.
    pub(super) fn begin_copy(&mut self, unit: Unit) {
        self.writer.set_in_flight(unit);
    }

    /// The thread has waited for its copy. Accesses while it was in flight have been reported.
    pub(super) fn end_copy(&mut self, now: &Now) {
        *self = Shadow { writer: now.record, ..Shadow::NONE };
    }

    /// The last write, if a thread (and no engine) made it and it happens before the current
    /// access.
    pub(super) fn ordered_write(&self, now: &Now, horizon: u32) -> Option<Record> {
        let by_a_thread = self.writer.clock >= horizon && !self.writer.is_engine();
        (by_a_thread && now.is_ordered(&self.writer)).then_some(self.writer)
    }

    /// The readers that it remembers.
    pub(super) fn readers(&self) -> [Record; 2] {
        self.readers.0
    }

    /// Whether there is a write or an addition that is not older than `horizon`.
    #[inline]
    pub(super) fn is_written(&self, horizon: u32) -> bool {
        self.writer.clock >= horizon || self.atomics.0.iter().any(|old| old.clock >= horizon)
    }

    /// Whether further readers until the next barrier add nothing new. With `across`, the two
    /// readers must be of different warps.
    #[inline(always)]
    pub(super) fn is_saturated(&self, now: &Now, across: bool) -> bool {
        let Pair([first, second]) = &self.readers;
        let clock = now.record.clock;
        first.clock == clock
            && second.clock == clock
            && now.same_block(first)
            && now.same_block(second)
            && first.thread() != second.thread()
            && (!across || first.thread() / WARP != second.thread() / WARP)
            && self.atomics.0[0].clock == 0
    }

    /// Whether a third access of that kind must be kept elsewhere.
    pub(super) fn needs(&self, third: &Record, access: Access, keep: Third, now: &Now) -> bool {
        let pair = if access == Access::Read { &self.readers } else { &self.atomics };
        let all = [&pair.0[0], &pair.0[1], third];
        let of_block = || all.iter().all(|record| now.same_block(record));
        let warp = third.thread() / WARP;
        let of_warp = || all.iter().all(|record| record.thread() / WARP == warp);
        match keep {
            Third::No => false,
            Third::OfWarp => of_warp() && of_block(),
            Third::OfBlock => of_block(),
            Third::Any => true,
        }
    }

    /// Whether two blocks have read it and no thread has written: then further readers of global
    /// memory add nothing new.
    #[inline]
    pub(super) fn is_read_by_two_blocks(&self, now: &Now) -> bool {
        let Pair([first, second]) = &self.readers;
        !self.is_written(1)
            && first.clock != 0
            && second.clock != 0
            && now.same_block(first) != now.same_block(second)
    }
}

/// Two accesses that represent all of their kind.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Pair([Record; 2]);

impl Pair {
    pub(super) const NONE: Pair = Pair([Record::NONE; 2]);

    /// Keeps an access. It replaces one that happens before it, which adds no information (Flanagan
    /// and Freund, FastTrack, 2009). Gives the access for which there is no room.
    #[inline]
    fn keep(&mut self, now: &Now, horizon: u32) -> Option<Record> {
        let replaceable = |old: &Record| old.clock < horizon || now.is_ordered(old);
        let [first, second] = &self.0;
        if replaceable(first) {
            self.0[0] = now.record;
        } else if replaceable(second) {
            self.0[1] = now.record;
        } else if self.is_close(now) {
            return Some(std::mem::replace(&mut self.0[1], now.record));
        } else {
            return Some(now.record);
        }
        None
    }

    /// Whether the two are of one warp (or block), and the new one is of another.
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
