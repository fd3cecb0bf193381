//! Engines: hardware units that access memory by themselves.
//!
//! * Each mbarrier has one, for the TMA copies that complete there. Only what the mbarrier tells
//!   orders them.
//! * Each warpgroup has one, for the tensor cores that read shared memory. It knows what all
//!   threads knew when they began the product. A thread that has waited for the product knows that
//!   the engine has read.
//! * Each thread that copies boxes to global memory has two: one reads shared memory, the other
//!   writes global memory. The thread waits for each apart.
//!
//! Tensor cores and TMA see what a thread wrote only if a proxy fence stands between. So a thread
//! has a second clock for every thread: how far it knows that what that thread did is behind a
//! fence.

use std::collections::BTreeMap;

use super::{MOST_ENGINES, Stores, VectorClocks, Warpgroup};
use crate::cpu::{
    check::{
        record::{FIRST_ENGINE, LAST_CLOCK, Record, first_engine},
        unit::Group,
    },
    cluster::Place,
    warpgroup::WarpgroupKey,
};

impl VectorClocks {
    /// Adds an engine, and gives its number among the engines.
    pub(super) fn add_engine(&mut self) -> usize {
        assert!(
            self.engines.len() < MOST_ENGINES,
            "a checked launch has at most {MOST_ENGINES} mbarriers and warpgroups"
        );
        self.engines.push(0);
        self.engines.len() - 1
    }

    /// A proxy fence of a thread: everything that the thread knows is behind a fence now.
    pub(in crate::cpu::check) fn fence_proxy(&mut self, number: u32) {
        self.tick(number);
        let threads = self.threads.len();
        let known = &mut self.threads[number as usize];
        known.resize(known.len().max(first_engine(threads)), 0);
        let (known, fenced) = known.split_at_mut(threads);
        for (fenced, known) in fenced[..threads].iter_mut().zip(known) {
            *fenced = (*fenced).max(*known);
        }
        fenced[threads] = 1;
    }

    /// The entry of a thread's vector clock that tells whether everything older than
    /// [`since`](Self::since) is behind a fence.
    fn older_than_all(&self) -> usize {
        2 * self.threads.len()
    }

    /// The first of the entries of a thread's vector clock that tell what is behind a fence.
    fn behind(&self) -> usize {
        self.threads.len()
    }

    /// A thread begins a product of its warpgroup.
    pub(in crate::cpu::check) fn begin_product(
        &mut self,
        key: WarpgroupKey,
        product: u64,
        number: u32,
    ) {
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

    /// The operands of a product, which all threads have begun, are read now. Gives the number of
    /// the warpgroup's engine, and the engine's clock after the reads.
    pub(in crate::cpu::check) fn read_product(
        &mut self,
        key: WarpgroupKey,
        product: u64,
    ) -> (u32, u16) {
        let Some(warpgroup) = self.warpgroups.get_mut(&key) else { return (FIRST_ENGINE, 0) };
        warpgroup.reading = warpgroup.begun.remove(&product).unwrap_or_default();
        let clock = (self.engines[warpgroup.engine] + 1).min(LAST_CLOCK);
        (FIRST_ENGINE + warpgroup.engine as u32, clock)
    }

    /// The operands have been read.
    pub(in crate::cpu::check) fn end_product(&mut self, key: WarpgroupKey, clock: u16) {
        if let Some(warpgroup) = self.warpgroups.get(&key) {
            self.engines[warpgroup.engine] = clock;
        }
    }

    /// A thread has waited for the products of its warpgroup, up to the one with that clock.
    pub(in crate::cpu::check) fn waited_for_products(
        &mut self,
        key: WarpgroupKey,
        clock: u16,
        number: u32,
    ) {
        let Some(warpgroup) = self.warpgroups.get(&key) else { return };
        let at = first_engine(self.threads.len()) + warpgroup.engine;
        let known = &mut self.threads[number as usize];
        if known.len() <= at {
            known.resize(at + 1, 0);
        }
        known[at] = known[at].max(clock);
    }

    /// A thread begins a TMA copy to global memory. Gives the numbers of the engines that read and
    /// that write, and the number of the copy's group.
    pub(in crate::cpu::check) fn begin_store(&mut self, number: u32) -> (u32, u32, usize) {
        if !self.stores.contains_key(&number) {
            let (reader, writer) = (self.add_engine(), self.add_engine());
            let stores = Stores { reader, writer, known: Vec::new(), groups: Vec::new() };
            self.stores.insert(number, stores);
        }
        // The engines know what the thread did before.
        self.tick(number);
        let Some(stores) = self.stores.get_mut(&number) else { return (FIRST_ENGINE, 0, 0) };
        stores.known.clone_from(&self.threads[number as usize]);
        let [reader, writer] = [stores.reader, stores.writer].map(|at| FIRST_ENGINE + at as u32);
        (reader, writer, stores.groups.len())
    }

    /// The copy's reads and writes have been recorded.
    pub(in crate::cpu::check) fn end_store(&mut self, number: u32) {
        let Some(stores) = self.stores.get(&number) else { return };
        for at in [stores.reader, stores.writer] {
            self.engines[at] = (self.engines[at] + 1).min(LAST_CLOCK);
        }
    }

    /// Makes a group of the copies that a thread has begun.
    pub(in crate::cpu::check) fn commit_stores(&mut self, number: u32) {
        if let Some(stores) = self.stores.get_mut(&number) {
            stores.groups.push(self.engines[stores.reader]);
        }
    }

    /// A thread has waited until all but the last `pending` of its groups have read, or also have
    /// `written`. Gives the number of groups that it has waited for.
    pub(in crate::cpu::check) fn waited_for_stores(
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
        for engine in [Some(stores.reader), written.then_some(stores.writer)].into_iter().flatten()
        {
            let at = first_engine(threads) + engine;
            if known.len() <= at {
                known.resize(at + 1, 0);
            }
            known[at] = known[at].max(clock);
        }
        groups
    }

    /// The group of a TMA copy to global memory, by the number of one of its engines and that
    /// engine's clock at the copy.
    pub(in crate::cpu::check) fn group_of_store(&self, engine: u32, clock: u16) -> Option<Group> {
        let engine = engine.checked_sub(FIRST_ENGINE)? as usize;
        let mut stores = self.stores.values();
        let stores = stores.find(|s| s.reader == engine || s.writer == engine)?;
        let later = stores.groups.iter().filter(|end| **end > clock).count();
        Some(match later.checked_sub(1) {
            None => Group::Open,
            Some(later) => Group::Committed(later as u32), // fewer than the clock counts
        })
    }

    /// The warpgroup whose tensor cores are that engine.
    pub(in crate::cpu::check) fn warpgroup_of(&self, engine: u32) -> Option<WarpgroupKey> {
        let engine = engine.checked_sub(FIRST_ENGINE)? as usize;
        let mut warpgroups = self.warpgroups.iter();
        Some(*warpgroups.find(|(_, warpgroup)| warpgroup.engine == engine)?.0)
    }

    /// The vector clock of a thread; or of an engine, for the product or the copy that it carries
    /// out now.
    #[inline]
    pub(in crate::cpu::check) fn known_to(&self, number: u32) -> Option<&[u16]> {
        match number.checked_sub(FIRST_ENGINE) {
            None => self.threads.get(number as usize).map(Vec::as_slice),
            // An mbarrier's engine knows nothing: its copies were ordered when they were begun.
            Some(engine) => {
                let engine = engine as usize;
                let mut stores = self.stores.values();
                if let Some(found) = stores.find(|s| s.reader == engine || s.writer == engine) {
                    return Some(&found.known);
                }
                let mut warpgroups = self.warpgroups.values();
                let found = warpgroups.find(|warpgroup| warpgroup.engine == engine)?;
                Some(&found.reading)
            }
        }
    }

    /// Whether a proxy fence stands between the access `old` and one of who knows this much.
    pub(in crate::cpu::check) fn is_behind_fence(&self, known: &[u16], old: &Record) -> bool {
        let known = |at: usize| known.get(at).copied().unwrap_or(0);
        if old.clock < self.since {
            return old.is_engine() || known(self.older_than_all()) > 0;
        }
        let behind = || known(self.behind() + old.thread() as usize);
        old.is_engine() || behind() > old.own_clock() || old.own_clock() == LAST_CLOCK
    }

    /// The number of an mbarrier's engine.
    pub(in crate::cpu::check) fn engine(&self, place: Place) -> u32 {
        FIRST_ENGINE + self.mbarriers.get(&place).map_or(0, |mbarrier| mbarrier.engine as u32)
    }

    /// A copy has completed its bytes at an mbarrier.
    pub(in crate::cpu::check) fn landed(&mut self, place: Place, ends_phase: bool) {
        let threads = self.threads.len();
        let Some(mbarrier) = self.mbarriers.get_mut(&place) else { return };
        let clock = &mut self.engines[mbarrier.engine];
        *clock = (*clock + 1).min(LAST_CLOCK);
        let at = first_engine(threads) + mbarrier.engine;
        if mbarrier.arrived.len() <= at {
            mbarrier.arrived.resize(at + 1, 0);
        }
        mbarrier.arrived[at] = *clock;
        mbarrier.end_phase(ends_phase);
    }
}
