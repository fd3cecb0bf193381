//! Barriers for some of a block's warps: `bar.sync` and `bar.arrive` with an id (PTX ISA, "bar,
//! barrier").

// Intrinsics rather than `asm!`, because LLVM knows that these are convergent.
unsafe extern "C" {
    #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.count"]
    safe fn barrier_sync(id: u32, threads: u32);
    #[link_name = "llvm.nvvm.barrier.cta.arrive.aligned.count"]
    safe fn barrier_arrive(id: u32, threads: u32);
}

pub struct NamedBarriers<const FIRST: u32, const COUNT: u32, const THREADS: u32>(());

impl<const FIRST: u32, const COUNT: u32, const THREADS: u32> NamedBarriers<FIRST, COUNT, THREADS> {
    #[doc(hidden)]
    #[inline(always)]
    pub fn declare() -> Self {
        const {
            assert!(FIRST >= 1 && COUNT >= 1 && FIRST + COUNT <= 16, "ids are 1 to 15");
            assert!(THREADS.is_multiple_of(32) && THREADS >= 32 && THREADS <= 1024, "whole warps");
        }
        NamedBarriers(())
    }

    #[inline(always)]
    pub fn at(&self, index: usize) -> NamedBarrier<THREADS> {
        NamedBarrier { id: FIRST + index as u32 }
    }
}

#[derive(Clone, Copy)]
pub struct NamedBarrier<const THREADS: u32> {
    id: u32,
}

impl<const THREADS: u32> NamedBarrier<THREADS> {
    #[inline(always)]
    pub fn sync(self) {
        barrier_sync(self.id, THREADS);
    }

    #[inline(always)]
    pub fn arrive(self) {
        barrier_arrive(self.id, THREADS);
    }
}
