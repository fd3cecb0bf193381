//! Atomic operations and fences, as far as they order other accesses.

use std::panic::Location;

use super::Checker;
use crate::cpu::{
    block,
    check::flags::{AtomicOrder, Effect, FenceScope, Published, Run, Seen, Version},
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
        let (number, by) = (block::current().number, self.run());
        let word = (address, if is_shared { self.block_start.get() } else { 0 });
        let publish = match order {
            AtomicOrder::Release => {
                flags.use_them();
                let clock = self.clock.get();
                let releases = self.with_general_clocks(|clocks| clocks.release(number, by, clock));
                vec![Published { by, within: None, releases }]
            }
            // Nobody has released anything, or does so just now.
            _ if !flags.are_used() => {
                let (result, effect) = act();
                if flags.are_used() && effect != Effect::Store {
                    self.see(flags.version(word), order);
                }
                return result;
            }
            _ => self.clocks.borrow().fenced(number, by),
        };
        let (result, seen) = flags.atomic((word, bytes), publish, act);
        self.see(seen, order);
        result
    }

    /// The running thread has seen a version of a word.
    fn see(&self, version: Option<Version>, order: AtomicOrder) {
        match version {
            Some(version) if order == AtomicOrder::Acquire => {
                self.acquire_version(version, FenceScope::Device);
            }
            Some(version) => self.clocks.borrow_mut().see(block::current().number, version),
            None => {}
        }
    }

    /// The running thread has waited for a flag to reach a value.
    pub(in crate::cpu) fn acquire(&self, flag: usize, at_least: u32) {
        if let Some(version) = self.launch.flags.until((flag, 0), at_least) {
            self.acquire_version(version, FenceScope::Device);
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
            self.acquire_version(version, scope);
            if scope == FenceScope::Block {
                // What other blocks have released stays to be acquired.
                self.clocks.borrow_mut().see(number, version);
            }
        }
        self.with_general_clocks(|clocks| clocks.fence(number, run, clock, scope));
    }

    /// The running thread acquires a version of a word, as far as the scope lets it.
    fn acquire_version(&self, version: Version, scope: FenceScope) {
        let by = (self.run(), scope);
        let seen = Seen { version, by, releases: self.launch.flags.at(version, by) };
        if !seen.releases.is_empty() {
            self.with_general_clocks(|clocks| clocks.acquire(block::current().number, seen));
        }
    }

    /// The running thread's block.
    fn run(&self) -> Run {
        (self.slot, self.block_start.get(), block::rank())
    }
}
