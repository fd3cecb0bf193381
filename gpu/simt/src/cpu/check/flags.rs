//! What threads learn of each other through atomic operations: a thread releases what it knows, and
//! a thread that sees the released value acquires it.
//!
//! A release is an operation with release semantics, or any atomic operation behind a fence; an
//! acquisition is the same with acquire semantics, or a fence behind the operation (PTX ISA,
//! "Release and Acquire Patterns").

use std::{
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use super::record::{FIRST_ENGINE, LAST_CLOCK, Record, first_engine, learn};

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

/// The slot that runs a cluster, and the slot's clock when the cluster began.
type Origin = (u32, u32);

/// What threads of a cluster have released.
#[derive(Clone, Debug)]
pub(super) struct Release {
    /// The slot's clock at the last release.
    pub(super) clock: u32,
    /// The number of the cluster's threads.
    pub(super) threads: usize,
    /// The vector clock of the releasing threads: for each of the cluster's threads, and then for
    /// each of its engines, how much of it they knew.
    pub(super) known: Vec<u16>,
}

impl Release {
    /// Whether that access of its cluster happens before the release.
    fn covers(&self, old: &Record) -> bool {
        if old.clock > self.clock || old.is_in_flight() {
            return false;
        }
        let (at, is_older) = match old.thread().checked_sub(FIRST_ENGINE) {
            Some(engine) => (first_engine(self.threads) + engine as usize, false),
            None => (old.thread() as usize, old.clock < self.clock),
        };
        let known = || self.known.get(at).copied().unwrap_or(0);
        is_older || known() > old.own_clock() || old.own_clock() == LAST_CLOCK
    }

    fn join(&mut self, more: &Release) {
        self.clock = self.clock.max(more.clock);
        learn(&mut self.known, &more.known);
    }
}

/// Releases, one of each cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Releases(BTreeMap<Origin, Arc<Release>>);

impl Releases {
    /// That of one thread of the block.
    pub(super) fn add(&mut self, (slot, start, _): Run, release: Release) {
        self.join_one((slot, start), &Arc::new(release));
    }

    fn join_one(&mut self, origin: Origin, release: &Arc<Release>) {
        match self.0.entry(origin) {
            Entry::Vacant(entry) => _ = entry.insert(release.clone()),
            Entry::Occupied(entry) if Arc::ptr_eq(entry.get(), release) => {}
            Entry::Occupied(mut entry) => Arc::make_mut(entry.get_mut()).join(release),
        }
    }

    pub(super) fn join(&mut self, more: &Releases) {
        more.0.iter().for_each(|(origin, release)| self.join_one(*origin, release));
    }

    /// Whether one of them covers that access. Of a slot's clusters the last one that had begun by
    /// then made it.
    pub(super) fn covers(&self, old: &Record) -> bool {
        let mut of_slot = self.0.range((old.slot(), 0)..=(old.slot(), old.clock));
        of_slot.next_back().is_some_and(|(_, release)| release.covers(old))
    }

    /// What threads of the same cluster as that block have released.
    pub(super) fn of_cluster(&self, (slot, start, _): Run) -> Option<&Release> {
        self.0.get(&(slot, start)).map(|release| &**release)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What a thread releases by an operation: its block, the block whose threads alone acquire it, and
/// the releases.
#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) by: Run,
    pub(super) within: Option<Run>,
    pub(super) releases: Arc<Releases>,
}

/// Who acquires: the block of the thread, and how far its fence, or its operation, reaches.
pub(super) type Acquirer = (Run, FenceScope);

/// A version of a word.
pub(super) type Version = (Word, usize);

/// The releases with a word since the last store, in their order, each with the word's value after
/// it; and all of them that all threads acquire.
#[derive(Default)]
struct Chain {
    releases: Vec<(u32, Published)>,
    all: Arc<Releases>,
    has_narrow: bool,
}

impl Chain {
    fn add(&mut self, value: u32, more: Vec<Published>) {
        for published in more {
            match published.within {
                None => Arc::make_mut(&mut self.all).join(&published.releases),
                Some(_) => self.has_narrow = true,
            }
            self.releases.push((value, published));
        }
    }

    /// What somebody acquires of the first releases.
    fn first(&self, count: usize, (run, scope): Acquirer) -> Arc<Releases> {
        if count == self.releases.len() && !self.has_narrow && scope == FenceScope::Device {
            return self.all.clone();
        }
        let mut all = Releases::default();
        for (_, Published { by, within, releases }) in &self.releases[..count] {
            if within.is_none_or(|block| block == run)
                && (scope == FenceScope::Device || *by == run)
            {
                all.join(releases);
            }
        }
        Arc::new(all)
    }

    /// The number of releases up to the one with which the word reached a value, the last time that
    /// it rose to it; all of them, if it reached the value in another way.
    fn until(&self, at_least: u32) -> usize {
        let value = |at: usize| self.releases[at].0;
        let all = self.releases.len();
        let rise = (1..all).rev().find(|&at| value(at) < value(at - 1)).unwrap_or(0);
        (rise..all).find(|&at| value(at) >= at_least).map_or(all, |last| last + 1)
    }
}

/// A word.
#[derive(Default)]
struct History {
    /// Its value before the first release; 0 after a store.
    before: u32,
    chain: Chain,
    /// The number of releases and stores.
    version: usize,
    /// The chains before the last stores, with the versions at their ends.
    stored: VecDeque<(usize, Chain)>,
}

/// The stores that are remembered. A thread that saw a version before them, and acquires it only
/// now, acquires nothing.
const REMEMBERED_STORES: usize = 64;

impl History {
    fn store(&mut self) {
        if self.stored.len() == REMEMBERED_STORES {
            self.stored.pop_front();
        }
        self.stored.push_back((self.version, std::mem::take(&mut self.chain)));
        (self.before, self.version) = (0, self.version + 1);
    }

    /// What somebody acquires of that version.
    fn at(&self, version: usize, by: Acquirer) -> Arc<Releases> {
        let older = self.stored.iter().find(|(last, _)| *last >= version);
        let (last, chain) = older.map_or((self.version, &self.chain), |(last, of)| (*last, of));
        chain.first(chain.releases.len().saturating_sub(last - version), by)
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

    /// A thread makes the atomic operation `act` on a word of that many bytes, and publishes this
    /// with it, if it writes. Gives the version that it read, if something has been released.
    pub(super) fn atomic<R>(
        &self,
        (word, bytes): (Word, usize),
        publish: Vec<Published>,
        act: impl FnOnce() -> (R, Effect),
    ) -> (R, Option<Version>) {
        let mut words = self.lock();
        let value = || match bytes {
            // SAFETY: an element of that size, which is accessed atomically.
            4 => unsafe { AtomicU32::from_ptr(word.0 as *mut u32) }.load(Ordering::Relaxed),
            _ => 0,
        };
        let before = value();
        let (result, effect) = act();
        let history = words.get(&word).filter(|_| effect != Effect::Store);
        let seen = history.map(|history| (word, history.version));
        let is_known = words.contains_key(&word);
        if effect != Effect::Read && (is_known || !publish.is_empty()) {
            let new = || History { before, ..History::default() };
            let history = words.entry(word).or_insert_with(new);
            if effect == Effect::Store {
                history.store();
            }
            history.version += publish.len();
            history.chain.add(value(), publish);
        }
        (result, seen)
    }

    /// The current version of a word, if something has been released.
    pub(super) fn version(&self, word: Word) -> Option<Version> {
        self.lock().get(&word).map(|history| (word, history.version))
    }

    /// What somebody acquires of a version of a word.
    pub(super) fn at(&self, (word, version): Version, by: Acquirer) -> Arc<Releases> {
        self.lock().get(&word).map_or_else(Arc::default, |history| history.at(version, by))
    }

    /// The version with which a word reached a value. (None, if it had the value before: somebody
    /// has not reset it, and a wait for it ends before this launch's first release.)
    pub(super) fn until(&self, word: Word, at_least: u32) -> Option<Version> {
        let words = self.lock();
        let History { before, chain, version, .. } = words.get(&word)?;
        let behind = chain.releases.len() - chain.until(at_least);
        (*before < at_least).then_some((word, version - behind))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Word, History>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a thread acquires, and as who.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) version: Version,
    pub(super) by: Acquirer,
    pub(super) releases: Arc<Releases>,
}
