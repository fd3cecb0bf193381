//! The blocks of a cluster: they run at the same time, and can access each other's shared memory.

use core::{arch::asm, marker::PhantomData};

use super::memory::Vector128;
use crate::Element;

// Intrinsics rather than `asm!`, because LLVM knows that these are convergent.
unsafe extern "C" {
    #[link_name = "llvm.nvvm.barrier.cluster.arrive.aligned"]
    safe fn barrier_cluster_arrive();
    #[link_name = "llvm.nvvm.barrier.cluster.arrive.relaxed.aligned"]
    safe fn barrier_cluster_arrive_relaxed();
    #[link_name = "llvm.nvvm.barrier.cluster.wait.aligned"]
    safe fn barrier_cluster_wait();
}

macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident = $register:literal;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name() -> u32 {
            let value: u32;
            // SAFETY: reads a special register.
            unsafe {
                asm!(concat!("mov.u32 {}, ", $register, ";"), out(reg32) value,
                    options(pure, nomem, nostack, preserves_flags))
            };
            value
        }
    )*};
}

registers! {
    block_rank = "%cluster_ctarank";
    blocks = "%cluster_nctarank";
}

// Every call reads the special registers, so that the values occupy no registers in between.
#[inline(always)]
pub fn numbers() -> (u32, u32) {
    let (number, count): (u32, u32);
    // SAFETY: reads special registers. Not `pure`: otherwise LLVM would read them once and keep
    // them in registers.
    unsafe {
        asm!("mov.u32 {}, %clusterid.x;", out(reg32) number, options(nomem, nostack, preserves_flags));
        asm!("mov.u32 {}, %nclusterid.x;", out(reg32) count, options(nomem, nostack, preserves_flags));
    }
    (number, count)
}

#[inline(always)]
pub fn sync() {
    barrier_cluster_arrive();
    barrier_cluster_wait();
}

// Cheap, since it makes no writes visible: a release needs a fence of the whole GPU
// (`MEMBAR.ALL.GPU` in the machine code for sm_90).
#[inline(always)]
pub fn arrive_relaxed() {
    barrier_cluster_arrive_relaxed();
}

#[inline(always)]
pub fn wait() {
    barrier_cluster_wait();
}

/// The address, in the window of the cluster, of the corresponding byte of another block's shared
/// memory.
#[inline(always)]
pub(super) fn remote_address(address: u32, rank: u32) -> u32 {
    let remote: u32;
    // SAFETY: computes an address.
    unsafe {
        asm!("mapa.shared::cluster.u32 {}, {}, {};", out(reg32) remote, in(reg32) address,
            in(reg32) rank, options(pure, nomem, nostack, preserves_flags))
    };
    remote
}

#[derive(Clone, Copy)]
pub struct Remote<T> {
    address: u32,
    elements: PhantomData<fn() -> T>,
}

impl<T: Element> Remote<T> {
    #[inline(always)]
    pub(super) fn new(address: u32, rank: u32) -> Self {
        Remote { address: remote_address(address, rank), elements: PhantomData }
    }

    #[inline(always)]
    pub fn load128<const N: usize>(&self, index: usize) -> [T; N] {
        let place = self.address + (index * size_of::<T>()) as u32;
        let (a, b, c, d): (u32, u32, u32, u32);
        // SAFETY: inside the other block's array and aligned, as the kernel promises; the block has
        // not ended. Not `pure`: it stays behind the barrier before it.
        unsafe {
            asm!(
                "ld.shared::cluster.v4.b32 {{{}, {}, {}, {}}}, [{}];",
                out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg32) place,
                options(nostack, preserves_flags, readonly),
            );
        }
        Vector128::from_words([a, b, c, d]).into_array()
    }

    #[inline(always)]
    pub fn store128<const N: usize>(&mut self, index: usize, values: [T; N]) {
        let place = self.address + (index * size_of::<T>()) as u32;
        let [a, b, c, d]: [u32; 4] = Vector128::from_array(values).into_array();
        // SAFETY: as in `load128`.
        unsafe {
            asm!(
                "st.shared::cluster.v4.b32 [{}], {{{}, {}, {}, {}}};",
                in(reg32) place, in(reg32) a, in(reg32) b, in(reg32) c, in(reg32) d,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    pub fn store64<const N: usize>(&mut self, index: usize, values: [T; N]) {
        const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
        let place = self.address + (index * size_of::<T>()) as u32;
        // SAFETY: as in `load128`; equal sizes, and every `T` may hold any bits.
        unsafe {
            let words: [u32; 2] = core::mem::transmute_copy(&values);
            asm!(
                "st.shared::cluster.v2.b32 [{}], {{{}, {}}};",
                in(reg32) place, in(reg32) words[0], in(reg32) words[1],
                options(nostack, preserves_flags),
            );
        }
    }
}
