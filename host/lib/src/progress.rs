//! The progress of long steps, to be shown.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

static DONE: AtomicU64 = AtomicU64::new(0);
static TOTAL: AtomicU64 = AtomicU64::new(0);

/// Parts done, and parts in all, of the last step that has begun: blocks of a launch on the CPU
/// device, or rows of a comparison. The figures are for display. They have no meaning if several
/// steps run at once.
pub fn progress() -> (u64, u64) {
    (DONE.load(Ordering::Relaxed), TOTAL.load(Ordering::Relaxed))
}

/// The progress of an out-of-core product.
struct Work {
    total: f64,
    done: f64,
    /// The part that runs on the CPU device. [`progress`] is its own progress.
    running: f64,
    /// Parts in a GPU's queue, the oldest first.
    queued: VecDeque<f64>,
}

static WORK: Mutex<Option<Work>> = Mutex::new(None);

/// The most parts that a GPU has not finished when another one is queued. It multiplies one and
/// copies the next; both hold their memory.
const IN_FLIGHT: usize = 2;

/// The share of an out-of-core product that is done, from 0 to 1. `None` if none runs. The figure
/// is for display, as [`progress`].
pub fn work() -> Option<f64> {
    let work = lock();
    let Work { total, done, running, .. } = work.as_ref()?;
    let share = match progress() {
        (done, total) if *running > 0.0 && total > 0 => done as f64 / total as f64,
        _ => 0.0,
    };
    Some(((done + running * share.min(1.0)) / total).min(1.0))
}

fn lock() -> MutexGuard<'static, Option<Work>> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Dropping this ends the progress of an out-of-core product.
pub(crate) struct WorkEnds;

impl Drop for WorkEnds {
    fn drop(&mut self) {
        *lock() = None;
    }
}

/// Begins the progress of an out-of-core product. `total`: the weight of all its parts.
#[must_use]
pub(crate) fn begin_work(total: f64) -> WorkEnds {
    *lock() = Some(Work { total, done: 0.0, running: 0.0, queued: VecDeque::new() });
    WorkEnds
}

/// A part of an out-of-core product.
pub(crate) struct Part(f64);

/// Begins a part.
pub(crate) fn begin_part(weight: f64) -> Part {
    begin(0);
    if let Some(work) = &mut *lock() {
        work.running = weight;
    }
    Part(weight)
}

impl Part {
    /// The part was launched. `queued`: it is in a GPU's queue. Otherwise it has ended.
    pub(crate) fn launched(self, queued: bool) {
        if let Some(work) = &mut *lock() {
            work.running = 0.0;
            work.queued.push_back(self.0);
            while work.queued.len() > if queued { IN_FLIGHT } else { 0 } {
                work.done += work.queued.pop_front().unwrap_or_default();
            }
        }
    }
}

/// Begins a step with `total` parts. Returns the counter of parts that are done.
pub fn begin(total: u64) -> &'static AtomicU64 {
    DONE.store(0, Ordering::Relaxed);
    TOTAL.store(total, Ordering::Relaxed);
    &DONE
}

/// Counts a part that is done.
pub fn one_more() {
    DONE.fetch_add(1, Ordering::Relaxed);
}
