//! Fibers: stacks of their own, on which the threads of a block run.

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
    block::{BlockRun, Thread},
    fault::{self, Stop},
    pool::{self, MOST_WORKERS},
    room,
    trap::{Exit, Way},
};

/// Address space of a stack, where the kernel declares nothing else. Only pages that are touched take memory; a panic needs about
/// 32 KiB. A thread that needs more runs into the guard page below it ([`trap`](super::trap)).
pub(super) const STACK_BYTES: usize = 256 * 1024;

/// What stacks leave of a process's memory: the C library ends a process that has none for a few words of a new thread's.
const SPARE_BYTES: usize = 4 * 1024 * 1024;

/// Fibers of a process at most. A stack is two mappings, and a Linux process has 65530 unless its administrator grants more.
pub(super) const MOST_FIBERS: usize = MOST_WORKERS * 1024;

/// Successive stacks start this many bytes apart within a page. All at the same offset, the hot frames of
/// 256 fibers would share a few sets of the first-level cache (a third slower, measured).
const COLOUR_BYTES: usize = 320;

/// A stack whose top is shifted within its highest page.
struct ColouredStack {
    stack: DefaultStack,
    shift: usize,
}

// SAFETY: the guard page is the inner stack's; the base stays aligned, since COLOUR_BYTES and so `shift`
// are multiples of 64, and far more than MIN_STACK_SIZE remain below it.
unsafe impl Stack for ColouredStack {
    fn base(&self) -> StackPointer {
        // `shift` is below 4096 and the stack is larger, so this never falls back on the unshifted base.
        NonZeroUsize::new(self.stack.base().get() - self.shift).unwrap_or(self.stack.base())
    }

    fn limit(&self) -> StackPointer {
        self.stack.limit()
    }
}

/// Why a fiber gave control back.
#[derive(Clone, Copy)]
pub(super) enum Event {
    /// The thread it runs waits for its block.
    Barrier,
    /// The thread it runs waits for lanes of its warp, or for something else than its block.
    Some,
    /// Its threads have ended and no further one is to be started.
    Idle,
    /// The thread it runs has panicked.
    Panicked,
    /// The thread that it ran needed more stack than there is. It is left.
    Overflow,
    /// The thread that it runs goes on and on without a wait.
    Endless,
    /// The thread that it runs has gone outside so often that it is left.
    Outside,
}

/// What a thread knows of the fiber that it runs on.
pub(super) struct OnFiber<'a> {
    pub(super) yielder: &'a Yielder<*const BlockRun, Event>,
    /// Where the stack ends: its frames lie below.
    pub(super) stack_end: usize,
    /// The lowest address of the stack that it may touch.
    pub(super) limit: usize,
    /// How it is left where its stack is too small.
    pub(super) exit: *const Exit,
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

/// Of so many workers, those for which the process's limits leave stacks, should each need so many fibers. A launch that has begun
/// cannot do with fewer. (Stacks of other launches count as this one's: then one may fail.)
pub(super) fn workers(wanted: usize, fibers: usize, stack_bytes: usize) -> usize {
    // And a stack for what runs a cluster.
    let bytes = fibers.saturating_add(1).saturating_mul(stack_bytes);
    let bytes = bytes.saturating_add(SPARE_BYTES + room::THREAD_BYTES);
    room::workers(wanted, bytes, pool::fibers().saturating_mul(STACK_BYTES))
}

/// Do they leave stacks for so many more?
pub(super) fn are_given(fibers: usize, stack_bytes: usize) -> bool {
    fibers == 0 || room::gives(fibers.saturating_mul(stack_bytes).saturating_add(SPARE_BYTES))
}

/// What runs on a fiber's stack.
type Run = Coroutine<*const BlockRun, Event, (), ColouredStack>;

/// A fiber. It lives as long as its worker: between blocks it waits for the next one.
pub(super) struct Fiber {
    coroutine: Option<Run>,
    /// Boxed, since what runs holds its address.
    exit: Box<Exit>,
    /// The thread that it is in the middle of.
    pub(super) thread: *const Thread,
}

impl Fiber {
    /// The `number`th fiber of a slot. Fails where the system has no memory for its stack.
    pub(super) fn new(number: usize, stack_bytes: usize) -> Result<Self, Stop> {
        // The stack alone is what is missing, also where it would leave too little.
        let of = |bytes: usize| {
            DefaultStack::new(bytes).map_err(|_| Stop::OutOfMemory(stack_bytes as u64))
        };
        // Before each, since other workers make theirs meanwhile.
        drop(of(stack_bytes.saturating_add(SPARE_BYTES))?);
        let stack = of(stack_bytes)?;
        let shift = ((number * COLOUR_BYTES) % 4096) & !63;
        let exit = Box::new(Exit::new(None));
        let coroutine = Some(spawn(ColouredStack { stack, shift }, &exit));
        Ok(Fiber { coroutine, exit, thread: std::ptr::null() })
    }

    /// Runs on until the next event.
    ///
    /// # Safety
    /// 1. `run` stays valid until the fiber is idle or has been reset.
    /// 2. The fiber is always resumed on one operating-system thread (the kernel may hold an address of
    ///    a thread-local).
    pub(super) unsafe fn resume(&mut self, run: &BlockRun) -> Event {
        match self.coroutine.as_mut().map(|coroutine| coroutine.resume(run)) {
            Some(CoroutineResult::Yield(event)) => event,
            // `spawn`'s loop has no end: only where it was left.
            Some(CoroutineResult::Return(())) => self.left(),
            // There always is one.
            None => Event::Idle,
        }
    }

    /// It has been left, where its stack was too small or by the watchdog.
    #[cold]
    #[inline(never)]
    fn left(&mut self) -> Event {
        let way = self.exit.take();
        let stack = self.coroutine.take().map(Run::into_stack);
        self.coroutine = stack.map(|stack| spawn(stack, &self.exit));
        if way.is_some_and(|way| way.endless) { Event::Endless } else { Event::Overflow }
    }

    /// Abandons the thread that it is in the middle of.
    pub(super) fn reset(&mut self) {
        if let Some(mut coroutine) = self.coroutine.take() {
            // SAFETY: destructors of the abandoned frames do not run. The frames are `spawn`'s, which
            // own nothing, and the kernel's, which hold nothing that must be dropped (the fifth condition
            // of `launch`); the block is over, so nothing looks at them again.
            unsafe { coroutine.force_reset() };
            self.coroutine = Some(spawn(coroutine.into_stack(), &self.exit));
        }
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        if let Some(coroutine) = self.coroutine.as_mut() {
            // SAFETY: as in `reset`. (Dropping a suspended coroutine would unwind it.)
            unsafe { coroutine.force_reset() };
        }
    }
}

/// A coroutine that runs threads: the first that is not started, the next when that ends, and so on.
fn spawn(stack: ColouredStack, exit: &Exit) -> Run {
    let (stack_end, limit) = (stack.base().get(), stack.limit().get());
    // Below it one page may not be touched.
    let lowest = limit + page_bytes();
    let exit_of = std::ptr::from_ref(exit);
    let coroutine =
        Coroutine::with_stack(stack, move |yielder: &Yielder<_, _>, mut run: *const BlockRun| {
            let fiber = OnFiber { yielder, stack_end, limit: lowest, exit: exit_of };
            loop {
                // SAFETY: valid, by `Fiber::resume`'s first condition.
                let block = unsafe { &*run };
                while let Some(thread) = block.start_thread(&fiber) {
                    // Nothing of the kernel's is used after a panic but its message.
                    if let Err(payload) = catch_unwind(AssertUnwindSafe(block.kernel)) {
                        fault::remember(&*payload);
                        // Its destructor could panic in turn, and nobody misses it.
                        std::mem::forget(payload);
                        yielder.suspend(Event::Panicked);
                    }
                    block.end_thread(thread);
                }
                run = yielder.suspend(Event::Idle);
            }
        });
    let guard = limit..lowest;
    exit.set(Some(Way { handler: coroutine.trap_handler(), guard, endless: false }));
    coroutine
}
