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

/// Where and to whom a release was made: the slot that runs the cluster, the slot's clock when the
/// cluster began, and the block whose threads alone acquire it.
type Origin = (u32, u32, Option<Run>);

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
            Some(engine) => (self.threads + engine as usize, false),
            None => (old.thread() as usize, old.clock < self.clock),
        };
        let known = || self.known.get(at).copied().unwrap_or(0);
        is_older || known() > old.own_clock() || old.own_clock() == LAST_CLOCK
    }

    fn join(&mut self, more: &Release) {
        self.clock = self.clock.max(more.clock);
        self.known.resize(self.known.len().max(more.known.len()), 0);
        for (known, more) in self.known.iter_mut().zip(&more.known) {
            *known = (*known).max(*more);
        }
    }
}

/// Releases, one of an origin.
#[derive(Clone, Debug, Default)]
pub(super) struct Releases(BTreeMap<Origin, Arc<Release>>);

impl Releases {
    /// That of one thread: of the block `run`, to the threads of the block `within` or to all.
    pub(super) fn add(&mut self, run: Run, within: Option<Run>, release: Release) {
        self.join_one((run.0, run.1, within), &Arc::new(release));
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
        let (slot, last) = (old.slot(), Some((u32::MAX, u32::MAX, u32::MAX)));
        let mut of_slot = self.0.range((slot, 0, None)..=(slot, old.clock, last)).rev().peekable();
        let Some(((_, start, _), _)) = of_slot.peek() else { return false };
        let start = *start;
        let mut of_cluster = of_slot.take_while(|((_, other, _), _)| *other == start);
        of_cluster.any(|(_, release)| release.covers(old))
    }

    /// The same, to the threads of that block alone.
    pub(super) fn within(&self, block: Run) -> Releases {
        let mut all = Releases::default();
        for ((slot, start, within), release) in &self.0 {
            all.join_one((*slot, *start, within.or(Some(block))), release);
        }
        all
    }

    /// Those for which it holds: where and to whom the release was made.
    pub(super) fn filter(&self, holds: impl Fn(&Origin) -> bool) -> Releases {
        let those = self.0.iter().filter(|(origin, _)| holds(origin));
        Releases(those.map(|(origin, release)| (*origin, release.clone())).collect())
    }

    /// Whether it holds for all of them.
    pub(super) fn all(&self, holds: impl Fn(&Origin) -> bool) -> bool {
        self.0.keys().all(holds)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A version of a word.
pub(super) type Version = (Word, usize);

/// A word: its value before the first release; the releases since the last store, in their order,
/// each with the word's value after it; and all of them.
struct History {
    before: u32,
    releases: Vec<(u32, Arc<Releases>)>,
    all: Arc<Releases>,
    /// It grows with each change.
    version: usize,
    /// What had been released before each of the last stores, with the version.
    stored: VecDeque<(usize, Arc<Releases>)>,
}

/// The stores that are remembered. A thread that saw a version before them, and acquires it only
/// now, acquires what the oldest of them has.
const REMEMBERED_STORES: usize = 64;

impl History {
    fn new(before: u32) -> Self {
        let (releases, stored) = (Vec::new(), VecDeque::new());
        History { before, releases, all: Arc::default(), version: 0, stored }
    }

    fn store(&mut self, before: u32) {
        if self.stored.len() == REMEMBERED_STORES {
            self.stored.pop_front();
        }
        self.stored.push_back((self.version, std::mem::take(&mut self.all)));
        self.releases.clear();
        (self.before, self.version) = (before, self.version + 1);
    }

    fn release(&mut self, value: u32, more: Arc<Releases>) {
        Arc::make_mut(&mut self.all).join(&more);
        self.releases.push((value, more));
        self.version += 1;
    }

    /// What had been released in that version, or a little more.
    fn at(&self, version: usize) -> Arc<Releases> {
        let newer = self.version - version.min(self.version);
        match self.releases.len().checked_sub(newer) {
            Some(_) if newer == 0 => self.all.clone(),
            Some(count) => self.first(count),
            None => {
                let stored = self.stored.iter().find(|(last, _)| *last >= version);
                stored.map_or_else(Arc::default, |(_, all)| all.clone())
            }
        }
    }

    /// That number of releases.
    fn first(&self, count: usize) -> Arc<Releases> {
        let mut all = Releases::default();
        self.releases[..count].iter().for_each(|(_, releases)| all.join(releases));
        Arc::new(all)
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
    /// releases, if it writes. Gives the version that it read, if something has been released.
    pub(super) fn atomic<R>(
        &self,
        (word, bytes): (Word, usize),
        releases: Option<Arc<Releases>>,
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
        if effect != Effect::Read && (is_known || releases.is_some()) {
            let history = words.entry(word).or_insert_with(|| History::new(before));
            if effect == Effect::Store {
                history.store(before);
            }
            if let Some(releases) = releases {
                history.release(value(), releases);
            }
        }
        (result, seen)
    }

    /// What had been released in a version of a word.
    pub(super) fn at(&self, (word, version): Version) -> Arc<Releases> {
        self.lock().get(&word).map_or_else(Arc::default, |history| history.at(version))
    }

    /// The releases up to the one with which a word reached a value, and the version. (All
    /// releases, if it reached the value in another way. None, if it had the value before: somebody
    /// has not reset it, and a wait for it ends before this launch's first release.)
    pub(super) fn until(&self, word: Word, at_least: u32) -> Option<(Version, Arc<Releases>)> {
        let words = self.lock();
        let history = words.get(&word)?;
        if history.before >= at_least {
            return None;
        }
        let all = history.releases.len();
        let reached = history.releases.iter().position(|&(value, _)| value >= at_least);
        let count = reached.map_or(all, |last| last + 1);
        let releases = if count == all { history.all.clone() } else { history.first(count) };
        Some(((word, history.version - (all - count)), releases))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Word, History>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
