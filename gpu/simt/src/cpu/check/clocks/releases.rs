//! What the threads of a cluster have acquired from others, and what they have released by fences.
//!
//! An acquisition is an event of its thread: whoever knows the thread's clock after it knows what
//! was acquired.

use std::{collections::BTreeMap, sync::Arc};

use super::VectorClocks;
use crate::cpu::check::{
    flags::{FenceScope, Release, Run, Seen},
    record::{LAST_CLOCK, Record},
};

/// What the threads of a cluster have acquired and released.
#[derive(Default)]
pub(super) struct Releases {
    acquired: Vec<Acquired>,
    /// What threads have seen by relaxed operations, by their numbers: the next fence acquires it.
    seen: BTreeMap<u32, Vec<Seen>>,
    /// What threads knew at their last fences, by their numbers: what they release by relaxed
    /// operations.
    fenced: BTreeMap<u32, Arc<Vec<Release>>>,
}

/// Releases, with the threads that have acquired them: their numbers and own clocks at that time.
struct Acquired {
    seen: Seen,
    by: Vec<(u32, u16)>,
}

impl VectorClocks {
    /// What a thread of the block `run` releases now, to the threads of the block `within` or to
    /// all: what it knows of its own cluster, when the slot's clock is `clock`, and what it has
    /// acquired.
    pub(in crate::cpu::check) fn release(
        &mut self,
        number: u32,
        (slot, start, _): Run,
        clock: u32,
        within: Option<Run>,
    ) -> Vec<Release> {
        self.tick(number);
        let (threads, own) = (self.threads.len(), &self.threads[number as usize]);
        let known = own[..own.len().min(threads + self.engines.len())].to_vec();
        let mut all = vec![Release { slot, start, clock, threads, known, within }];
        for release in self.acquired_by(number) {
            let within = release.within.or(within);
            Release { within, ..release.clone() }.join(&mut all);
        }
        all
    }

    /// A thread acquires what it has seen.
    pub(in crate::cpu::check) fn acquire(&mut self, number: u32, seen: Seen) {
        let clock = self.clock(number);
        let all = &mut self.releases.acquired;
        // Of one version a block may acquire a part.
        let key = |seen: &Seen| (seen.word, seen.version, seen.releases.len());
        let of = |old: &&mut Acquired| key(&old.seen) == key(&seen);
        match all.iter_mut().rev().find(of) {
            None => all.push(Acquired { seen, by: vec![(number, clock)] }),
            Some(old) if old.by.iter().any(|(other, _)| *other == number) => {}
            Some(old) => old.by.push((number, clock)),
        }
    }

    /// A thread has seen this by a relaxed operation.
    pub(in crate::cpu::check) fn see(&mut self, number: u32, seen: Seen) {
        let all = self.releases.seen.entry(number).or_default();
        // A later version has what the earlier ones have.
        all.retain(|old| old.word != seen.word);
        all.push(seen);
    }

    /// A fence of a thread of the block `run`: it acquires what it has seen, and releases with its
    /// next operations what it knows.
    pub(in crate::cpu::check) fn fence(
        &mut self,
        number: u32,
        run: Run,
        clock: u32,
        scope: FenceScope,
    ) {
        let of_block = |release: &&Release| (release.slot, release.start) == (run.0, run.1);
        for seen in self.releases.seen.remove(&number).unwrap_or_default() {
            let acquired = match scope {
                FenceScope::Device => seen,
                // What other blocks have released stays to be acquired.
                FenceScope::Block => {
                    let own = seen.releases.iter().filter(of_block).cloned().collect::<Vec<_>>();
                    if own.len() < seen.releases.len() {
                        self.see(number, seen.clone());
                    }
                    Seen { releases: Arc::new(own), ..seen }
                }
            };
            self.acquire(number, acquired);
        }
        let within = (scope == FenceScope::Block).then_some(run);
        let mut released = self.release(number, run, clock, within);
        if let (Some(_), Some(before)) = (within, self.releases.fenced.get(&number)) {
            // What a fence for all has released is released to all.
            let to_all = before.iter().filter(|release| release.within.is_none());
            to_all.for_each(|release| release.join(&mut released));
        }
        self.releases.fenced.insert(number, Arc::new(released));
    }

    /// What a relaxed operation of a thread releases.
    pub(in crate::cpu::check) fn fenced(&self, number: u32) -> Option<Arc<Vec<Release>>> {
        self.releases.fenced.get(&number).cloned()
    }

    /// A barrier of these threads. What one of them has fenced, an operation of any of them
    /// releases. (PTX says so of the thread's own operations alone; but a fence of each thread, a
    /// barrier, and one thread's operation is how CUDA's programs are written, and what GPUs do.)
    pub(super) fn share_fences(&mut self, numbers: &[u32]) {
        let fenced = &mut self.releases.fenced;
        if fenced.is_empty() {
            return;
        }
        let mut all = Vec::new();
        let of_them = numbers.iter().filter_map(|number| fenced.get(number));
        of_them.flat_map(|list| &**list).for_each(|release| release.join(&mut all));
        if !all.is_empty() {
            let all = Arc::new(all);
            fenced.extend(numbers.iter().map(|number| (*number, all.clone())));
        }
    }

    /// Whether a release that a thread knows covers `old`.
    pub(in crate::cpu::check) fn is_released(&self, number: u32, old: &Record) -> bool {
        self.releases.acquired.iter().any(|acquired| {
            acquired.seen.releases.iter().any(|release| release.covers(old))
                && self.knows_acquisition(number, acquired)
        })
    }

    /// The releases that a thread knows.
    fn acquired_by(&self, number: u32) -> impl Iterator<Item = &Release> {
        let all = self.releases.acquired.iter();
        all.filter(move |acquired| self.knows_acquisition(number, acquired))
            .flat_map(|acquired| &**acquired.seen.releases)
    }

    fn knows_acquisition(&self, number: u32, acquired: &Acquired) -> bool {
        acquired.by.iter().any(|&(other, clock)| {
            other == number || clock == LAST_CLOCK || self.has_learnt(number, other, clock)
        })
    }
}
