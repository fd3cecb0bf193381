//! Runs one cluster, mostly a single block: starts its threads, and resumes each when its wait is
//! over.
//!
//! Threads run in rounds. In a round every thread that need not wait runs until its next wait. Then
//! the scheduler looks which waits are over. The common case is a block whose threads all wait at
//! the same barrier: then all of them are resumed in a tight loop.

mod completion;
mod deadlock;
mod progress;

use std::{cell::Cell, ptr::null};

use super::{
    block::{BlockRun, State, Thread, current_pointer, set_current},
    check::Checker,
    cluster::ClusterRun,
    fault::{Fault, FaultKind, Stop, place_name},
    fiber::{Event, Fiber},
    launch_state::{ClusterYielder, LaunchState},
    order::{BlockOrder, Order},
    panics,
    poll::POLLING,
    slot::Slot,
};

/// Runs the cluster of that number and index to its end. In a checked launch the checker reports a
/// fault of the kernel as a finding, and the outcome is `Ok`.
pub(super) fn run_cluster(
    slot: &mut Slot,
    launch: &LaunchState,
    (number, index): (u64, [u32; 3]),
    checker: Option<&Checker>,
    yielder: &ClusterYielder,
) -> Result<(), Stop> {
    let program = &launch.program;
    // SAFETY: only the lifetimes change. Kernel and checker are used by this cluster's fibers, and
    // before this function returns each of them is idle or has been reset.
    let (kernel, checker_pointer) = unsafe {
        let kernel =
            std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(program.kernel);
        (kernel, checker.map_or(null(), |c| std::ptr::from_ref(c).cast::<Checker<'static>>()))
    };
    let mut order = program.order.of_block(number);
    let [x, y, z] = program.config.cluster;
    let blocks = x * y * z;
    let threads = slot.threads.len() / blocks as usize;
    slot.order.clear();
    order.threads(threads as u32, &mut slot.order);
    let shared = slot.shared();
    let cluster = ClusterRun::new(blocks, &*slot.waits, shared);
    let block = |rank: u32| {
        let [i, j, k] = index;
        let of_block = rank as usize * threads..(rank as usize + 1) * threads;
        BlockRun {
            kernel,
            threads: &slot.threads[of_block.clone()],
            warp_operations: &slot.warp_operations[of_block],
            order: &*slot.order,
            next_thread: Cell::new(0),
            ended: Cell::new(0),
            first_ended: Cell::new(0),
            shared_mismatch: Cell::new(None),
            vote_round: Cell::new(0),
            votes: Default::default(),
            index: [i * x + rank % x, j * y + rank / x % y, k * z + rank / x / y],
            rank,
            cluster: &cluster,
            config: program.config,
            declared_shared: program.declared_shared,
            shared: cluster.shared(rank),
            shared_high: Cell::new(0),
            checker: checker_pointer,
        }
    };
    // Most launches have no clusters: a single block needs no list on the heap.
    let (one, several);
    let runs = match blocks {
        1 => {
            one = [block(0)];
            &one[..]
        }
        _ => {
            several = (0..blocks).map(block).collect::<Vec<_>>();
            &several[..]
        }
    };
    if let Some(checker) = checker {
        checker.begin_cluster(number, runs.iter().map(|run| run.index).collect());
    }
    let outcome = Scheduler {
        slot: &mut *slot,
        runs,
        cluster: &cluster,
        launch,
        yielder,
        checker,
        partial: blocks > 1,
        polling: false,
        has_progressed: false,
        rounds: 0,
        seen_progress: launch.quiescence.progress(),
        budget_from: 0,
        next_suspension: 0,
        counted: 0,
        order,
    }
    .run();
    set_current(null());
    if outcome.is_err() {
        slot.abandon();
    }
    runs.iter().for_each(|run| slot.poison(run));
    let Some(checker) = checker else { return outcome };
    // Other clusters may have waited for its end; but a cluster that does not end makes no
    // progress.
    if !outcome.as_ref().is_err_and(Stop::is_endless) {
        launch.quiescence.record_progress();
    }
    checker.end_cluster(outcome)
}

/// A cluster while it runs.
struct Scheduler<'a> {
    slot: &'a mut Slot,
    runs: &'a [BlockRun],
    cluster: &'a ClusterRun,
    launch: &'a LaunchState<'a>,
    /// Gives control back to the worker while the cluster waits for other clusters.
    yielder: &'a ClusterYielder,
    checker: Option<&'a Checker<'a>>,
    /// Whether threads are resumed one by one: there are several blocks, or a thread waits for
    /// something other than a barrier of its block.
    partial: bool,
    /// Whether a thread polls.
    polling: bool,
    /// In a checked launch: whether a thread has gone on, within the budget of rounds, since the
    /// cluster was last suspended.
    has_progressed: bool,
    /// In a checked launch, the rounds in which threads went on to their next waits; in a fast one,
    /// those in which a thread polled.
    rounds: u64,
    /// The launch's progress when the cluster last looked, and the round since which it has not
    /// grown.
    seen_progress: u64,
    budget_from: u64,
    /// The round in which a cluster past its budget is suspended again.
    next_suspension: u64,
    /// In a checked launch, the counted accesses when the cluster was last suspended.
    counted: u64,
    order: BlockOrder,
}

impl Scheduler<'_> {
    fn run(&mut self) -> Result<(), Stop> {
        self.slot.parked.clear();
        self.start()?;
        // Each round takes threads from one wait to the next.
        while !self.slot.parked.is_empty() {
            if (self.launch.program.cancelled)() {
                return Err(Stop::Interrupted);
            }
            self.order.fibers(&mut self.slot.parked);
            if self.partial {
                self.release_some()?;
                self.resume_released()?;
            } else {
                self.barrier(0)?;
                self.end_round(true)?;
                self.resume_all()?;
            }
        }
        // Copies that no thread has waited for are carried out all the same.
        while self.advance_async(true)? {}
        if let Some((copy, reason)) = self.cluster.unannounced() {
            return Err(self.wrong_copy(copy, reason));
        }
        for run in self.runs {
            if let (Some((thread, used)), Some(declared)) =
                (run.shared_mismatch.get(), run.declared_shared)
            {
                let kind = FaultKind::SharedMismatch { declared, used };
                return Err(self.fault(&run.threads()[thread as usize], kind));
            }
        }
        Ok(())
    }

    /// Starts every thread. A fiber runs threads one after another until one waits; then the next
    /// fiber goes on.
    fn start(&mut self) -> Result<(), Stop> {
        if (self.launch.program.cancelled)() {
            return Err(Stop::Interrupted);
        }
        for run in self.runs {
            while run.next_thread.get() < run.threads().len() {
                let number = self.slot.parked.len();
                if number == self.slot.fibers.len() {
                    self.slot.add_fiber().ok_or_else(|| self.launch.program.no_stacks())?;
                }
                let fiber = &mut self.slot.fibers[number];
                // SAFETY: `run` outlives the cluster (`run_cluster`), and a worker stays on its
                // thread.
                let event = unsafe { fiber.resume(run) };
                // The last of the threads that the fiber has started.
                fiber.thread = current_pointer();
                match event {
                    Event::Barrier => self.slot.parked.push(number),
                    Event::Wait => {
                        self.partial = true;
                        self.slot.parked.push(number);
                    }
                    Event::Idle => {}
                    event => return Err(self.failed(number, event)),
                }
            }
        }
        self.note_progress();
        if self.partial {
            self.update_parked();
        }
        Ok(())
    }

    /// Resumes every waiting fiber of a single block. The time of a barrier is spent in these
    /// loops.
    #[inline(never)]
    fn resume_all(&mut self) -> Result<(), Stop> {
        let (waiting, run) = (self.slot.parked.len(), &self.runs[0]);
        let mut changed = false;
        // As a rule the first fibers wait, in their order, and the list need not be read.
        if self.checker.is_none()
            && self.launch.program.order == Order::Forward
            && self.slot.parked.last() == Some(&(waiting - 1))
        {
            for (number, fiber) in self.slot.fibers[..waiting].iter_mut().enumerate() {
                match resume(fiber, run) {
                    Event::Barrier => {}
                    Event::Wait | Event::Idle => changed = true,
                    event => return Err(self.failed(number, event)),
                }
            }
        } else {
            for &number in &self.slot.parked {
                self.checker.inspect(|checker| checker.reset_accesses());
                match resume(&mut self.slot.fibers[number], run) {
                    Event::Barrier => {}
                    Event::Wait | Event::Idle => changed = true,
                    event => return Err(self.failed(number, event)),
                }
            }
        }
        self.note_progress();
        if changed {
            self.update_parked();
        }
        Ok(())
    }

    /// Resumes the fibers whose threads have been released.
    fn resume_released(&mut self) -> Result<(), Stop> {
        let mut only_polls = true;
        for place in 0..self.slot.parked.len() {
            let number = self.slot.parked[place];
            let thread = self.thread_of(number);
            if thread.state.get() != State::Released {
                continue;
            }
            // A thread that comes to a barrier of its block leaves this state as it is.
            thread.state.set(State::Running);
            let polled = thread.polls.get() == POLLING;
            if let Some(checker) = self.checker.filter(|_| !polled) {
                checker.reset_accesses();
            }
            let run = std::ptr::from_ref(thread.run());
            // SAFETY: a block outlives what its threads do.
            let event = resume(&mut self.slot.fibers[number], unsafe { &*run });
            if !matches!(event, Event::Barrier | Event::Wait | Event::Idle) {
                return Err(self.failed(number, event));
            }
            only_polls &= polled && self.thread_of(number).polls.get() == POLLING;
        }
        if !only_polls {
            self.note_progress();
        }
        self.update_parked();
        Ok(())
    }

    /// Removes ended threads from the parked ones, and looks how the others wait.
    fn update_parked(&mut self) {
        let mut parked = std::mem::take(&mut self.slot.parked);
        let state = |number: usize| self.thread_of(number).state.get();
        parked.retain(|&number| state(number) != State::Ended);
        let waits = |number: &usize| {
            matches!(state(*number), State::InWarp | State::Waits | State::Released)
        };
        self.partial = self.runs.len() > 1 || parked.iter().any(waits);
        self.polling = parked.iter().any(|&number| self.thread_of(number).polls.get() == POLLING);
        self.slot.parked = parked;
    }

    /// The fault of a thread that panicked or was abandoned.
    #[cold]
    fn failed(&self, fiber: usize, event: Event) -> Stop {
        let kind = match event {
            Event::Overflow => FaultKind::StackOverflow { bytes: self.slot.stack_bytes },
            Event::Endless => FaultKind::Endless { location: location(self.thread_of(fiber)) },
            Event::Outside => FaultKind::Outside,
            _ => panics::last(),
        };
        self.fault(self.thread_of(fiber), kind)
    }

    /// Checks a barrier of a block at which every thread waits that has not ended.
    fn barrier(&self, rank: usize) -> Result<(), Stop> {
        let run = &self.runs[rank];
        let parked = self.slot.parked.iter().map(|&number| self.thread_of(number));
        let mut waiting = parked.filter(|thread| std::ptr::eq(thread.run(), run));
        if let Some(checker) = self.checker {
            checker.barrier(run, waiting);
        } else if run.ended.get() > 0 {
            let exited = run.threads()[run.first_ended.get() as usize].index;
            // It does not matter which waiting thread is named: the last one, as in earlier
            // versions.
            let Some(waits) = waiting.next_back() else { return Ok(()) };
            let location = location(waits);
            return Err(self.fault(waits, FaultKind::BarrierSkipped { exited, location }));
        }
        Ok(())
    }

    /// Releases threads whose waits are over. While there are none, asynchronous copies and
    /// products go on.
    fn release_some(&mut self) -> Result<(), Stop> {
        // Copies also go on while threads run, and not only when no thread can.
        self.advance_async(false)?;
        loop {
            let mut some = self.complete_warp_operations()?;
            some |= self.complete_waits();
            some |= self.complete_cluster_barrier();
            for rank in 0..self.runs.len() {
                some |= self.complete_barrier(rank)?;
            }
            if some {
                return self.end_round(true);
            }
            if self.advance_async(true)? {
                continue;
            }
            if self.polling {
                return self.end_round(false);
            }
            self.wait_for_others()?;
        }
    }

    #[cold]
    fn fault(&self, thread: &Thread, kind: FaultKind) -> Stop {
        let (block, thread) = (thread.run().index, thread.index);
        Stop::Fault(Fault { kernel: self.launch.program.name, block, thread, kind })
    }

    /// The thread that a fiber has begun and not ended.
    fn thread_of(&self, fiber: usize) -> &Thread {
        // SAFETY: a fiber that waits or has panicked has begun one of this worker's threads.
        unsafe { &*self.slot.fibers[fiber].thread }
    }
}

/// Runs a waiting fiber's thread to its next wait.
#[inline(always)]
fn resume(fiber: &mut Fiber<BlockRun>, run: &BlockRun) -> Event {
    set_current(fiber.thread);
    // SAFETY: `run` outlives the block (`run_cluster`), and a worker stays on its thread.
    unsafe { fiber.resume(run) }
}

/// Where a thread waits: file, line and column.
fn location(thread: &Thread) -> String {
    thread.place.get().map(place_name).unwrap_or_default()
}
