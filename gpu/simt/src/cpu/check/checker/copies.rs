//! Asynchronous copies of elements (`cp.async`): each is carried out as late as possible.

use std::panic::Location;

use super::Checker;
use crate::cpu::{
    access::Access,
    block,
    check::{
        copies::{AsyncCopy, Copies},
        profile::Operation,
        unit::Unit,
    },
};

impl Checker<'_> {
    /// The running thread begins an asynchronous copy.
    pub(in crate::cpu::check) fn begin_copy(&self, copy: AsyncCopy) {
        // SAFETY: an array lives as long as the launch.
        let array = unsafe { &*copy.array };
        let bytes = (copy.offset, copy.bytes);
        self.shared_by(array, bytes, (Access::Write, Operation::SharedCopy), copy.begun_at);
        array.begin_copy(bytes, Unit::AsyncCopy);
        let (number, to) = (block::current().number, array.offset + copy.offset);
        self.with_own_tracer(|tracer| tracer.begin_copy(number, to, copy.bytes));
        self.with_copies(|copies| copies.begin(copy));
    }

    /// The running thread makes a group of the copies that it has begun.
    #[track_caller]
    pub(in crate::cpu::check) fn commit_group(&self) {
        self.count(Location::caller());
        self.with_copies(Copies::commit);
        self.with_own_tracer(|tracer| tracer.commit_group(block::current().number));
    }

    /// The running thread waits for all but the last `pending` groups of its copies.
    #[track_caller]
    pub(in crate::cpu::check) fn wait_group(&self, pending: u32) {
        self.count(Location::caller());
        self.with_own_tracer(|tracer| tracer.wait_group(block::current().number, pending));
        while let Some(copy) = self.with_copies(|copies| copies.next_before(pending)) {
            // SAFETY: as in `begin_copy`.
            let array = unsafe { &*copy.array };
            let clocks = self.clocks.borrow();
            let now = self.now(block::current(), &clocks, copy.begun_at);
            array.end_copy(&now, (copy.offset, copy.bytes));
            // SAFETY: inside the array, as whoever began the copy has checked.
            unsafe { copy.place.copy_from_nonoverlapping(copy.data.as_ptr(), copy.bytes) };
        }
    }

    fn with_copies<R>(&self, act: impl FnOnce(&mut Copies) -> R) -> R {
        let number = block::current().number as usize;
        let mut copies = self.copies.borrow_mut();
        if copies.len() <= number {
            copies.resize_with(number + 1, Copies::default);
        }
        act(&mut copies[number])
    }
}
