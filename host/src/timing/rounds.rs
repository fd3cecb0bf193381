//! How far a comparison is, for whoever shows it.

use std::sync::atomic::{AtomicUsize, Ordering};

static CANDIDATE: AtomicUsize = AtomicUsize::new(0);
static ROUNDS_DONE: AtomicUsize = AtomicUsize::new(0);
static ROUNDS: AtomicUsize = AtomicUsize::new(0);

/// How far [`compare`](super::compare) is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// Whose turn it is, by its place among the candidates.
    pub candidate: usize,
    /// Rounds measured.
    pub done: usize,
    /// Rounds to be measured; 0 while it warms up, which is when this number is found out.
    pub total: usize,
}

/// How far the comparison of candidates is that was begun last. A figure to be shown, as [`progress`](gpu_gemm::progress()).
pub fn rounds() -> Rounds {
    let [candidate, done, total] =
        [&CANDIDATE, &ROUNDS_DONE, &ROUNDS].map(|counter| counter.load(Ordering::Relaxed));
    Rounds { candidate, done, total }
}

/// A candidate's turn begins.
pub(super) fn turn(now: Rounds) {
    CANDIDATE.store(now.candidate, Ordering::Relaxed);
    ROUNDS_DONE.store(now.done, Ordering::Relaxed);
    ROUNDS.store(now.total, Ordering::Relaxed);
}
