//! What the threads of a cluster have acquired from others, and what they have released by fences.
//!
//! An acquisition is an event of its thread: whoever knows the thread's clock after it knows what
//! was acquired.

use std::{collections::BTreeMap, sync::Arc};

use super::VectorClocks;
use crate::cpu::check::{
    flags::{FenceScope, Release, Releases, Run, Version, Word},
    record::{LAST_CLOCK, Record},
};

/// What the threads of a cluster have acquired and released.
#[derive(Default)]
pub(super) struct Knowledge {
    acquired: Vec<Acquired>,
    /// The versions of words that threads have seen by relaxed operations, by the threads' numbers:
    /// the next fence acquires them.
    seen: BTreeMap<u32, BTreeMap<Word, usize>>,
    /// What threads knew at their last fences, by their numbers: what they release by relaxed
    /// operations.
    fenced: BTreeMap<u32, Arc<Releases>>,
}

/// What had been released in a version of a word, with the threads that have acquired it: their
/// numbers, and their own clocks at that time.
struct Acquired {
    version: Version,
    releases: Arc<Releases>,
    by: Vec<(u32, u16)>,
}

impl VectorClocks {
    /// What a thread of the block `run` releases now, to the threads of the block `within` or to
    /// all: what it knows of its own cluster, when the slot's clock is `clock`, and what it has
    /// acquired.
    pub(in crate::cpu::check) fn release(
        &mut self,
        number: u32,
        run: Run,
        clock: u32,
        within: Option<Run>,
    ) -> Releases {
        self.tick(number);
        let (threads, own) = (self.threads.len(), &self.threads[number as usize]);
        let known = own[..own.len().min(threads + self.engines.len())].to_vec();
        let mut all = Releases::default();
        for acquired in &self.knowledge.acquired {
            if self.knows_acquisition(number, acquired) {
                match within {
                    Some(block) => all.join(&acquired.releases.within(block)),
                    None => all.join(&acquired.releases),
                }
            }
        }
        all.add(run, within, Release { clock, threads, known });
        all
    }

    /// A thread acquires what had been released in a version of a word.
    pub(in crate::cpu::check) fn acquire(
        &mut self,
        number: u32,
        version: Version,
        releases: Arc<Releases>,
    ) {
        let clock = self.clock(number);
        let all = &mut self.knowledge.acquired;
        // Of one version a block may acquire a part.
        let is_same =
            |old: &&mut Acquired| old.version == version && old.releases.len() == releases.len();
        match all.iter_mut().rev().find(is_same) {
            None => all.push(Acquired { version, releases, by: vec![(number, clock)] }),
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
        let within = (scope == FenceScope::Block).then_some(run);
        let mut released = self.release(number, run, clock, within);
        if let (Some(_), Some(before)) = (within, self.knowledge.fenced.get(&number)) {
            // What a fence for all has released stays released to all.
            released.join(&before.filter(|(_, _, within)| within.is_none()));
        }
        self.knowledge.fenced.insert(number, Arc::new(released));
    }

    /// What a relaxed operation of a thread releases.
    pub(in crate::cpu::check) fn fenced(&self, number: u32) -> Option<Arc<Releases>> {
        self.knowledge.fenced.get(&number).cloned()
    }

    /// A barrier of these threads. What one of them has fenced, an operation of any of them
    /// releases. (PTX says so of the thread's own operations alone; but a fence of each thread, a
    /// barrier, and one thread's operation is how CUDA's programs are written, and what GPUs do.)
    pub(super) fn share_fences(&mut self, numbers: &[u32]) {
        let fenced = &mut self.knowledge.fenced;
        if fenced.is_empty() {
            return;
        }
        let mut all = Releases::default();
        let mut of_them =
            numbers.iter().filter_map(|number| fenced.get(number)).collect::<Vec<_>>();
        // After a barrier many have the same.
        of_them.dedup_by(|one, other| Arc::ptr_eq(one, other));
        of_them.into_iter().for_each(|releases| all.join(releases));
        if all.len() > 0 {
            let all = Arc::new(all);
            fenced.extend(numbers.iter().map(|number| (*number, all.clone())));
        }
    }

    /// Whether a release that a thread knows covers `old`.
    pub(in crate::cpu::check) fn is_released(&self, number: u32, old: &Record) -> bool {
        self.knowledge.acquired.iter().any(|acquired| {
            acquired.releases.covers(old) && self.knows_acquisition(number, acquired)
        })
    }

    fn knows_acquisition(&self, number: u32, acquired: &Acquired) -> bool {
        acquired.by.iter().any(|&(other, clock)| {
            other == number || clock == LAST_CLOCK || self.has_learnt(number, other, clock)
        })
    }
}
