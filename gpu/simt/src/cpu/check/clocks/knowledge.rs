//! What the threads of a cluster know of releases.

use std::{collections::BTreeMap, sync::Arc};

use crate::cpu::check::flags::{Releases, Seen, Word};

/// What the threads of a cluster have acquired and released.
#[derive(Default)]
pub(super) struct Knowledge {
    pub(super) acquired: Vec<Acquired>,
    /// The versions of words that threads have seen by relaxed operations, by the threads' numbers:
    /// the next fence acquires them.
    pub(super) seen: BTreeMap<u32, BTreeMap<Word, usize>>,
    /// What threads knew at their last fences, by their numbers: what they release by relaxed
    /// operations.
    pub(super) fenced: BTreeMap<u32, Fenced>,
}

/// What a thread has released by its last fences: to all, and to its block.
#[derive(Clone, Default)]
pub(super) struct Fenced {
    pub(super) to_all: Option<Arc<Releases>>,
    pub(super) to_block: Option<Arc<Releases>>,
}

/// What had been released in a version of a word, with the threads that have acquired it: their
/// numbers, and their own clocks at that time.
pub(super) struct Acquired {
    pub(super) seen: Seen,
    pub(super) by: Vec<(u32, u16)>,
}
