//! How far the longest steps are, for whoever shows it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

static DONE: AtomicU64 = AtomicU64::new(0);
static TOTAL: AtomicU64 = AtomicU64::new(0);

/// Parts done, and parts in all, of what was begun last: the blocks of a launch on the CPU device, the rows
/// of a comparison. A rough figure to be shown; where several such things run at once, a meaningless one.
pub fn progress() -> (u64, u64) {
    (DONE.load(Ordering::Relaxed), TOTAL.load(Ordering::Relaxed))
}

static CANDIDATE: AtomicUsize = AtomicUsize::new(0);
static ROUNDS_DONE: AtomicUsize = AtomicUsize::new(0);
static ROUNDS: AtomicUsize = AtomicUsize::new(0);

/// How far [`timing::compare`](crate::timing::compare) is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// Whose turn it is, by its place among the candidates.
    pub candidate: usize,
    /// Rounds measured.
    pub done: usize,
    /// Rounds to be measured; 0 while it warms up, which is when this number is found out.
    pub total: usize,
}

/// How far the comparison of candidates is that was begun last. A figure to be shown, as [`progress`].
pub fn rounds() -> Rounds {
    let [candidate, done, total] =
        [&CANDIDATE, &ROUNDS_DONE, &ROUNDS].map(|counter| counter.load(Ordering::Relaxed));
    Rounds { candidate, done, total }
}

/// A candidate's turn begins.
pub(crate) fn turn(now: Rounds) {
    CANDIDATE.store(now.candidate, Ordering::Relaxed);
    ROUNDS_DONE.store(now.done, Ordering::Relaxed);
    ROUNDS.store(now.total, Ordering::Relaxed);
}

/// Something of so many parts begins; the counter of those that are done.
pub(crate) fn begin(total: u64) -> &'static AtomicU64 {
    DONE.store(0, Ordering::Relaxed);
    TOTAL.store(total, Ordering::Relaxed);
    &DONE
}
