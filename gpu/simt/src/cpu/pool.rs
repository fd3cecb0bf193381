//! The worker threads that carry out launches. They are started when a launch first needs them, and
//! kept with their fibers.
//!
//! A launch is a job in a queue. Idle workers join the first job that wants more of them. The
//! caller waits and takes no part, so it may be anybody: a task of the program's own thread pool,
//! or a thread that holds the program's locks. (In a pool whose threads work while they wait, as
//! rayon's do, other tasks of the program would run in the middle of a launch.)
//!
//! One worker is enough for a job to end, because a worker sets blocks aside that wait for others
//! (see [`worker`](super::worker)).

use std::{
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, OnceLock, PoisonError, atomic::Ordering},
    thread,
    time::Duration,
};

use super::{
    address_space::gives_a_thread,
    limits::MOST_WORKERS,
    process::{Job, Process, State},
    worker,
};

/// How often an idle worker, or the caller of a launch, polls before it sleeps: waking a thread
/// takes longer than a small launch.
const POLLS: usize = 64;

/// The time between two calls of `look` during a launch.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The number of workers of a launch whose options do not say it: the cores that the process may
/// use, at most 28.
pub fn workers() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| {
        thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_WORKERS)
    })
}

/// Calls `work` on up to `wanted` workers, at least once, and waits for all calls. After the first
/// has returned, workers that have not begun need not begin. Meanwhile it calls `look` now and
/// then.
///
/// # Panics
/// Where `work` does.
pub(super) fn run(wanted: usize, work: &(dyn Fn() + Sync), look: &dyn Fn()) {
    // SAFETY: only the lifetime changes. Nobody calls it after this function has returned: it waits
    // for all who began, and the job is in no queue then.
    let work = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static _>(work) };
    let process = Process::get();
    let job = Arc::new(Job::new(work, wanted.clamp(1, MOST_WORKERS)));
    let mut state = process.lock();
    start_workers(process, &mut state, &job);
    if state.workers == 0 {
        // The system gave no thread: the caller does the work.
        drop(state);
        work();
        return worker::release_fibers();
    }
    state.queue.push_back(job.clone());
    process.queued.store(state.queue.len(), Ordering::Relaxed);
    let idle = state.idle;
    drop(state);
    for _ in 0..idle.min(job.wanted) {
        process.work.notify_one();
    }
    for _ in 0..POLLS {
        if job.ended.load(Ordering::Acquire) {
            break;
        }
        thread::yield_now();
    }
    while !job.ended.load(Ordering::Acquire) {
        let state = process.lock();
        let has_not_ended = |_: &mut State| !job.ended.load(Ordering::Acquire);
        let waited = job.end.wait_timeout_while(state, LOOK_INTERVAL, has_not_ended);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        look();
    }
    if let Some(panic) = job.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
        resume_unwind(panic);
    }
}

/// Starts the workers that the job wants, less those that are idle and that no earlier job wants.
/// At least one, if no worker is free. Where the system gives no more threads, it starts fewer.
fn start_workers(process: &'static Process, state: &mut State, job: &Job) {
    let promised: usize = state.queue.iter().map(|job| job.missing()).sum();
    let free = state.idle.saturating_sub(promised);
    let within = job.wanted.saturating_sub(state.workers);
    let more = job.wanted.saturating_sub(free).min(within.max(usize::from(free == 0)));
    for _ in 0..more.min(MOST_WORKERS - state.workers) {
        let worker = thread::Builder::new().name(format!("simt worker {}", state.workers));
        if !gives_a_thread() || worker.spawn(|| serve(process)).is_err() {
            return;
        }
        state.workers += 1;
        state.idle += 1;
    }
}

/// The loop of a worker thread: joins jobs, and sleeps while there are none.
fn serve(process: &Process) {
    let mut state = process.lock();
    loop {
        let Some(job) = state.join_a_job() else {
            process.queued.store(state.queue.len(), Ordering::Relaxed);
            drop(state);
            for _ in 0..POLLS {
                if process.queued.load(Ordering::Relaxed) > 0 {
                    break;
                }
                thread::yield_now();
            }
            state = process.lock();
            let has_fibers = worker::has_fibers();
            let nothing =
                |state: &mut State| state.queue.is_empty() && !(has_fibers && state.lacks_room());
            state = process.work.wait_while(state, nothing).unwrap_or_else(PoisonError::into_inner);
            if has_fibers && state.lacks_room() {
                drop(state);
                worker::release_fibers();
                state = process.lock();
            }
            continue;
        };
        process.queued.store(state.queue.len(), Ordering::Relaxed);
        drop(state);
        let done = catch_unwind(AssertUnwindSafe(job.work));
        state = process.lock();
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
