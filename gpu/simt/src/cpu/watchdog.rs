//! The watchdog of a checked launch. It ends a loop that neither accesses memory nor waits. (A loop
//! that accesses memory is ended by the number of its accesses, `Checker::count`.)
//!
//! Every worker has a heartbeat, which counts its accesses and waits. The caller of the launch
//! looks at all heartbeats now and then. A worker whose heartbeat has stood still for long, by the
//! thread's own CPU clock, is sent a signal. The signal's handler [leaves](super::trap) the
//! kernel's thread. This works on Linux; on other systems nobody looks.

use std::{
    cell::Cell,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The signal that the watchdog sends: one that is ignored where nobody handles it.
#[cfg(target_os = "linux")]
pub(super) const SIGNAL: libc::c_int = libc::SIGURG;

/// A worker's heartbeat.
#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    count: AtomicU64,
    /// The count at which the watchdog wants the running thread left; 0 where it does not.
    interrupt_at: AtomicU64,
}

impl Heartbeat {
    /// The worker does something. (Only its own thread counts.)
    #[inline(always)]
    pub(super) fn tick(&self) {
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Whether the running thread is to be left. It is not, if the worker has done something since
    /// the watchdog looked. The request is taken: asked again, the answer is no.
    pub(super) fn take_interrupt(&self) -> bool {
        let at = self.interrupt_at.swap(0, Ordering::AcqRel);
        at > 0 && at == self.count.load(Ordering::Relaxed)
    }
}

thread_local! {
    /// This worker's heartbeat while it is watched. A signal handler reads it.
    static HEARTBEAT: Cell<*const Heartbeat> = const { Cell::new(std::ptr::null()) };
}

/// This worker's heartbeat; null where it is not watched.
pub(super) fn heartbeat() -> *const Heartbeat {
    HEARTBEAT.get()
}

/// Watches the workers of a checked launch.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    /// The CPU time that a worker may spend without a heartbeat.
    patience: Duration,
    workers: Mutex<Vec<Worker>>,
}

#[derive(Debug)]
struct Worker {
    heartbeat: Arc<Heartbeat>,
    thread: Thread,
    /// The heartbeat's count when it was last seen to change, and the thread's CPU time then.
    seen: (u64, Duration),
}

impl Watchdog {
    pub(super) fn new(patience: Duration) -> Self {
        Watchdog { patience, ..Watchdog::default() }
    }

    /// Watches this operating-system thread until the result is dropped.
    pub(super) fn watch_this_thread(&self) -> WatchedThread<'_> {
        let heartbeat = Arc::new(Heartbeat::default());
        HEARTBEAT.set(Arc::as_ptr(&heartbeat));
        let thread = Thread::this();
        let seen = (0, thread.cpu_time());
        self.lock().push(Worker { heartbeat: heartbeat.clone(), thread, seen });
        WatchedThread { watchdog: self, heartbeat }
    }

    /// Looks at all workers, and interrupts those whose heartbeat has stood still for too long.
    pub(super) fn look(&self) {
        for worker in &mut *self.lock() {
            let count = worker.heartbeat.count.load(Ordering::Relaxed);
            let now = worker.thread.cpu_time();
            if worker.seen.0 != count {
                worker.seen = (count, now);
            } else if now.saturating_sub(worker.seen.1) > self.patience {
                worker.seen.1 = now;
                worker.heartbeat.interrupt_at.store(count, Ordering::Release);
                worker.thread.signal();
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Worker>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker that the watchdog watches, until this is dropped.
pub(super) struct WatchedThread<'a> {
    watchdog: &'a Watchdog,
    heartbeat: Arc<Heartbeat>,
}

impl WatchedThread<'_> {
    pub(super) fn heartbeat(&self) -> &Arc<Heartbeat> {
        &self.heartbeat
    }
}

impl Drop for WatchedThread<'_> {
    fn drop(&mut self) {
        // After this no signal is sent to the thread.
        self.watchdog.lock().retain(|worker| !Arc::ptr_eq(&worker.heartbeat, &self.heartbeat));
        HEARTBEAT.set(std::ptr::null());
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

    /// The CPU time that it has spent.
    fn cpu_time(self) -> Duration {
        let mut clock = 0;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the thread exists as long as it is one of a watchdog's.
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
        // SAFETY: as above. The handler is `trap`'s.
        unsafe { libc::pthread_kill(self.0, SIGNAL) };
    }
}

#[cfg(not(target_os = "linux"))]
impl Thread {
    fn this() -> Self {
        Thread()
    }

    fn cpu_time(self) -> Duration {
        Duration::ZERO
    }

    fn signal(self) {}
}
