//! The shadow of shared memory: one for each array of a block.

use std::cell::{Cell, RefCell};

use super::{
    more::{Found, More},
    record::Record,
    shadow::{Hazard, Now, Shadow, Third, granule},
    unit::Unit,
};
use crate::cpu::access::{Access, ArrayDeclaration};

/// A shared array, or the dynamic shared memory, with its shadow.
#[doc(hidden)]
#[derive(Debug)]
pub struct Array {
    pub(super) declaration: ArrayDeclaration,
    /// The rank of its block in the cluster.
    pub(super) rank: u32,
    /// Bytes from the start of the block's shared memory.
    pub(super) offset: usize,
    /// For each four bytes the slot's clock at which they are saturated: at that clock further
    /// reads add nothing new.
    pub(super) saturated: Box<[Cell<u32>]>,
    cells: RefCell<Cells>,
}

struct Cells {
    /// Bytes of a granule, which has one shadow: 4, 2 or 1, so that no two elements share one.
    granule: usize,
    shadows: Vec<Shadow>,
    /// For each granule the accesses of all threads; empty as long as two readers stand for all.
    all_threads: Vec<AllThreads>,
    /// Until then, accesses for which a shadow has no room.
    more: More,
}

impl Cells {
    fn shadows_of(&mut self, (offset, bytes): (usize, usize)) -> impl Iterator<Item = &mut Shadow> {
        let (first, last) = (offset / self.granule, (offset + bytes - 1) / self.granule);
        self.shadows[first..=last].iter_mut()
    }
}

/// Each thread's last read and last atomic addition since the last write. It is needed where
/// threads wait at mbarriers: a thread may then know of all readers but any one.
#[derive(Clone, Default)]
struct AllThreads {
    reads: Vec<Record>,
    additions: Vec<Record>,
}

impl AllThreads {
    /// Records an access. Gives an earlier access with which it is in a race.
    fn access(&mut self, now: &Now, access: Access, horizon: u32) -> Option<(Hazard, Record)> {
        let AllThreads { reads, additions } = self;
        let race = |with: &[Record], hazard: Hazard| {
            let other = with.iter().find(|old| now.races(old, horizon));
            other.map(|old| (hazard, *old))
        };
        match access {
            Access::Read => {
                note(reads, now, horizon);
                race(additions, Hazard::ReadAfterWrite)
            }
            Access::Atomic | Access::AtomicStore => {
                note(additions, now, horizon);
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

/// Records an access in place of the same thread's last one.
fn note(accesses: &mut Vec<Record>, now: &Now, horizon: u32) {
    if accesses.first().is_some_and(|old| old.clock < horizon) {
        accesses.clear(); // Another block's.
    }
    match accesses.iter_mut().find(|old| old.thread() == now.record.thread()) {
        Some(own) => *own = now.record,
        None => accesses.push(now.record),
    }
}

impl std::fmt::Debug for Cells {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} shadows of {} bytes", self.shadows.len(), self.granule)
    }
}

/// What is wrong with an access to shared memory.
pub(super) enum Wrong {
    Race(Hazard, Record),
    NeverWritten,
    /// Nothing is known to be wrong, but not all accesses before it are remembered.
    TooMany,
}

impl Array {
    pub(super) fn bytes(&self) -> usize {
        self.declaration.element * self.declaration.shape.0 * self.declaration.shape.1
    }

    pub(super) fn new(declaration: &ArrayDeclaration, rank: u32, offset: usize) -> Self {
        let ArrayDeclaration { element, shape, .. } = *declaration;
        let (bytes, granule) = (element * shape.0 * shape.1, granule(element));
        Array {
            declaration: *declaration,
            rank,
            offset,
            saturated: vec![Cell::new(0); bytes.div_ceil(4)].into(),
            cells: RefCell::new(Cells {
                granule,
                shadows: vec![Shadow::NONE; bytes.div_ceil(granule)],
                all_threads: Vec::new(),
                more: More::default(),
            }),
        }
    }

    /// Whether a read of these bytes adds nothing new at this clock.
    #[inline]
    pub(super) fn is_saturated(&self, offset: usize, bytes: usize, clock: u32) -> bool {
        self.saturated[offset / 4..=(offset + bytes - 1) / 4].iter().all(|word| word.get() == clock)
    }

    /// Makes the granules small enough for elements of another size: dynamic shared memory may be
    /// used as several types.
    pub(super) fn refine(&self, element: usize) {
        let cells = &mut *self.cells.borrow_mut();
        let finer = granule(element);
        if finer < cells.granule {
            let copies = cells.granule / finer;
            let shadows =
                cells.shadows.iter().flat_map(|shadow| std::iter::repeat_n(*shadow, copies));
            cells.shadows = shadows.collect();
            let all_threads = cells.all_threads.iter();
            let all_threads = all_threads.flat_map(|all| std::iter::repeat_n(all.clone(), copies));
            cells.all_threads = all_threads.collect();
            cells.more = cells.more.refined(copies);
            cells.granule = finer;
        }
    }

    /// The last write of these bytes is an asynchronous copy in flight, which `unit` makes.
    pub(super) fn begin_copy(&self, bytes: (usize, usize), unit: Unit) {
        self.cells.borrow_mut().shadows_of(bytes).for_each(|shadow| shadow.begin_copy(unit));
    }

    /// A write of one of these bytes by a thread (and no engine) that happens before the current
    /// access.
    pub(super) fn ordered_write(
        &self,
        now: &Now,
        bytes: (usize, usize),
        horizon: u32,
    ) -> Option<Record> {
        let mut cells = self.cells.borrow_mut();
        cells.shadows_of(bytes).find_map(|shadow| shadow.ordered_write(now, horizon))
    }

    /// The thread has waited for its copy to these bytes.
    pub(super) fn end_copy(&self, now: &Now, bytes: (usize, usize)) {
        self.cells.borrow_mut().shadows_of(bytes).for_each(|shadow| shadow.end_copy(now));
    }

    /// The first of these bytes whose last writer `is_wrong`: its offset and that writer.
    pub(super) fn find_writer(
        &self,
        bytes: (usize, usize),
        is_wrong: impl Fn(&Record) -> bool,
    ) -> Option<(usize, Record)> {
        let cells = &mut *self.cells.borrow_mut();
        let granule = cells.granule;
        let number = bytes.0 / granule;
        let (at, shadow) =
            cells.shadows_of(bytes).enumerate().find(|(_, shadow)| is_wrong(&shadow.writer))?;
        Some(((number + at) * granule, shadow.writer))
    }

    /// A read of one of these bytes that `is_wrong`.
    pub(super) fn find_reader(
        &self,
        bytes: (usize, usize),
        is_wrong: impl Fn(&Record) -> bool,
    ) -> Option<Record> {
        let cells = &mut *self.cells.borrow_mut();
        let first = bytes.0 / cells.granule;
        let last = (bytes.0 + bytes.1 - 1) / cells.granule;
        // What `all_threads` has, a shadow mostly has, too; before the general case it alone.
        let mut shadows = cells.shadows[first..=last].iter().flat_map(Shadow::readers);
        if let Some(found) = shadows.find(|old| is_wrong(old)) {
            return Some(found);
        }
        let all = cells.all_threads.get(first..=last).unwrap_or(&[]);
        all.iter().flat_map(|all| &all.reads).find(|old| is_wrong(old)).copied()
    }

    /// Records an access to one element if nothing can be wrong with it; otherwise gives `false`.
    /// Almost all accesses are such, and every access comes through here except saturated reads:
    /// this is most of the checker's cost.
    #[inline(always)]
    pub(super) fn ordered_access(
        &self,
        now: &Now,
        (offset, bytes): (usize, usize),
        access: Access,
        block_start: u32,
        across: bool,
    ) -> bool {
        let cells = &mut *self.cells.borrow_mut();
        if cells.granule != 4 || bytes != 4 || !offset.is_multiple_of(4) || now.is_general() {
            return false;
        }
        let (shadow, saturated) = (&mut cells.shadows[offset / 4], &self.saturated[offset / 4]);
        if !shadow.ordered_access(now, access, block_start) {
            return false;
        }
        let is_saturated = access == Access::Read && shadow.is_saturated(now, across);
        saturated.set(if is_saturated { now.record.clock } else { 0 });
        true
    }

    /// Records an access and reports what is wrong with it: at most one thing for each granule,
    /// with the offset in bytes. `across`: lanes of a warp may be ordered, so two readers of one
    /// warp do not stand for all.
    pub(super) fn access(
        &self,
        now: &Now,
        (offset, bytes): (usize, usize),
        (access, keep): (Access, Third),
        block_start: u32,
        across: bool,
        mut report: impl FnMut(usize, Wrong),
    ) {
        let cells = &mut *self.cells.borrow_mut();
        let (first, last) = (offset / cells.granule, (offset + bytes - 1) / cells.granule);
        let clock = now.record.clock;
        if now.is_general() {
            cells.all_threads.resize_with(cells.shadows.len(), AllThreads::default);
        }
        let is_saturated = |shadow: &Shadow| {
            access == Access::Read
                && shadow.is_saturated(now, across)
                && shadow.is_written(block_start)
        };
        for number in first..=last {
            let shadow = &mut cells.shadows[number];
            let reads = matches!(access, Access::Read | Access::Atomic);
            let unwritten = reads && !shadow.is_written(block_start);
            let (mut hazard, third) = shadow.access(now, access, block_start);
            let mut too_many = false;
            if !cells.more.is_empty() {
                match cells.more.access(number, now, access, block_start) {
                    Found::Nothing => {}
                    Found::Race(kind, old) => hazard = hazard.or(Some((kind, old))),
                    Found::TooMany => too_many = true,
                }
            }
            if now.is_general() {
                let of_all = cells.all_threads[number].access(now, access, block_start);
                hazard = hazard.or(of_all);
            } else if let Some(third) = third
                && shadow.needs(&third, access, keep, now)
            {
                cells.more.keep(number, third, access, now, block_start);
            }
            if let Some((hazard, other)) = hazard {
                report(number * cells.granule, Wrong::Race(hazard, other));
            } else if unwritten {
                report(number * cells.granule, Wrong::NeverWritten);
            } else if too_many {
                report(number * cells.granule, Wrong::TooMany);
            }
            if cells.granule == 4 {
                self.saturated[number].set(if is_saturated(shadow) { clock } else { 0 });
            }
        }
        if cells.granule < 4 {
            let per_word = 4 / cells.granule;
            for word in offset / 4..=(offset + bytes - 1) / 4 {
                let end = ((word + 1) * per_word).min(cells.shadows.len());
                let saturated = cells.shadows[word * per_word..end].iter().all(is_saturated);
                self.saturated[word].set(if saturated { clock } else { 0 });
            }
        }
    }
}
