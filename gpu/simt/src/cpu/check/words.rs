//! What blocks tell each other by words of global memory: who adds to one, lets those know what it knows who wait for it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use super::record::Record;
use crate::cpu::check::order::LAST;

/// What a block has told by a word.
#[derive(Clone, Debug)]
pub(super) struct Release {
    pub(super) worker: u32,
    /// The worker's clock when the block began, and when it last told.
    pub(super) start: u32,
    pub(super) clock: u32,
    /// How far those knew each of the block's threads who told.
    pub(super) known: Vec<u16>,
}

impl Release {
    /// Does it tell of that access?
    pub(super) fn tells_of(&self, old: &Record) -> bool {
        let known = || self.known.get(old.thread() as usize).copied().unwrap_or(0);
        old.worker() == self.worker
            && (self.start..=self.clock).contains(&old.clock)
            && !old.is_engine()
            && !old.goes_on()
            && (old.clock < self.clock || known() > old.own_clock() || old.own_clock() == LAST)
    }

    /// Tells also what the same block tells later.
    fn add(&mut self, later: Release) {
        self.clock = later.clock;
        self.known.resize(self.known.len().max(later.known.len()), 0);
        for (known, more) in self.known.iter_mut().zip(later.known) {
            *known = more.max(*known);
        }
    }
}

/// What all blocks of a launch have told, by the words' addresses.
#[derive(Default)]
pub(super) struct Words(Mutex<BTreeMap<usize, Vec<Release>>>);

impl Words {
    /// A block tells.
    pub(super) fn release(&self, word: usize, release: Release) {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = words.entry(word).or_default();
        let same = |old: &&mut Release| (old.worker, old.start) == (release.worker, release.start);
        match all.iter_mut().find(same) {
            Some(old) => old.add(release),
            None => all.push(release),
        }
    }

    /// What has been told by a word.
    pub(super) fn told(&self, word: usize) -> Vec<Release> {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        words.get(&word).cloned().unwrap_or_default()
    }
}
