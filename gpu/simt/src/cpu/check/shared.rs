//! The shadow of shared memory.

use std::cell::{Cell, RefCell};

use super::record::{Hazard, Now, Record, Shadow};
use crate::cpu::mode::{Access, ArrayDeclaration};

/// A shared array, or all dynamic shared memory, as a checker knows it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Array {
    pub(super) declaration: ArrayDeclaration,
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
}

impl Cells {
    fn shadows_of(&mut self, (offset, bytes): (usize, usize)) -> impl Iterator<Item = &mut Shadow> {
        let (first, last) = (offset / self.granule, (offset + bytes - 1) / self.granule);
        self.shadows[first..=last].iter_mut()
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

    pub(super) fn new(declaration: &ArrayDeclaration, offset: usize) -> Self {
        let ArrayDeclaration { element, shape, .. } = *declaration;
        let (bytes, granule) = (element * shape.0 * shape.1, granule(element));
        Array {
            declaration: *declaration,
            offset,
            saturated: vec![Cell::new(0); bytes.div_ceil(4)].into(),
            cells: RefCell::new(Cells {
                granule,
                shadows: vec![Shadow::NONE; bytes.div_ceil(granule)],
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
            cells.granule = finer;
        }
    }

    /// The write of these bytes that was seen last is an asynchronous copy, which has only begun.
    pub(super) fn begin_copy(&self, bytes: (usize, usize)) {
        self.cells.borrow_mut().shadows_of(bytes).for_each(Shadow::begin_copy);
    }

    /// The thread has waited for its copy to these bytes.
    pub(super) fn end_copy(&self, now: &Now, bytes: (usize, usize)) {
        self.cells.borrow_mut().shadows_of(bytes).for_each(|shadow| shadow.end_copy(now));
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
        if cells.granule != 4 || bytes != 4 || !offset.is_multiple_of(4) {
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
        let is_saturated = |shadow: &Shadow| {
            access == Access::Read
                && shadow.is_saturated(now, across)
                && shadow.is_written(block_start)
        };
        for number in first..=last {
            let shadow = &mut cells.shadows[number];
            let unwritten = access != Access::Write && !shadow.is_written(block_start);
            let hazard = shadow.access(now, access, block_start);
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
