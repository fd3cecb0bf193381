//! A launch as its workers share it: what is run, which cluster comes next, and how it has failed.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use corosensei::Yielder;

use super::{
    check::CheckedLaunch,
    fault::Stop,
    flag::FlagWait,
    limits::MOST_FIBERS,
    order::Order,
    quiescence::{Activity, Quiescence, Resumption},
};
use crate::LaunchConfig;

/// What a launch runs.
pub(super) struct Program<'a> {
    /// The kernel's name.
    pub(super) name: &'static str,
    /// Bytes of static shared memory that the kernel declares.
    pub(super) declared_shared: Option<usize>,
    /// Bytes of a thread's stack.
    pub(super) stack_bytes: usize,
    pub(super) config: LaunchConfig,
    /// One thread of the kernel, its parameters bound.
    pub(super) kernel: &'a (dyn Fn() + Sync),
    /// Whether the caller has cancelled the launch.
    pub(super) cancelled: &'a (dyn Fn() -> bool + Sync),
    pub(super) order: Order,
}

impl Program<'_> {
    /// Blocks of a cluster.
    pub(super) fn cluster_blocks(&self) -> u32 {
        self.config.cluster.iter().product()
    }

    /// The most fibers that a cluster may need: one for each thread.
    pub(super) fn fibers(&self) -> usize {
        self.config.threads() as usize * self.cluster_blocks() as usize
    }

    /// The error where there is no memory for the stacks of a cluster: all of them, as one alone
    /// may well be free.
    pub(super) fn no_stacks(&self) -> Stop {
        Stop::OutOfMemory((self.fibers() as u64).saturating_mul(self.stack_bytes as u64))
    }
}

/// A launch as its workers share it.
pub(super) struct LaunchState<'a> {
    pub(super) program: Program<'a>,
    /// The index of the `number`th cluster among the clusters, along x, y, z.
    pub(super) position: &'a (dyn Fn(u64) -> [u32; 3] + Sync),
    /// The number of the next cluster to begin, and the end of the numbers.
    pub(super) next: AtomicU64,
    pub(super) end: u64,
    /// Counts the blocks that have ended.
    pub(super) done: Option<&'a AtomicU64>,
    /// Whether a cluster has failed.
    pub(super) failed: AtomicBool,
    /// The failure of the cluster with the lowest number. Clusters begin in order, and each that
    /// has begun is run to its end, so it does not depend on timing. Clusters that wait for flags
    /// are an exception: they are interrupted.
    pub(super) failure: Mutex<Option<(u64, Stop)>>,
    /// Slots that are in use, slots that were ever opened, and the most that may be in use at once.
    pub(super) open: AtomicU64,
    pub(super) opened: AtomicU64,
    pub(super) most_open: u64,
    pub(super) quiescence: Quiescence,
    /// `None` in a fast launch.
    pub(super) checked: Option<&'a CheckedLaunch<'a>>,
}

/// Why a cluster gives control back to its worker although its threads have not ended.
pub(super) enum Suspension {
    /// All its threads wait, and some of them for these flags.
    Flags(Vec<FlagWait>),
    /// It polls.
    Poll(Activity),
}

/// What a cluster gives control back through.
pub(super) type ClusterYielder = Yielder<Resumption, Suspension>;

impl LaunchState<'_> {
    /// Whether there is a cluster that has not begun.
    pub(super) fn is_left(&self) -> bool {
        !self.has_failed() && self.next.load(Ordering::Relaxed) < self.end
    }

    /// Takes the next cluster.
    pub(super) fn take(&self) -> Option<u64> {
        let number = self.is_left().then(|| self.next.fetch_add(1, Ordering::Relaxed));
        number.filter(|number| *number < self.end)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether the launch is to end early: it was cancelled, or a cluster has failed.
    pub(super) fn ends_early(&self) -> bool {
        (self.program.cancelled)() || self.has_failed()
    }

    /// The next cluster needs fibers, and for too long there was no room for them.
    pub(super) fn fail_without_room(&self) {
        let next = self.next.load(Ordering::Relaxed);
        self.fail(next, Stop::TooManyThreads(MOST_FIBERS));
    }

    /// A cluster has failed.
    pub(super) fn fail(&self, number: u64, reason: Stop) {
        self.failed.store(true, Ordering::Relaxed);
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        // A cluster that was interrupted because another failed says less than the other.
        let rank = |number, reason: &Stop| (matches!(reason, Stop::Interrupted), number);
        let new = rank(number, &reason);
        if failure.as_ref().is_none_or(|(lowest, old)| new < rank(*lowest, old)) {
            *failure = Some((number, reason));
        }
    }
}
