//! Ends what would never end in a checked launch: a loop that makes no access and does not wait. (One that makes accesses is ended by
//! their number, `Checker::count`.)
//!
//! Whoever launched looks at the workers now and then. One that has computed for long, by its thread's own clock, without an access or
//! a wait, is sent a signal, whose handler [leaves](super::trap) the kernel's thread. On Linux; elsewhere nobody looks.

use std::{
    cell::Cell,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// What a worker does, counted.
#[derive(Debug, Default)]
pub(super) struct Beat {
    count: AtomicU64,
    /// Is its thread to be left, if it has done no more than that? 0: it is not.
    asked: AtomicU64,
}

impl Beat {
    /// It does something. (One thread alone counts.)
    #[inline(always)]
    pub(super) fn tick(&self) {
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Is its thread to be left? Asked once. It is not where it has done something since the watchdog looked.
    pub(super) fn take_asked(&self) -> bool {
        let asked = self.asked.swap(0, Ordering::AcqRel);
        asked > 0 && asked == self.count.load(Ordering::Relaxed)
    }
}

thread_local! {
    /// That of this worker while it works, for a signal's handler.
    static BEAT: Cell<*const Beat> = const { Cell::new(std::ptr::null()) };
}

/// That of this worker, if it works.
pub(super) fn beat() -> *const Beat {
    BEAT.get()
}

/// Looks after the workers of a checked launch.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    patience: Duration,
    workers: Mutex<Vec<Worker>>,
}

#[derive(Debug)]
struct Worker {
    beat: Arc<Beat>,
    thread: Thread,
    /// What it had done, and its thread's clock, when that was last seen to change.
    seen: (u64, Duration),
}

impl Watchdog {
    pub(super) fn new(patience: Duration) -> Self {
        Watchdog { patience, ..Watchdog::default() }
    }

    /// This thread works from now on, until what this gives is dropped.
    pub(super) fn enter(&self) -> Entered<'_> {
        let beat = Arc::new(Beat::default());
        BEAT.set(Arc::as_ptr(&beat));
        let thread = Thread::this();
        self.lock().push(Worker { beat: beat.clone(), thread, seen: (0, thread.clock()) });
        Entered { watchdog: self, beat }
    }

    /// Looks at all workers.
    pub(super) fn look(&self) {
        for worker in &mut *self.lock() {
            let (count, now) = (worker.beat.count.load(Ordering::Relaxed), worker.thread.clock());
            if worker.seen.0 != count {
                worker.seen = (count, now);
            } else if now.saturating_sub(worker.seen.1) > self.patience {
                worker.seen.1 = now;
                worker.beat.asked.store(count, Ordering::Release);
                worker.thread.signal();
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Worker>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker that is looked after.
pub(super) struct Entered<'a> {
    watchdog: &'a Watchdog,
    beat: Arc<Beat>,
}

impl Entered<'_> {
    pub(super) fn beat(&self) -> &Arc<Beat> {
        &self.beat
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        // No signal is sent to it behind this.
        self.watchdog.lock().retain(|worker| !Arc::ptr_eq(&worker.beat, &self.beat));
        BEAT.set(std::ptr::null());
    }
}

/// A thread of the operating system.
#[derive(Clone, Copy, Debug)]
struct Thread(#[cfg(target_os = "linux")] libc::pthread_t);

#[cfg(target_os = "linux")]
impl Thread {
    fn this() -> Self {
        // SAFETY: it always succeeds.
        Thread(unsafe { libc::pthread_self() })
    }

    /// How long it has computed.
    fn clock(self) -> Duration {
        let mut clock = 0;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the thread is there as long as it is one of a watchdog's.
        let known = unsafe {
            libc::pthread_getcpuclockid(self.0, &mut clock) == 0
                && libc::clock_gettime(clock, &mut time) == 0
        };
        match known {
            true => Duration::new(time.tv_sec as u64, time.tv_nsec as u32),
            false => Duration::ZERO,
        }
    }

    fn signal(self) {
        // SAFETY: as above. Its handler is `trap`'s.
        unsafe { libc::pthread_kill(self.0, super::trap::SIGNAL) };
    }
}

#[cfg(not(target_os = "linux"))]
impl Thread {
    fn this() -> Self {
        Thread()
    }

    fn clock(self) -> Duration {
        Duration::ZERO
    }

    fn signal(self) {}
}
