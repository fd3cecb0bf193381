//! One block at a time: its threads are started, resumed and brought from barrier to barrier.

use std::{cell::Cell, collections::BTreeMap, ptr::null};

use super::{
    block::{
        BlockRun, SHARED_BYTES, State, Thread, WARP, WarpKind, WarpOperation, current_pointer,
        set_current,
    },
    check::Checker,
    fault::{Fault, FaultKind, Stop, last_panic, place_name},
    fiber::{Event, Fiber, STACK_BYTES},
    order::{BlockOrder, Order},
};
use crate::LaunchConfig;

/// What shared memory holds before a kernel writes it: NaN as f16, bf16, f32 and f64.
const POISON: u8 = 0xff;

/// Runs blocks on one operating-system thread. Its fibers and its shared memory are kept from launch to
/// launch.
#[derive(Default)]
pub(super) struct Worker {
    block: [u32; 3],
    threads: Vec<Thread>,
    warp_operations: Vec<Cell<WarpOperation>>,
    fibers: Vec<Fiber>,
    shared: Vec<Line>,
    /// The fibers whose threads wait.
    parked: Vec<usize>,
    /// The order in which the block's threads are started.
    order: Vec<u32>,
}

/// Shared memory is aligned as the tensor-copy engine wants it.
#[derive(Clone, Copy)]
#[repr(align(1024))]
struct Line(#[allow(dead_code, reason = "only its address is used")] [u8; 1024]);

/// A launch as its workers see it.
pub(super) struct Job<'a> {
    pub(super) name: &'static str,
    pub(super) declared_shared: Option<usize>,
    pub(super) config: LaunchConfig,
    pub(super) kernel: &'a (dyn Fn() + Sync),
    /// Is the launch to end early?
    pub(super) cancelled: &'a (dyn Fn() -> bool + Sync),
    pub(super) order: Order,
}

impl Worker {
    /// Gets ready for blocks of this shape.
    pub(super) fn prepare(&mut self, config: &LaunchConfig) -> Result<(), Stop> {
        let [x, y, z] = config.block;
        if self.block != config.block {
            let indices =
                (0..z).flat_map(|k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])));
            self.threads =
                (0..).zip(indices).map(|(linear, index)| Thread::new(linear, index)).collect();
            let nothing = WarpOperation { kind: WarpKind::Sync, mask: 0, value: 0 };
            self.warp_operations = vec![Cell::new(nothing); self.threads.len()];
            self.block = config.block;
        }
        if self.shared.is_empty() {
            self.shared = vec![Line([POISON; 1024]); SHARED_BYTES / 1024];
        }
        if self.fibers.is_empty() {
            self.add_fiber()?;
        }
        Ok(())
    }

    fn add_fiber(&mut self) -> Result<(), Stop> {
        let fiber = Fiber::new(self.fibers.len())
            .map_err(|_| Stop::OutOfMemory((self.threads.len() * STACK_BYTES) as u64))?;
        self.fibers.push(fiber);
        Ok(())
    }

    /// Runs one block to its end, the `number`th of the launch. Where a checker watches it, what the
    /// checker can take note of is no reason to stop.
    pub(super) fn run(
        &mut self,
        job: &Job,
        number: u64,
        index: [u32; 3],
        checker: Option<&Checker>,
    ) -> Result<(), Stop> {
        // SAFETY: only the lifetimes change. Kernel and checker are used by this block's fibers, and before
        // this function returns each of them is idle or has been reset.
        let (kernel, watcher) = unsafe {
            let kernel =
                std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(job.kernel);
            (kernel, checker.map_or(null(), |c| std::ptr::from_ref(c).cast::<Checker<'static>>()))
        };
        let mut shuffle = job.order.of_block(number);
        self.order.clear();
        shuffle.threads(self.threads.len() as u32, &mut self.order);
        let run = BlockRun {
            kernel,
            threads: &*self.threads,
            warp_operations: &*self.warp_operations,
            order: &*self.order,
            next_thread: Cell::new(0),
            ended: Cell::new(0),
            first_ended: Cell::new(0),
            shared_mismatch: Cell::new(None),
            index,
            config: job.config,
            declared_shared: job.declared_shared,
            shared: self.shared.as_mut_ptr().cast(),
            shared_high: Cell::new(0),
            checker: watcher,
        };
        if let Some(checker) = checker {
            checker.begin_block(number, index);
        }
        let outcome =
            Scheduler { worker: self, run: &run, job, checker, in_warp: false }.run(&mut shuffle);
        set_current(null());
        if outcome.is_err() {
            self.fibers.iter_mut().for_each(Fiber::reset);
        }
        let dirty = job.config.dynamic_shared.next_multiple_of(16) as usize + run.shared_high.get();
        // SAFETY: within the arena: `declare_shared` and the launch's limits see to it. No fiber runs.
        unsafe { run.shared.write_bytes(POISON, dirty.min(SHARED_BYTES)) };
        match checker {
            None => outcome,
            Some(checker) => checker.end_block(outcome),
        }
    }
}

/// A block on its way through the kernel.
struct Scheduler<'a> {
    worker: &'a mut Worker,
    run: &'a BlockRun,
    job: &'a Job<'a>,
    checker: Option<&'a Checker<'a>>,
    /// Does a thread wait for lanes of its warp?
    in_warp: bool,
}

impl Scheduler<'_> {
    fn run(&mut self, shuffle: &mut BlockOrder) -> Result<(), Stop> {
        self.worker.parked.clear();
        self.start()?;
        // Each round takes threads from one wait to the next.
        while !self.worker.parked.is_empty() {
            if (self.job.cancelled)() {
                return Err(Stop::Interrupted);
            }
            shuffle.fibers(&mut self.worker.parked);
            if self.in_warp {
                self.complete_warp_operations()?;
                self.resume_some()?;
            } else {
                self.barrier()?;
                self.resume_all()?;
            }
        }
        match (self.run.shared_mismatch.get(), self.run.declared_shared) {
            (Some((thread, used)), Some(declared)) => {
                let kind = FaultKind::SharedMismatch { declared, used };
                Err(self.fault(&self.worker.threads[thread as usize], kind))
            }
            _ => Ok(()),
        }
    }

    /// Starts every thread. A fiber runs one after another until one waits; then the next fiber does.
    fn start(&mut self) -> Result<(), Stop> {
        if (self.job.cancelled)() {
            return Err(Stop::Interrupted);
        }
        while self.run.next_thread.get() < self.worker.threads.len() {
            let number = self.worker.parked.len();
            if number == self.worker.fibers.len() {
                self.worker.add_fiber()?;
            }
            let fiber = &mut self.worker.fibers[number];
            // SAFETY: `run` outlives the block (`Worker::run`), and a worker stays on its thread.
            let event = unsafe { fiber.resume(self.run) };
            // The last of the threads that it has started.
            fiber.thread = current_pointer();
            match event {
                Event::Barrier => self.worker.parked.push(number),
                Event::Warp => {
                    self.in_warp = true;
                    self.worker.parked.push(number);
                }
                Event::Idle => {}
                Event::Panicked => return Err(self.panicked(number)),
            }
        }
        Ok(())
    }

    /// Resumes every fiber that waits. A barrier's time goes to these loops.
    #[inline(never)]
    fn resume_all(&mut self) -> Result<(), Stop> {
        let waiting = self.worker.parked.len();
        let mut changed = false;
        // As a rule they are the first, one after another, and the list need not be read.
        if self.job.order == Order::Forward && self.worker.parked.last() == Some(&(waiting - 1)) {
            for (number, fiber) in self.worker.fibers[..waiting].iter_mut().enumerate() {
                match resume(fiber, self.run) {
                    Event::Barrier => {}
                    Event::Warp | Event::Idle => changed = true,
                    Event::Panicked => return Err(self.panicked(number)),
                }
            }
        } else {
            for &number in &self.worker.parked {
                match resume(&mut self.worker.fibers[number], self.run) {
                    Event::Barrier => {}
                    Event::Warp | Event::Idle => changed = true,
                    Event::Panicked => return Err(self.panicked(number)),
                }
            }
        }
        if changed {
            self.look_who_waits();
        }
        Ok(())
    }

    /// Resumes the fibers whose threads need not wait for their warp any longer.
    fn resume_some(&mut self) -> Result<(), Stop> {
        for place in 0..self.worker.parked.len() {
            let number = self.worker.parked[place];
            if self.thread_of(number).state.get() == State::Released
                && let Event::Panicked = resume(&mut self.worker.fibers[number], self.run)
            {
                return Err(self.panicked(number));
            }
        }
        self.look_who_waits();
        Ok(())
    }

    fn look_who_waits(&mut self) {
        let mut parked = std::mem::take(&mut self.worker.parked);
        let state = |number: usize| self.thread_of(number).state.get();
        parked.retain(|&number| state(number) != State::Ended);
        self.in_warp = parked.iter().any(|&number| state(number) == State::InWarp);
        self.worker.parked = parked;
    }

    #[cold]
    fn panicked(&self, fiber: usize) -> Stop {
        self.fault(self.thread_of(fiber), last_panic())
    }

    /// Every thread that has not ended waits at a barrier.
    fn barrier(&self) -> Result<(), Stop> {
        let parked = &self.worker.parked;
        if let Some(checker) = self.checker {
            checker.barrier(self.run, parked.iter().map(|&number| self.thread_of(number)));
        } else if self.run.ended.get() > 0 {
            let exited = self.worker.threads[self.run.first_ended.get() as usize].index;
            // Which of those that wait is named does not matter; the last is what it has always been.
            let waits = self.thread_of(parked[parked.len() - 1]);
            let location = location(waits);
            return Err(self.fault(waits, FaultKind::BarrierSkipped { exited, location }));
        }
        Ok(())
    }

    /// Ends the waits of those lanes whose partners have all come.
    #[inline(never)]
    fn complete_warp_operations(&self) -> Result<(), Stop> {
        let mut complete = false;
        for lanes in self.worker.threads.chunks(WARP as usize) {
            for thread in lanes {
                if thread.state.get() != State::InWarp
                    || self.missing_partner(lanes, thread).is_some()
                {
                    continue;
                }
                let operation = self.run.warp_operation(thread).get();
                let partners =
                    || lanes.iter().filter(|lane| operation.mask >> lane.lane() & 1 == 1);
                let mut values = [None; WARP as usize];
                let (mut votes, mut present) = (0, 0);
                for lane in partners() {
                    let value = self.run.warp_operation(lane).get().value;
                    values[lane.lane() as usize] = Some(value);
                    votes |= (value & 1) << lane.lane();
                    present |= 1 << lane.lane();
                }
                for lane in partners() {
                    let cell = self.run.warp_operation(lane);
                    let own = cell.get();
                    let value = match own.kind {
                        WarpKind::Sync => 0,
                        WarpKind::Ballot => votes,
                        WarpKind::All => (votes == present).into(),
                        WarpKind::Any => (votes != 0).into(),
                        WarpKind::Relative(source) => values[source as usize].unwrap_or(u32::MAX),
                        WarpKind::Shuffle(source) => match values[source as usize] {
                            Some(value) => value,
                            None => return Err(self.wrong_source(lane, source)),
                        },
                    };
                    cell.set(WarpOperation { value, ..own });
                    lane.state.set(State::Released);
                    complete = true;
                }
                if let (Some(checker), WarpKind::Sync) = (self.checker, operation.kind) {
                    checker.warp_sync(thread.warp(), operation.mask);
                }
            }
        }
        match complete {
            true => Ok(()),
            false => Err(self.stuck()),
        }
    }

    /// A shuffle that reads a lane that takes no part in it.
    #[cold]
    fn wrong_source(&self, thread: &Thread, source: u32) -> Stop {
        let mask = self.run.warp_operation(thread).get().mask;
        let reason = format!("reads lane {source}, which takes no part: the mask is {mask:#010x}");
        let (operation, location) = ("shuffle", location(thread));
        self.fault(thread, FaultKind::WarpOperation { operation, reason, location })
    }

    /// No thread can go on.
    #[cold]
    fn stuck(&self) -> Stop {
        for lanes in self.worker.threads.chunks(WARP as usize) {
            for thread in lanes {
                if thread.state.get() != State::InWarp {
                    continue;
                }
                if let Some(reason) = self.missing_partner(lanes, thread) {
                    let kind = FaultKind::WarpOperation {
                        operation: self.run.warp_operation(thread).get().kind.name(),
                        reason: format!("{reason}; {}", self.who_waits_where()),
                        location: location(thread),
                    };
                    return self.fault(thread, kind);
                }
            }
        }
        unreachable!("a thread waits, and neither at a barrier nor for its warp")
    }

    /// Where every thread of the block is.
    #[cold]
    fn who_waits_where(&self) -> String {
        let mut places = BTreeMap::<String, usize>::new();
        for thread in &self.worker.threads {
            let place = match thread.state.get() {
                State::Running => format!("at the barrier at {}", location(thread)),
                State::InWarp => {
                    let name = self.run.warp_operation(thread).get().kind.name();
                    format!("at the {name} at {}", location(thread))
                }
                State::Released => "not waiting".to_owned(),
                State::Ended => "ended".to_owned(),
            };
            *places.entry(place).or_default() += 1;
        }
        let places = places.iter().map(|(place, threads)| format!("{threads} {place}"));
        format!("threads of the block: {}", places.collect::<Vec<_>>().join(", "))
    }

    #[cold]
    fn fault(&self, thread: &Thread, kind: FaultKind) -> Stop {
        let (block, thread) = (self.run.index, thread.index);
        Stop::Fault(Fault { kernel: self.job.name, block, thread, kind })
    }

    /// The thread that a fiber is in the middle of.
    fn thread_of(&self, fiber: usize) -> &Thread {
        // SAFETY: a fiber that waits or has panicked is in the middle of one of this worker's threads.
        unsafe { &*self.worker.fibers[fiber].thread }
    }

    /// Why a lane's warp operation is not complete. `None` where it is.
    fn missing_partner(&self, lanes: &[Thread], thread: &Thread) -> Option<String> {
        let own = self.run.warp_operation(thread).get();
        if own.mask >> thread.lane() & 1 == 0 {
            return Some(format!(
                "its mask {:#010x} does not name lane {}",
                own.mask,
                thread.lane()
            ));
        }
        // Lanes that a block's last warp does not have are not waited for.
        lanes.iter().filter(|lane| own.mask >> lane.lane() & 1 == 1).find_map(|lane| {
            let (number, at) = (lane.lane(), || location(lane));
            let other = self.run.warp_operation(lane).get();
            match lane.state.get() {
                State::InWarp if other.kind.name() != own.kind.name() => {
                    Some(format!("lane {number} waits at the {} at {}", other.kind.name(), at()))
                }
                State::InWarp if other.mask != own.mask => Some(format!(
                    "lane {number} waits with mask {:#010x} (at {}), not {:#010x}",
                    other.mask,
                    at(),
                    own.mask
                )),
                State::InWarp => None,
                State::Running => {
                    Some(format!("lane {number} waits at the block's barrier at {}", at()))
                }
                State::Ended => Some(format!("lane {number} has ended")),
                State::Released => Some(format!("lane {number} has not come to it")),
            }
        })
    }
}

/// Runs a waiting fiber's thread to its next wait.
#[inline(always)]
fn resume(fiber: &mut Fiber, run: &BlockRun) -> Event {
    set_current(fiber.thread);
    // SAFETY: `run` outlives the block (`Worker::run`), and a worker stays on its thread.
    unsafe { fiber.resume(run) }
}

/// Where a thread waits: file, line and column.
fn location(thread: &Thread) -> String {
    thread.place.get().map(place_name).unwrap_or_default()
}
