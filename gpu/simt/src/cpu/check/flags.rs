//! What blocks learn of each other through flags in global memory. A block that adds to a flag
//! releases what it knows; a block that waits for the flag acquires it.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::record::{LAST_CLOCK, Record};

/// What a block has released.
#[derive(Clone, Debug)]
pub(super) struct Release {
    /// The slot that runs the block.
    pub(super) slot: u32,
    /// The slot's clock when the block began, and at its last release.
    pub(super) start: u32,
    pub(super) clock: u32,
    /// The vector clock of the releasing threads: for each of the block's threads, how much of it
    /// they knew.
    pub(super) known: Vec<u16>,
}

impl Release {
    /// Whether that access happens before the release.
    pub(super) fn covers(&self, old: &Record) -> bool {
        let known = || self.known.get(old.thread() as usize).copied().unwrap_or(0);
        old.slot() == self.slot
            && (self.start..=self.clock).contains(&old.clock)
            && !old.is_engine()
            && !old.is_in_flight()
            && (old.clock < self.clock
                || known() > old.own_clock()
                || old.own_clock() == LAST_CLOCK)
    }

    /// Joins a list that has one release for each block.
    pub(super) fn join(self, all: &mut Vec<Release>) {
        let same = |old: &&mut Release| (old.slot, old.start) == (self.slot, self.start);
        let Some(old) = all.iter_mut().find(same) else { return all.push(self) };
        old.clock = old.clock.max(self.clock);
        old.known.resize(old.known.len().max(self.known.len()), 0);
        for (known, more) in old.known.iter_mut().zip(self.known) {
            *known = more.max(*known);
        }
    }
}

/// A flag: its value before the first release, and the releases in their order, each with the
/// flag's value after it.
struct FlagHistory {
    before: u32,
    releases: Vec<(u32, Vec<Release>)>,
}

/// The releases of a launch, by the flags' addresses.
#[derive(Default)]
pub(super) struct FlagReleases {
    flags: Mutex<BTreeMap<usize, FlagHistory>>,
    are_used: AtomicBool,
}

impl FlagReleases {
    /// Whether there is one.
    pub(super) fn are_used(&self) -> bool {
        self.are_used.load(Ordering::Relaxed)
    }

    /// A block makes these releases. `add` adds to the flag and gives its old and its new value.
    pub(super) fn release(&self, flag: usize, all: Vec<Release>, add: impl FnOnce() -> [u32; 2]) {
        self.are_used.store(true, Ordering::Relaxed);
        let mut flags = self.flags.lock().unwrap_or_else(PoisonError::into_inner);
        let [before, after] = add();
        let new = || FlagHistory { before, releases: Vec::new() };
        flags.entry(flag).or_insert_with(new).releases.push((after, all));
    }

    /// The releases up to the one with which the flag reached a value. (All releases, if it reached
    /// the value in another way. None, if it had the value before: somebody has not reset it, and
    /// a wait for it ends before this launch's first release.)
    pub(super) fn until(&self, flag: usize, at_least: u32) -> Vec<Release> {
        let flags = self.flags.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(FlagHistory { before, releases: history }) = flags.get(&flag) else {
            return Vec::new();
        };
        if *before >= at_least {
            return Vec::new();
        }
        let last =
            history.iter().position(|&(value, _)| value >= at_least).unwrap_or(history.len());
        let mut all = Vec::new();
        history
            .iter()
            .take(last + 1)
            .flat_map(|(_, releases)| releases)
            .for_each(|release| release.clone().join(&mut all));
        all
    }
}
