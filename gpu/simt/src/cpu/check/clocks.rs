//! What the threads of a cluster know of each other since the last barrier of their block: vector
//! clocks.
//!
//! Every thread has a clock. It ticks where other threads may learn what the thread did (Lamport;
//! Flanagan and Freund, FastTrack, 2009): at `sync_warp`, where the thread arrives at an mbarrier,
//! at a barrier of the cluster. A thread that waits there learns all that the arriving threads
//! knew. An access happens before another one if the second one's thread knows the first one's
//! clock.
//!
//! Some hardware units access memory by themselves. Each is an *engine*, which counts as a thread
//! ([`engines`]). Flags in global memory carry knowledge from cluster to cluster
//! ([`flags`](super::flags)).

mod engines;
mod knowledge;
mod releases;

use std::collections::{BTreeMap, VecDeque};

use self::knowledge::Knowledge;
use super::record::{FIRST_ENGINE, LAST_CLOCK, Record, first_engine, learn};
use crate::cpu::{cluster::Place, limits::WARP, warpgroup::WarpgroupKey};

/// The most engines of a cluster: a number has twelve bits.
const MOST_ENGINES: usize = 1024;

/// What the threads of a cluster know of each other.
#[derive(Default)]
pub(super) struct VectorClocks {
    /// While threads are ordered only within warps: for each warp, and each of its lanes, the clock
    /// of every lane that it knows.
    lanes: Vec<[[u16; 32]; 32]>,
    /// The general case: for each thread, the clock of every thread that it knows; how much of
    /// every thread's work it knows to be behind a proxy fence, and whether all older work is; and
    /// the clock of every engine. Empty while threads are ordered only within warps and by barriers
    /// of the block.
    threads: Vec<Vec<u16>>,
    /// The slot's clock when the general case began. A barrier of the block has ordered everything
    /// older.
    since: u32,
    /// The engines' own clocks.
    engines: Vec<u16>,
    mbarriers: BTreeMap<Place, Mbarrier>,
    warpgroups: BTreeMap<WarpgroupKey, Warpgroup>,
    named: BTreeMap<Place, NamedBarrier>,
    /// Copies to global memory, by the numbers of the threads that begin them.
    stores: BTreeMap<u32, Stores>,
    /// What threads knew when they last called `fence_init`, by their numbers.
    fenced: BTreeMap<u32, Vec<u16>>,
    knowledge: Knowledge,
}

/// A named barrier.
#[derive(Default)]
struct NamedBarrier {
    /// What each thread that has arrived in this round knew, by its number.
    arrived: BTreeMap<u32, Vec<u16>>,
    /// The threads of the previous round, with their own clocks at the arrival.
    previous: Vec<(u32, u16)>,
}

/// A thread's TMA copies to global memory.
struct Stores {
    /// The engine that reads shared memory, and the one that writes global memory.
    reader: usize,
    writer: usize,
    /// What the thread knew when it began the last copy.
    known: Vec<u16>,
    /// The engines' clock after each committed group.
    groups: Vec<u16>,
}

/// A warpgroup's products.
struct Warpgroup {
    engine: usize,
    /// What all threads knew that have begun a product, by the product's number.
    begun: BTreeMap<u64, Vec<u16>>,
    /// The same of the product whose operands are being read.
    reading: Vec<u16>,
}

/// An mbarrier.
struct Mbarrier {
    engine: usize,
    /// What the threads knew that have arrived, in this phase or before.
    arrived: Vec<u16>,
    /// The same at the ends of the last phases, the newest last.
    ended: VecDeque<Vec<u16>>,
    /// The number of phases that have ended.
    phases: u64,
}

/// The number of phases that are remembered. A thread that is further behind is assumed to know the
/// oldest of them, which may be more than it knows.
const REMEMBERED_PHASES: usize = 8;

impl VectorClocks {
    /// Whether only barriers of the block order threads.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty() && self.threads.is_empty()
    }

    /// Whether threads are ordered in other ways than by barriers and within warps.
    pub(super) fn is_general(&self) -> bool {
        !self.threads.is_empty()
    }

    /// Begins the general case, for that number of threads, when the slot's clock is `since`.
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

    /// A cluster begins. Its threads know nothing of each other.
    pub(super) fn begin(&mut self) {
        *self = VectorClocks::default();
    }

    /// A barrier of the block. The slot's clock orders everything that the threads did; what one of
    /// them knew of copies, all know now.
    pub(super) fn barrier(&mut self) {
        self.lanes.clear();
        let threads = self.threads.len();
        self.join(&(0..threads as u32).collect::<Vec<_>>());
    }

    /// A barrier of the cluster, with these threads: each learns what those knew whose arrival was
    /// not relaxed, and what the others knew when they called `fence_init`. (That fence makes the
    /// initialisations of mbarriers visible, and nothing else. What the thread had written by then
    /// counts as visible, too.)
    pub(super) fn cluster_barrier(&mut self, threads: &[(u32, bool)]) {
        let mut joint = Vec::new();
        for &(number, is_relaxed) in threads {
            self.tick(number);
            let known = match is_relaxed {
                true => self.fenced.get(&number),
                false => self.threads.get(number as usize),
            };
            known.into_iter().for_each(|known| learn(&mut joint, known));
        }
        for &(number, _) in threads {
            learn(&mut self.threads[number as usize], &joint);
        }
    }

    /// A thread calls `fence_init`.
    pub(super) fn fence_init(&mut self, number: u32) {
        if self.is_general() {
            self.tick(number);
            self.fenced.insert(number, self.threads[number as usize].clone());
        }
    }

    /// A barrier of these threads: each learns what any of them knew.
    pub(super) fn join(&mut self, numbers: &[u32]) {
        let mut joint = Vec::new();
        for &number in numbers {
            self.tick(number);
            learn(&mut joint, &self.threads[number as usize]);
        }
        for &number in numbers {
            learn(&mut self.threads[number as usize], &joint);
        }
        self.share_fences(numbers);
    }

    /// Advances a thread's own clock.
    fn tick(&mut self, number: u32) {
        let own = &mut self.threads[number as usize][number as usize];
        *own = (*own + 1).min(LAST_CLOCK);
    }

    /// `sync_warp` of the lanes of `mask`.
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
            seen[lane][lane] = (seen[lane][lane] + 1).min(LAST_CLOCK);
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

    /// A thread arrives at an mbarrier.
    pub(super) fn arrive(&mut self, place: Place, number: u32, ends_phase: bool) {
        self.tick(number);
        let Some(mbarrier) = self.mbarriers.get_mut(&place) else { return };
        learn(&mut mbarrier.arrived, &self.threads[number as usize]);
        mbarrier.end_phase(ends_phase);
    }

    /// A thread has waited for the end of a phase of that parity. It learns of the earliest phase
    /// that may have ended its wait. That may be none: if it knows that the previous phase of this
    /// parity has ended, it need not have waited.
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
            // It may know of a phase that is forgotten.
            None => forgotten + 1,
        };
        // The least number of ended phases, at least `known`, at which the wait for this parity is
        // over.
        let seen = (known + u64::from(known % 2 == u64::from(parity & 1))).min(mbarrier.phases);
        if let Some(last) = seen.checked_sub(forgotten + 1) {
            learn(thread, &mbarrier.ended[last as usize]);
        }
    }

    /// A thread arrives at a named barrier. Gives a thread of the previous round whose arrival it
    /// does not know of, if there is one.
    pub(super) fn arrive_at_named(&mut self, at: Place, number: u32) -> Option<u32> {
        self.tick(number);
        let known = &self.threads[number as usize];
        let barrier = self.named.entry(at).or_default();
        barrier.arrived.insert(number, known.clone());
        let is_unknown = |&&(other, clock): &&(u32, u16)| known[other as usize] < clock;
        barrier.previous.iter().find(is_unknown).map(|(other, _)| *other)
    }

    /// A named barrier's round ends. The threads that wait learn what all knew when they arrived.
    pub(super) fn end_named_round(&mut self, at: Place, all: &[u32], waiting: &[u32]) {
        let Some(barrier) = self.named.get_mut(&at) else { return };
        barrier.previous.clear();
        let mut joint = Vec::new();
        for number in all {
            if let Some(known) = barrier.arrived.remove(number) {
                barrier.previous.push((*number, known[*number as usize]));
                learn(&mut joint, &known);
            }
        }
        for &number in waiting {
            learn(&mut self.threads[number as usize], &joint);
        }
    }

    /// Whether a clock has come to its last value, from where on it orders everything.
    pub(super) fn has_run_out(&self) -> bool {
        let mut lanes = self.lanes.iter().flatten().flatten();
        let mut threads = self.threads.iter().enumerate();
        lanes.any(|clock| *clock == LAST_CLOCK)
            || threads.any(|(number, seen)| seen[number] == LAST_CLOCK)
            || self.engines.contains(&LAST_CLOCK)
    }

    /// The own clock of a thread or an engine.
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

    /// Whether a lane knows of `old`, an access of its cluster since the last barrier. Threads are
    /// ordered only within warps.
    pub(super) fn knows_lane(&self, number: u32, old: &Record) -> bool {
        let other = old.thread();
        if other / WARP != number / WARP {
            return false;
        }
        let seen = self.lanes.get((number / WARP) as usize);
        let known = seen.map(|seen| seen[(number % WARP) as usize][(other % WARP) as usize]);
        known.is_some_and(|known| known > old.own_clock() || old.own_clock() == LAST_CLOCK)
    }

    /// Whether who knows this much knows of `old`, in the general case.
    #[inline]
    pub(super) fn tells(&self, known: &[u16], old: &Record) -> bool {
        let known = known.get(self.entry(old.thread())).copied().unwrap_or(0);
        known > old.own_clock() || old.own_clock() == LAST_CLOCK
    }

    /// The entry of a vector clock that a thread, or an engine, has.
    #[inline]
    fn entry(&self, number: u32) -> usize {
        match number.checked_sub(FIRST_ENGINE) {
            Some(engine) => first_engine(self.threads.len()) + engine as usize,
            None => number as usize,
        }
    }

    /// The clock of a thread, or engine, that thread `number` knows.
    fn known(&self, number: u32, other: u32) -> Option<u16> {
        // An engine is listed when something is known of it.
        Some(self.known_to(number)?.get(self.entry(other)).copied().unwrap_or(0))
    }

    /// Whether a thread knows what another one, or an engine, did when its clock was `clock`.
    pub(super) fn has_learnt(&self, number: u32, other: u32, clock: u16) -> bool {
        self.known(number, other).is_some_and(|known| known > clock || clock == LAST_CLOCK)
    }
}

impl Mbarrier {
    /// Remembers the end of a phase, if it `ends`.
    fn end_phase(&mut self, ends: bool) {
        if ends {
            let mut oldest = match self.ended.len() {
                REMEMBERED_PHASES.. => self.ended.pop_front().unwrap_or_default(),
                _ => Vec::new(),
            };
            oldest.clone_from(&self.arrived);
            self.ended.push_back(oldest);
            self.phases += 1;
        }
    }
}

#[cfg(test)]
mod tests;
