//! The threads that carry out launches. They are started when a launch first needs them, and kept with their fibers.
//!
//! A launch is a job in a queue. Idle workers join the first job that wants more of them, and whoever launched waits without taking
//! part. So that may be anybody: a task of the program's own thread pool, a thread that holds the program's locks. (A pool that lets
//! a thread work while it waits, as rayon does, would run the program's other tasks in the middle of a launch.)
//!
//! One worker is enough for a job to end, since blocks that wait for others are set aside (see [`worker`](super::worker)).

use std::{
    any::Any,
    collections::VecDeque,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    process,
    ptr::null_mut,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use super::{fiber::MOST_FIBERS, room::gives_a_thread, symbol::Launches, worker};

/// Workers at most: each keeps up to 1024 stacks, and there cannot be many more ([`MOST_FIBERS`](super::fiber::MOST_FIBERS)).
pub(super) const MOST_WORKERS: usize = 28;

/// How often an idle worker, or who waits for a launch, looks before it sleeps: waking a thread takes longer than a small launch.
const LOOKS: usize = 64;

/// From one look at a launch that goes on to the next.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Cores that a launch uses where its options do not say: those that the process may use, but no more than 28.
pub fn workers() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| {
        thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_WORKERS)
    })
}

/// Calls `work` on up to so many workers, and waits for all that began. It is called once at least. When it
/// has returned once there is nothing left for workers that have not begun. Meanwhile `look` is called now and then.
///
/// # Panics
/// Where `work` does.
pub(super) fn run(wanted: usize, work: &(dyn Fn() + Sync), look: &dyn Fn()) {
    // SAFETY: only the lifetime changes. Nobody calls it after this function has returned: it waits for all who began, and the job
    // is in no queue then.
    let work = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static _>(work) };
    let pool = Pool::get();
    let job = Arc::new(Job { work, wanted: wanted.clamp(1, MOST_WORKERS), ..Job::default() });
    let mut state = pool.lock();
    pool.start_workers(&mut state, &job);
    if state.workers == 0 {
        // The system has no thread for it.
        drop(state);
        work();
        return worker::give_all();
    }
    state.queue.push_back(job.clone());
    pool.queued.store(state.queue.len(), Ordering::Relaxed);
    let idle = state.idle;
    drop(state);
    for _ in 0..idle.min(job.wanted) {
        pool.work.notify_one();
    }
    for _ in 0..LOOKS {
        if job.ended.load(Ordering::Acquire) {
            break;
        }
        thread::yield_now();
    }
    while !job.ended.load(Ordering::Acquire) {
        let state = pool.lock();
        let has_not_ended = |_: &mut State| !job.ended.load(Ordering::Acquire);
        let waited = job.end.wait_timeout_while(state, BETWEEN_LOOKS, has_not_ended);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        look();
    }
    if let Some(panic) = job.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
        resume_unwind(panic);
    }
}

/// This process's launches.
pub(super) fn launches() -> &'static Launches {
    &Pool::get().launches
}

/// Room for more fibers of the caller's, of the [`MOST_FIBERS`] of a process. Idle workers give theirs back; of others it is waited for,
/// as long as `waits`. Without it: `false`.
pub(super) fn take_room(fibers: usize, waits: impl Fn() -> bool) -> bool {
    let pool = Pool::get();
    let mut state = pool.lock();
    if state.fibers + fibers > MOST_FIBERS {
        state.short += 1;
        pool.work.notify_all();
        while state.fibers + fibers > MOST_FIBERS && waits() {
            let waited = pool.room.wait_timeout(state, BETWEEN_LOOKS / 10);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.short -= 1;
    }
    let is_there = state.fibers + fibers <= MOST_FIBERS;
    if is_there {
        state.fibers += fibers;
    }
    is_there
}

/// Gives room back. (What a process had taken before it was forked was never counted in this one.)
pub(super) fn give_room(fibers: usize) {
    let pool = Pool::get();
    let mut state = pool.lock();
    state.fibers = state.fibers.saturating_sub(fibers);
    pool.room.notify_all();
}

/// Fibers that workers have taken room for.
pub(super) fn fibers() -> usize {
    Pool::get().lock().fibers
}

/// Does somebody wait for room?
pub(super) fn is_short() -> bool {
    Pool::get().lock().short > 0
}

/// A launch that waits for workers, or has some.
struct Job {
    work: &'static (dyn Fn() + Sync),
    wanted: usize,
    /// Workers that have begun, and those that have not ended. Changed by those who hold the pool's lock.
    begun: AtomicUsize,
    active: AtomicUsize,
    /// Have all ended?
    ended: AtomicBool,
    end: Condvar,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Default for Job {
    fn default() -> Self {
        Job {
            work: &|| {},
            wanted: 1,
            begun: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            end: Condvar::new(),
            panic: Mutex::new(None),
        }
    }
}

/// The workers of a process.
#[derive(Default)]
struct Pool {
    /// Whose they are: a process that has been forked has none of its parent's threads.
    process: u32,
    state: Mutex<State>,
    /// Jobs in the queue, for those who look without the lock.
    queued: AtomicUsize,
    /// There is work.
    work: Condvar,
    launches: Launches,
    /// Somebody has given room back.
    room: Condvar,
}

#[derive(Default)]
struct State {
    /// Jobs that want more workers, first come first served.
    queue: VecDeque<Arc<Job>>,
    /// Threads that there are, and those that have nothing to do.
    workers: usize,
    idle: usize,
    /// Fibers that there is room for, taken by workers; and those who wait for more.
    fibers: usize,
    short: usize,
}

impl Pool {
    /// This process's. Its parent's, should it have been forked, is left as it was: a thread that is not here may hold its lock.
    fn get() -> &'static Pool {
        static POOL: AtomicPtr<Pool> = AtomicPtr::new(null_mut());
        let process = process::id();
        loop {
            let pool = POOL.load(Ordering::Acquire);
            // SAFETY: null, or a box that is never freed.
            match unsafe { pool.as_ref() } {
                Some(pool) if pool.process == process => return pool,
                _ => {
                    let new = Pool { process, ..Pool::default() };
                    let new = Box::into_raw(Box::new(new));
                    if POOL
                        .compare_exchange(pool, new, Ordering::AcqRel, Ordering::Relaxed)
                        .is_err()
                    {
                        // SAFETY: nobody has seen it. (Another thread was faster.)
                        drop(unsafe { Box::from_raw(new) });
                    }
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the workers that the job wants and that are neither there nor wanted by others; one at least, where all that there are
    /// have something to do. What the system does not give, there is not.
    fn start_workers(&'static self, state: &mut State, job: &Job) {
        let promised: usize = state.queue.iter().map(|job| job.missing()).sum();
        let free = state.idle.saturating_sub(promised);
        let within = job.wanted.saturating_sub(state.workers);
        let more = job.wanted.saturating_sub(free).min(within.max(usize::from(free == 0)));
        for _ in 0..more.min(MOST_WORKERS - state.workers) {
            let worker = thread::Builder::new().name(format!("simt worker {}", state.workers));
            if !gives_a_thread() || worker.spawn(|| self.serve()).is_err() {
                return;
            }
            state.workers += 1;
            state.idle += 1;
        }
    }

    /// What a worker does.
    fn serve(&self) {
        let mut state = self.lock();
        loop {
            let Some(job) = state.join_a_job() else {
                self.queued.store(state.queue.len(), Ordering::Relaxed);
                drop(state);
                for _ in 0..LOOKS {
                    if self.queued.load(Ordering::Relaxed) > 0 {
                        break;
                    }
                    thread::yield_now();
                }
                state = self.lock();
                let has_room = worker::has_room();
                let nothing =
                    |state: &mut State| state.queue.is_empty() && !(has_room && state.short > 0);
                state =
                    self.work.wait_while(state, nothing).unwrap_or_else(PoisonError::into_inner);
                if has_room && state.short > 0 {
                    drop(state);
                    worker::give_all();
                    state = self.lock();
                }
                continue;
            };
            self.queued.store(state.queue.len(), Ordering::Relaxed);
            drop(state);
            let done = catch_unwind(AssertUnwindSafe(job.work));
            state = self.lock();
            if let Err(panic) = done {
                *job.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
            }
            state.idle += 1;
            state.queue.retain(|other| !Arc::ptr_eq(other, &job));
            if job.active.fetch_sub(1, Ordering::AcqRel) == 1 {
                job.ended.store(true, Ordering::Release);
                job.end.notify_all();
            }
        }
    }
}

impl State {
    /// A worker begins with the first job that wants one.
    fn join_a_job(&mut self) -> Option<Arc<Job>> {
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

impl Job {
    fn missing(&self) -> usize {
        self.wanted - self.begun.load(Ordering::Relaxed)
    }
}
