//! The shadows of a shared array's granules.
//!
//! Most accesses that cost time are of sixteen bytes. So a *line* of that many bytes has one
//! shadow as long as its granules are accessed together: the first granule's, for all of them.

use std::ops::Range;

use super::{
    more::{self, More},
    record::Record,
    shadow::{Found, Hazard, Now, Shadow, Third},
};
use crate::cpu::access::Access;

/// Bytes of a line.
const LINE: usize = 16;

/// The shadows of a shared array.
pub(super) struct Cells {
    /// Bytes of a granule, which has one shadow: 4, 2 or 1, so that no two elements share one.
    pub(super) granule: usize,
    pub(super) shadows: Vec<Shadow>,
    /// For each granule the accesses of all threads; empty as long as two readers stand for all.
    all_threads: Vec<AllThreads>,
    /// Until then, accesses for which a shadow has no room.
    pub(super) more: More,
    /// For each line, whether its first granule's shadow is that of all.
    whole: Vec<bool>,
}

/// Each thread's last read and last atomic addition since the last write. It is needed where
/// threads wait at mbarriers: a thread may then know of all readers but any one.
#[derive(Clone, Default)]
struct AllThreads {
    reads: List,
    additions: List,
}

/// Accesses, one of each thread.
#[derive(Clone, Default)]
struct List {
    all: Vec<Record>,
    /// The bits of their threads' numbers modulo 64: a thread without its bit has none.
    threads: u64,
}

/// What is wrong with an access to shared memory.
pub(super) enum Wrong {
    Race(Hazard, Record),
    NeverWritten,
    /// Nothing is known to be wrong, but not all accesses before it are remembered.
    TooMany,
}

impl AllThreads {
    /// Records an access. Gives an earlier access with which it is in a race.
    fn access(&mut self, now: &Now, access: Access, horizon: u32) -> Option<(Hazard, Record)> {
        let AllThreads { reads, additions } = self;
        let race = |with: &List, hazard: Hazard| {
            let other = with.all.iter().find(|old| now.races(old, horizon));
            other.map(|old| (hazard, *old))
        };
        match access {
            Access::Read => {
                reads.note(now, horizon);
                race(additions, Hazard::ReadAfterWrite)
            }
            Access::Atomic | Access::AtomicStore => {
                additions.note(now, horizon);
                race(reads, Hazard::WriteAfterRead)
            }
            Access::Write => {
                let hazard = race(additions, Hazard::WriteAfterWrite);
                let hazard = hazard.or_else(|| race(reads, Hazard::WriteAfterRead));
                reads.clear();
                additions.clear();
                hazard
            }
        }
    }
}

impl List {
    fn clear(&mut self) {
        self.all.clear();
        self.threads = 0;
    }

    /// Records an access in place of the same thread's last one.
    #[inline]
    fn note(&mut self, now: &Now, horizon: u32) {
        if self.all.first().is_some_and(|old| old.clock < horizon) {
            self.clear(); // Another block's.
        }
        let (thread, bit) = (now.record.thread(), 1 << (now.record.thread() % 64));
        let own = match self.threads & bit {
            0 => None,
            _ => self.all.iter_mut().find(|old| old.thread() == thread),
        };
        self.threads |= bit;
        match own {
            Some(own) => *own = now.record,
            None => self.all.push(now.record),
        }
    }
}

impl std::fmt::Debug for Cells {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} shadows of {} bytes", self.shadows.len(), self.granule)
    }
}

impl Cells {
    pub(super) fn new(bytes: usize, granule: usize) -> Self {
        Cells {
            granule,
            shadows: vec![Shadow::NONE; bytes.div_ceil(granule)],
            all_threads: Vec::new(),
            more: More::default(),
            whole: vec![true; bytes.div_ceil(LINE)],
        }
    }

    /// Makes the granules smaller.
    pub(super) fn refine(&mut self, finer: usize) {
        (0..self.whole.len()).for_each(|line| self.split(line));
        let copies = self.granule / finer;
        let shadows = self.shadows.iter().flat_map(|shadow| std::iter::repeat_n(*shadow, copies));
        self.shadows = shadows.collect();
        let all_threads = self.all_threads.iter();
        let all_threads = all_threads.flat_map(|all| std::iter::repeat_n(all.clone(), copies));
        self.all_threads = all_threads.collect();
        self.more = self.more.refined(copies);
        self.granule = finer;
    }

    /// The granules of these bytes.
    #[inline]
    fn granules(&self, (offset, bytes): (usize, usize)) -> Range<usize> {
        let shift = self.granule.trailing_zeros();
        offset >> shift..((offset + bytes - 1) >> shift) + 1
    }

    /// The granules of a line.
    #[inline]
    fn line(&self, line: usize) -> Range<usize> {
        let shift = LINE.ilog2() - self.granule.trailing_zeros();
        line << shift..((line + 1) << shift).min(self.shadows.len())
    }

    /// The granules that have the same shadow as this one; the first of them holds it.
    #[inline]
    fn unit(&self, number: usize) -> Range<usize> {
        let line = number >> (LINE.ilog2() - self.granule.trailing_zeros());
        if self.whole[line] { self.line(line) } else { number..number + 1 }
    }

    /// Gives each granule of a line a shadow of its own.
    #[inline(always)]
    pub(super) fn split(&mut self, line: usize) {
        if self.whole[line] {
            self.split_whole(line);
        }
    }

    #[inline(never)]
    fn split_whole(&mut self, line: usize) {
        self.whole[line] = false;
        let granules = self.line(line);
        let first = granules.start;
        let shadow = self.shadows[first];
        self.shadows[granules.clone()].fill(shadow);
        if !self.more.is_empty() {
            self.more.spread(first, first + 1..granules.end);
        }
        if let Some([first, rest @ ..]) = self.all_threads.get_mut(granules) {
            rest.iter_mut().for_each(|each| each.clone_from(first));
        }
    }

    /// The granules of these bytes, which are about to be changed: lines that the bytes do not
    /// fill are split.
    #[inline]
    fn apart(&mut self, bytes: (usize, usize)) -> Range<usize> {
        let (offset, end) = (bytes.0, bytes.0 + bytes.1);
        if !offset.is_multiple_of(LINE) {
            self.split(offset / LINE);
        }
        let granules = self.granules(bytes);
        if !end.is_multiple_of(LINE) && granules.end < self.shadows.len() {
            self.split(end / LINE);
        }
        granules
    }

    /// Whether a line has one shadow.
    #[inline]
    pub(super) fn is_whole(&self, line: usize) -> bool {
        self.whole[line]
    }

    /// Changes all shadows of these bytes.
    pub(super) fn change(&mut self, bytes: (usize, usize), change: impl Fn(&mut Shadow)) {
        let mut granules = self.apart(bytes);
        while let Some(number) = granules.next() {
            granules.start = self.unit(number).end;
            change(&mut self.shadows[number]);
        }
    }

    /// What is found first in a shadow of these bytes, and the offset in bytes.
    pub(super) fn find<R>(
        &self,
        bytes: (usize, usize),
        find: impl Fn(&Shadow) -> Option<R>,
    ) -> Option<(usize, R)> {
        let mut granules = self.granules(bytes);
        while let Some(number) = granules.next() {
            let unit = self.unit(number);
            granules.start = unit.end;
            if let Some(found) = find(&self.shadows[unit.start]) {
                return Some((number * self.granule, found));
            }
        }
        None
    }

    /// A read of one of these bytes that `is_wrong`.
    pub(super) fn find_reader(
        &self,
        bytes: (usize, usize),
        is_wrong: impl Fn(&Record) -> bool,
    ) -> Option<Record> {
        // Those before the general case are in the shadows alone.
        let in_shadow = |shadow: &Shadow| shadow.readers().into_iter().find(&is_wrong);
        let mut found = self.find(bytes, in_shadow).map(|(_, found)| found);
        let mut granules = self.granules(bytes);
        while let Some(number) = granules.next()
            && found.is_none()
            && !self.all_threads.is_empty()
        {
            let unit = self.unit(number);
            granules.start = unit.end;
            found = self.all_threads[unit.start].reads.all.iter().copied().find(&is_wrong);
        }
        found
    }

    /// Records an access and reports what is wrong with it: at most one thing for each granule,
    /// with the offset in bytes.
    pub(super) fn access(
        &mut self,
        now: &Now,
        bytes: (usize, usize),
        (access, keep): (Access, Third),
        block_start: u32,
        mut report: impl FnMut(usize, Wrong),
    ) {
        let (all, is_general) = (self.apart(bytes), now.is_general());
        if is_general && self.all_threads.is_empty() {
            self.all_threads.resize_with(self.shadows.len(), AllThreads::default);
        }
        let mut granules = all.clone();
        while let Some(number) = granules.next() {
            let unit = self.unit(number);
            granules.start = unit.end;
            let shadow = &mut self.shadows[number];
            if is_general && access == Access::Read && self.more.is_empty() {
                let all = &mut self.all_threads[number];
                all.reads.note(now, block_start);
                let is_alone = all.additions.all.is_empty();
                if is_alone && shadow.is_read_in_order(now, block_start) {
                    continue;
                }
            }
            let reads = matches!(access, Access::Read | Access::Atomic);
            let unwritten = reads && !shadow.is_written(block_start);
            let (mut found, mut too_many) = (Found::default(), false);
            shadow.access(now, access, block_start, &mut found);
            if !self.more.is_empty() {
                match self.more.access(number, now, access, block_start) {
                    more::Found::Nothing => {}
                    more::Found::Race(kind, old) => found.race = found.race.or(Some((kind, old))),
                    more::Found::TooMany => too_many = true,
                }
            }
            if is_general {
                let of_all = self.all_threads[number].access(now, access, block_start);
                if of_all.is_some() && found.race.is_none() {
                    found.race = of_all;
                }
            } else if let Some(third) = found.third
                && shadow.needs(&third, access, keep, now)
            {
                self.more.keep(number, third, access, now, block_start);
            }
            let at = number * self.granule;
            if let Some((hazard, other)) = found.race {
                report(at, Wrong::Race(hazard, other));
            } else if unwritten {
                report(at, Wrong::NeverWritten);
            } else if too_many {
                report(at, Wrong::TooMany);
            }
        }
        if access == Access::Write {
            self.join(bytes, all.end);
        }
    }

    /// These bytes have been written, up to the granule `end`: the lines that they fill have one
    /// shadow again.
    #[inline]
    fn join(&mut self, (offset, bytes): (usize, usize), end: usize) {
        let is_last = end == self.shadows.len();
        let end = if is_last { self.whole.len() } else { (offset + bytes) / LINE };
        if let Some(lines) = self.whole.get_mut(offset.div_ceil(LINE)..end) {
            lines.fill(true);
        }
    }
}
