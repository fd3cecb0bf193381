//! Atomic operations and fences, as far as they order other accesses.

use std::{panic::Location, sync::Arc};

use super::Checker;
use crate::cpu::{
    block,
    check::flags::{AtomicOrder, Effect, FenceScope, Releases, Run, Version},
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
        match seen {
            Some(version) if order == AtomicOrder::Acquire => {
                self.acquire_version(version, flags.at(version), FenceScope::Device);
            }
            Some(version) => self.clocks.borrow_mut().see(number, version),
            None => {}
        }
        result
    }

    /// The running thread has waited for a flag to reach a value.
    pub(in crate::cpu) fn acquire(&self, flag: usize, at_least: u32) {
        if let Some((version, releases)) = self.launch.flags.until((flag, 0), at_least) {
            self.acquire_version(version, releases, FenceScope::Device);
        }
    }

    /// A fence of the running thread. It acquires what the thread has seen, and releases with its
    /// next operations what it knows.
    pub(in crate::cpu) fn fence(&self, scope: FenceScope, place: &'static Location<'static>) {
        self.count(place);
        self.launch.flags.use_them();
        let (number, run, clock) = (block::current().number, self.run(), self.clock.get());
        let seen = self.with_general_clocks(|clocks| clocks.take_seen(number));
        for version in seen {
            let is_all = self.acquire_version(version, self.launch.flags.at(version), scope);
            if !is_all {
                // What other blocks have released stays to be acquired.
                self.clocks.borrow_mut().see(number, version);
            }
        }
        self.with_general_clocks(|clocks| clocks.fence(number, run, clock, scope));
    }

    /// The running thread acquires of these releases what its block, and the scope, let it. Gives
    /// whether a wider scope would let it acquire no more.
    fn acquire_version(
        &self,
        version: Version,
        releases: Arc<Releases>,
        scope: FenceScope,
    ) -> bool {
        let run = self.run();
        let may = |within: Option<Run>| within.is_none_or(|block| block == run);
        let is_in_scope =
            |slot, start| scope == FenceScope::Device || (slot, start) == (run.0, run.1);
        let is_mine = |&(slot, start, within): &_| may(within) && is_in_scope(slot, start);
        let is_all =
            releases.all(|&(slot, start, within)| is_in_scope(slot, start) || !may(within));
        let mine = match releases.all(is_mine) {
            true => releases,
            false => Arc::new(releases.filter(is_mine)),
        };
        if mine.len() > 0 {
            let number = block::current().number;
            self.with_general_clocks(|clocks| clocks.acquire(number, version, mine));
        }
        is_all
    }

    /// The running thread's block.
    fn run(&self) -> Run {
        (self.slot, self.block_start.get(), block::rank())
    }
}
