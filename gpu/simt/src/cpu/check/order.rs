//! What the threads of a cluster know of each other since the last barrier of their block: vector clocks.
//!
//! A thread's clock ticks where others may learn what it did (Lamport; Flanagan and Freund, FastTrack, 2009): at
//! `sync_warp`, where it arrives at an mbarrier, at a barrier of the cluster. A thread that waits there learns all that
//! those knew who came. An access is known by its thread's clock at that time.
//!
//! A copy that an mbarrier is told of was made by no thread: it is known only by what the mbarrier tells. So each mbarrier
//! has an *engine*, which is counted as a thread that makes its copies. And so has each warpgroup, whose tensor cores read
//! shared memory: it knows what all threads knew when they began the product, and whoever has waited for that knows that
//! it has read.
//!
//! So has each thread that copies boxes to global memory, and two: one that reads shared memory, and one that writes global
//! memory, for which it waits apart.
//!
//! Tensor cores and copies see what a thread wrote only if a proxy fence stands between. So a thread has a second clock for every
//! thread: how far it knows that what that thread did is behind a fence.

use std::collections::{BTreeMap, VecDeque};

use super::{record::Record, words::Release};
use crate::cpu::{block::WARP, cluster::Place, warpgroup::Key};

/// Threads of a cluster at most; numbers from here on are engines.
pub(in crate::cpu) const FIRST_ENGINE: u32 = 3072;
/// Engines at most: a number has twelve bits.
const ENGINES: usize = 1024;

/// A clock of fourteen bits that has come to its end no longer tells: rather miss a race than make one up.
pub(super) const LAST: u16 = (1 << 14) - 1;

/// What the threads know of each other.
#[derive(Default)]
pub(super) struct ThreadOrder {
    /// While only lanes of a warp have waited for each other: for each warp and each of its lanes, how far it knows each
    /// lane.
    lanes: Vec<[[u16; 32]; 32]>,
    /// Else how far each thread knows each thread, and each engine. Empty, where no thread has waited for another
    /// but of its warp or with its block.
    threads: Vec<Vec<u16>>,
    /// The worker's clock when that began: what is older, a barrier of the block has told all.
    since: u32,
    /// The clocks of the engines.
    engines: Vec<u16>,
    mbarriers: BTreeMap<Place, Mbarrier>,
    warpgroups: BTreeMap<Key, Warpgroup>,
    named: BTreeMap<Place, NamedBarrier>,
    /// By the threads' numbers.
    stores: BTreeMap<u32, Stores>,
    /// What blocks have told this cluster, by the words' addresses.
    told: BTreeMap<usize, Vec<Release>>,
}

/// What those knew who have come to a named barrier, by their numbers: in this round, and in the last one.
#[derive(Default)]
struct NamedBarrier {
    come: BTreeMap<u32, Vec<u16>>,
    last: Vec<(u32, u16)>,
}

/// What a thread copies to global memory.
struct Stores {
    /// Reads shared memory, and writes global memory.
    reads: usize,
    writes: usize,
    /// What the thread knew when it began the last one.
    known: Vec<u16>,
    /// The engines' clock behind each group.
    groups: Vec<u16>,
}

struct Warpgroup {
    engine: usize,
    /// What all threads knew who have begun a product, by its number; and of the one that now reads.
    begun: BTreeMap<u64, Vec<u16>>,
    reading: Vec<u16>,
}

struct Mbarrier {
    engine: usize,
    /// What those knew who have arrived, in this phase or before.
    arrived: Vec<u16>,
    /// The same at the ends of the last phases, the newest last; and how many have ended in all.
    ended: VecDeque<Vec<u16>>,
    phases: u64,
}

/// Phases whose ends are remembered: a thread that has fallen behind further is taken to know more than it may.
const REMEMBERED: usize = 8;

impl ThreadOrder {
    /// Does nothing order threads but barriers of the block?
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty() && self.threads.is_empty()
    }

    /// Are there orders other than among the lanes of a warp?
    pub(super) fn is_general(&self) -> bool {
        !self.threads.is_empty()
    }

    /// From here on, the worker's clock being `since`, any of so many threads may learn from any other.
    pub(super) fn generalise(&mut self, threads: usize, since: u32) {
        if self.is_general() {
            return;
        }
        self.since = since;
        self.threads = vec![vec![0; threads]; threads];
        for (warp, lanes) in std::mem::take(&mut self.lanes).into_iter().enumerate() {
            let first = warp * WARP as usize;
            for (lane, seen) in lanes.into_iter().enumerate() {
                if let Some(thread) = self.threads.get_mut(first + lane) {
                    let count = WARP.min((threads - first) as u32) as usize;
                    thread[first..first + count].copy_from_slice(&seen[..count]);
                }
            }
        }
    }

    /// A block begins, whose threads know nothing.
    pub(super) fn begin(&mut self) {
        *self = ThreadOrder::default();
    }

    /// A barrier of the block orders everything that its threads did: `clock` tells that. What copies have come, all
    /// know that one of them knew.
    pub(super) fn barrier(&mut self) {
        self.lanes.clear();
        let threads = self.threads.len();
        self.join(&(0..threads as u32).collect::<Vec<_>>());
    }

    /// Threads meet: each knows from here on what any of them knew.
    pub(super) fn join(&mut self, numbers: &[u32]) {
        let mut joint = Vec::new();
        for &number in numbers {
            self.tick(number);
            learn(&mut joint, &self.threads[number as usize]);
        }
        for &number in numbers {
            learn(&mut self.threads[number as usize], &joint);
        }
    }

    fn tick(&mut self, number: u32) {
        let own = &mut self.threads[number as usize][number as usize];
        *own = (*own + 1).min(LAST);
    }

    /// The lanes of `mask` meet.
    pub(super) fn sync(&mut self, warp: u32, mask: u32) {
        let lanes = (0..WARP).filter(|lane| mask >> lane & 1 == 1);
        if self.is_general() {
            let last = self.threads.len() as u32;
            let numbers = lanes.map(|lane| warp * WARP + lane).filter(|number| *number < last);
            return self.join(&numbers.collect::<Vec<_>>());
        }
        let (warp, lanes) = (warp as usize, lanes.map(|lane| lane as usize));
        if self.lanes.len() <= warp {
            self.lanes.resize(warp + 1, [[0; 32]; 32]);
        }
        let seen = &mut self.lanes[warp];
        let mut joint = [0; 32];
        for lane in lanes.clone() {
            seen[lane][lane] = (seen[lane][lane] + 1).min(LAST);
            for (most, count) in joint.iter_mut().zip(seen[lane]) {
                *most = count.max(*most);
            }
        }
        for lane in lanes {
            seen[lane] = joint;
        }
    }

    /// An mbarrier is initialised.
    pub(super) fn init(&mut self, place: Place) {
        let engine = match self.mbarriers.get(&place) {
            Some(known) => known.engine,
            None => self.add_engine(),
        };
        let (arrived, ended) = (Vec::new(), VecDeque::new());
        let mbarrier = Mbarrier { engine, arrived, ended, phases: 0 };
        self.mbarriers.insert(place, mbarrier);
    }

    fn add_engine(&mut self) -> usize {
        assert!(
            self.engines.len() < ENGINES,
            "a checked launch has at most {ENGINES} mbarriers and warpgroups"
        );
        self.engines.push(0);
        self.engines.len() - 1
    }

    /// What a thread knows of its cluster's, who is about to tell others.
    pub(super) fn release(&mut self, number: u32) -> Vec<u16> {
        self.tick(number);
        self.threads[number as usize].iter().take(self.threads.len()).copied().collect()
    }

    /// A thread of the cluster has waited for a word, by which blocks have told that.
    pub(super) fn acquire(&mut self, word: usize, told: Vec<Release>) {
        let known = self.told.entry(word).or_default();
        told.into_iter().for_each(|release| release.join(known));
    }

    /// What others have told this cluster, which it can tell, too.
    pub(super) fn told(&self) -> impl Iterator<Item = &Release> {
        self.told.values().flatten()
    }

    /// Has `old` been told of?
    pub(super) fn is_told(&self, old: &Record) -> bool {
        self.told.values().flatten().any(|release| release.tells_of(old))
    }

    /// A thread puts a proxy fence behind everything that it knows.
    pub(super) fn fence_proxy(&mut self, number: u32) {
        self.tick(number);
        let behind = self.behind();
        let known = &mut self.threads[number as usize];
        let (everything, threads) = (known.clone(), known.len().min(behind - ENGINES));
        if known.len() < behind + threads {
            known.resize(behind + threads, 0);
        }
        for (behind, known) in known[behind..].iter_mut().zip(&everything[..threads]) {
            *behind = (*behind).max(*known);
        }
        let older = self.older_than_all();
        let known = &mut self.threads[number as usize];
        known.resize(known.len().max(older + 1), 0);
        known[older] = 1;
    }

    /// Where in what a thread knows stands whether what is older than [`since`](Self::since) is behind a fence.
    fn older_than_all(&self) -> usize {
        self.behind() + self.threads.len()
    }

    /// Where in what a thread knows the second clocks begin.
    fn behind(&self) -> usize {
        self.threads.len() + ENGINES
    }

    /// A thread begins a product of its warpgroup.
    pub(super) fn begin_product(&mut self, key: Key, product: u64, number: u32) {
        if !self.warpgroups.contains_key(&key) {
            let engine = self.add_engine();
            let warpgroup = Warpgroup { engine, begun: BTreeMap::new(), reading: Vec::new() };
            self.warpgroups.insert(key, warpgroup);
        }
        let (known, warpgroups) = (&self.threads[number as usize], &mut self.warpgroups);
        let Some(warpgroup) = warpgroups.get_mut(&key) else { return };
        let all = warpgroup.begun.entry(product).or_insert_with(|| known.clone());
        all.truncate(known.len());
        for (all, known) in all.iter_mut().zip(known) {
            *all = (*all).min(*known);
        }
    }

    /// A product that all threads have begun now reads. Gives the number by which the warpgroup's engine goes, and the
    /// clock by which it is known to have read.
    pub(super) fn read_product(&mut self, key: Key, product: u64) -> (u32, u16) {
        let Some(warpgroup) = self.warpgroups.get_mut(&key) else { return (FIRST_ENGINE, 0) };
        warpgroup.reading = warpgroup.begun.remove(&product).unwrap_or_default();
        let clock = (self.engines[warpgroup.engine] + 1).min(LAST);
        (FIRST_ENGINE + warpgroup.engine as u32, clock)
    }

    /// It has read.
    pub(super) fn end_product(&mut self, key: Key, clock: u16) {
        if let Some(warpgroup) = self.warpgroups.get(&key) {
            self.engines[warpgroup.engine] = clock;
        }
    }

    /// A thread has waited for the products of its warpgroup up to the one of that clock.
    pub(super) fn waited_for_products(&mut self, key: Key, clock: u16, number: u32) {
        let Some(warpgroup) = self.warpgroups.get(&key) else { return };
        let at = self.threads.len() + warpgroup.engine;
        let known = &mut self.threads[number as usize];
        if known.len() <= at {
            known.resize(at + 1, 0);
        }
        known[at] = known[at].max(clock);
    }

    /// A thread begins to copy a box to global memory. Gives the numbers by which the engines go that read and write it, and
    /// the number of its group.
    pub(super) fn begin_store(&mut self, number: u32) -> (u32, u32, usize) {
        if !self.stores.contains_key(&number) {
            let (reads, writes) = (self.add_engine(), self.add_engine());
            let stores = Stores { reads, writes, known: Vec::new(), groups: Vec::new() };
            self.stores.insert(number, stores);
        }
        // What the thread did before, the engines know.
        self.tick(number);
        let Some(stores) = self.stores.get_mut(&number) else { return (FIRST_ENGINE, 0, 0) };
        stores.known.clone_from(&self.threads[number as usize]);
        let [reads, writes] = [stores.reads, stores.writes].map(|at| FIRST_ENGINE + at as u32);
        (reads, writes, stores.groups.len())
    }

    /// What it reads and writes has been taken note of.
    pub(super) fn end_store(&mut self, number: u32) {
        let Some(stores) = self.stores.get(&number) else { return };
        for at in [stores.reads, stores.writes] {
            self.engines[at] = (self.engines[at] + 1).min(LAST);
        }
    }

    /// What a thread has begun to copy becomes a group.
    pub(super) fn commit_stores(&mut self, number: u32) {
        if let Some(stores) = self.stores.get_mut(&number) {
            stores.groups.push(self.engines[stores.reads]);
        }
    }

    /// A thread has waited for all but the last `pending` of its groups to have read, or also to have `written`. Gives how
    /// many these are.
    pub(super) fn waited_for_stores(
        &mut self,
        number: u32,
        pending: usize,
        written: bool,
    ) -> usize {
        let Some(stores) = self.stores.get(&number) else { return 0 };
        let groups = stores.groups.len().saturating_sub(pending);
        let Some(last) = groups.checked_sub(1) else { return 0 };
        let (threads, clock) = (self.threads.len(), stores.groups[last]);
        let known = &mut self.threads[number as usize];
        for engine in [Some(stores.reads), written.then_some(stores.writes)].into_iter().flatten() {
            let at = threads + engine;
            if known.len() <= at {
                known.resize(at + 1, 0);
            }
            known[at] = known[at].max(clock);
        }
        groups
    }

    /// What is known to a thread, to the engine of a warpgroup for the product that now reads, or to those of a thread's copies
    /// for the one that it now begins.
    fn known_to(&self, number: u32) -> Option<&[u16]> {
        match number.checked_sub(FIRST_ENGINE) {
            None => self.threads.get(number as usize).map(Vec::as_slice),
            // An mbarrier's knows nothing: what it does was ordered when it was begun.
            Some(engine) => {
                let engine = engine as usize;
                let mut stores = self.stores.values();
                if let Some(found) = stores.find(|s| s.reads == engine || s.writes == engine) {
                    return Some(&found.known);
                }
                let mut warpgroups = self.warpgroups.values();
                let found = warpgroups.find(|warpgroup| warpgroup.engine == engine)?;
                Some(&found.reading)
            }
        }
    }

    /// Does a proxy fence stand between a thread's write and what an engine now reads?
    pub(super) fn is_behind_fence(&self, engine: u32, old: &Record) -> bool {
        let known = |at: usize| self.known_to(engine).and_then(|known| known.get(at)).copied();
        if old.clock < self.since {
            return old.is_engine()
                || known(self.older_than_all()).is_some_and(|fenced| fenced > 0);
        }
        let behind = known(self.behind() + old.thread() as usize).unwrap_or(0);
        old.is_engine() || behind > old.own_clock() || old.own_clock() == LAST
    }

    /// A thread arrives.
    pub(super) fn arrive(&mut self, place: Place, number: u32, ends_phase: bool) {
        self.tick(number);
        let Some(mbarrier) = self.mbarriers.get_mut(&place) else { return };
        learn(&mut mbarrier.arrived, &self.threads[number as usize]);
        mbarrier.end_phase(ends_phase);
    }

    /// A thread has waited for the end of a phase of that parity. It learns of the first that it may have seen, and that
    /// may be none: where it knows that the phase before has ended it need not wait, however late it is this time.
    pub(super) fn waited(&mut self, place: Place, number: u32, parity: u32) {
        let Some(mbarrier) = self.mbarriers.get(&place) else { return };
        let thread = &mut self.threads[number as usize];
        let forgotten = mbarrier.phases - mbarrier.ended.len() as u64;
        let knows = |ended: &Vec<u16>| {
            let own = |at: usize| thread.get(at).copied().unwrap_or(0);
            ended.iter().enumerate().all(|(at, clock)| *clock <= own(at))
        };
        let known = match mbarrier.ended.iter().rposition(knows) {
            Some(last) => forgotten + last as u64 + 1,
            None if forgotten == 0 => 0,
            // It may know of one that is forgotten.
            None => forgotten + 1,
        };
        // So many phases have ended, if it is this parity's turn.
        let seen = (known + u64::from(known % 2 == u64::from(parity & 1))).min(mbarrier.phases);
        if let Some(last) = seen.checked_sub(forgotten + 1) {
            learn(thread, &mbarrier.ended[last as usize]);
        }
    }

    /// A thread comes to a named barrier. Gives a thread of which it does not know that it came to the round before.
    pub(super) fn come_to_named(&mut self, at: Place, number: u32) -> Option<u32> {
        self.tick(number);
        let known = &self.threads[number as usize];
        let barrier = self.named.entry(at).or_default();
        barrier.come.insert(number, known.clone());
        let is_unknown = |&&(other, clock): &&(u32, u16)| known[other as usize] < clock;
        barrier.last.iter().find(is_unknown).map(|(other, _)| *other)
    }

    /// A named barrier's round ends for all who have come; those who wait learn what they knew by then.
    pub(super) fn end_named_round(&mut self, at: Place, all: &[u32], waiting: &[u32]) {
        let Some(barrier) = self.named.get_mut(&at) else { return };
        barrier.last.clear();
        let mut joint = Vec::new();
        for number in all {
            if let Some(known) = barrier.come.remove(number) {
                barrier.last.push((*number, known[*number as usize]));
                learn(&mut joint, &known);
            }
        }
        for &number in waiting {
            learn(&mut self.threads[number as usize], &joint);
        }
    }

    /// The number by which the engine of an mbarrier goes.
    pub(super) fn engine(&self, place: Place) -> u32 {
        FIRST_ENGINE + self.mbarriers.get(&place).map_or(0, |mbarrier| mbarrier.engine as u32)
    }

    /// A copy has come that the mbarrier is told of.
    pub(super) fn landed(&mut self, place: Place, ends_phase: bool) {
        let threads = self.threads.len();
        let Some(mbarrier) = self.mbarriers.get_mut(&place) else { return };
        let clock = &mut self.engines[mbarrier.engine];
        *clock = (*clock + 1).min(LAST);
        let at = threads + mbarrier.engine;
        if mbarrier.arrived.len() <= at {
            mbarrier.arrived.resize(at + 1, 0);
        }
        mbarrier.arrived[at] = *clock;
        mbarrier.end_phase(ends_phase);
    }

    /// The clock by which what a thread, or an engine, does now is known.
    pub(super) fn clock(&self, number: u32) -> u16 {
        if number >= FIRST_ENGINE {
            return self.engines.get((number - FIRST_ENGINE) as usize).copied().unwrap_or(0);
        }
        let (warp, lane) = ((number / WARP) as usize, (number % WARP) as usize);
        match self.threads.get(number as usize) {
            Some(seen) => seen[number as usize],
            None => self.lanes.get(warp).map_or(0, |seen| seen[lane][lane]),
        }
    }

    /// Does a thread know that `old`, an access of its cluster since the last barrier, is past?
    pub(super) fn knows(&self, number: u32, old: &Record) -> bool {
        let other = old.thread();
        let known = if self.is_general() {
            self.known(number, other)
        } else if other / WARP == number / WARP {
            let seen = self.lanes.get((number / WARP) as usize);
            seen.map(|seen| seen[(number % WARP) as usize][(other % WARP) as usize])
        } else {
            None
        };
        known.is_some_and(|known| known > old.own_clock() || old.own_clock() == LAST)
    }

    /// How far a thread knows another, or an engine. An engine knows nothing: what it does was ordered when it was begun.
    fn known(&self, number: u32, other: u32) -> Option<u16> {
        let at = match other.checked_sub(FIRST_ENGINE) {
            Some(engine) => self.threads.len() + engine as usize,
            None => other as usize,
        };
        // Engines are listed when something is known of them.
        Some(self.known_to(number)?.get(at).copied().unwrap_or(0))
    }

    /// Does a thread know what another, or an engine, did when its clock was at `clock`?
    pub(super) fn has_learnt(&self, number: u32, other: u32, clock: u16) -> bool {
        self.known(number, other).is_some_and(|known| known > clock || clock == LAST)
    }
}

impl Mbarrier {
    fn end_phase(&mut self, ends: bool) {
        if ends {
            let mut oldest = match self.ended.len() {
                REMEMBERED.. => self.ended.pop_front().unwrap_or_default(),
                _ => Vec::new(),
            };
            oldest.clone_from(&self.arrived);
            self.ended.push_back(oldest);
            self.phases += 1;
        }
    }
}

/// Adds to what is known what is known there.
fn learn(known: &mut Vec<u16>, more: &[u16]) {
    if known.len() < more.len() {
        known.resize(more.len(), 0);
    }
    for (known, more) in known.iter_mut().zip(more) {
        *known = (*known).max(*more);
    }
}

#[cfg(test)]
mod tests;
