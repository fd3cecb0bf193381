//! One worker's part in a launch. It runs one cluster after another. While a cluster waits for a
//! flag, or polls, it runs others, up to the number that a GPU would have resident. So blocks may
//! wait for each other, whatever the number of workers is.

use std::{
    any::Any,
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use corosensei::{Coroutine, CoroutineResult, stack::DefaultStack};

use super::{
    address_space::{self, address_space_is_limited},
    check::Checker,
    constant,
    fiber::SPARE_BYTES,
    flag::FlagWait,
    launch_state::{ClusterYielder, LaunchState, Suspension},
    limits::STACK_BYTES,
    process::Process,
    quiescence::{Activity, Report, Resumption, WaitState},
    scheduler::run_cluster,
    slot::Slot,
    trap,
    watchdog::Heartbeat,
};
use crate::Constants;

type Panic = Box<dyn Any + Send>;

thread_local! {
    /// This operating-system thread's worker. Its first resident, with fibers and shared memory, is
    /// kept from launch to launch.
    static WORKER: RefCell<Worker> = RefCell::default();
}

/// The most fibers that an idle worker keeps: those of a large block.
const KEPT_FIBERS: usize = 1024;

/// How long a worker that has clusters waits for room for another cluster's fibers, before it goes
/// on with those it has.
const ROOM_WAIT: Duration = Duration::from_millis(20);

/// How long it waits for room in all, while none of its clusters can go on.
const LONGEST_ROOM_WAIT: Duration = Duration::from_secs(20);

/// Whether this worker has room for fibers that it does not use.
pub(super) fn has_fibers() -> bool {
    WORKER.with_borrow(|worker| worker.residents.iter().any(|one| one.slot.has_room()))
}

/// Gives all its fibers back.
pub(super) fn release_fibers() {
    WORKER.with_borrow_mut(|worker| worker.residents.iter_mut().for_each(|one| one.slot.keep(0)));
}

/// Runs clusters of a launch on this operating-system thread until there are no more.
pub(super) fn work(launch: &LaunchState) {
    WORKER.with_borrow_mut(|worker| worker.work(launch));
}

#[derive(Default)]
struct Worker {
    residents: Vec<Resident>,
    /// The resident that was last resumed to poll.
    polled: usize,
    /// What the worker last reported.
    report: Report,
    /// Since when there has been no room for another cluster's fibers.
    lacks_room: Option<Instant>,
    /// Its heartbeat, in a checked launch.
    heartbeat: Option<Arc<Heartbeat>>,
}

/// A slot and the coroutine that runs clusters in it.
#[derive(Default)]
struct Resident {
    /// Boxed, because the coroutine holds its address while the list of residents grows.
    slot: Box<Slot>,
    stack: Option<DefaultStack>,
    run: Option<Coroutine<Resumption, Suspension, Result<(), Panic>, DefaultStack>>,
    /// The flags that its cluster waits for.
    flags: Vec<FlagWait>,
    /// What its cluster reported, if it polls.
    polls: Option<Activity>,
}

impl Worker {
    fn work(&mut self, launch: &LaunchState) {
        trap::prepare_thread();
        let watched = launch.checked.map(|checked| checked.watchdog.watch_this_thread());
        self.heartbeat = watched.as_ref().map(|watched| watched.heartbeat().clone());
        self.report = Report::default();
        constant::set(launch.program.config.constants);
        let mut panic = None;
        if self.residents.is_empty() {
            self.residents.push(Resident::default());
        }
        // It may wait for room here: it holds nothing that others wait for, and nobody waits for
        // it.
        let waits = || !(launch.program.cancelled)() && launch.is_left();
        if self.residents[0].slot.take_room(launch.program.fibers(), waits) {
            launch.quiescence.add_worker();
            self.run_clusters(launch, &mut panic);
            launch.quiescence.remove_worker();
        }
        constant::set(Constants::NONE);
        self.lacks_room = None;
        self.residents.truncate(1);
        // Others may need the memory.
        let is_needed = Process::get().lacks_room() || address_space_is_limited();
        let kept = if is_needed { 0 } else { KEPT_FIBERS };
        self.residents.iter_mut().for_each(|one| one.slot.keep(kept));
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Runs clusters until there are no more. In this order: a cluster whose flag has been raised;
    /// a new cluster; a cluster that polls.
    fn run_clusters(&mut self, launch: &LaunchState, panic: &mut Option<Panic>) {
        self.open(launch, panic);
        loop {
            let is_raised = |one: &Resident| one.flags.iter().any(FlagWait::is_over);
            if let Some(number) = self.residents.iter().position(is_raised) {
                self.report_progress(launch);
                self.resume(number, Resumption::Continue, launch, panic);
            } else if launch.is_left() && self.open(launch, panic) {
                continue;
            } else if let Some(number) = self.next_that_polls() {
                let resumption = self.report_polling(launch);
                thread::yield_now();
                self.resume(number, resumption, launch, panic);
            } else if self.residents.iter().all(|one| one.run.is_none()) {
                break;
            } else {
                self.wait_for_flags(launch, panic);
            }
        }
        self.report_progress(launch);
    }

    /// Tells the other workers that this one does not only poll.
    fn report_progress(&mut self, launch: &LaunchState) {
        launch.quiescence.report(&mut self.report, Activity::Progress);
    }

    /// Tells the other workers that this one only polls, and gives how a cluster goes on. Only a
    /// checked launch detects livelock.
    fn report_polling(&mut self, launch: &LaunchState) -> Resumption {
        let activity = self.residents.iter().filter_map(|one| one.polls).min();
        let Some(activity) = activity.filter(|_| launch.checked.is_some()) else {
            return Resumption::Continue;
        };
        match (launch.quiescence.report(&mut self.report, activity), self.lacks_room) {
            // The clusters that would make progress may have no stacks yet.
            (_, Some(since)) if launch.is_left() && since.elapsed() < LONGEST_ROOM_WAIT => {
                Resumption::OthersActive
            }
            (Resumption::Quiescent, Some(_)) if launch.is_left() => {
                launch.fail_without_room();
                Resumption::Continue
            }
            (resumption, _) => resumption,
        }
    }

    /// The next resident whose cluster polls, round robin.
    fn next_that_polls(&mut self) -> Option<usize> {
        let count = self.residents.len();
        let round_robin = (1..=count).map(|further| (self.polled + further) % count);
        let number =
            round_robin.into_iter().find(|&number| self.residents[number].polls.is_some())?;
        self.polled = number;
        Some(number)
    }

    /// Begins a cluster in a free slot or a new one. `false` where the most slots are in use, or
    /// where there is no memory for one.
    fn open(&mut self, launch: &LaunchState, panic: &mut Option<Panic>) -> bool {
        if launch.open.load(Ordering::Acquire) >= launch.most_open {
            // That is no lack of room.
            self.lacks_room = None;
            return false;
        }
        let free = self.residents.iter().position(|one| one.run.is_none());
        let number = free.unwrap_or_else(|| {
            self.residents.push(Resident::default());
            self.residents.len() - 1
        });
        let others_run = self.residents.iter().any(|one| one.run.is_some());
        let resident = &mut self.residents[number];
        let start = Instant::now();
        // It can do without another cluster only where it has one.
        let missing = resident.slot.missing(launch.program.fibers(), launch.program.stack_bytes);
        let has_memory = !others_run || has_memory_for(missing, launch.program.stack_bytes);
        let waits = || start.elapsed() < ROOM_WAIT;
        if !has_memory || !resident.slot.take_room(launch.program.fibers(), waits) {
            self.lacks_room.get_or_insert(start);
            return false;
        }
        self.lacks_room = None;
        let more = |open| (open < launch.most_open).then_some(open + 1);
        if launch.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_err() {
            // Other workers were faster.
            resident.slot.keep(0);
            return false;
        }
        launch.quiescence.report(&mut self.report, Activity::Progress);
        let stack = match resident.stack.take() {
            Some(stack) => Ok(stack),
            None => DefaultStack::new(STACK_BYTES),
        };
        let Ok(stack) = stack else {
            launch.open.fetch_sub(1, Ordering::AcqRel);
            launch.fail(launch.end, launch.program.no_stacks());
            return false;
        };
        let id = launch.opened.fetch_add(1, Ordering::Relaxed);
        let slot = std::ptr::from_mut(&mut *resident.slot);
        let heartbeat = self.heartbeat.clone();
        // SAFETY: only the lifetime changes. `work` does not return before what runs here has
        // ended.
        let shared = unsafe {
            std::mem::transmute::<&LaunchState<'_>, &'static LaunchState<'static>>(launch)
        };
        resident.run = Some(Coroutine::with_stack(stack, move |yielder: &ClusterYielder, _| {
            // SAFETY: the box is this worker's, which leaves it alone while something runs in it.
            let slot = unsafe { &mut *slot };
            let serve = || serve_slot(slot, shared, (id, heartbeat), yielder);
            catch_unwind(AssertUnwindSafe(serve))
        }));
        self.resume(number, Resumption::Continue, launch, panic);
        true
    }

    /// Continues a resident until its cluster suspends, or until there are no more clusters.
    fn resume(
        &mut self,
        number: usize,
        resumption: Resumption,
        launch: &LaunchState,
        panic: &mut Option<Panic>,
    ) {
        let resident = &mut self.residents[number];
        resident.flags.clear();
        resident.polls = None;
        let Some(mut run) = resident.run.take() else { return };
        match run.resume(resumption) {
            CoroutineResult::Yield(suspension) => {
                match suspension {
                    Suspension::Flags(flags) => resident.flags = flags,
                    Suspension::Poll(activity) => resident.polls = Some(activity),
                }
                resident.run = Some(run);
            }
            CoroutineResult::Return(ended) => {
                resident.stack = Some(run.into_stack());
                launch.open.fetch_sub(1, Ordering::AcqRel);
                if let Err(payload) = ended {
                    resident.slot.abandon();
                    // The panic goes on when the other clusters have ended.
                    launch.failed.store(true, Ordering::Relaxed);
                    *panic = Some(payload);
                }
            }
        }
    }

    /// All clusters wait for flags, and no other can begin.
    fn wait_for_flags(&mut self, launch: &LaunchState, panic: &mut Option<Panic>) {
        self.report_progress(launch);
        let flags = self.residents.iter().flat_map(|one| one.flags.iter().copied());
        let flags = flags.collect::<Vec<_>>();
        let resumption = launch.quiescence.wait_for_flags(&flags, |state| match state {
            WaitState::Raised => Some(None),
            WaitState::Quiescent => Some(Some(Resumption::Quiescent)),
            WaitState::Pending => launch.ends_early().then_some(Some(Resumption::Continue)),
        });
        let Some(mut resumption) = resumption else { return };
        if let (Resumption::Quiescent, true, Some(since)) =
            (resumption, launch.is_left(), self.lacks_room)
        {
            // The cluster that would raise a flag has no stacks. Other launches may give some back.
            if since.elapsed() < LONGEST_ROOM_WAIT && !(launch.program.cancelled)() {
                return;
            }
            launch.fail_without_room();
            resumption = Resumption::Continue;
        }
        for number in 0..self.residents.len() {
            self.resume(number, resumption, launch, panic);
        }
    }
}

/// Whether the process's limits leave memory for more stacks of this size.
fn has_memory_for(fibers: usize, stack_bytes: usize) -> bool {
    fibers == 0
        || address_space::can_allocate(
            fibers.saturating_mul(stack_bytes).saturating_add(SPARE_BYTES),
        )
}

/// Runs clusters in a slot until there are no more.
fn serve_slot(
    slot: &mut Slot,
    launch: &LaunchState,
    (id, heartbeat): (u64, Option<Arc<Heartbeat>>),
    yielder: &ClusterYielder,
) {
    let ready = slot.prepare(&launch.program.config, launch.program.stack_bytes);
    let ready = ready.ok_or_else(|| launch.program.no_stacks());
    let checked = launch.checked.zip(heartbeat);
    let checker = checked.map(|(checked, heartbeat)| Checker::new(checked, id as usize, heartbeat));
    while let Some(number) = launch.take() {
        let index = (launch.position)(number);
        let mut run = || run_cluster(slot, launch, (number, index), checker.as_ref(), yielder);
        let outcome = ready.clone().and_then(|()| run());
        if let Some(done) = launch.done {
            done.fetch_add(launch.program.cluster_blocks().into(), Ordering::Relaxed);
        }
        if let Err(reason) = outcome {
            launch.fail(number, reason);
        }
    }
    if let Some(checker) = checker {
        checker.finish();
    }
}
