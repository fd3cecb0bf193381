//! How far the longest steps are, for whoever shows it.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

static DONE: AtomicU64 = AtomicU64::new(0);
static TOTAL: AtomicU64 = AtomicU64::new(0);

/// Parts done, and parts in all, of what was begun last: the blocks of a launch on the CPU device, the rows
/// of a comparison. A rough figure to be shown; where several such things run at once, a meaningless one.
pub fn progress() -> (u64, u64) {
    (DONE.load(Ordering::Relaxed), TOTAL.load(Ordering::Relaxed))
}

/// How far a product of blocks is.
struct Work {
    total: f64,
    done: f64,
    /// The part that runs on the CPU device, whose own progress is [`progress`].
    running: f64,
    /// Parts that a GPU has in its queue, the oldest first.
    queued: VecDeque<f64>,
}

static WORK: Mutex<Option<Work>> = Mutex::new(None);

/// How many parts a GPU still has before it when the next one has been queued, at most: while one is multiplied the
/// next one is copied, and their places are taken.
const IN_FLIGHT: usize = 2;

/// The share of the product of blocks that is done, from 0 to 1; `None` where there is none. A figure to be shown, as
/// [`progress`].
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

/// It ends where this is dropped.
pub(crate) struct WorkEnds;

impl Drop for WorkEnds {
    fn drop(&mut self) {
        *lock() = None;
    }
}

/// A product of blocks begins, whose parts weigh so much together.
#[must_use]
pub(crate) fn begin_work(total: f64) -> WorkEnds {
    *lock() = Some(Work { total, done: 0.0, running: 0.0, queued: VecDeque::new() });
    WorkEnds
}

/// A part of it.
pub(crate) struct Part(f64);

/// One of its parts begins.
pub(crate) fn begin_part(weight: f64) -> Part {
    begin(0);
    if let Some(work) = &mut *lock() {
        work.running = weight;
    }
    Part(weight)
}

impl Part {
    /// It has ended, or a GPU will come to it.
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

/// Something of so many parts begins; the counter of those that are done.
pub fn begin(total: u64) -> &'static AtomicU64 {
    DONE.store(0, Ordering::Relaxed);
    TOTAL.store(total, Ordering::Relaxed);
    &DONE
}

/// One more part is done.
pub fn one_more() {
    DONE.fetch_add(1, Ordering::Relaxed);
}
