//! One block at a time: its threads, its shared memory, its barriers.

use std::{cell::Cell, panic::Location, ptr::null};

use super::{
    fault::{Fault, FaultKind, Stop, last_panic},
    fiber::{Event, Fiber, FiberYielder, STACK_BYTES},
};
use crate::LaunchConfig;

/// Shared memory of a block on an H100, the most of any device so far: 227 KiB.
pub(super) const SHARED_BYTES: usize = 227 * 1024;

/// What shared memory holds before a kernel writes it: NaN as f16, bf16, f32 and f64.
const POISON: u8 = 0xff;

/// One CUDA thread of the block that a worker is running.
pub(super) struct Thread {
    index: [u32; 3],
    linear: u32,
    run: Cell<*const BlockRun>,
    yielder: Cell<*const FiberYielder>,
    /// The barrier that it came to last.
    barrier: Cell<Option<&'static Location<'static>>>,
    /// Where its next static shared array begins, and the bytes of those declared so far.
    shared_next: Cell<usize>,
    shared_bytes: Cell<usize>,
}

/// The block that a worker is running, as its fibers see it.
pub(super) struct BlockRun {
    /// One thread of the kernel, its parameters bound.
    pub(super) kernel: &'static (dyn Fn() + Sync),
    threads: *const [Thread],
    next_thread: Cell<usize>,
    /// Threads that have ended, and the first of them.
    ended: Cell<usize>,
    first_ended: Cell<u32>,
    /// A thread whose shared arrays are not as declared, with their size.
    shared_mismatch: Cell<Option<(u32, usize)>>,
    block: [u32; 3],
    config: LaunchConfig,
    declared_shared: Option<usize>,
    shared: *mut u8,
    /// The most static shared memory that a thread has declared: what is to be poisoned again.
    shared_high: Cell<usize>,
}

thread_local! {
    static CURRENT: Cell<*const Thread> = const { Cell::new(null()) };
}

/// Is this operating-system thread inside a kernel?
pub(super) fn in_kernel() -> bool {
    !CURRENT.get().is_null()
}

/// The thread that is running. Panics outside a kernel.
#[inline(always)]
fn current() -> &'static Thread {
    let thread = CURRENT.get();
    if thread.is_null() {
        outside();
    }
    // SAFETY: set by a worker to a thread of its own while that runs, and null otherwise. The reference
    // does not leave the functions below, which end before the thread does.
    unsafe { &*thread }
}

#[cold]
fn outside() -> ! {
    panic!(
        "only a kernel has a thread index, a barrier and shared memory: launch it with simt::cpu::launch"
    )
}

/// The block of the thread that is running. Panics outside a kernel.
#[inline(always)]
fn current_block() -> &'static BlockRun {
    // SAFETY: as in `current`: a thread that runs belongs to a block that does.
    unsafe { &*current().run.get() }
}

#[inline(always)]
pub(super) fn thread_index() -> [u32; 3] {
    current().index
}

#[inline(always)]
pub(super) fn linear_index() -> u32 {
    current().linear
}

#[inline(always)]
pub(super) fn block_index() -> [u32; 3] {
    current_block().block
}

#[inline(always)]
pub(super) fn launch_config() -> &'static LaunchConfig {
    &current_block().config
}

/// Suspends the running thread until its whole block has come to a barrier.
#[inline]
pub(super) fn barrier(place: &'static Location<'static>) {
    let thread = current();
    thread.barrier.set(Some(place));
    // SAFETY: set by `start_thread` to the yielder of the fiber that this runs on, which outlives it.
    unsafe { (*thread.yielder.get()).suspend(Event::Barrier) };
}

/// The next `bytes` of the block's static shared memory. Every thread declares the same arrays in the
/// same order, and so is given the same addresses.
pub(super) fn declare_shared(bytes: usize) -> *mut u8 {
    let (thread, block) = (current(), current_block());
    let start = thread.shared_next.get();
    let end = (start + bytes).next_multiple_of(16);
    let dynamic = (block.config.dynamic_shared as usize).next_multiple_of(16);
    assert!(
        dynamic + end <= SHARED_BYTES,
        "shared arrays of {end} bytes (and {dynamic} dynamic): a block has {SHARED_BYTES}; \
         is one declared in a loop?"
    );
    thread.shared_next.set(end);
    thread.shared_bytes.set(thread.shared_bytes.get() + bytes);
    block.shared_high.set(block.shared_high.get().max(end));
    // SAFETY: within the arena, by the assertion.
    unsafe { block.shared.add(dynamic + start) }
}

/// The block's dynamic shared memory: its address and its size in bytes.
pub(super) fn dynamic_shared() -> (*mut u8, usize) {
    let block = current_block();
    (block.shared, block.config.dynamic_shared as usize)
}

impl BlockRun {
    fn threads(&self) -> &[Thread] {
        // SAFETY: the worker's own threads, which it neither moves nor changes while a block runs.
        unsafe { &*self.threads }
    }

    /// The next thread that has not been started, now running on `yielder`'s fiber.
    pub(super) fn start_thread(&self, yielder: &FiberYielder) -> Option<&Thread> {
        let thread = self.threads().get(self.next_thread.get())?;
        self.next_thread.set(self.next_thread.get() + 1);
        thread.run.set(self);
        thread.yielder.set(yielder);
        thread.shared_next.set(0);
        thread.shared_bytes.set(0);
        CURRENT.set(thread);
        Some(thread)
    }

    pub(super) fn end_thread(&self, thread: &Thread) {
        if self.ended.get() == 0 {
            self.first_ended.set(thread.linear);
        }
        self.ended.set(self.ended.get() + 1);
        let used = thread.shared_bytes.get();
        if self.declared_shared.is_some_and(|declared| declared != used) {
            self.shared_mismatch.set(Some((thread.linear, used)));
        }
    }
}

/// Runs blocks on one operating-system thread. Its fibers and its shared memory are kept from launch to
/// launch.
#[derive(Default)]
pub(super) struct Worker {
    block: [u32; 3],
    threads: Vec<Thread>,
    fibers: Vec<Fiber>,
    shared: Vec<Line>,
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
}

impl Worker {
    /// Gets ready for blocks of this shape.
    pub(super) fn prepare(&mut self, config: &LaunchConfig) -> Result<(), Stop> {
        let [x, y, z] = config.block;
        if self.block != config.block {
            let indices =
                (0..z).flat_map(|k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])));
            self.threads = (0..)
                .zip(indices)
                .map(|(linear, index)| Thread {
                    index,
                    linear,
                    run: Cell::new(null()),
                    yielder: Cell::new(null()),
                    barrier: Cell::new(None),
                    shared_next: Cell::new(0),
                    shared_bytes: Cell::new(0),
                })
                .collect();
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

    /// Runs one block to its end.
    pub(super) fn run(&mut self, job: &Job, block: [u32; 3]) -> Result<(), Stop> {
        // SAFETY: only the lifetime changes. The reference is used by this block's fibers, and before
        // this function returns each of them is idle or has been reset.
        let kernel = unsafe {
            std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(job.kernel)
        };
        let run = BlockRun {
            kernel,
            threads: &*self.threads,
            next_thread: Cell::new(0),
            ended: Cell::new(0),
            first_ended: Cell::new(0),
            shared_mismatch: Cell::new(None),
            block,
            config: job.config,
            declared_shared: job.declared_shared,
            shared: self.shared.as_mut_ptr().cast(),
            shared_high: Cell::new(0),
        };
        let outcome = self.run_threads(&run, job);
        CURRENT.set(null());
        if outcome.is_err() {
            self.fibers.iter_mut().for_each(Fiber::reset);
        }
        let dirty = job.config.dynamic_shared.next_multiple_of(16) as usize + run.shared_high.get();
        // SAFETY: within the arena: `declare_shared` and the launch's limits see to it. No fiber runs.
        unsafe { run.shared.write_bytes(POISON, dirty.min(SHARED_BYTES)) };
        outcome
    }

    fn run_threads(&mut self, run: &BlockRun, job: &Job) -> Result<(), Stop> {
        let fault = |thread: &Thread, kind| {
            Stop::Fault(Fault { kernel: job.name, block: run.block, thread: thread.index, kind })
        };

        if (job.cancelled)() {
            return Err(Stop::Interrupted);
        }
        // Start every thread. A fiber runs one after another until one waits; then the next fiber does.
        let mut waiting = 0;
        while run.next_thread.get() < self.threads.len() {
            if waiting == self.fibers.len() {
                self.add_fiber()?;
            }
            // SAFETY: `run` outlives the block (`Worker::run`), and a worker stays on its thread.
            let event = unsafe { self.fibers[waiting].resume(run) };
            self.fibers[waiting].thread = CURRENT.get();
            match event {
                Event::Barrier => waiting += 1,
                Event::Idle => {}
                Event::Panicked => return Err(fault(self.thread_of(waiting), last_panic())),
            }
        }

        // Each round takes all threads from one barrier to the next.
        let mut one_waiting = 0;
        while waiting > 0 {
            if (job.cancelled)() {
                return Err(Stop::Interrupted);
            }
            if run.ended.get() > 0 {
                let exited = self.threads[run.first_ended.get() as usize].index;
                let waits = self.thread_of(one_waiting);
                let location = waits.barrier.get().map(ToString::to_string).unwrap_or_default();
                return Err(fault(waits, FaultKind::BarrierSkipped { exited, location }));
            }
            let round = waiting;
            for number in 0..round {
                let fiber = &mut self.fibers[number];
                CURRENT.set(fiber.thread);
                // SAFETY: as above.
                match unsafe { fiber.resume(run) } {
                    Event::Barrier => one_waiting = number,
                    Event::Idle => waiting -= 1,
                    Event::Panicked => return Err(fault(self.thread_of(number), last_panic())),
                }
            }
        }

        match (run.shared_mismatch.get(), run.declared_shared) {
            (Some((thread, used)), Some(declared)) => {
                let kind = FaultKind::SharedMismatch { declared, used };
                Err(fault(&self.threads[thread as usize], kind))
            }
            _ => Ok(()),
        }
    }

    /// The thread that a fiber is in the middle of.
    fn thread_of(&self, fiber: usize) -> &Thread {
        // SAFETY: a fiber that waits or has panicked is in the middle of one of this worker's threads.
        unsafe { &*self.fibers[fiber].thread }
    }
}
