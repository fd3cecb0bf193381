//! The progress of a comparison.

use std::sync::atomic::{AtomicUsize, Ordering};

static CANDIDATE: AtomicUsize = AtomicUsize::new(0);
static ROUNDS_DONE: AtomicUsize = AtomicUsize::new(0);
static ROUNDS: AtomicUsize = AtomicUsize::new(0);

/// The progress of [`compare`](super::compare).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// The number of the candidate that runs.
    pub candidate: usize,
    /// Rounds measured.
    pub done: usize,
    /// Rounds to measure. 0 during warm-up, when the number is not known yet.
    pub total: usize,
}

/// The progress of the comparison that started last. It is for display, as
/// [`progress`](gpu_gemm::progress()).
pub fn rounds() -> Rounds {
    let [candidate, done, total] =
        [&CANDIDATE, &ROUNDS_DONE, &ROUNDS].map(|counter| counter.load(Ordering::Relaxed));
    Rounds { candidate, done, total }
}

/// Sets the progress at the start of a candidate's turn.
pub(super) fn turn(now: Rounds) {
    CANDIDATE.store(now.candidate, Ordering::Relaxed);
    ROUNDS_DONE.store(now.done, Ordering::Relaxed);
    ROUNDS.store(now.total, Ordering::Relaxed);
}
