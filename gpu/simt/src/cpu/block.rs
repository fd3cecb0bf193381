//! The block that an operating-system thread is running, and its threads, as the code of a kernel
//! sees them.

use std::{cell::Cell, panic::Location, ptr::null};

use super::{
    access::ArrayDeclaration,
    check::{Array, Checker},
    cluster::{ClusterRun, CopyOrigin, Wait},
    exit::ExitCell,
    fiber::{Event, FiberContext, ThreadSource},
    limits::{SHARED_BYTES, WARP},
    warp_operation::{WarpKind, WarpOperation},
};
use crate::LaunchConfig;

/// A CUDA thread of the block that a worker is running.
///
/// It fills one cache line: the threads of a block and the tops of their stacks must fit into the
/// L1 cache together, or every barrier is twice as slow.
#[repr(align(64))]
pub(super) struct Thread {
    pub(super) index: [u32; 3],
    /// Its number in the block, counted along x, then y, then z.
    pub(super) linear: u32,
    /// Its number in the cluster. Each block's numbers begin at a multiple of a warp's lanes.
    pub(super) number: u32,
    run: Cell<*const BlockRun>,
    fiber: Cell<*const FiberContext<'static, BlockRun>>,
    /// Where it waits. In a checked launch also its last access that was counted.
    pub(super) place: Cell<Option<&'static Location<'static>>>,
    /// The offset of its next static shared array.
    shared_next: Cell<u32>,
    /// Bytes of the static shared arrays that it has declared.
    shared_bytes: Cell<u32>,
    pub(super) state: Cell<State>,
    /// Atomic operations since it last let others run; [`POLLING`](super::poll::POLLING) while it
    /// lets them run.
    pub(super) polls: Cell<u8>,
}

const _: () = assert!(size_of::<Thread>() == 64);

/// The state of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It has not started, runs, or waits at a barrier of its block. A barrier has no state of its
    /// own, which saves a store at every barrier.
    Running,
    /// It waits in a warp operation.
    InWarp,
    /// It waits for something else, which the cluster knows ([`ClusterRun::wait_of`]).
    Waits,
    /// Its wait is over, or it lets others run: it may be resumed.
    Released,
    /// It has come to the end of the kernel.
    Ended,
}

impl Thread {
    pub(super) fn new(linear: u32, number: u32, index: [u32; 3]) -> Self {
        Thread {
            index,
            linear,
            number,
            run: Cell::new(null()),
            fiber: Cell::new(null()),
            place: Cell::new(None),
            shared_next: Cell::new(0),
            shared_bytes: Cell::new(0),
            state: Cell::new(State::Running),
            polls: Cell::new(0),
        }
    }

    /// Its lane in its warp.
    pub(super) fn lane(&self) -> u32 {
        self.linear % WARP
    }

    /// The number of its warp in the block.
    pub(super) fn warp(&self) -> u32 {
        self.linear / WARP
    }

    /// Its block. It must have started.
    pub(super) fn run(&self) -> &BlockRun {
        // SAFETY: set by `start_thread`; a block outlives what its threads do.
        unsafe { &*self.run.get() }
    }

    /// Suspends the thread until the scheduler resumes it.
    #[inline(always)]
    pub(super) fn wait(&self, place: &'static Location<'static>, event: Event) {
        self.place.set(Some(place));
        // SAFETY: set by `start_thread` to what the fiber that this runs on keeps as long as it
        // lives.
        unsafe { (*self.fiber.get()).yielder.suspend(event) };
    }

    /// How a signal handler leaves its fiber; none before it has started.
    pub(super) fn exit(&self) -> Option<&ExitCell> {
        // SAFETY: null, or as in `wait`; and the fiber lives as long as its coroutine.
        unsafe { self.fiber.get().as_ref().map(|fiber| &*fiber.exit) }
    }

    /// The approximate number of bytes left on its stack.
    #[inline(always)]
    pub(super) fn stack_left(&self) -> usize {
        let here = 0u8;
        // SAFETY: as in `wait`.
        let limit = unsafe { (*self.fiber.get()).stack_limit };
        std::ptr::from_ref(&here).addr().saturating_sub(limit)
    }

    /// The highest address of its stack.
    pub(super) fn stack_end(&self) -> usize {
        // SAFETY: as in `wait`.
        unsafe { (*self.fiber.get()).stack_end }
    }
}

/// A block while a worker runs it.
pub(super) struct BlockRun {
    /// One thread of the kernel, its parameters bound.
    pub(super) kernel: &'static (dyn Fn() + Sync),
    pub(super) threads: *const [Thread],
    /// For each thread its part in a warp operation.
    pub(super) warp_operations: *const [Cell<WarpOperation>],
    /// The order in which threads start; empty for ascending numbers.
    pub(super) order: *const [u32],
    pub(super) next_thread: Cell<usize>,
    /// The number of threads that have ended, and the first of them.
    pub(super) ended: Cell<usize>,
    pub(super) first_ended: Cell<u32>,
    /// A thread whose shared arrays differ from the kernel's declaration, and their bytes.
    pub(super) shared_mismatch: Cell<Option<(u32, usize)>>,
    /// The number of the block's next vote, and its votes in three rounds: the current one, the one
    /// before, which some threads have not read yet, and the next one.
    pub(super) vote_round: Cell<usize>,
    pub(super) votes: [Cell<u32>; 3],
    pub(super) index: [u32; 3],
    /// Its rank in its cluster.
    pub(super) rank: u32,
    pub(super) cluster: *const ClusterRun,
    pub(super) config: LaunchConfig,
    pub(super) declared_shared: Option<usize>,
    pub(super) shared: *mut u8,
    /// The most bytes of static shared memory that a thread has declared. They are poisoned again
    /// after the block.
    pub(super) shared_high: Cell<usize>,
    /// Null in a fast launch.
    pub(super) checker: *const Checker<'static>,
}

thread_local! {
    static CURRENT: Cell<*const Thread> = const { Cell::new(null()) };
}

/// Sets the running thread; null for none.
#[inline(always)]
pub(super) fn set_current(thread: *const Thread) {
    CURRENT.set(thread);
}

/// The running thread; null for none.
pub(super) fn current_pointer() -> *const Thread {
    CURRENT.get()
}

/// Whether this operating-system thread is inside a kernel.
pub(super) fn in_kernel() -> bool {
    !CURRENT.get().is_null()
}

/// The running thread. Panics outside a kernel.
#[inline(always)]
pub(super) fn current() -> &'static Thread {
    let thread = CURRENT.get();
    if thread.is_null() {
        outside();
    }
    // SAFETY: set by a worker to a thread of its own while that runs, and null otherwise. The
    // reference does not leave the functions that call this, which end before the thread does.
    unsafe { &*thread }
}

/// Panics outside a kernel. The host reads and writes a kernel's variables by
/// [`symbol`](super::symbol).
#[inline(always)]
#[track_caller]
pub(super) fn assert_in_kernel() {
    if !in_kernel() {
        not_in_kernel();
    }
}

#[cold]
#[track_caller]
fn not_in_kernel() -> ! {
    panic!(
        "only a kernel accesses its variables by itself: the host does it between launches, by simt::cpu::symbol"
    )
}

#[cold]
fn outside() -> ! {
    panic!(
        "only a kernel has a thread index, a barrier and shared memory: launch it with simt::cpu::launch"
    )
}

/// The running thread's block. Panics outside a kernel.
#[inline(always)]
pub(super) fn current_block() -> &'static BlockRun {
    // SAFETY: as in `current`: a thread that runs belongs to a block that does.
    unsafe { &*current().run.get() }
}

#[inline(always)]
pub(super) fn thread_index() -> [u32; 3] {
    current().index
}

#[inline(always)]
pub(crate) fn linear_index() -> u32 {
    current().linear
}

#[inline(always)]
pub(super) fn block_index() -> [u32; 3] {
    current_block().index
}

#[inline(always)]
pub(super) fn launch_config() -> &'static LaunchConfig {
    &current_block().config
}

/// The first byte of the block's shared memory.
pub(super) fn shared_base() -> *mut u8 {
    current_block().shared
}

/// The checker of the running thread; none in a fast launch.
#[inline(always)]
pub(crate) fn checker() -> Option<&'static Checker<'static>> {
    // SAFETY: null, or a checker that outlives its launch.
    unsafe { current_block().checker.as_ref() }
}

/// Suspends the running thread until all threads of its block wait at a barrier.
///
/// It is inlined all the way into the kernel: the processor predicts that a fiber's switch returns
/// to where the scheduler called it from, and one more call in between makes that prediction wrong
/// every time.
#[inline(always)]
pub(super) fn barrier(place: &'static Location<'static>) {
    current().wait(place, Event::Barrier);
}

/// [`barrier`], and the number of the block's threads that have come to it with a vote.
pub(super) fn vote(predicate: bool, place: &'static Location<'static>) -> u32 {
    let run = current_block();
    let round = run.vote_round.get();
    let votes = &run.votes[round % 3];
    votes.set(votes.get() + u32::from(predicate));
    barrier(place);
    // The first thread behind the barrier clears the next round but one, of which nobody reads or
    // writes before all have come to the next.
    if run.vote_round.get() == round {
        run.vote_round.set(round + 1);
        run.votes[(round + 2) % 3].set(0);
    }
    votes.get()
}

/// Suspends the running thread until the lanes of `mask` have come to the same operation, and gives
/// its result.
pub(super) fn warp_operation(
    kind: WarpKind,
    mask: u32,
    value: u32,
    place: &'static Location<'static>,
) -> u32 {
    let thread = current();
    let operation = current_block().warp_operation(thread);
    operation.set(WarpOperation { kind, mask, value });
    thread.state.set(State::InWarp);
    thread.wait(place, Event::Wait);
    thread.state.set(State::Running);
    operation.get().value
}

/// Exchanges words among the lanes of the running thread's warp: waits until all have come to the
/// operation `name`, and calls `read` with the words of each lane. Panics where the warp has fewer
/// than 32 lanes.
pub(crate) fn exchange<R>(
    name: &'static str,
    own: &[u32],
    place: &'static Location<'static>,
    read: impl FnOnce(&[&[u32]; WARP as usize]) -> R,
) -> R {
    let (thread, cluster) = (current(), current_cluster());
    assert!(lanes_of_warp() == WARP as usize, "all 32 lanes of a warp come to a {name}");
    let warp = (rank(), thread.warp());
    let buffer = cluster.exchange(warp).store(thread.lane(), own);
    warp_operation(WarpKind::Exchange(name), u32::MAX, 0, place);
    let all = cluster.exchange(warp);
    read(&all.load(buffer))
}

/// Suspends the running thread until the wait is over.
pub(super) fn wait_for(wait: Wait, place: &'static Location<'static>) {
    let thread = current();
    current_cluster().wait_of(thread.number).set(wait);
    thread.state.set(State::Waits);
    thread.wait(place, Event::Wait);
    thread.state.set(State::Running);
}

/// The running thread's cluster. Panics outside a kernel.
pub(super) fn current_cluster() -> &'static ClusterRun {
    // SAFETY: as in `current`: a block that runs belongs to a cluster that does.
    unsafe { &*current_block().cluster }
}

/// The rank of the running thread's block in its cluster.
pub(super) fn rank() -> u32 {
    current_block().rank
}

/// The origin of a copy that the running thread begins.
pub(super) fn copy_origin(at: &'static Location<'static>) -> CopyOrigin {
    CopyOrigin { block: block_index(), thread: thread_index(), at }
}

/// The ranks of the blocks whose bits are set.
pub(super) fn ranks(blocks: u16) -> impl Iterator<Item = u32> {
    (0..u16::BITS).filter(move |rank| blocks >> rank & 1 == 1)
}

/// The address in the shared memory of the block of that rank that corresponds to `place` in the
/// running thread's block.
pub(super) fn in_block(place: *mut u8, rank: u32) -> *mut u8 {
    current_cluster().shared(rank).wrapping_add(place.addr() - shared_base().addr())
}

/// The lanes of the running thread's warp: a block's last warp may have fewer than 32.
pub(super) fn lanes_of_warp() -> usize {
    let (warp, threads) = (current().warp(), current_block().threads().len());
    (threads - (warp * WARP) as usize).min(WARP as usize)
}

/// Gives the running thread a shared array: its first byte, and its shadow in a checked launch
/// (else null). Every thread declares the same arrays in the same order, and so gets the same
/// addresses. (The arguments are plain values: a struct would take space on the stack of every
/// thread, and that costs time at every barrier.)
pub(super) fn declare_shared(
    element: usize,
    shape: (usize, usize),
    dynamic: bool,
    place: &'static Location<'static>,
) -> (*mut u8, *const Array) {
    let (thread, block) = (current(), current_block());
    let bytes = element * shape.0 * shape.1;
    let dynamic_bytes = (block.config.dynamic_shared as usize).next_multiple_of(16);
    let offset = match dynamic {
        true => 0,
        false => {
            let start = thread.shared_next.get() as usize;
            let end = (start + bytes).next_multiple_of(16);
            assert!(
                dynamic_bytes + end <= SHARED_BYTES,
                "shared arrays of {end} bytes (and {dynamic_bytes} dynamic) at {place}: a block has \
                 {SHARED_BYTES}; is one declared in a loop?"
            );
            // Both fit: the arena has 227 KiB.
            thread.shared_next.set(end as u32);
            thread.shared_bytes.set(thread.shared_bytes.get() + bytes as u32);
            block.shared_high.set(block.shared_high.get().max(end));
            dynamic_bytes + start
        }
    };
    let array = match checker() {
        None => null(),
        Some(checker) => {
            checker.shared_array(offset, &ArrayDeclaration { element, shape, dynamic, place })
        }
    };
    // SAFETY: within the arena, by the assertion and by the launch's limits.
    (unsafe { block.shared.add(offset) }, array)
}

impl BlockRun {
    /// Its threads, by their numbers in the block.
    pub(super) fn threads(&self) -> &[Thread] {
        // SAFETY: the worker's own threads, which it neither moves nor changes while a block runs.
        unsafe { &*self.threads }
    }

    /// A thread's part in a warp operation.
    pub(super) fn warp_operation(&self, thread: &Thread) -> &Cell<WarpOperation> {
        // SAFETY: the worker's, as many as threads.
        let operations = unsafe { &*self.warp_operations };
        &operations[thread.linear as usize]
    }
}

impl ThreadSource for BlockRun {
    type Thread = Thread;

    fn kernel(&self) -> &(dyn Fn() + Sync) {
        self.kernel
    }

    fn start_thread(&self, fiber: &FiberContext<'_, BlockRun>) -> Option<&Thread> {
        let next = self.next_thread.get();
        // SAFETY: the worker's, as in `threads`.
        let order = unsafe { &*self.order };
        let number = order.get(next).map_or(next, |&number| number as usize);
        let thread = self.threads().get(number)?;
        self.next_thread.set(next + 1);
        thread.run.set(self);
        thread.fiber.set(std::ptr::from_ref(fiber).cast());
        thread.state.set(State::Running);
        thread.shared_next.set(0);
        thread.shared_bytes.set(0);
        thread.polls.set(0);
        // SAFETY: null, or a checker that outlives its launch.
        if let Some(checker) = unsafe { self.checker.as_ref() } {
            checker.reset_accesses();
        }
        CURRENT.set(thread);
        Some(thread)
    }

    fn end_thread(&self, thread: &Thread) {
        thread.state.set(State::Ended);
        if self.ended.get() == 0 {
            self.first_ended.set(thread.linear);
        }
        self.ended.set(self.ended.get() + 1);
        // SAFETY: null, or a checker that outlives its launch.
        if let Some(checker) = unsafe { self.checker.as_ref() } {
            // Others may have polled for it.
            checker.reset_accesses();
        }
        let used = thread.shared_bytes.get() as usize;
        if self.declared_shared.is_some_and(|declared| declared != used) {
            self.shared_mismatch.set(Some((thread.linear, used)));
        }
    }
}
