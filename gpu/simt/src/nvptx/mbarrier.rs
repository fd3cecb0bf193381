//! Mbarriers: barriers in shared memory that count arrivals of threads and bytes of copies.

use core::arch::asm;

use super::{
    cluster,
    shared_space::{declare_array, simt_shared_address},
    warp,
};

/// `N` mbarriers, made by [`mbarriers!`](crate::mbarriers).
pub struct Mbarriers<const N: usize>(u32);

impl<const N: usize> Mbarriers<N> {
    /// Declares them.
    #[doc(hidden)]
    #[inline(always)]
    pub fn declare() -> Self {
        Mbarriers(simt_shared_address(declare_array::<u64, N, 1>().cast()))
    }

    /// One of them.
    #[inline(always)]
    pub fn at(&self, index: usize) -> Mbarrier {
        Mbarrier(self.0 + index as u32 * size_of::<u64>() as u32)
    }

    /// `M` of them, from index `first` on.
    #[inline(always)]
    pub fn part<const M: usize>(&self, first: usize) -> Mbarriers<M> {
        Mbarriers(self.at(first).0)
    }
}

/// A barrier in shared memory.
///
/// A phase ends when the number of arrivals of its initialisation have come and the announced bytes
/// have been copied. The next phase begins at once. Phases have parities: 0, 1, 0, 1, and so on.
#[derive(Clone, Copy)]
pub struct Mbarrier(u32);

impl Mbarrier {
    /// Initialises the mbarrier: phase 0 waits for `arrivals`. One thread does this, once. Others
    /// may use the mbarrier after [`fence_init`] and a barrier.
    #[inline(always)]
    pub fn init(self, arrivals: u32) {
        // SAFETY: an mbarrier that this block has declared; not `nomem`: the order with accesses is
        // kept.
        unsafe {
            asm!("mbarrier.init.shared::cta.b64 [{}], {};", in(reg32) self.0, in(reg32) arrivals,
                options(nostack, preserves_flags));
        }
    }

    /// Arrives. A thread that waits for this phase sees what this thread did before.
    #[inline(always)]
    pub fn arrive(self) {
        // SAFETY: as in `init`.
        unsafe {
            asm!("mbarrier.arrive.shared::cta.b64 _, [{}];", in(reg32) self.0,
                options(nostack, preserves_flags));
        }
    }

    /// Arrives at the corresponding mbarrier in the block of that rank in this cluster.
    #[inline(always)]
    pub fn arrive_remote(self, rank: u32) {
        let place = cluster::remote_address(self.0, rank);
        // SAFETY: as in `init`, and the cluster's blocks have the same shared memory.
        unsafe {
            asm!("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [{}];", in(reg32) place,
                options(nostack, preserves_flags));
        }
    }

    /// [`arrive_remote`](Self::arrive_remote) after reads of memory that the waiting thread is
    /// going to overwrite. It does not order this thread's writes: for these, `arrive_remote` needs
    /// a fence of the whole GPU (`MEMBAR.ALL.GPU` in the machine code for sm_90), which is too slow
    /// in a loop.
    #[inline(always)]
    pub fn arrive_remote_after_reads(self, rank: u32) {
        let place = cluster::remote_address(self.0, rank);
        // SAFETY: as in `arrive_remote`. Without a scope it is a release in this block: the values
        // that were read have arrived before it. It makes nothing visible to the other block.
        unsafe {
            asm!("mbarrier.arrive.shared::cluster.b64 _, [{}];", in(reg32) place,
                options(nostack, preserves_flags));
        }
    }

    /// Arrives, and announces `bytes` that copies will complete in this phase.
    #[inline(always)]
    pub fn arrive_expect(self, bytes: u32) {
        // SAFETY: as in `init`.
        unsafe {
            asm!("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};", in(reg32) self.0,
                in(reg32) bytes, options(nostack, preserves_flags));
        }
    }

    /// Waits for the end of the phase of that parity. It has ended if the current phase has the
    /// other parity.
    #[inline(always)]
    pub fn wait(self, parity: u32) {
        while !self.has_ended(parity) {}
    }

    /// [`wait`](Self::wait) for a warp, all of whose lanes call it and go on together. It is
    /// cheaper in a loop: the compiler need not expect that lanes leave the wait one by one.
    #[inline(always)]
    pub fn wait_warp(self, parity: u32) {
        while !warp::all(warp::ALL, self.has_ended(parity)) {}
    }

    #[inline(always)]
    fn has_ended(self, parity: u32) -> bool {
        let ended: u32;
        // SAFETY: as in `init`. It suspends the thread for a limited time, then tells whether the
        // phase has ended.
        unsafe {
            asm!(
                "{{ .reg .pred ended; mbarrier.try_wait.parity.shared::cta.b64 ended, [{}], {}; \
                 selp.u32 {}, 1, 0, ended; }}",
                in(reg32) self.0,
                in(reg32) parity,
                out(reg32) ended,
                options(nostack, preserves_flags),
            );
        }
        ended != 0
    }

    /// Its address in shared memory, for copies that complete there.
    #[inline(always)]
    pub(super) fn address(self) -> u32 {
        self.0
    }
}

/// Makes this thread's initialisations of mbarriers visible to the cluster's blocks and to copies,
/// after a following barrier of the block (or cluster).
#[inline(always)]
pub fn fence_init() {
    // SAFETY: orders accesses, touches none.
    unsafe { asm!("fence.mbarrier_init.release.cluster;", options(nostack, preserves_flags)) };
}
