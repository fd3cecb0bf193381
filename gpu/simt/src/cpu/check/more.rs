//! Reads and additions for which a [shadow](super::shadow) has no room: it remembers two of each.
//!
//! Two are enough where only barriers order threads: whoever is not ordered after all readers is
//! unordered to one of any two. Where lanes, warps or blocks are ordered one by one, a thread may
//! know of two readers and not of a third. Then the others are kept here, for the few words that
//! have so many.

use std::{collections::BTreeMap, ops::Range};

use super::{
    record::Record,
    shadow::{Dropped, Hazard, Now},
};
use crate::cpu::access::Access;

/// The most accesses of a word that are kept here. A word that all threads of a grid read would
/// take more memory than the data, and more time than the launch.
const MOST_OF_A_WORD: usize = 64;
/// The most accesses of all words of a buffer, or of a shared array: 4 MiB, and up to 30 MiB where
/// each is of another word.
const MOST: usize = 1 << 18;

/// The accesses of one word.
#[derive(Clone, Debug, Default)]
struct Word {
    reads: Vec<Record>,
    additions: Vec<Record>,
    /// Those for which there was no room.
    dropped: Option<Dropped>,
}

/// Reads and additions since the last write, by the number of the word (granule).
#[derive(Clone, Debug, Default)]
pub(super) struct More {
    words: BTreeMap<usize, Word>,
    kept: usize,
    /// Those of words that are not there, because there was no room for any more.
    dropped: Option<Dropped>,
}

/// What an access finds among them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    Nothing,
    Race(Hazard, Record),
    /// The word had more accesses than are kept. They may include one with which this write is in a
    /// race.
    TooMany,
}

impl More {
    pub(super) fn clear(&mut self) {
        if !self.is_empty() {
            *self = More::default();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.dropped.is_none()
    }

    /// Keeps an access for which there was no room: `old`, which is the one that is being made or
    /// an earlier one of that kind.
    #[cold]
    pub(super) fn keep(
        &mut self,
        word: usize,
        old: Record,
        access: Access,
        now: &Now,
        horizon: u32,
    ) {
        let is_full = self.kept >= MOST;
        if is_full && !self.words.contains_key(&word) {
            self.dropped = Some(Dropped::and(self.dropped, &old));
            return;
        }
        let word = self.words.entry(word).or_default();
        let list = if access == Access::Read { &mut word.reads } else { &mut word.additions };
        // A thread's last access stands for those before it.
        if let Some(own) = list.iter_mut().find(|own| now.is_same_thread(own, &old)) {
            *own = old;
            return;
        }
        if list.len() >= MOST_OF_A_WORD {
            let before = list.len();
            list.retain(|old| old.clock >= horizon && !now.is_ordered(old));
            self.kept -= before - list.len();
        }
        if is_full || list.len() >= MOST_OF_A_WORD {
            word.dropped = Some(Dropped::and(word.dropped, &old));
            return;
        }
        list.push(old);
        self.kept += 1;
    }

    /// An access that is in a race with the one that is being made, if there is one. A write
    /// forgets them all.
    #[cold]
    pub(super) fn access(
        &mut self,
        number: usize,
        now: &Now,
        access: Access,
        horizon: u32,
    ) -> Found {
        let may_race = |dropped: Option<Dropped>| {
            access == Access::Write && dropped.is_some_and(|all| !now.is_after_all(&all, horizon))
        };
        let of_others = may_race(self.dropped);
        let Some(word) = self.words.get(&number) else {
            return if of_others { Found::TooMany } else { Found::Nothing };
        };
        let of = |list: &[Record]| list.iter().copied().find(|old| now.races(old, horizon));
        let found = match access {
            Access::Read => of(&word.additions).map(|old| (Hazard::ReadAfterWrite, old)),
            Access::Atomic | Access::AtomicStore => {
                of(&word.reads).map(|old| (Hazard::WriteAfterRead, old))
            }
            Access::Write => of(&word.additions)
                .map(|old| (Hazard::WriteAfterWrite, old))
                .or_else(|| of(&word.reads).map(|old| (Hazard::WriteAfterRead, old))),
        };
        let has_too_many = of_others || may_race(word.dropped);
        if access == Access::Write {
            self.kept -= word.reads.len() + word.additions.len();
            self.words.remove(&number);
        }
        match found {
            Some((hazard, old)) => Found::Race(hazard, old),
            None if has_too_many => Found::TooMany,
            None => Found::Nothing,
        }
    }

    /// What is kept of a word is from here on kept of these, too.
    #[cold]
    pub(super) fn spread(&mut self, number: usize, others: Range<usize>) {
        let Some(word) = self.words.get(&number).cloned() else { return };
        for other in others {
            self.kept += word.reads.len() + word.additions.len();
            self.words.insert(other, word.clone());
        }
    }

    /// The same where each word is divided into that many.
    pub(super) fn refined(&self, copies: usize) -> More {
        let words = self.words.iter().flat_map(|(number, word)| {
            (number * copies..(number + 1) * copies).map(|part| (part, word.clone()))
        });
        More { words: words.collect(), kept: self.kept * copies, dropped: self.dropped }
    }
}
