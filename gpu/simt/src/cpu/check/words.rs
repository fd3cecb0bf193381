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

    /// Becomes one of those, of which each block has one.
    pub(super) fn join(self, all: &mut Vec<Release>) {
        let same = |old: &&mut Release| (old.worker, old.start) == (self.worker, self.start);
        let Some(old) = all.iter_mut().find(same) else { return all.push(self) };
        old.clock = old.clock.max(self.clock);
        old.known.resize(old.known.len().max(self.known.len()), 0);
        for (known, more) in old.known.iter_mut().zip(self.known) {
            *known = more.max(*known);
        }
    }
}

/// What blocks of a launch have told by a word, in that order, each with what the word was behind it.
#[derive(Default)]
struct Told(Vec<(u32, Vec<Release>)>);

/// What all blocks of a launch have told, by the words' addresses.
#[derive(Default)]
pub(super) struct Words(Mutex<BTreeMap<usize, Told>>);

impl Words {
    /// A block tells that, and `add` adds to the word and gives what it is then.
    pub(super) fn release(&self, word: usize, all: Vec<Release>, add: impl FnOnce() -> u32) {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Told(told) = words.entry(word).or_default();
        told.push((add(), all));
    }

    /// What had been told by a word when it came to so much. (If it came to that in another way, all of it.)
    pub(super) fn told(&self, word: usize, wanted: u32) -> Vec<Release> {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Told(told)) = words.get(&word) else { return Vec::new() };
        let last = told.iter().position(|&(value, _)| value >= wanted).unwrap_or(told.len());
        let mut all = Vec::new();
        told.iter()
            .take(last + 1)
            .flat_map(|(_, releases)| releases)
            .for_each(|release| release.clone().join(&mut all));
        all
    }
}
