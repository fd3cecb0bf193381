//! What the launches of a process share: the queue of jobs for its workers, the budget of fibers,
//! and the count of running launches.

use std::{
    any::Any,
    collections::VecDeque,
    process,
    ptr::null_mut,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{launches::Launches, limits::MOST_FIBERS};

/// How long a caller waits for room before it asks again whether it is to go on waiting.
const ROOM_INTERVAL: Duration = Duration::from_millis(10);

/// The workers of a process and what they share.
#[derive(Default)]
pub(super) struct Process {
    /// The process that it belongs to: a forked process has none of its parent's threads.
    id: u32,
    state: Mutex<State>,
    /// The length of the queue, for workers that look without the lock.
    pub(super) queued: AtomicUsize,
    /// Signalled when there is a job, or when somebody lacks room for fibers.
    pub(super) work: Condvar,
    pub(super) launches: Launches,
    /// Signalled when room for fibers has been given back.
    room: Condvar,
}

/// What the lock protects.
#[derive(Default)]
pub(super) struct State {
    /// Jobs that want more workers, in the order in which they came.
    pub(super) queue: VecDeque<Arc<Job>>,
    /// Worker threads, and the idle ones among them.
    pub(super) workers: usize,
    pub(super) idle: usize,
    /// Fibers for which workers have taken room.
    fibers: usize,
    /// Workers that wait for room.
    waiting: usize,
}

/// Work for several workers: a launch.
pub(super) struct Job {
    pub(super) work: &'static (dyn Fn() + Sync),
    /// The number of workers that it wants.
    pub(super) wanted: usize,
    /// Workers that have begun it. Changed under the process's lock, as `active`.
    begun: AtomicUsize,
    /// Workers that are in it.
    pub(super) active: AtomicUsize,
    /// Whether all that began it have ended.
    pub(super) ended: AtomicBool,
    pub(super) end: Condvar,
    /// The payload of a panic in it.
    pub(super) panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Job {
    pub(super) fn new(work: &'static (dyn Fn() + Sync), wanted: usize) -> Self {
        Job {
            work,
            wanted,
            begun: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            end: Condvar::new(),
            panic: Mutex::new(None),
        }
    }

    /// Workers that it still wants.
    pub(super) fn missing(&self) -> usize {
        self.wanted - self.begun.load(Ordering::Relaxed)
    }
}

impl Process {
    /// The running process's. After a fork the child makes a new one and leaves the parent's alone,
    /// because a thread that does not exist in the child may hold its lock.
    pub(super) fn get() -> &'static Process {
        static PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());
        let id = process::id();
        loop {
            let known = PROCESS.load(Ordering::Acquire);
            // SAFETY: null, or a box that is never freed.
            match unsafe { known.as_ref() } {
                Some(known) if known.id == id => return known,
                _ => {
                    let new = Process { id, ..Process::default() };
                    let new = Box::into_raw(Box::new(new));
                    if PROCESS
                        .compare_exchange(known, new, Ordering::AcqRel, Ordering::Relaxed)
                        .is_err()
                    {
                        // SAFETY: another thread was faster, so nobody has seen this one.
                        drop(unsafe { Box::from_raw(new) });
                    }
                }
            }
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room for more fibers, of the [`MOST_FIBERS`] of a process. Where there is too little,
    /// idle workers give theirs back, and this waits for other workers while `waits` holds. Gives
    /// whether the room was taken.
    pub(super) fn take_room(&self, fibers: usize, waits: impl Fn() -> bool) -> bool {
        let mut state = self.lock();
        if state.fibers + fibers > MOST_FIBERS {
            state.waiting += 1;
            self.work.notify_all();
            while state.fibers + fibers > MOST_FIBERS && waits() {
                let waited = self.room.wait_timeout(state, ROOM_INTERVAL);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            state.waiting -= 1;
        }
        let is_there = state.fibers + fibers <= MOST_FIBERS;
        if is_there {
            state.fibers += fibers;
        }
        is_there
    }

    /// Gives room for fibers back.
    pub(super) fn give_room(&self, fibers: usize) {
        let mut state = self.lock();
        // Saturating: a forked process has not counted what its parent had taken.
        state.fibers = state.fibers.saturating_sub(fibers);
        self.room.notify_all();
    }

    /// Fibers for which workers have taken room.
    pub(super) fn fibers(&self) -> usize {
        self.lock().fibers
    }

    /// Whether a worker waits for room.
    pub(super) fn lacks_room(&self) -> bool {
        self.lock().lacks_room()
    }
}

impl State {
    /// Whether a worker waits for room for fibers.
    pub(super) fn lacks_room(&self) -> bool {
        self.waiting > 0
    }

    /// Lets a worker begin the first job that wants one.
    pub(super) fn join_a_job(&mut self) -> Option<Arc<Job>> {
        let job = self.queue.front()?.clone();
        job.begun.fetch_add(1, Ordering::Relaxed);
        job.active.fetch_add(1, Ordering::AcqRel);
        if job.missing() == 0 {
            self.queue.pop_front();
        }
        self.idle -= 1;
        Some(job)
    }
}
