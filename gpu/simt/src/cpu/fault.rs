//! How a kernel goes wrong, and how a panic in it is turned into that.

use std::{
    any::Any,
    cell::RefCell,
    panic::{self, Location},
    sync::Once,
};

use super::block;

/// Why a launch ended early.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Stop {
    /// The kernel went wrong.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The caller's cancel flag was raised.
    #[error("interrupted")]
    Interrupted,
    /// No memory for the stacks of a block's fibers, or for the shadow of a buffer: so many bytes.
    #[error(
        "no memory: {0} bytes needed for the fibers of a block, or for the shadows of a checked launch"
    )]
    OutOfMemory(u64),
    /// Blocks that wait for each other have more threads, which wait at once, than there can be stacks.
    #[error(
        "more than {0} threads wait at once, in blocks that wait for each other: the CPU device has stacks for so many"
    )]
    TooManyThreads(usize),
    /// The launch breaks what the kernel declares, or a limit.
    #[error("{0}")]
    Config(String),
}

impl Stop {
    /// Is it a thread that does not end?
    pub(super) fn is_endless(&self) -> bool {
        matches!(self, Stop::Fault(Fault { kind: FaultKind::Endless { .. }, .. }))
    }
}

/// A kernel that went wrong on the CPU device.
///
/// Where several blocks fail, this is the one with the lowest index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel {kernel}, block {block:?}, thread {thread:?}: {kind}")]
pub struct Fault {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The block's index along x, y, z.
    pub block: [u32; 3],
    /// The thread's index along x, y, z.
    pub thread: [u32; 3],
    /// What happened.
    pub kind: FaultKind,
}

/// What went wrong in a thread of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// A panic: an index out of bounds, an assertion.
    #[error("{message} (at {location})")]
    Panic {
        /// The panic's message.
        message: String,
        /// File, line and column.
        location: String,
    },
    /// A thread that needs more stack than it has: large arrays of its own, as a rule.
    #[error(
        "needs more stack than the {bytes} bytes that a thread has; `#[kernel(stack = ..)]` declares more"
    )]
    StackOverflow {
        /// Bytes of its stack.
        bytes: usize,
    },
    /// A thread that makes more accesses than anybody waits for, or computes for longer, without a wait.
    #[error("goes on without an end, last seen at {location}")]
    Endless {
        /// File, line and column of the last access that was counted, or of the last wait.
        location: String,
    },
    /// A thread that was left because it had gone outside so often.
    #[error("has gone outside too often")]
    Outside,
    /// A barrier that another thread of the block never comes to.
    #[error("waits at the barrier at {location}, but thread {exited:?} of its block has ended")]
    BarrierSkipped {
        /// A thread that ended without coming to the barrier.
        exited: [u32; 3],
        /// File, line and column of the barrier.
        location: String,
    },
    /// A warp operation whose lanes do not come together, or that reads a lane that takes no part.
    #[error("{operation} at {location}: {reason}")]
    WarpOperation {
        /// `sync_warp`, `vote` or `shuffle`.
        operation: &'static str,
        /// What is wrong.
        reason: String,
        /// File, line and column of the operation.
        location: String,
    },
    /// A wait for what never comes: an mbarrier's phase, or the threads of a cluster.
    #[error("{operation} at {location}: {reason}")]
    Wait {
        /// What the thread waits for.
        operation: &'static str,
        /// What is missing, and where the others are.
        reason: String,
        /// File, line and column of the wait.
        location: String,
    },
    /// A copy whose mbarrier does not expect it.
    #[error("the copy begun at {location}: {reason}")]
    Copy {
        /// What is wrong.
        reason: String,
        /// File, line and column of where it begins.
        location: String,
    },
    /// Shared arrays of another size than the kernel declares.
    #[error("used {used} bytes of static shared memory, the kernel declares {declared}")]
    SharedMismatch {
        /// Bytes declared.
        declared: usize,
        /// Bytes of the arrays that the thread came by.
        used: usize,
    },
}

thread_local! {
    /// Message and place of the panic that is unwinding a fiber of this thread.
    static LAST: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Makes a panic inside a kernel silent and remembers its place, which the panic's payload does not hold.
/// Panics elsewhere go to the hook that was there before.
pub(super) fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !block::in_kernel() {
                return previous(info);
            }
            let message = info.payload_as_str().unwrap_or("panicked").to_owned();
            let location = info.location().map(place_name).unwrap_or_default();
            LAST.set(Some((message, location)));
        }));
    });
}

/// File, line and column. (A module tree that is compiled a second time stands below `#[path = "."]`.)
pub(super) fn place_name(place: &Location) -> String {
    place.to_string().replace("/./", "/")
}

/// Keeps a caught panic's message, should another hook have taken the place of ours.
pub(super) fn remember(payload: &(dyn Any + Send)) {
    let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    LAST.with_borrow_mut(|last| {
        if let (None, Some(text)) = (&last, text) {
            *last = Some((text, "an unknown place".to_owned()));
        }
    });
}

/// The panic that has just been caught on this thread.
pub(super) fn last_panic() -> FaultKind {
    let (message, location) =
        LAST.take().unwrap_or_else(|| ("panicked".to_owned(), "an unknown place".to_owned()));
    FaultKind::Panic { message, location }
}
