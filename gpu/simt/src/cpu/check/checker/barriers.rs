//! Barriers: of a block, of a cluster, of a warp's lanes, and named ones.

use std::{collections::BTreeMap, panic::Location, sync::atomic::Ordering};

use super::Checker;
use crate::cpu::{
    block::{self, BlockRun, Thread},
    check::{
        finding::Kind,
        findings::{Key, Seen},
        profile::Operation,
        trace::Tracer,
    },
    cluster,
    limits::WARP,
    named_barrier::Arrival,
};

impl Checker<'_> {
    /// All threads of a block that have not ended wait at a barrier.
    pub(in crate::cpu) fn barrier<'t>(
        &self,
        run: &BlockRun,
        waiting: impl Iterator<Item = &'t Thread> + Clone,
    ) {
        let place = |thread: &Thread| thread.place.get();
        let Some(first) = waiting.clone().next() else { return };
        if self.profiling.get() {
            let mut profiler = self.profiler.borrow_mut();
            profiler.flush();
            let mut warps = vec![None; run.threads().len().div_ceil(WARP as usize)];
            waiting.clone().for_each(|thread| warps[thread.warp() as usize] = place(thread));
            for place in warps.into_iter().flatten() {
                profiler.count(place, Operation::Barrier, 1);
            }
        }
        if self.launch.trace == Some(run.index) {
            self.with_tracer(Tracer::barrier);
        }
        let seen = Seen { block: run.index, thread: first.index, element: None, other: None };
        if run.ended.get() > 0 {
            let key = Key { place: place(first), ..Key::of(Kind::BarrierSkipped) };
            let exited = run.threads()[run.first_ended.get() as usize].index;
            let (waits, ended) = (waiting.clone().count(), run.ended.get());
            self.findings.borrow_mut().add(key, seen, || {
                format!("{waits} threads of the block wait, {ended} have ended, {exited:?} first")
            });
        }
        // A place may have several addresses. Mostly they are equal, so the addresses are compared
        // first.
        let elsewhere = |thread: &&Thread| match (place(thread), place(first)) {
            (Some(one), Some(other)) => !std::ptr::eq(one, other) && one != other,
            (one, other) => one.is_some() != other.is_some(),
        };
        if let Some(other) = waiting.clone().find(elsewhere) {
            let key = Key {
                place: place(first),
                other_place: place(other),
                ..Key::of(Kind::BarrierMismatch)
            };
            let count = |at| waiting.clone().filter(|thread| place(thread) == place(at)).count();
            self.findings.borrow_mut().add(key, seen, || {
                let other = other.index;
                format!("{} threads wait at the first, {other:?} at the second", count(first))
            });
        }
        if self.launch.cluster > 1 {
            // It orders nothing in the other blocks of the cluster.
            let numbers = waiting.map(|thread| thread.number).collect::<Vec<_>>();
            self.clocks.borrow_mut().join(&numbers);
        } else {
            self.tick();
        }
    }

    /// `sync_warp` of the lanes of `mask`.
    pub(in crate::cpu) fn warp_sync(&self, warp: u32, mask: u32) {
        self.launch.lanes_ordered.store(true, Ordering::Relaxed);
        let before = (warp * WARP) as usize % self.launch.block_stride;
        if mask.count_ones() < WARP.min((self.launch.threads - before) as u32) {
            self.launch.halves_ordered.store(true, Ordering::Relaxed);
        }
        self.clocks.borrow_mut().sync(warp, mask);
        if self.profiling.get() {
            self.profiler.borrow_mut().flush_one(warp);
        }
        self.with_tracer(|tracer| tracer.flush_one(warp));
    }

    /// All threads of the cluster that have not ended wait at its barrier. Those whose arrival was
    /// relaxed have told nothing but their initialisations of mbarriers.
    pub(in crate::cpu) fn cluster_barrier(
        &self,
        threads: &[&Thread],
        is_relaxed: impl Fn(&Thread) -> bool,
    ) {
        // The lanes of a warp must wait at the same place.
        for pair in threads.windows(2) {
            let ([one, other], place) = ([pair[0], pair[1]], |thread: &Thread| thread.place.get());
            if one.number / WARP == other.number / WARP && place(one) != place(other) {
                let key = Key {
                    place: place(one),
                    other_place: place(other),
                    ..Key::of(Kind::BarrierMismatch)
                };
                let block = one.run().index;
                let seen = Seen { block, thread: one.index, element: None, other: None };
                let detail = || format!("lanes of a warp, {:?} at the second", other.index);
                self.findings.borrow_mut().add(key, seen, detail);
            }
        }
        let numbers = threads.iter().map(|thread| (thread.number, is_relaxed(thread)));
        let numbers = numbers.collect::<Vec<_>>();
        self.with_general_clocks(|clocks| clocks.cluster_barrier(&numbers));
        self.has_met.set(true);
    }

    /// The running thread arrives at a named barrier.
    pub(in crate::cpu) fn arrive_at_named(
        &self,
        at: cluster::Place,
        place: &'static Location<'static>,
    ) {
        self.count(place);
        let thread = block::current();
        let unknown = self.with_general_clocks(|clocks| clocks.arrive_at_named(at, thread.number));
        let Some(other) = unknown else { return };
        let (block, index) = (block::block_index(), thread.index);
        let other = block::current_block().threads()
            [(other % self.launch.block_stride as u32) as usize]
            .index;
        let key = Key { place: Some(place), ..Key::of(Kind::BarrierMismatch) };
        let seen = Seen { block, thread: index, element: None, other: None };
        self.findings.borrow_mut().add(key, seen, || {
            format!(
                "at named barrier {}: thread {other:?} took part in the previous round, and this thread may arrive before \
                 that round has ended, and be counted in it",
                at.1
            )
        });
    }

    /// A named barrier's round has ended, with these arrivals.
    pub(in crate::cpu) fn end_named_round(&self, at: cluster::Place, arrivals: &[Arrival]) {
        let mut warps = BTreeMap::new();
        for arrival in arrivals {
            let first = warps.entry(arrival.thread / WARP).or_insert(arrival);
            if first.place != arrival.place {
                let key = Key {
                    place: Some(first.place),
                    other_place: Some(arrival.place),
                    ..Key::of(Kind::BarrierMismatch)
                };
                let (block, thread) = (block::block_index(), block::current().index);
                let seen = Seen { block, thread, element: None, other: None };
                self.findings.borrow_mut().add(key, seen, || "lanes of a warp".to_owned());
            }
        }
        if self.profiling.get() {
            let mut profiler = self.profiler.borrow_mut();
            for (warp, arrival) in &warps {
                profiler.flush_one(*warp);
                profiler.count(arrival.place, Operation::Barrier, 1);
            }
        }
        self.with_tracer(|tracer| warps.keys().for_each(|warp| tracer.flush_one(*warp)));
        let threads = |who: fn(&Arrival) -> bool| {
            arrivals.iter().filter(|one| who(one)).map(|one| one.thread).collect::<Vec<_>>()
        };
        let (all, waiting) = (threads(|_| true), threads(|one| one.waits));
        self.with_general_clocks(|clocks| clocks.end_named_round(at, &all, &waiting));
    }
}
