//! One cluster of blocks at a time, mostly one block: its threads are started, resumed and brought from wait to wait.

mod complete;
mod others;
mod stuck;

use std::{cell::Cell, ptr::null};

use super::{
    block::{
        BlockRun, SHARED_BYTES, State, Thread, WARP, WarpKind, WarpOperation, current_pointer,
        set_current,
    },
    check::Checker,
    cluster::{ClusterRun, Wait},
    fault::{Fault, FaultKind, Stop, last_panic, place_name},
    fiber::{Event, Fiber},
    order::{BlockOrder, Order},
    polls::POLLING,
    pool,
    worker::{Launch, Waits},
};
use crate::LaunchConfig;

/// What shared memory holds before a kernel writes it: NaN as f16, bf16, f32 and f64.
const POISON: u8 = 0xff;

/// What a cluster runs in: threads, fibers, shared memory. It is one operating-system thread's.
#[derive(Default)]
pub(super) struct Slot {
    block: [u32; 3],
    /// Of all blocks of a cluster, one block after another.
    threads: Vec<Thread>,
    warp_operations: Vec<Cell<WarpOperation>>,
    /// By the threads' numbers.
    waits: Vec<Cell<Wait>>,
    fibers: Vec<Fiber>,
    /// Bytes of each fiber's stack.
    stack_bytes: usize,
    /// Fibers that it has room for.
    room: usize,
    shared: Vec<Line>,
    /// The fibers whose threads wait.
    parked: Vec<usize>,
    /// The order in which the block's threads are started.
    order: Vec<u32>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.keep(0);
    }
}

/// Shared memory is aligned as the tensor-copy engine wants it.
#[derive(Clone, Copy)]
#[repr(align(1024))]
struct Line(#[allow(dead_code, reason = "only its address is used")] [u8; 1024]);

impl Slot {
    /// Takes room for so many fibers, for which it waits as long as `waits`. Is it there?
    pub(super) fn take_room(&mut self, fibers: usize, waits: impl Fn() -> bool) -> bool {
        let is_there = self.room >= fibers || pool::take_room(fibers - self.room, waits);
        if is_there {
            self.room = self.room.max(fibers);
        }
        is_there
    }

    /// Fibers that it has to make, to have so many with stacks of so many bytes.
    pub(super) fn missing(&self, fibers: usize, stack_bytes: usize) -> usize {
        let has = if self.stack_bytes == stack_bytes { self.fibers.len() } else { 0 };
        fibers.saturating_sub(has)
    }

    /// Gets ready for blocks of this shape, clusters of so many, and stacks of so many bytes.
    pub(super) fn prepare(
        &mut self,
        config: &LaunchConfig,
        stack_bytes: usize,
    ) -> Result<(), Stop> {
        let [x, y, z] = config.block;
        let blocks = config.cluster.iter().product::<u32>();
        let threads = (x * y * z) as usize;
        if self.block != config.block || self.threads.len() != threads * blocks as usize {
            let indices =
                || (0..z).flat_map(|k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])));
            let stride = (x * y * z).next_multiple_of(WARP);
            let of_block = |rank: u32| {
                let thread =
                    move |(linear, index)| Thread::new(linear, rank * stride + linear, index);
                (0..).zip(indices()).map(thread)
            };
            self.threads = (0..blocks).flat_map(of_block).collect();
            let nothing = WarpOperation { kind: WarpKind::Sync, mask: 0, value: 0 };
            self.warp_operations = vec![Cell::new(nothing); self.threads.len()];
            self.waits = vec![Cell::new(Wait::Cluster); (blocks * stride) as usize];
            self.block = config.block;
        }
        let lines = SHARED_BYTES / 1024 * blocks as usize;
        if self.shared.len() < lines {
            self.shared = vec![Line([POISON; 1024]); lines];
        }
        if self.stack_bytes != stack_bytes {
            self.fibers.clear();
            self.stack_bytes = stack_bytes;
        }
        if self.fibers.is_empty() {
            self.add_fiber()?;
        }
        Ok(())
    }

    /// What ran in it has not come to its end.
    pub(super) fn abandon(&mut self) {
        set_current(null());
        self.fibers.iter_mut().for_each(Fiber::reset);
    }

    /// Keeps no more than so many fibers.
    pub(super) fn keep(&mut self, fibers: usize) {
        self.fibers.truncate(fibers);
        if self.room > fibers {
            pool::give_room(self.room - fibers);
            self.room = fibers;
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.room > 0
    }

    fn add_fiber(&mut self) -> Result<(), Stop> {
        self.fibers.push(Fiber::new(self.fibers.len(), self.stack_bytes)?);
        Ok(())
    }

    /// Runs one cluster to its end, the `number`th of the launch, whose place among the clusters is `index`. Where a
    /// checker watches it, what the checker can take note of is no reason to stop.
    pub(super) fn run(
        &mut self,
        launch: &Launch,
        number: u64,
        index: [u32; 3],
        checker: Option<&Checker>,
        waits: &Waits,
    ) -> Result<(), Stop> {
        let job = &launch.job;
        // SAFETY: only the lifetimes change. Kernel and checker are used by this cluster's fibers, and before
        // this function returns each of them is idle or has been reset.
        let (kernel, watcher) = unsafe {
            let kernel =
                std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(job.kernel);
            (kernel, checker.map_or(null(), |c| std::ptr::from_ref(c).cast::<Checker<'static>>()))
        };
        let mut shuffle = job.order.of_block(number);
        let [x, y, z] = job.config.cluster;
        let blocks = x * y * z;
        let threads = self.threads.len() / blocks as usize;
        self.order.clear();
        shuffle.threads(threads as u32, &mut self.order);
        let shared = self.shared.as_mut_ptr().cast();
        let cluster = ClusterRun::new(blocks, &*self.waits, shared);
        let block = |rank: u32| {
            let [i, j, k] = index;
            let of_block = rank as usize * threads..(rank as usize + 1) * threads;
            BlockRun {
                kernel,
                threads: &self.threads[of_block.clone()],
                warp_operations: &self.warp_operations[of_block],
                order: &*self.order,
                next_thread: Cell::new(0),
                ended: Cell::new(0),
                first_ended: Cell::new(0),
                shared_mismatch: Cell::new(None),
                index: [i * x + rank % x, j * y + rank / x % y, k * z + rank / x / y],
                rank,
                cluster: &cluster,
                config: job.config,
                declared_shared: job.declared_shared,
                shared: cluster.shared(rank),
                shared_high: Cell::new(0),
                checker: watcher,
            }
        };
        // Most launches have no clusters, and their blocks no list of them.
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
        let partial = blocks > 1;
        let outcome = Scheduler {
            slot: self,
            runs,
            cluster: &cluster,
            launch,
            waits,
            checker,
            partial,
            polling: false,
            did: false,
            rounds: 0,
            seen: launch.others.done(),
            budget_from: 0,
            next_pause: 0,
            counted: 0,
            shuffle,
        }
        .run();
        set_current(null());
        if outcome.is_err() {
            self.abandon();
        }
        for run in runs {
            let dynamic = job.config.dynamic_shared.next_multiple_of(16) as usize;
            let dirty = (dynamic + run.shared_high.get()).min(SHARED_BYTES);
            // SAFETY: within the arena: `declare_shared` and the launch's limits see to it. No fiber runs.
            unsafe { run.shared.write_bytes(POISON, dirty) };
        }
        let Some(checker) = checker else { return outcome };
        // Others may have waited for it; but not one that never ends.
        if !outcome.as_ref().is_err_and(Stop::is_endless) {
            launch.others.something_was_done();
        }
        checker.end_cluster(outcome)
    }
}

/// A cluster on its way through the kernel.
struct Scheduler<'a> {
    slot: &'a mut Slot,
    runs: &'a [BlockRun],
    cluster: &'a ClusterRun,
    launch: &'a Launch<'a>,
    /// Gives control back while it waits for other blocks.
    waits: &'a Waits,
    checker: Option<&'a Checker<'a>>,
    /// Does a thread wait for something else than its block, or are there several blocks?
    partial: bool,
    /// Has a thread let others run, for whose doings it asks?
    polling: bool,
    /// In a checked launch: has any thread gone on, within the budget of rounds, since the cluster last let others run?
    did: bool,
    /// In a checked launch, rounds in which threads have gone on to their next waits; else those in which one polled.
    rounds: u64,
    /// What all clusters of the launch had done when this one last looked, and the round since when that has not become more.
    seen: u64,
    budget_from: u64,
    /// Past its budget, the round in which it lets others run again.
    next_pause: u64,
    /// In a checked launch, the accesses that counted when it last let others run.
    counted: u64,
    shuffle: BlockOrder,
}

impl Scheduler<'_> {
    fn run(&mut self) -> Result<(), Stop> {
        self.slot.parked.clear();
        self.start()?;
        // Each round takes threads from one wait to the next.
        while !self.slot.parked.is_empty() {
            if (self.launch.job.cancelled)() {
                return Err(Stop::Interrupted);
            }
            self.shuffle.fibers(&mut self.slot.parked);
            if self.partial {
                self.release_some()?;
                self.resume_some()?;
            } else {
                self.barrier(0)?;
                self.end_round(true)?;
                self.resume_all()?;
            }
        }
        // Copies that nobody has waited for come all the same.
        while self.land(true)? {}
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

    /// Starts every thread. A fiber runs one after another until one waits; then the next fiber does.
    fn start(&mut self) -> Result<(), Stop> {
        if (self.launch.job.cancelled)() {
            return Err(Stop::Interrupted);
        }
        for run in self.runs {
            while run.next_thread.get() < run.threads().len() {
                let number = self.slot.parked.len();
                if number == self.slot.fibers.len() {
                    self.slot.add_fiber()?;
                }
                let fiber = &mut self.slot.fibers[number];
                // SAFETY: `run` outlives the cluster (`Slot::run`), and a worker stays on its thread.
                let event = unsafe { fiber.resume(run) };
                // The last of the threads that it has started.
                fiber.thread = current_pointer();
                match event {
                    Event::Barrier => self.slot.parked.push(number),
                    Event::Some => {
                        self.partial = true;
                        self.slot.parked.push(number);
                    }
                    Event::Idle => {}
                    event => return Err(self.gone_wrong(number, event)),
                }
            }
        }
        self.goes_on();
        if self.partial {
            self.look_who_waits();
        }
        Ok(())
    }

    /// Resumes every fiber that waits, of one block. A barrier's time goes to these loops.
    #[inline(never)]
    fn resume_all(&mut self) -> Result<(), Stop> {
        let (waiting, run) = (self.slot.parked.len(), &self.runs[0]);
        let mut changed = false;
        // As a rule they are the first, one after another, and the list need not be read.
        if self.checker.is_none()
            && self.launch.job.order == Order::Forward
            && self.slot.parked.last() == Some(&(waiting - 1))
        {
            for (number, fiber) in self.slot.fibers[..waiting].iter_mut().enumerate() {
                match resume(fiber, run) {
                    Event::Barrier => {}
                    Event::Some | Event::Idle => changed = true,
                    event => return Err(self.gone_wrong(number, event)),
                }
            }
        } else {
            for &number in &self.slot.parked {
                self.checker.inspect(|checker| checker.goes_on());
                match resume(&mut self.slot.fibers[number], run) {
                    Event::Barrier => {}
                    Event::Some | Event::Idle => changed = true,
                    event => return Err(self.gone_wrong(number, event)),
                }
            }
        }
        self.goes_on();
        if changed {
            self.look_who_waits();
        }
        Ok(())
    }

    /// Resumes the fibers whose threads need not wait any longer.
    fn resume_some(&mut self) -> Result<(), Stop> {
        let mut only_ask = true;
        for place in 0..self.slot.parked.len() {
            let number = self.slot.parked[place];
            let thread = self.thread_of(number);
            if thread.state.get() != State::Released {
                continue;
            }
            // Where it comes to a barrier of its block, it is left without a store.
            thread.state.set(State::Running);
            let asked = thread.polls.get() == POLLING;
            if let Some(checker) = self.checker.filter(|_| !asked) {
                checker.goes_on();
            }
            // A copy may come while threads run, and not only where they wait for it.
            let run = std::ptr::from_ref(thread.run());
            // SAFETY: a block outlives what its threads do.
            let event = resume(&mut self.slot.fibers[number], unsafe { &*run });
            if !matches!(event, Event::Barrier | Event::Some | Event::Idle) {
                return Err(self.gone_wrong(number, event));
            }
            only_ask &= asked && self.thread_of(number).polls.get() == POLLING;
        }
        if !only_ask {
            self.goes_on();
        }
        self.look_who_waits();
        Ok(())
    }

    fn look_who_waits(&mut self) {
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

    /// A thread panicked, needed more stack than there is, or does not end.
    #[cold]
    fn gone_wrong(&self, fiber: usize, event: Event) -> Stop {
        let kind = match event {
            Event::Overflow => FaultKind::StackOverflow { bytes: self.slot.stack_bytes },
            Event::Endless => FaultKind::Endless { location: location(self.thread_of(fiber)) },
            Event::Outside => FaultKind::Outside,
            _ => last_panic(),
        };
        self.fault(self.thread_of(fiber), kind)
    }

    /// Every thread of a block that has not ended waits at a barrier.
    fn barrier(&self, rank: usize) -> Result<(), Stop> {
        let run = &self.runs[rank];
        let parked = self.slot.parked.iter().map(|&number| self.thread_of(number));
        let mut waiting = parked.filter(|thread| std::ptr::eq(thread.run(), run));
        if let Some(checker) = self.checker {
            checker.barrier(run, waiting);
        } else if run.ended.get() > 0 {
            let exited = run.threads()[run.first_ended.get() as usize].index;
            // Which of those that wait is named does not matter; the last is what it has always been.
            let Some(waits) = waiting.next_back() else { return Ok(()) };
            let location = location(waits);
            return Err(self.fault(waits, FaultKind::BarrierSkipped { exited, location }));
        }
        Ok(())
    }

    /// Finds threads that need not wait any longer. While there are none, copies come.
    fn release_some(&mut self) -> Result<(), Stop> {
        self.land(false)?;
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
            if self.land(true)? {
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
        Stop::Fault(Fault { kernel: self.launch.job.name, block, thread, kind })
    }

    /// The thread that a fiber is in the middle of.
    fn thread_of(&self, fiber: usize) -> &Thread {
        // SAFETY: a fiber that waits or has panicked is in the middle of one of this worker's threads.
        unsafe { &*self.slot.fibers[fiber].thread }
    }
}

/// Runs a waiting fiber's thread to its next wait.
#[inline(always)]
fn resume(fiber: &mut Fiber, run: &BlockRun) -> Event {
    set_current(fiber.thread);
    // SAFETY: `run` outlives the block (`Slot::run`), and a worker stays on its thread.
    unsafe { fiber.resume(run) }
}

/// Where a thread waits: file, line and column.
fn location(thread: &Thread) -> String {
    thread.place.get().map(place_name).unwrap_or_default()
}
