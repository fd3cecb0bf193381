//! Barriers in shared memory, which count arrivals of threads and bytes of copies: `mbarrier`.

use core::arch::asm;

use super::{cluster, shared::simt_shared_address, warp};

/// `N` barriers in shared memory, made by [`mbarriers!`](crate::mbarriers).
pub struct Mbarriers<const N: usize>(u32);

impl<const N: usize> Mbarriers<N> {
    /// Sets them aside.
    #[doc(hidden)]
    #[inline(always)]
    pub fn declare() -> Self {
        let mut array = super::Shared::<u64, N>::declare();
        Mbarriers(simt_shared_address(array.as_mut_ptr().cast()))
    }

    /// One of them.
    #[inline(always)]
    pub fn at(&self, index: usize) -> Mbarrier {
        Mbarrier(self.0 + index as u32 * size_of::<u64>() as u32)
    }

    /// `M` of them, from that one on.
    #[inline(always)]
    pub fn part<const M: usize>(&self, first: usize) -> Mbarriers<M> {
        Mbarriers(self.at(first).0)
    }
}

/// A barrier in shared memory.
///
/// It goes from phase to phase. A phase ends when as many arrivals have come as it was initialised for, and as many
/// bytes as were announced; the next one begins at once. Phases have parities: 0, 1, 0, 1, and so on.
#[derive(Clone, Copy)]
pub struct Mbarrier(u32);

impl Mbarrier {
    /// Begins phase 0, which waits for `arrivals`. One thread does it, once; it is seen by others after
    /// [`fence_init`] and a barrier.
    #[inline(always)]
    pub fn init(self, arrivals: u32) {
        // SAFETY: a barrier of this block's that was set aside; not `nomem`: an order with accesses is kept.
        unsafe {
            asm!("mbarrier.init.shared::cta.b64 [{}], {};", in(reg32) self.0, in(reg32) arrivals,
                options(nostack, preserves_flags));
        }
    }

    /// Arrives. What this thread did before is done for whoever waits for this phase.
    #[inline(always)]
    pub fn arrive(self) {
        // SAFETY: as in `init`.
        unsafe {
            asm!("mbarrier.arrive.shared::cta.b64 _, [{}];", in(reg32) self.0,
                options(nostack, preserves_flags));
        }
    }

    /// Arrives at the barrier of the same place in the block of that rank in this cluster.
    #[inline(always)]
    pub fn arrive_remote(self, rank: u32) {
        let place = cluster::remote_address(self.0, rank);
        // SAFETY: as in `init`, and the cluster's blocks have the same shared memory.
        unsafe {
            asm!("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [{}];", in(reg32) place,
                options(nostack, preserves_flags));
        }
    }

    /// [`arrive_remote`](Self::arrive_remote) of a thread that has read what whoever waits is going to overwrite. Its writes
    /// are not put in order: for their sake the other costs a fence of the whole GPU (`MEMBAR.ALL.GPU` in the machine code for
    /// sm_90), which a loop cannot afford.
    #[inline(always)]
    pub fn arrive_remote_after_reads(self, rank: u32) {
        let place = cluster::remote_address(self.0, rank);
        // SAFETY: as in `arrive_remote`. Without a scope it is a release in this block, behind which the values that were
        // read have come; nothing is to be seen by the other block.
        unsafe {
            asm!("mbarrier.arrive.shared::cluster.b64 _, [{}];", in(reg32) place,
                options(nostack, preserves_flags));
        }
    }

    /// Arrives, and announces `bytes` that copies will bring in this phase.
    #[inline(always)]
    pub fn arrive_expect(self, bytes: u32) {
        // SAFETY: as in `init`.
        unsafe {
            asm!("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};", in(reg32) self.0,
                in(reg32) bytes, options(nostack, preserves_flags));
        }
    }

    /// Waits for the end of the phase of that parity. It has ended where the other parity's is the current one.
    #[inline(always)]
    pub fn wait(self, parity: u32) {
        while !self.has_ended(parity) {}
    }

    /// [`wait`](Self::wait) for a warp, all of whose lanes come here and go on together. That is cheaper where a loop waits:
    /// the compiler need not expect that lanes leave it one by one.
    #[inline(always)]
    pub fn wait_warp(self, parity: u32) {
        while !warp::all(warp::ALL, self.has_ended(parity)) {}
    }

    #[inline(always)]
    fn has_ended(self, parity: u32) -> bool {
        let ended: u32;
        // SAFETY: as in `init`. It suspends the thread for a while, then says how things stand.
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

    /// Its place in shared memory, for what signals it.
    #[inline(always)]
    pub(super) fn address(self) -> u32 {
        self.0
    }
}

/// Makes this thread's initialisations of barriers seen by the cluster's blocks and by copies, once a barrier of the
/// block (or cluster) follows.
#[inline(always)]
pub fn fence_init() {
    // SAFETY: orders accesses, touches none.
    unsafe { asm!("fence.mbarrier_init.release.cluster;", options(nostack, preserves_flags)) };
}
