//! How far the longest steps are, for whoever shows it.

use std::sync::atomic::{AtomicU64, Ordering};

static DONE: AtomicU64 = AtomicU64::new(0);
static TOTAL: AtomicU64 = AtomicU64::new(0);

/// Parts done, and parts in all, of what was begun last: the blocks of a launch on the CPU device, the rows
/// of a comparison. A rough figure to be shown; where several such things run at once, a meaningless one.
pub fn progress() -> (u64, u64) {
    (DONE.load(Ordering::Relaxed), TOTAL.load(Ordering::Relaxed))
}

/// Something of so many parts begins; the counter of those that are done.
pub(crate) fn begin(total: u64) -> &'static AtomicU64 {
    DONE.store(0, Ordering::Relaxed);
    TOTAL.store(total, Ordering::Relaxed);
    &DONE
}
