//! Limits that end a thread which does not end by itself: on its accesses, on its accesses out of
//! bounds, and on its stack.

use std::panic::Location;

use super::{Checker, SCRATCH_BYTES};
use crate::cpu::{
    access::{Access, Refused},
    block,
    check::{
        finding::Kind,
        findings::{Key, MemoryId, Seen},
    },
    fiber::Event,
    limits::WARP,
    poll,
};

/// The most accesses of a thread out of bounds. Then it is abandoned: what it read there may be why
/// it does not end.
const MOST_OUTSIDE: u32 = 1 << 16;

/// Registers of an SM, by the lanes of a warp.
const REGISTERS_OF_WARPS: u32 = (64 << 10) / WARP;

/// The least stack in bytes that the checker needs.
const LEAST_STACK: usize = 24 * 1024;

impl Checker<'_> {
    /// Counts an access of the running thread, or another operation that the checker observes. A
    /// thread with too many accesses without a wait is abandoned. So is one with so little stack
    /// that the checker might overflow it, and not the kernel. The checker calls this before all
    /// else it does about an access: the watchdog, which abandons threads anywhere, does not
    /// abandon one that has just been counted.
    #[inline]
    pub(in crate::cpu) fn count(&self, place: &'static Location<'static>) {
        if self.has_racing_write.get() {
            self.end_racing_write();
        }
        self.heartbeat.tick();
        let thread = block::current();
        // What the watchdog ends is named by its last access: mostly that of the loop.
        thread.place.set(Some(place));
        let accesses = self.accesses.get() + 1;
        self.accesses.set(accesses);
        if accesses > self.launch.most_accesses {
            poll::abandon(Event::Endless, place);
        }
        if thread.stack_left() < LEAST_STACK {
            poll::abandon(Event::Overflow, place);
        }
    }

    /// The running thread's warp has that many registers a thread from here on. If the block's
    /// warps have more together than an SM, the warp waits on a GPU until others give some up.
    /// (Warps that have neither taken nor given any have what the compiler gave them, which is not
    /// known here.)
    pub(in crate::cpu) fn set_registers(&self, registers: u32, place: &'static Location<'static>) {
        let thread = block::current();
        let rank = block::rank();
        let mut all = self.registers.borrow_mut();
        all.insert((rank, thread.warp()), registers);
        let sum = all.range((rank, 0)..=(rank, u32::MAX)).map(|(_, each)| each).sum::<u32>();
        let mut lacking = self.lacking_registers.borrow_mut();
        if sum <= REGISTERS_OF_WARPS {
            lacking.remove(&rank);
            return;
        }
        let (block, thread) = (block::block_index(), thread.index);
        lacking.entry(rank).or_insert((place, sum * WARP, block, thread));
    }

    /// At the end of a cluster: reports warps that waited for registers which no other gave.
    pub(super) fn check_registers(&self) {
        for (place, sum, block, thread) in
            std::mem::take(&mut *self.lacking_registers.borrow_mut()).into_values()
        {
            let key = Key { place: Some(place), ..Key::of(Kind::Deadlock) };
            let seen = Seen { block, thread, element: None, other: None };
            self.findings.borrow_mut().add(key, seen, || {
                format!(
                    "the block's warps have {sum} registers together: an SM has 65536, and take_registers waits \
                     for what is not given"
                )
            });
        }
    }

    /// Reports an access that is not carried out. Gives memory to use instead; a read there gives
    /// NaN.
    pub(in crate::cpu::check) fn refuse(
        &self,
        memory: Option<MemoryId>,
        refused: Refused,
        bytes: usize,
        access: Access,
        place: &'static Location<'static>,
    ) -> *mut u8 {
        self.heartbeat.tick();
        assert!(bytes <= SCRATCH_BYTES, "{refused}, and an element of {bytes} bytes");
        let kind = match refused {
            Refused::Misaligned { .. } | Refused::Bulk { .. } | Refused::BoxColumn { .. } => {
                Kind::Misaligned
            }
            _ => Kind::OutOfBounds,
        };
        let does = if access == Access::Read { "read" } else { "write" };
        let key = Key { memory, place: Some(place), ..Key::of(kind) };
        let seen = Seen {
            block: block::block_index(),
            thread: block::current().index,
            element: match refused {
                Refused::Outside { index, .. }
                | Refused::Misaligned { index, .. }
                | Refused::Bulk { index, .. } => Some(index),
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
            poll::abandon(Event::Outside, place);
        }
        self.scratch.iter().for_each(|word| word.set(u128::MAX));
        self.scratch.as_ptr().cast_mut().cast()
    }
}
