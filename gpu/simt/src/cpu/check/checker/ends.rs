//! What ends a thread that would go on and on: the number of its accesses, and of those outside.

use std::panic::Location;

use super::{Checker, SCRATCH_BYTES};
use crate::cpu::{
    block,
    check::finding::{Key, Kind, MemoryId, Seen},
    fiber,
    mode::{Access, Refused},
    polls,
};

/// Accesses outside before a thread is left: what it read there may be why it goes on.
const MOST_OUTSIDE: u32 = 1 << 16;

/// Bytes of stack that the checker may need.
const LEAST_STACK: usize = 24 * 1024;

impl Checker<'_> {
    /// Rounds in which the threads of a cluster may go on to their next waits.
    #[inline]
    pub(in crate::cpu) fn most_rounds(&self) -> u64 {
        self.watch.most_waits
    }

    /// A thread begins or goes on after a wait.
    #[inline]
    pub(in crate::cpu) fn goes_on(&self) {
        self.beat.tick();
        self.accesses.set(0);
    }

    /// The accesses since one last did.
    pub(in crate::cpu) fn counted(&self) -> u64 {
        self.accesses.get()
    }

    /// Of these, no more than so many count.
    pub(in crate::cpu) fn discount(&self, counted: u64) {
        self.accesses.set(self.accesses.get().min(counted));
    }

    /// The running thread makes an access, or another operation that the checker looks at. One that makes more and more without a wait is
    /// left; and so is one with little stack, before the checker, and not the kernel, comes to its end. This stands before all that is done
    /// about it: the watchdog, who leaves threads in the middle of what they do, does not leave one that has just been counted.
    #[inline]
    pub(in crate::cpu) fn count(&self, place: &'static Location<'static>) {
        self.beat.tick();
        let accesses = self.accesses.get() + 1;
        self.accesses.set(accesses);
        if accesses > self.watch.most_accesses {
            polls::leave(fiber::Event::Endless, place);
        }
        if block::current().stack_left() < LEAST_STACK {
            polls::leave(fiber::Event::Overflow, place);
        }
    }

    /// An access that is not carried out.
    pub(in crate::cpu::check) fn refuse(
        &self,
        memory: Option<MemoryId>,
        refused: Refused,
        bytes: usize,
        access: Access,
        place: &'static Location<'static>,
    ) -> *mut u8 {
        self.beat.tick();
        assert!(bytes <= SCRATCH_BYTES, "{refused}, and an element of {bytes} bytes");
        let kind = match refused {
            Refused::Misaligned { .. } | Refused::BoxColumn { .. } => Kind::Misaligned,
            _ => Kind::OutOfBounds,
        };
        let does = if access == Access::Read { "read" } else { "write" };
        let fault_place = String::new();
        let key = Key { kind, memory, place: Some(place), other_place: None, fault_place };
        let seen = Seen {
            block: block::block_index(),
            thread: block::current().index,
            element: match refused {
                Refused::Outside { index, .. } | Refused::Misaligned { index, .. } => Some(index),
                Refused::Outside2d { .. } | Refused::BoxColumn { .. } => None,
            },
            other: None,
        };
        self.findings.borrow_mut().add(key, seen, || format!("{does}: {refused}"));
        let number = block::current().number as usize;
        let times = {
            let mut outside = self.outside.borrow_mut();
            let len = outside.len().max(number + 1);
            outside.resize(len, 0);
            outside[number] += 1;
            outside[number]
        };
        if times > MOST_OUTSIDE {
            polls::leave(fiber::Event::Outside, place);
        }
        // A read from outside gives NaN.
        self.scratch.iter().for_each(|word| word.set(u128::MAX));
        self.scratch.as_ptr().cast_mut().cast()
    }
}
