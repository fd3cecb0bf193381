//! Mbarriers: barriers in shared memory that count arrivals of threads and bytes of copies.
//!
//! On the CPU a misuse ends the launch with a fault: a use before the initialisation, too many
//! arrivals or bytes, a wait that never ends.

use std::panic::Location;

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use super::warp;
#[cfg(feature = "cpu")]
use crate::cpu::{
    block::{self, current_cluster, wait_for},
    check,
    cluster::{Place, Wait},
    poll,
};

/// `N` mbarriers, made by [`mbarriers!`](crate::mbarriers).
#[cfg_attr(not(feature = "cpu"), signatures)]
#[derive(Debug)]
pub struct Mbarriers<const N: usize> {
    offset: u32,
    array: *const check::Array,
}

#[cfg_attr(not(feature = "cpu"), signatures)]
impl<const N: usize> Mbarriers<N> {
    /// Declares them.
    #[doc(hidden)]
    #[track_caller]
    pub fn declare() -> Self {
        let (start, array) =
            block::declare_shared(size_of::<u64>(), (N, 1), false, Location::caller());
        let offset = start.addr() - block::shared_base().addr();
        Mbarriers { offset: offset as u32, array } // below 227 KiB
    }

    /// One of them.
    #[track_caller]
    pub fn at(&self, index: usize) -> Mbarrier {
        assert!(index < N, "mbarrier {index}: there are {N}");
        Mbarrier { offset: self.offset + (index * size_of::<u64>()) as u32, array: self.array }
    }

    /// `M` of them, from index `first` on.
    #[track_caller]
    pub fn part<const M: usize>(&self, first: usize) -> Mbarriers<M> {
        assert!(first + M <= N, "mbarriers {first} to {}: there are {N}", first + M);
        Mbarriers { offset: self.offset + (first * size_of::<u64>()) as u32, array: self.array }
    }
}

/// A barrier in shared memory.
///
/// A phase ends when the number of arrivals of its initialisation have come and the announced bytes
/// have been copied. The next phase begins at once. Phases have parities: 0, 1, 0, 1, and so on.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[derive(Clone, Copy, Debug)]
pub struct Mbarrier {
    offset: u32,
    array: *const check::Array,
}

#[cfg_attr(not(feature = "cpu"), signatures)]
impl Mbarrier {
    /// Initialises the mbarrier: phase 0 waits for `arrivals`. One thread does this, once. Others
    /// may use the mbarrier after [`fence_init`] and a barrier.
    #[track_caller]
    pub fn init(self, arrivals: u32) {
        let place = self.place();
        // Not in a closure, which would not have the caller's location.
        if let Err(reason) = current_cluster().init(place, arrivals) {
            crate::cpu::panics::misuse(reason);
        }
        if let Some(checker) = block::checker() {
            checker.init_mbarrier(place, self.array, Location::caller());
        }
    }

    /// Arrives. A thread that waits for this phase sees what this thread did before.
    #[track_caller]
    pub fn arrive(self) {
        self.arrive_at(block::rank(), (1, 0), Location::caller());
    }

    /// Arrives that many times.
    #[track_caller]
    pub fn arrive_many(self, count: u32) {
        assert!(count > 0, "no arrival: at least one");
        self.arrive_at(block::rank(), (count, 0), Location::caller());
    }

    /// Announces `bytes` that copies will complete in this phase, and does not arrive. The phase
    /// must not end before: this thread, or one that it has told, arrives later.
    #[track_caller]
    pub fn expect(self, bytes: u32) {
        self.arrive_at(block::rank(), (0, bytes), Location::caller());
    }

    /// Arrives at the corresponding mbarrier in the block of that rank in this cluster.
    #[track_caller]
    pub fn arrive_remote(self, rank: u32) {
        let blocks = current_cluster().blocks;
        assert!(rank < blocks, "the block of rank {rank}: the cluster has {blocks}");
        self.arrive_at(rank, (1, 0), Location::caller());
    }

    /// [`arrive_remote`](Self::arrive_remote) after reads of memory that the waiting thread is
    /// going to overwrite. It does not order this thread's writes: for these, `arrive_remote` needs
    /// a fence of the whole GPU (`MEMBAR.ALL.GPU` in the machine code for sm_90), which is too slow
    /// in a loop.
    ///
    /// On the CPU it is `arrive_remote`.
    #[track_caller]
    pub fn arrive_remote_after_reads(self, rank: u32) {
        self.arrive_remote(rank);
    }

    /// Arrives, and announces `bytes` that copies will complete in this phase.
    #[track_caller]
    pub fn arrive_expect(self, bytes: u32) {
        self.arrive_at(block::rank(), (1, bytes), Location::caller());
    }

    #[track_caller]
    fn arrive_at(self, rank: u32, (count, bytes): (u32, u32), place: &'static Location<'static>) {
        let at = (rank, self.offset);
        let checker = block::checker();
        if let Some(checker) = checker {
            checker.use_mbarrier(at, place);
            if rank != block::rank() {
                checker.use_remote(rank, "an arrival", place);
                checker.needs_fence(at, place);
            }
        }
        match current_cluster().arrive(at, (count, bytes)) {
            Err(reason) => crate::cpu::panics::misuse(reason),
            Ok(ended) => {
                // An announcement alone tells nobody what this thread did.
                if let Some(checker) = checker.filter(|_| count > 0) {
                    checker.arrive(at, ended);
                }
            }
        }
    }

    /// Waits for the end of the phase of that parity. It has ended if the current phase has the
    /// other parity.
    #[track_caller]
    pub fn wait(self, parity: u32) {
        if !self.has_ended(parity) {
            wait_for(Wait::Mbarrier(self.place(), parity), Location::caller());
        }
        self.tell(parity);
    }

    /// Whether the phase of that parity has ended. If it has, this thread sees what
    /// [`wait`](Self::wait) would let it see.
    #[track_caller]
    pub fn test(self, parity: u32) -> bool {
        let ended = self.has_ended(parity);
        if ended {
            self.tell(parity);
        }
        // It may be repeated until others have arrived.
        poll::count_atomic(Location::caller());
        ended
    }

    /// Whether the phase of that parity has ended.
    #[track_caller]
    fn has_ended(self, parity: u32) -> bool {
        let at = self.place();
        if let Some(checker) = block::checker() {
            checker.use_mbarrier(at, Location::caller());
        }
        match current_cluster().has_ended(at, parity) {
            Err(reason) => crate::cpu::panics::misuse(reason),
            Ok(ended) => ended,
        }
    }

    /// The running thread knows that the phase of that parity has ended.
    fn tell(self, parity: u32) {
        if let Some(checker) = block::checker() {
            checker.waited(self.place(), parity);
        }
    }

    /// [`wait`](Self::wait) for a warp, all of whose lanes call it and go on together.
    #[track_caller]
    pub fn wait_warp(self, parity: u32) {
        self.wait(parity);
        warp::sync_warp(warp::ALL);
    }

    /// Its place in the cluster.
    pub(crate) fn place(self) -> Place {
        (block::rank(), self.offset)
    }
}

/// Makes this thread's initialisations of mbarriers visible to the cluster's blocks and to copies,
/// after a following barrier of the block (or cluster).
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn fence_init() {
    if let Some(checker) = block::checker() {
        checker.fence_init();
    }
}
