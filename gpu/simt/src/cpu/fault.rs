//! Why a launch ends early, and the faults of a kernel.

use std::panic::Location;

/// Why a launch ended early.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Stop {
    /// The kernel failed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The caller's cancel flag was raised.
    #[error("interrupted")]
    Interrupted,
    /// There is no memory for the stacks of a block's threads, or for the checker's shadow memory:
    /// that number of bytes.
    #[error(
        "no memory: {0} bytes needed for the stacks of a block's threads, or for the shadow memory of a checked launch"
    )]
    OutOfMemory(u64),
    /// Blocks that wait for each other have more threads than there can be stacks.
    #[error(
        "more than {0} threads wait at once, in blocks that wait for each other: the CPU device has no more stacks"
    )]
    TooManyThreads(usize),
    /// The launch breaks the kernel's declaration or a limit of the device.
    #[error("{0}")]
    Config(String),
}

impl Stop {
    /// Whether it is a thread that does not end.
    pub(super) fn is_endless(&self) -> bool {
        matches!(self, Stop::Fault(Fault { kind: FaultKind::Endless { .. }, .. }))
    }
}

/// A kernel that failed on the CPU device.
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

/// The kinds of faults of a kernel's thread.
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
    /// A barrier, or an mbarrier, that is used as it must not be: one arrival too many, no
    /// initialisation, or a second one.
    #[error("{message} (at {location})")]
    BarrierMisuse {
        /// What is wrong.
        message: String,
        /// File, line and column.
        location: String,
    },
    /// A thread that overflows its stack, mostly because of large local arrays.
    #[error(
        "needs more stack than the {bytes} bytes that a thread has; `#[kernel(stack = ..)]` declares more"
    )]
    StackOverflow {
        /// Bytes of its stack.
        bytes: usize,
    },
    /// A thread that does not end: it makes too many accesses, or computes for too long, without a
    /// wait.
    #[error("does not end{}", last_seen(.location))]
    Endless {
        /// File, line and column of the last access that was counted, or of the last wait. Empty:
        /// there was none.
        location: String,
    },
    /// A thread that was stopped after too many accesses out of bounds.
    #[error("was stopped after too many accesses out of bounds")]
    Outside,
    /// A barrier that another thread of the block never reaches.
    #[error("waits at the barrier at {location}, but thread {exited:?} of its block has ended")]
    BarrierSkipped {
        /// A thread that ended without coming to the barrier.
        exited: [u32; 3],
        /// File, line and column of the barrier.
        location: String,
    },
    /// A warp operation that some of its lanes never reach, or that reads a lane outside its mask.
    #[error("{operation} at {location}: {reason}")]
    WarpOperation {
        /// `sync_warp`, `vote` or `shuffle`.
        operation: &'static str,
        /// What is wrong.
        reason: String,
        /// File, line and column of the operation.
        location: String,
    },
    /// A wait that never ends: for an mbarrier, a named barrier, products, a flag, or the barrier
    /// of the cluster.
    #[error("{operation} at {location}: {reason}")]
    Wait {
        /// The operation that waits.
        operation: &'static str,
        /// What is missing, and where the other threads are.
        reason: String,
        /// File, line and column of the wait.
        location: String,
    },
    /// A copy whose bytes its mbarrier does not expect.
    #[error("the copy begun at {location}: {reason}")]
    Copy {
        /// What is wrong.
        reason: String,
        /// File, line and column of the place where it begins.
        location: String,
    },
    /// Shared arrays whose size differs from the kernel's declaration.
    #[error("used {used} bytes of static shared memory, the kernel declares {declared}")]
    SharedMismatch {
        /// Bytes declared.
        declared: usize,
        /// Bytes of the arrays that the thread declared.
        used: usize,
    },
}

/// A place in the source as text: file, line and column. (A module tree that is compiled a second
/// time has `#[path = "."]`, and so `/./` in its files' paths.)
pub(super) fn place_name(place: &Location) -> String {
    place.to_string().replace("/./", "/")
}

/// Where a thread was seen last, if it was.
fn last_seen(location: &str) -> String {
    if location.is_empty() { String::new() } else { format!(", last seen at {location}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_never_seen_has_no_place() {
        let says = |location: &str| FaultKind::Endless { location: location.into() }.to_string();
        assert_eq!(says("src/a.rs:3:5"), "does not end, last seen at src/a.rs:3:5");
        assert_eq!(says(""), "does not end");
    }
}
