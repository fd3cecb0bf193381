//! Fibers: stackful coroutines, on which the threads of a block run.

use std::{
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::OnceLock,
};

use corosensei::{
    Coroutine, CoroutineResult, Yielder,
    stack::{DefaultStack, Stack, StackPointer},
};

use super::{
    exit::{Exit, ExitCell},
    panics,
};

/// Bytes of memory that stacks leave to the process: the C library ends a process that has no
/// memory for a new thread's data.
pub(super) const SPARE_BYTES: usize = 4 * 1024 * 1024;

/// Successive stacks start this many bytes apart within a page. If all started at the same offset,
/// the hot frames of 256 fibers would share a few sets of the L1 cache (a third slower, measured).
const COLOUR_BYTES: usize = 320;

/// A block as its fibers see it: threads to start, one after another.
pub(super) trait ThreadSource: Sized {
    type Thread;

    /// Makes the next thread that has not started the running one, on `fiber`. `None` when all have
    /// started.
    fn start_thread(&self, fiber: &FiberContext<'_, Self>) -> Option<&Self::Thread>;

    /// The kernel, which runs as the running thread.
    fn kernel(&self) -> &(dyn Fn() + Sync);

    /// The running thread has ended the kernel.
    fn end_thread(&self, thread: &Self::Thread);
}

/// A stack whose top is shifted within its highest page.
struct ColouredStack {
    stack: DefaultStack,
    shift: usize,
}

// SAFETY: the guard page is the inner stack's; the base stays aligned, since COLOUR_BYTES and so
// `shift` are multiples of 64, and far more than MIN_STACK_SIZE remain below it.
unsafe impl Stack for ColouredStack {
    fn base(&self) -> StackPointer {
        // `shift` is below 4096 and the stack is larger, so this never falls back on the unshifted
        // base.
        NonZeroUsize::new(self.stack.base().get() - self.shift).unwrap_or(self.stack.base())
    }

    fn limit(&self) -> StackPointer {
        self.stack.limit()
    }
}

/// Why a fiber gave control back.
#[derive(Clone, Copy)]
pub(super) enum Event {
    /// Its thread waits at a barrier of the block.
    Barrier,
    /// Its thread waits for something other than a barrier of the block, or polls.
    Wait,
    /// Its threads have ended, and no further thread is to be started.
    Idle,
    /// Its thread has panicked.
    Panicked,
    /// Its thread overflowed the stack, and was abandoned.
    Overflow,
    /// Its thread does not end, and was abandoned.
    Endless,
    /// Its thread made too many accesses out of bounds, and was abandoned.
    Outside,
}

/// What a thread knows of the fiber that it runs on.
pub(super) struct FiberContext<'a, S> {
    pub(super) yielder: &'a Yielder<*const S, Event>,
    /// The stack's highest address; frames are below it.
    pub(super) stack_end: usize,
    /// The lowest address of the stack above its guard page.
    pub(super) stack_limit: usize,
    /// How a signal handler leaves the fiber.
    pub(super) exit: *const ExitCell,
}

/// Bytes of a page.
fn page_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        #[cfg(unix)]
        // SAFETY: it has no condition.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        #[cfg(not(unix))]
        let bytes = 4096;
        bytes
    })
}

/// The coroutine of a fiber.
type FiberCoroutine<S> = Coroutine<*const S, Event, (), ColouredStack>;

/// A fiber. It lives as long as its worker: between blocks it waits for the next one.
pub(super) struct Fiber<S: ThreadSource + 'static> {
    coroutine: Option<FiberCoroutine<S>>,
    /// Boxed, because the coroutine holds its address.
    exit: Box<ExitCell>,
    /// The thread that it has begun and not ended.
    pub(super) thread: *const S::Thread,
}

impl<S: ThreadSource> Fiber<S> {
    /// The `number`th fiber of a slot. `None`: the system has no memory for its stack and the spare
    /// bytes.
    pub(super) fn new(number: usize, stack_bytes: usize) -> Option<Self> {
        // Before each stack, since other workers allocate theirs at the same time.
        drop(DefaultStack::new(stack_bytes.saturating_add(SPARE_BYTES)).ok()?);
        let stack = DefaultStack::new(stack_bytes).ok()?;
        let shift = ((number * COLOUR_BYTES) % 4096) & !63;
        let exit = Box::new(ExitCell::new(None));
        let coroutine = Some(spawn(ColouredStack { stack, shift }, &exit));
        Some(Fiber { coroutine, exit, thread: std::ptr::null() })
    }

    /// Continues the fiber until its next event.
    ///
    /// # Safety
    /// 1. `block` stays valid until the fiber is idle or has been reset.
    /// 2. The fiber is always resumed on one operating-system thread (the kernel may hold an
    ///    address of a thread-local).
    pub(super) unsafe fn resume(&mut self, block: &S) -> Event {
        match self.coroutine.as_mut().map(|coroutine| coroutine.resume(block)) {
            Some(CoroutineResult::Yield(event)) => event,
            // The loop in `spawn` has no end, so a signal handler made the coroutine return.
            Some(CoroutineResult::Return(())) => self.abandoned(),
            // There always is a coroutine.
            None => Event::Idle,
        }
    }

    /// A signal handler has left the coroutine: its stack overflowed, or the watchdog interrupted
    /// it.
    #[cold]
    #[inline(never)]
    fn abandoned(&mut self) -> Event {
        let exit = self.exit.take();
        let stack = self.coroutine.take().map(FiberCoroutine::into_stack);
        self.coroutine = stack.map(|stack| spawn(stack, &self.exit));
        if exit.is_some_and(|exit| exit.endless) { Event::Endless } else { Event::Overflow }
    }

    /// Abandons the thread that it has begun and not ended.
    pub(super) fn reset(&mut self) {
        if let Some(mut coroutine) = self.coroutine.take() {
            // SAFETY: destructors of the abandoned frames do not run. The frames are `spawn`'s,
            // which own nothing, and the kernel's, which hold nothing that must be dropped (the
            // fifth condition of `launch`); the block is over, so nothing looks at them again.
            unsafe { coroutine.force_reset() };
            self.coroutine = Some(spawn(coroutine.into_stack(), &self.exit));
        }
    }
}

impl<S: ThreadSource> Drop for Fiber<S> {
    fn drop(&mut self) {
        if let Some(coroutine) = self.coroutine.as_mut() {
            // SAFETY: as in `reset`. (Dropping a suspended coroutine would unwind it.)
            unsafe { coroutine.force_reset() };
        }
    }
}

/// A coroutine that runs a block's threads one after another. When a thread suspends, so does the
/// coroutine; when one ends, the next begins.
fn spawn<S: ThreadSource + 'static>(stack: ColouredStack, exit: &ExitCell) -> FiberCoroutine<S> {
    let (stack_end, limit) = (stack.base().get(), stack.limit().get());
    // The lowest page of the stack is its guard page.
    let stack_limit = limit + page_bytes();
    let exit_cell = std::ptr::from_ref(exit);
    let coroutine =
        Coroutine::with_stack(stack, move |yielder: &Yielder<_, _>, mut block: *const S| {
            let fiber = FiberContext { yielder, stack_end, stack_limit, exit: exit_cell };
            loop {
                // SAFETY: valid, by `Fiber::resume`'s first condition.
                let source = unsafe { &*block };
                while let Some(thread) = source.start_thread(&fiber) {
                    // Nothing of the kernel's is used after a panic but its message.
                    if let Err(payload) = catch_unwind(AssertUnwindSafe(source.kernel())) {
                        panics::remember(&*payload);
                        // Its destructor could panic in turn, and nothing needs it.
                        std::mem::forget(payload);
                        yielder.suspend(Event::Panicked);
                    }
                    source.end_thread(thread);
                }
                block = yielder.suspend(Event::Idle);
            }
        });
    let guard = limit..stack_limit;
    exit.set(Some(Exit { handler: coroutine.trap_handler(), guard, endless: false }));
    coroutine
}
