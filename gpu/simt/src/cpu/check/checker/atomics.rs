//! Atomic operations and fences, as far as they order other accesses.

use std::{panic::Location, sync::Arc};

use super::Checker;
use crate::cpu::{
    block,
    check::flags::{AtomicOrder, Effect, FenceScope, Release, Run, Seen},
};

impl Checker<'_> {
    /// The running thread makes the atomic operation `act` on an element at that address, of that
    /// many bytes.
    pub(in crate::cpu) fn atomic<R>(
        &self,
        (address, bytes): (usize, usize),
        is_shared: bool,
        order: AtomicOrder,
        act: impl FnOnce() -> (R, Effect),
    ) -> R {
        let flags = &self.launch.flags;
        let number = block::current().number;
        let releases = match order {
            AtomicOrder::Release => {
                flags.use_them();
                let (run, clock) = (self.run(), self.clock.get());
                let releases =
                    self.with_general_clocks(|clocks| clocks.release(number, run, clock, None));
                Some(Arc::new(releases))
            }
            // Nobody has released anything.
            _ if !flags.are_used() => return act().0,
            _ => self.clocks.borrow().fenced(number),
        };
        let word = (address, if is_shared { self.block_start.get() } else { 0 });
        let (result, seen) = flags.atomic((word, bytes), releases, act);
        if let Some(seen) = seen.and_then(|seen| self.for_this_block(seen)) {
            self.with_general_clocks(|clocks| match order {
                AtomicOrder::Acquire => clocks.acquire(number, seen),
                _ => clocks.see(number, seen),
            });
        }
        result
    }

    /// The running thread has waited for a flag to reach a value.
    pub(in crate::cpu) fn acquire(&self, flag: usize, at_least: u32) {
        let seen = self.launch.flags.until((flag, 0), at_least);
        if let Some(seen) = seen.and_then(|seen| self.for_this_block(seen)) {
            let number = block::current().number;
            self.with_general_clocks(|clocks| clocks.acquire(number, seen));
        }
    }

    /// A fence of the running thread.
    pub(in crate::cpu) fn fence(&self, scope: FenceScope, place: &'static Location<'static>) {
        self.count(place);
        self.launch.flags.use_them();
        let (number, run, clock) = (block::current().number, self.run(), self.clock.get());
        self.with_general_clocks(|clocks| clocks.fence(number, run, clock, scope));
    }

    /// The running thread's block.
    fn run(&self) -> Run {
        (self.slot, self.block_start.get(), block::rank())
    }

    /// What the running thread's block may acquire of it.
    fn for_this_block(&self, seen: Seen) -> Option<Seen> {
        let run = self.run();
        let may = |release: &Release| release.within.is_none_or(|block| block == run);
        if seen.releases.is_empty() {
            return None;
        }
        if seen.releases.iter().all(may) {
            return Some(seen);
        }
        let own = seen.releases.iter().filter(|release| may(release)).cloned().collect();
        Some(Seen { releases: Arc::new(own), ..seen })
    }
}
