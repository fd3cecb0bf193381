//! Limits of the checker that a launch has reached, so that the report can name them.

use std::sync::atomic::{AtomicBool, Ordering};

/// What a checked launch could not see, since a limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// More threads have read a word, or added to it, than are remembered, and then it was written.
    Accesses,
    /// A thread has arrived or waited more often than its clock counts. Its races are not seen from
    /// then on.
    Clock,
}

impl Limit {
    /// All of them.
    const ALL: [Limit; 2] = [Limit::Accesses, Limit::Clock];

    /// What may have been missed.
    pub fn says(self) -> &'static str {
        match self {
            Limit::Accesses => {
                "a word was written after more reads, or additions, than are remembered: a race with one of them may be \
                 missed"
            }
            Limit::Clock => {
                "a thread has arrived, or waited, more often than its clock counts (16383): its races after that are missed"
            }
        }
    }
}

/// The limits that a launch has reached.
#[derive(Debug, Default)]
pub(super) struct Limits([AtomicBool; 2]);

impl Limits {
    #[cold]
    pub(super) fn add(&self, limit: Limit) {
        self.0[limit as usize].store(true, Ordering::Relaxed);
    }

    pub(super) fn reached(&self) -> Vec<Limit> {
        let is_reached = |limit: &Limit| self.0[*limit as usize].load(Ordering::Relaxed);
        Limit::ALL.into_iter().filter(is_reached).collect()
    }
}
