//! Mbarriers: barriers in shared memory that count arrivals of threads and bytes of copies.

use core::arch::asm;

use super::{
    cluster,
    shared_space::{declare_array, simt_shared_address},
    warp,
};

pub struct Mbarriers<const N: usize>(u32);

impl<const N: usize> Mbarriers<N> {
    #[doc(hidden)]
    #[inline(always)]
    pub fn declare() -> Self {
        Mbarriers(simt_shared_address(declare_array::<u64, N, 1>().cast()))
    }

    #[inline(always)]
    pub fn at(&self, index: usize) -> Mbarrier {
        Mbarrier(self.0 + index as u32 * size_of::<u64>() as u32)
    }

    #[inline(always)]
    pub fn part<const M: usize>(&self, first: usize) -> Mbarriers<M> {
        Mbarriers(self.at(first).0)
    }
}

#[derive(Clone, Copy)]
pub struct Mbarrier(u32);

/// Whether an mbarrier's phase of that parity has ended, by that instruction.
macro_rules! ended {
    ($wait:literal, $mbarrier:expr, $parity:expr) => {{
        let ended: u32;
        // SAFETY: as in `init`.
        unsafe {
            asm!(
                concat!(
                    "{{ .reg .pred ended; mbarrier.", $wait, ".parity.shared::cta.b64 ended, [{}], {}; \
                     selp.u32 {}, 1, 0, ended; }}"
                ),
                in(reg32) $mbarrier.0,
                in(reg32) $parity,
                out(reg32) ended,
                options(nostack, preserves_flags),
            );
        }
        ended != 0
    }};
}

impl Mbarrier {
    #[inline(always)]
    pub fn init(self, arrivals: u32) {
        // SAFETY: an mbarrier that this block has declared; not `nomem`: the order with accesses is
        // kept.
        unsafe {
            asm!("mbarrier.init.shared::cta.b64 [{}], {};", in(reg32) self.0, in(reg32) arrivals,
                options(nostack, preserves_flags));
        }
    }

    #[inline(always)]
    pub fn arrive(self) {
        // SAFETY: as in `init`.
        unsafe {
            asm!("mbarrier.arrive.shared::cta.b64 _, [{}];", in(reg32) self.0,
                options(nostack, preserves_flags));
        }
    }

    #[inline(always)]
    pub fn arrive_many(self, count: u32) {
        // SAFETY: as in `init`.
        unsafe {
            asm!("mbarrier.arrive.shared::cta.b64 _, [{}], {};", in(reg32) self.0,
                in(reg32) count, options(nostack, preserves_flags));
        }
    }

    #[inline(always)]
    pub fn expect(self, bytes: u32) {
        // SAFETY: as in `init`.
        unsafe {
            asm!("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [{}], {};", in(reg32) self.0,
                in(reg32) bytes, options(nostack, preserves_flags));
        }
    }

    #[inline(always)]
    pub fn arrive_remote(self, rank: u32) {
        let place = cluster::remote_address(self.0, rank);
        // SAFETY: as in `init`, and the cluster's blocks have the same shared memory.
        unsafe {
            asm!("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [{}];", in(reg32) place,
                options(nostack, preserves_flags));
        }
    }

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

    #[inline(always)]
    pub fn arrive_expect(self, bytes: u32) {
        // SAFETY: as in `init`.
        unsafe {
            asm!("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};", in(reg32) self.0,
                in(reg32) bytes, options(nostack, preserves_flags));
        }
    }

    #[inline(always)]
    pub fn wait(self, parity: u32) {
        while !self.has_ended(parity) {}
    }

    // Cheaper in a loop: the compiler need not expect that lanes leave the wait one by one.
    #[inline(always)]
    pub fn wait_warp(self, parity: u32) {
        while !warp::all(warp::ALL, self.has_ended(parity)) {}
    }

    #[inline(always)]
    pub fn test(self, parity: u32) -> bool {
        ended!("test_wait", self, parity)
    }

    // It suspends the thread for a limited time, then tells whether the phase has ended.
    #[inline(always)]
    fn has_ended(self, parity: u32) -> bool {
        ended!("try_wait", self, parity)
    }

    /// Its address in shared memory, for copies that complete there.
    #[inline(always)]
    pub(super) fn address(self) -> u32 {
        self.0
    }
}

#[inline(always)]
pub fn fence_init() {
    // SAFETY: orders accesses, touches none.
    unsafe { asm!("fence.mbarrier_init.release.cluster;", options(nostack, preserves_flags)) };
}
