//! What threads learn of each other through atomic operations: a thread releases what it knows, and
//! a thread that sees the released value acquires it.
//!
//! A release is an operation with release semantics, or any atomic operation behind a fence; an
//! acquisition is the same with acquire semantics, or a fence behind the operation (PTX ISA,
//! "Release and Acquire Patterns").

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use super::record::{FIRST_ENGINE, LAST_CLOCK, Record};

/// What an atomic operation orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cpu) enum AtomicOrder {
    /// Nothing.
    Relaxed,
    /// It sees what stands before the release of the value that it reads.
    Acquire,
    /// Who acquires its value sees what stands before it.
    Release,
}

/// What an atomic operation did to the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cpu) enum Effect {
    Read,
    /// It wrote, whatever the value was before.
    Store,
    /// It read and wrote: who acquires the new value acquires what was released with the old one.
    Update,
}

/// The threads that a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cpu) enum FenceScope {
    /// Those of the block.
    Block,
    /// All.
    Device,
}

/// A block while it runs: its slot, the slot's clock when its cluster began, its rank.
pub(super) type Run = (u32, u32, u32);

/// A word that is accessed atomically: its address; and for shared memory, which one block has
/// after another, the slot's clock when the cluster began.
pub(super) type Word = (usize, u32);

/// What a thread of a cluster has released.
#[derive(Clone, Debug)]
pub(super) struct Release {
    /// The slot that runs the cluster.
    pub(super) slot: u32,
    /// The slot's clock when the cluster began, and at its last release.
    pub(super) start: u32,
    pub(super) clock: u32,
    /// The number of the cluster's threads.
    pub(super) threads: usize,
    /// The vector clock of the releasing threads: for each of the cluster's threads, and then for
    /// each of its engines, how much of it they knew.
    pub(super) known: Vec<u16>,
    /// The block whose threads alone acquire it.
    pub(super) within: Option<Run>,
}

impl Release {
    /// Whether that access happens before the release.
    pub(super) fn covers(&self, old: &Record) -> bool {
        if old.slot() != self.slot
            || !(self.start..=self.clock).contains(&old.clock)
            || old.is_in_flight()
        {
            return false;
        }
        let (at, is_older) = match old.thread().checked_sub(FIRST_ENGINE) {
            Some(engine) => (self.threads + engine as usize, false),
            None => (old.thread() as usize, old.clock < self.clock),
        };
        let known = || self.known.get(at).copied().unwrap_or(0);
        is_older || known() > old.own_clock() || old.own_clock() == LAST_CLOCK
    }

    /// Joins a list that has one release for each cluster, and for each block that alone acquires
    /// it.
    pub(super) fn join(&self, all: &mut Vec<Release>) {
        let same = |old: &&mut Release| {
            (old.slot, old.start, old.within) == (self.slot, self.start, self.within)
        };
        let Some(old) = all.iter_mut().find(same) else { return all.push(self.clone()) };
        old.clock = old.clock.max(self.clock);
        old.known.resize(old.known.len().max(self.known.len()), 0);
        for (known, more) in old.known.iter_mut().zip(&self.known) {
            *known = (*known).max(*more);
        }
    }
}

/// Releases that a thread has seen: those of a version of a word.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) word: Word,
    pub(super) version: usize,
    pub(super) releases: Arc<Vec<Release>>,
}

/// A word: its value before the first release; the releases in their order, each with the word's
/// value after it; and all of them, as long as nobody has stored.
struct History {
    before: u32,
    releases: Vec<(u32, Arc<Vec<Release>>)>,
    all: Arc<Vec<Release>>,
    /// It grows with each change.
    version: usize,
}

impl History {
    fn release(&mut self, value: u32, more: Arc<Vec<Release>>) {
        let all = Arc::make_mut(&mut self.all);
        more.iter().for_each(|release| release.join(all));
        self.releases.push((value, more));
        self.version += 1;
    }
}

/// The releases of a launch, by the words.
#[derive(Default)]
pub(super) struct FlagReleases {
    words: Mutex<BTreeMap<Word, History>>,
    are_used: AtomicBool,
}

impl FlagReleases {
    /// Whether there may be one.
    pub(super) fn are_used(&self) -> bool {
        self.are_used.load(Ordering::Relaxed)
    }

    /// There may be one from here on.
    pub(super) fn use_them(&self) {
        self.are_used.store(true, Ordering::Relaxed);
    }

    /// A thread makes the atomic operation `act` on a word of that many bytes, and with it these
    /// releases, if it writes. Gives what had been released with the value that it read.
    pub(super) fn atomic<R>(
        &self,
        (word, bytes): (Word, usize),
        releases: Option<Arc<Vec<Release>>>,
        act: impl FnOnce() -> (R, Effect),
    ) -> (R, Option<Seen>) {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let value = || match bytes {
            // SAFETY: an element of that size, which is accessed atomically.
            4 => unsafe { AtomicU32::from_ptr(word.0 as *mut u32) }.load(Ordering::Relaxed),
            _ => 0,
        };
        let before = value();
        let (result, effect) = act();
        let history = words.get_mut(&word).filter(|_| effect != Effect::Store);
        let seen = history.map(|History { version, all, .. }| Seen {
            word,
            version: *version,
            releases: all.clone(),
        });
        let is_known = words.contains_key(&word);
        if effect != Effect::Read && (is_known || releases.is_some()) {
            let none = || History { before, releases: Vec::new(), all: Arc::default(), version: 0 };
            let history = words.entry(word).or_insert_with(none);
            if effect == Effect::Store {
                *history = History { version: history.version + 1, ..none() };
            }
            if let Some(releases) = releases {
                history.release(value(), releases);
            }
        }
        (result, seen)
    }

    /// The releases up to the one with which a word reached a value. (All releases, if it reached
    /// the value in another way. None, if it had the value before: somebody has not reset it, and
    /// a wait for it ends before this launch's first release.)
    pub(super) fn until(&self, word: Word, at_least: u32) -> Option<Seen> {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let History { before, releases: history, version, .. } = words.get(&word)?;
        if *before >= at_least {
            return None;
        }
        let last =
            history.iter().position(|&(value, _)| value >= at_least).unwrap_or(history.len());
        let mut all = Vec::new();
        let until = history.iter().take(last + 1).flat_map(|(_, releases)| &**releases);
        until.for_each(|release| release.join(&mut all));
        // As if the word had no other releases.
        let version = version - history.len() + (last + 1).min(history.len());
        Some(Seen { word, version, releases: Arc::new(all) })
    }
}
