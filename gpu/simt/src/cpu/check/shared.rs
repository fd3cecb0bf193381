//! The shadow of shared memory: one for each array of a block.

use std::cell::{Cell, RefCell};

use super::{
    cells::{Cells, Wrong},
    record::Record,
    shadow::{Now, Shadow, Third, granule},
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
            cells: RefCell::new(Cells::new(bytes, granule)),
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
            cells.refine(finer);
        }
    }

    /// Another block has it from here on. What is kept beside the shadows is the last one's.
    pub(super) fn begin_block(&self) {
        self.cells.borrow_mut().more.clear();
    }

    /// The last write of these bytes is an asynchronous copy in flight, which `unit` makes.
    pub(super) fn begin_copy(&self, bytes: (usize, usize), unit: Unit) {
        self.cells.borrow_mut().change(bytes, |shadow| shadow.begin_copy(unit));
    }

    /// A write of one of these bytes by a thread (and no engine) that happens before the current
    /// access.
    pub(super) fn ordered_write(
        &self,
        now: &Now,
        bytes: (usize, usize),
        horizon: u32,
    ) -> Option<Record> {
        let found = self.cells.borrow().find(bytes, |shadow| shadow.ordered_write(now, horizon));
        found.map(|(_, write)| write)
    }

    /// The thread has waited for its copy to these bytes.
    pub(super) fn end_copy(&self, now: &Now, bytes: (usize, usize)) {
        self.cells.borrow_mut().change(bytes, |shadow| shadow.end_copy(now));
    }

    /// The first of these bytes whose last writer `is_wrong`: its offset and that writer.
    pub(super) fn find_writer(
        &self,
        bytes: (usize, usize),
        is_wrong: impl Fn(&Record) -> bool,
    ) -> Option<(usize, Record)> {
        self.cells.borrow().find(bytes, |shadow| Some(shadow.writer).filter(&is_wrong))
    }

    /// A read of one of these bytes that `is_wrong`.
    pub(super) fn find_reader(
        &self,
        bytes: (usize, usize),
        is_wrong: impl Fn(&Record) -> bool,
    ) -> Option<Record> {
        self.cells.borrow().find_reader(bytes, is_wrong)
    }

    /// Records an access to one element, or to a line, if nothing can be wrong with it; otherwise
    /// gives `false`. Almost all accesses are such, and every access comes through here except
    /// saturated reads: this is most of the checker's cost.
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
        if now.is_general() {
            return false;
        }
        match bytes {
            4 if cells.granule == 4 && offset.is_multiple_of(4) => cells.split(offset / 16),
            16 if offset.is_multiple_of(16) && cells.is_whole(offset / 16) => {}
            _ => return false,
        }
        let shadow = &mut cells.shadows[offset >> cells.granule.trailing_zeros()];
        if !shadow.ordered_access(now, access, block_start) {
            return false;
        }
        let is_saturated = access == Access::Read && shadow.is_saturated(now, across);
        let clock = if is_saturated { now.record.clock } else { 0 };
        self.saturated[offset / 4..(offset + bytes) / 4].iter().for_each(|word| word.set(clock));
        true
    }

    /// Records an access and reports what is wrong with it: at most one thing for each granule,
    /// with the offset in bytes. `across`: lanes of a warp may be ordered, so two readers of one
    /// warp do not stand for all.
    pub(super) fn access(
        &self,
        now: &Now,
        (offset, bytes): (usize, usize),
        what: (Access, Third),
        block_start: u32,
        across: bool,
        report: impl FnMut(usize, Wrong),
    ) {
        let cells = &mut *self.cells.borrow_mut();
        cells.access(now, (offset, bytes), what, block_start, report);
        if now.is_general() {
            return; // No read is left out.
        }
        let is_new = |shadow: &Shadow| {
            let is_old = shadow.is_saturated(now, across) && shadow.is_written(block_start);
            (what.0 != Access::Read || !is_old).then_some(())
        };
        let end = (offset + bytes).div_ceil(4);
        for (at, word) in self.saturated[..end].iter().enumerate().skip(offset / 4) {
            let part = (4 * at, 4.min(self.bytes() - 4 * at));
            word.set(if cells.find(part, is_new).is_none() { now.record.clock } else { 0 });
        }
    }
}
