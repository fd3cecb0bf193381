//! The block that an operating-system thread is running, as its fibers see it.

use std::{cell::Cell, panic::Location, ptr::null};

use super::{
    check,
    cluster::{ClusterRun, Wait},
    fiber::{Event, OnFiber},
    mode::ArrayDeclaration,
    trap::Exit,
};
use crate::{LaunchConfig, Value};

/// Shared memory of a block on an H100, the most of any device so far: 227 KiB.
pub(super) const SHARED_BYTES: usize = 227 * 1024;

/// Lanes of a warp.
pub(super) const WARP: u32 = 32;

/// One CUDA thread of the block that a worker is running.
///
/// One line of the cache: the threads of a block and the tops of their stacks must fit into the first
/// level together, or every barrier is twice as slow.
#[repr(align(64))]
pub(super) struct Thread {
    pub(super) index: [u32; 3],
    /// Its number in the block: x first, then y, then z.
    pub(super) linear: u32,
    /// Its number in the cluster, where each block's threads fill whole warps.
    pub(super) number: u32,
    run: Cell<*const BlockRun>,
    fiber: Cell<*const OnFiber<'static>>,
    /// Where it waits.
    pub(super) place: Cell<Option<&'static Location<'static>>>,
    /// Where its next static shared array begins, and the bytes of those declared so far.
    shared_next: Cell<u32>,
    shared_bytes: Cell<u32>,
    pub(super) state: Cell<State>,
    /// Atomic operations since it last let others run; [`POLLING`](super::polls::POLLING) while it does.
    pub(super) polls: Cell<u8>,
}

const _: () = assert!(size_of::<Thread>() == 64);

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It has not been started, runs, or waits for its block: a barrier is left without a store, for its
    /// sake there is no state of its own.
    Running,
    /// It waits for lanes of its warp.
    InWarp,
    /// It waits for something else: for what, its cluster knows.
    Waits,
    /// What it waited for has come, or it lets others run: it may run on.
    Released,
    /// It has come to the kernel's end.
    Ended,
}

/// A thread's part in what the lanes of its warp do together.
#[derive(Clone, Copy)]
pub(super) struct WarpOperation {
    pub(super) kind: WarpKind,
    /// The lanes that take part.
    pub(super) mask: u32,
    /// What this lane brings along; when the wait is over, what it gets.
    pub(super) value: u32,
}

#[derive(Clone, Copy)]
pub(super) enum WarpKind {
    Sync,
    /// Which lanes vote yes.
    Ballot,
    /// Do all vote yes?
    All,
    /// Does any vote yes?
    Any,
    /// Is this lane the one?
    Elect,
    /// Gives the value of this lane; each lane names its own.
    Shuffle(u32),
    /// Each hands words to all others by way of the warp's [`Exchange`](super::exchange::Exchange); for what, it says.
    Exchange(&'static str),
    /// The same, where the lane follows from the own one: that one takes no part at the edge of the warp or
    /// of the mask, and its value is not meant to be used, is usual.
    Relative(u32),
}

impl WarpKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            WarpKind::Sync => "sync_warp",
            WarpKind::Ballot => "ballot",
            WarpKind::All => "vote of all",
            WarpKind::Any => "vote of any",
            WarpKind::Elect => "elect",
            WarpKind::Exchange(name) => name,
            WarpKind::Shuffle(_) | WarpKind::Relative(_) => "shuffle",
        }
    }
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

    pub(super) fn lane(&self) -> u32 {
        self.linear % WARP
    }

    pub(super) fn warp(&self) -> u32 {
        self.linear / WARP
    }

    /// The block that it belongs to, once it has been started.
    pub(super) fn run(&self) -> &BlockRun {
        // SAFETY: set by `start_thread`; a block outlives what its threads do.
        unsafe { &*self.run.get() }
    }

    /// Gives control back until the worker lets it run on.
    #[inline(always)]
    pub(super) fn wait(&self, place: &'static Location<'static>, event: Event) {
        self.place.set(Some(place));
        // SAFETY: set by `start_thread` to what the fiber that this runs on keeps as long as it lives.
        unsafe { (*self.fiber.get()).yielder.suspend(event) };
    }

    /// How the fiber that it runs on is left; none before it has been started.
    pub(super) fn exit(&self) -> Option<&Exit> {
        // SAFETY: null, or as in `wait`; and the fiber lives as long as its coroutine.
        unsafe { self.fiber.get().as_ref().map(|fiber| &*fiber.exit) }
    }

    /// Bytes of its stack that are left, about.
    #[inline(always)]
    pub(super) fn stack_left(&self) -> usize {
        let here = 0u8;
        // SAFETY: as in `wait`.
        let limit = unsafe { (*self.fiber.get()).limit };
        std::ptr::from_ref(&here).addr().saturating_sub(limit)
    }

    /// Where the stack ends that it runs on.
    pub(super) fn stack_end(&self) -> usize {
        // SAFETY: as in `wait`.
        unsafe { (*self.fiber.get()).stack_end }
    }
}

/// The block that a worker is running.
pub(super) struct BlockRun {
    /// One thread of the kernel, its parameters bound.
    pub(super) kernel: &'static (dyn Fn() + Sync),
    pub(super) threads: *const [Thread],
    /// For each thread the warp operation that it waits in.
    pub(super) warp_operations: *const [Cell<WarpOperation>],
    /// The order in which threads are started; empty: as they are counted.
    pub(super) order: *const [u32],
    pub(super) next_thread: Cell<usize>,
    /// Threads that have ended, and the first of them.
    pub(super) ended: Cell<usize>,
    pub(super) first_ended: Cell<u32>,
    /// A thread whose shared arrays are not as declared, with their size.
    pub(super) shared_mismatch: Cell<Option<(u32, usize)>>,
    pub(super) index: [u32; 3],
    /// Its number in its cluster, and that.
    pub(super) rank: u32,
    pub(super) cluster: *const ClusterRun,
    pub(super) config: LaunchConfig,
    pub(super) declared_shared: Option<usize>,
    pub(super) shared: *mut u8,
    /// The most static shared memory that a thread has declared: what is to be poisoned again.
    pub(super) shared_high: Cell<usize>,
    /// Watches what the block does; null in a fast launch.
    pub(super) checker: *const check::Checker<'static>,
}

thread_local! {
    static CURRENT: Cell<*const Thread> = const { Cell::new(null()) };
    /// Is a `Half` of the launch that runs an `F16`? By itself, since it is asked for each element.
    static IS_F16: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Makes that what a `Half` is; none where no kernel runs, or one without that constant.
pub(super) fn set_is_f16(is_f16: Option<bool>) {
    IS_F16.set(is_f16);
}

/// Makes a thread the one that runs; null where none does.
#[inline(always)]
pub(super) fn set_current(thread: *const Thread) {
    CURRENT.set(thread);
}

/// The thread that was made the one that runs.
pub(super) fn current_pointer() -> *const Thread {
    CURRENT.get()
}

/// Is this operating-system thread inside a kernel?
pub(super) fn in_kernel() -> bool {
    !CURRENT.get().is_null()
}

/// The thread that is running. Panics outside a kernel.
#[inline(always)]
pub(super) fn current() -> &'static Thread {
    let thread = CURRENT.get();
    if thread.is_null() {
        outside();
    }
    // SAFETY: set by a worker to a thread of its own while that runs, and null otherwise. The reference
    // does not leave the functions that ask for it, which end before the thread does.
    unsafe { &*thread }
}

/// Panics outside a kernel: the host reads and writes variables by [`symbol`](super::symbol).
#[inline(always)]
#[track_caller]
pub(super) fn of_a_kernel() {
    if !in_kernel() {
        not_of_a_kernel();
    }
}

#[cold]
#[track_caller]
fn not_of_a_kernel() -> ! {
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

/// The block of the thread that is running. Panics outside a kernel.
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
pub(super) fn linear_index() -> u32 {
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

/// The number that a constant is in this launch.
#[track_caller]
pub(crate) fn constant(name: &str) -> u32 {
    match launch_config().constants.get(name) {
        Some(Value::Number(number)) => number,
        _ => panic!("the kernel declares no constant `{name}` that is a number"),
    }
}

/// Is a `Half` of this launch an `F16`?
#[inline(always)]
#[track_caller]
pub(crate) fn is_f16() -> bool {
    match IS_F16.get() {
        Some(is_f16) => is_f16,
        None => no_half(),
    }
}

#[cold]
#[track_caller]
fn no_half() -> ! {
    panic!("the kernel declares no constant `half`, which is bf16 or f16")
}

/// The first byte of the block's shared memory.
pub(super) fn shared_base() -> *mut u8 {
    current_block().shared
}

/// What watches the thread that is running, if anything does.
#[inline(always)]
pub(super) fn checker() -> Option<&'static check::Checker<'static>> {
    // SAFETY: null, or a checker that outlives its launch.
    unsafe { current_block().checker.as_ref() }
}

/// Suspends the running thread until its whole block has come to a barrier.
///
/// Inlined all the way into the kernel: the processor predicts that a fiber's switch returns to where the
/// scheduler called it from, and one more call in between makes that prediction wrong every time.
#[inline(always)]
pub(super) fn barrier(place: &'static Location<'static>) {
    current().wait(place, Event::Barrier);
}

/// Suspends the running thread until the lanes of `mask` have come to the same operation.
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
    thread.wait(place, Event::Some);
    thread.state.set(State::Running);
    operation.get().value
}

/// Hands words to the other lanes of the running thread's warp, and calls `read` with those of each, when all have come
/// to the same operation. Panics where the warp has fewer than 32 lanes.
pub(super) fn exchange<R>(
    name: &'static str,
    own: &[u32],
    place: &'static Location<'static>,
    read: impl FnOnce(&[&[u32]; WARP as usize]) -> R,
) -> R {
    let (thread, cluster) = (current(), current_cluster());
    assert!(lanes_of_warp() == WARP as usize, "all 32 lanes of a warp come to a {name}");
    let warp = (rank(), thread.warp());
    let turn = cluster.exchange(warp).put(thread.lane(), own);
    warp_operation(WarpKind::Exchange(name), u32::MAX, 0, place);
    let all = cluster.exchange(warp);
    read(&all.of_turn(turn))
}

/// Suspends the running thread until what it waits for has come.
pub(super) fn wait_for(wait: Wait, place: &'static Location<'static>) {
    let thread = current();
    current_cluster().wait_of(thread).set(wait);
    thread.state.set(State::Waits);
    // Not the whole block, but some.
    thread.wait(place, Event::Some);
    thread.state.set(State::Running);
}

/// The cluster of the thread that is running. Panics outside a kernel.
pub(super) fn current_cluster() -> &'static ClusterRun {
    // SAFETY: as in `current`: a block that runs belongs to a cluster that does.
    unsafe { &*current_block().cluster }
}

/// The block's number in its cluster.
pub(super) fn rank() -> u32 {
    current_block().rank
}

/// How many lanes the running thread's warp has: the last one of a block may have fewer than others.
pub(super) fn lanes_of_warp() -> usize {
    let (warp, threads) = (current().warp(), current_block().threads().len());
    (threads - (warp * WARP) as usize).min(WARP as usize)
}

/// Sets aside a shared array. Every thread declares the same arrays in the same order, and so is given
/// the same addresses. (Plain arguments: a struct would take room on the stack of every thread, and that
/// room costs time at every barrier.)
pub(super) fn declare_shared(
    element: usize,
    shape: (usize, usize),
    dynamic: bool,
    place: &'static Location<'static>,
) -> (*mut u8, *const check::Array) {
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
    pub(super) fn threads(&self) -> &[Thread] {
        // SAFETY: the worker's own threads, which it neither moves nor changes while a block runs.
        unsafe { &*self.threads }
    }

    pub(super) fn warp_operation(&self, thread: &Thread) -> &Cell<WarpOperation> {
        // SAFETY: the worker's, as many as threads.
        let operations = unsafe { &*self.warp_operations };
        &operations[thread.linear as usize]
    }

    /// The next thread that has not been started, now running on `fiber`.
    pub(super) fn start_thread(&self, fiber: &OnFiber<'_>) -> Option<&Thread> {
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
            checker.goes_on();
        }
        CURRENT.set(thread);
        Some(thread)
    }

    pub(super) fn end_thread(&self, thread: &Thread) {
        thread.state.set(State::Ended);
        if self.ended.get() == 0 {
            self.first_ended.set(thread.linear);
        }
        self.ended.set(self.ended.get() + 1);
        // SAFETY: null, or a checker that outlives its launch.
        if let Some(checker) = unsafe { self.checker.as_ref() } {
            // It may be what others ask for.
            checker.goes_on();
        }
        let used = thread.shared_bytes.get() as usize;
        if self.declared_shared.is_some_and(|declared| declared != used) {
            self.shared_mismatch.set(Some((thread.linear, used)));
        }
    }
}
