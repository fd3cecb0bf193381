//! What the threads of a cluster have acquired from others, and what they have released by fences.
//!
//! An acquisition is an event of its thread: whoever knows the thread's clock after it knows what
//! was acquired.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    VectorClocks,
    knowledge::{Acquired, Fenced, Knowledge},
};
use crate::cpu::check::{
    flags::{FenceScope, Published, Release, Releases, Run, Seen, Version, Word},
    record::{LAST_CLOCK, Record, learn},
};

impl VectorClocks {
    /// What a thread of the block `run` releases now: what it knows of its own cluster, when the
    /// slot's clock is `clock`, and what it has acquired.
    pub(in crate::cpu::check) fn release(
        &mut self,
        number: u32,
        run: Run,
        clock: u32,
    ) -> Arc<Releases> {
        self.tick(number);
        let (threads, known) = (self.threads.len(), self.threads[number as usize].clone());
        let mut all = Releases::default();
        for acquired in &self.knowledge.acquired {
            if self.knows_acquisition(number, acquired) {
                all.join(&acquired.seen.releases);
            }
        }
        all.add(run, Release { clock, threads, known });
        Arc::new(all)
    }

    /// A thread acquires what had been released in a version of a word. What threads of its own
    /// cluster have released it knows as it knows what a barrier tells.
    pub(in crate::cpu::check) fn acquire(&mut self, number: u32, seen: Seen) {
        if let Some(own) = seen.releases.of_cluster(seen.by.0) {
            learn(&mut self.threads[number as usize], &own.known);
        }
        let clock = self.clock(number);
        let all = &mut self.knowledge.acquired;
        let key = |seen: &Seen| (seen.version, seen.by);
        match all.iter_mut().rev().find(|old| key(&old.seen) == key(&seen)) {
            None => all.push(Acquired { seen, by: vec![(number, clock)] }),
            Some(old) if old.by.iter().any(|(other, _)| *other == number) => {}
            Some(old) => old.by.push((number, clock)),
        }
    }

    /// A thread has seen a version of a word by a relaxed operation.
    pub(in crate::cpu::check) fn see(&mut self, number: u32, (word, version): Version) {
        self.knowledge.seen.entry(number).or_default().insert(word, version);
    }

    /// What a thread has seen since its last fence.
    pub(in crate::cpu::check) fn take_seen(&mut self, number: u32) -> BTreeMap<Word, usize> {
        self.knowledge.seen.remove(&number).unwrap_or_default()
    }

    /// A fence of a thread of the block `run`: its next operations release what it knows.
    pub(in crate::cpu::check) fn fence(
        &mut self,
        number: u32,
        run: Run,
        clock: u32,
        scope: FenceScope,
    ) {
        let releases = Some(self.release(number, run, clock));
        let fenced = self.knowledge.fenced.entry(number).or_default();
        match scope {
            FenceScope::Device => *fenced = Fenced { to_all: releases, to_block: None },
            FenceScope::Block => fenced.to_block = releases,
        }
    }

    /// What a relaxed operation of a thread of the block `by` releases.
    pub(in crate::cpu::check) fn fenced(&self, number: u32, by: Run) -> Vec<Published> {
        let Some(Fenced { to_all, to_block }) = self.knowledge.fenced.get(&number) else {
            return Vec::new();
        };
        let published = |within, releases: &Option<Arc<Releases>>| {
            releases.as_ref().map(|all| Published { by, within, releases: all.clone() })
        };
        published(None, to_all).into_iter().chain(published(Some(by), to_block)).collect()
    }

    /// A barrier of these threads. What one of them has fenced, an operation of any of them
    /// releases; what one of them has seen, the next fence of any of them acquires. (PTX says so of
    /// the thread's own operations alone. But a fence of each thread, a barrier and one thread's
    /// operation, and the same the other way round, is how CUDA's programs are written, and what
    /// GPUs do.)
    pub(super) fn share_fences(&mut self, numbers: &[u32]) {
        let Knowledge { seen, fenced, .. } = &mut self.knowledge;
        if !seen.is_empty() {
            let mut all = BTreeMap::<Word, usize>::new();
            for (word, version) in numbers.iter().filter_map(|number| seen.get(number)).flatten() {
                let latest = all.entry(*word).or_default();
                *latest = (*latest).max(*version);
            }
            if !all.is_empty() {
                seen.extend(numbers.iter().map(|number| (*number, all.clone())));
            }
        }
        if !fenced.is_empty() {
            let of = |get: fn(&Fenced) -> &Option<Arc<Releases>>| {
                let of_them = numbers.iter().filter_map(|number| fenced.get(number));
                joined(of_them.filter_map(|fenced| get(fenced).as_ref()))
            };
            let (to_all, to_block) = (of(|fenced| &fenced.to_all), of(|fenced| &fenced.to_block));
            if to_all.is_some() || to_block.is_some() {
                let all = Fenced { to_all, to_block };
                fenced.extend(numbers.iter().map(|number| (*number, all.clone())));
            }
        }
    }

    /// Whether a release that a thread knows covers `old`.
    pub(in crate::cpu::check) fn is_released(&self, number: u32, old: &Record) -> bool {
        self.knowledge.acquired.iter().any(|acquired| {
            acquired.seen.releases.covers(old) && self.knows_acquisition(number, acquired)
        })
    }

    fn knows_acquisition(&self, number: u32, acquired: &Acquired) -> bool {
        acquired.by.iter().any(|&(other, clock)| {
            other == number || clock == LAST_CLOCK || self.has_learnt(number, other, clock)
        })
    }
}

/// All of them; after a barrier many threads have the same.
fn joined<'a>(mut each: impl Iterator<Item = &'a Arc<Releases>>) -> Option<Arc<Releases>> {
    let first = each.next()?;
    let (mut last, mut all) = (first, first.clone());
    for more in each {
        if !Arc::ptr_eq(more, last) && !Arc::ptr_eq(more, first) {
            Arc::make_mut(&mut all).join(more);
        }
        last = more;
    }
    Some(all)
}
