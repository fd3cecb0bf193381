//! The shadow of shared memory.

use std::cell::{Cell, RefCell};

use super::record::{Hazard, Now, Record, Shadow};
use crate::cpu::mode::{Access, ArrayDeclaration};

/// A shared array, or all dynamic shared memory, as a checker knows it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Array {
    pub(super) declaration: ArrayDeclaration,
    /// The block's number in its cluster.
    pub(super) rank: u32,
    /// Bytes from the start of the block's shared memory.
    pub(super) offset: usize,
    /// For each four bytes the clock at which further readers said nothing new.
    pub(super) saturated: Box<[Cell<u32>]>,
    cells: RefCell<Cells>,
}

struct Cells {
    /// Bytes that one shadow stands for: 4, 2 or 1, so that no element shares one with another.
    granule: usize,
    shadows: Vec<Shadow>,
    /// As many, or none, as long as two stand for all.
    everyone: Vec<Everyone>,
}

impl Cells {
    fn shadows_of(&mut self, (offset, bytes): (usize, usize)) -> impl Iterator<Item = &mut Shadow> {
        let (first, last) = (offset / self.granule, (offset + bytes - 1) / self.granule);
        self.shadows[first..=last].iter_mut()
    }
}

/// Each thread's last read and last atomic addition since the last write. Where threads wait for each other at mbarriers,
/// one may know of all others but one, whichever that is.
#[derive(Clone, Default)]
struct Everyone {
    reads: Vec<Record>,
    additions: Vec<Record>,
}

impl Everyone {
    /// Takes note of an access and gives the one that it is in a race with.
    fn access(&mut self, now: &Now, access: Access, horizon: u32) -> Option<(Hazard, Record)> {
        let Everyone { reads, additions } = self;
        let race = |with: &[Record], hazard: Hazard| {
            let other = with.iter().find(|old| now.races(old, horizon));
            other.map(|old| (hazard, *old))
        };
        match access {
            Access::Read => {
                note(reads, now, horizon);
                race(additions, Hazard::ReadAfterWrite)
            }
            Access::Atomic => {
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

/// An access takes the place of the same thread's last one.
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
}

/// The largest of 4, 2 and 1 that divides an element's size.
pub(super) fn granule(element: usize) -> usize {
    [4, 2].into_iter().find(|granule| element.is_multiple_of(*granule)).unwrap_or(1)
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
                everyone: Vec::new(),
            }),
        }
    }

    /// Does a read of these bytes say nothing new in the interval of this clock?
    #[inline]
    pub(super) fn is_saturated(&self, offset: usize, bytes: usize, clock: u32) -> bool {
        self.saturated[offset / 4..=(offset + bytes - 1) / 4].iter().all(|word| word.get() == clock)
    }

    /// Makes the shadows small enough for elements of another size (dynamic shared memory may be seen as
    /// several types).
    pub(super) fn refine(&self, element: usize) {
        let cells = &mut *self.cells.borrow_mut();
        let finer = granule(element);
        if finer < cells.granule {
            let copies = cells.granule / finer;
            let shadows =
                cells.shadows.iter().flat_map(|shadow| std::iter::repeat_n(*shadow, copies));
            cells.shadows = shadows.collect();
            let everyone = cells.everyone.iter();
            let everyone = everyone.flat_map(|all| std::iter::repeat_n(all.clone(), copies));
            cells.everyone = everyone.collect();
            cells.granule = finer;
        }
    }

    /// The write of these bytes that was seen last is an asynchronous copy, which has only begun.
    pub(super) fn begin_copy(&self, bytes: (usize, usize)) {
        self.cells.borrow_mut().shadows_of(bytes).for_each(Shadow::begin_copy);
    }

    /// The write of one of these bytes by a thread, in order with what is done now.
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

    /// The first of these bytes, with its offset, whose writer is one of which `is_wrong` says so.
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

    /// Takes note of an access to one element if nothing can be wrong with it. Almost all are such, and each
    /// access comes through here but the saturated reads: this is what the checks cost.
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

    /// Takes note of an access and reports what is wrong with it, at most one thing a granule, with the
    /// offset in bytes. `across`: lanes of a warp may be in order, so two readers of one warp do not
    /// stand for all.
    pub(super) fn access(
        &self,
        now: &Now,
        (offset, bytes): (usize, usize),
        access: Access,
        block_start: u32,
        across: bool,
        mut report: impl FnMut(usize, Wrong),
    ) {
        let cells = &mut *self.cells.borrow_mut();
        let (first, last) = (offset / cells.granule, (offset + bytes - 1) / cells.granule);
        let clock = now.record.clock;
        if now.is_general() {
            cells.everyone.resize_with(cells.shadows.len(), Everyone::default);
        }
        let is_saturated = |shadow: &Shadow| {
            access == Access::Read
                && shadow.is_saturated(now, across)
                && shadow.is_written(block_start)
        };
        for number in first..=last {
            let shadow = &mut cells.shadows[number];
            let unwritten = access != Access::Write && !shadow.is_written(block_start);
            let mut hazard = shadow.access(now, access, block_start);
            if now.is_general() {
                let of_all = cells.everyone[number].access(now, access, block_start);
                hazard = hazard.or(of_all);
            }
            if let Some((hazard, other)) = hazard {
                report(number * cells.granule, Wrong::Race(hazard, other));
            } else if unwritten {
                report(number * cells.granule, Wrong::NeverWritten);
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
