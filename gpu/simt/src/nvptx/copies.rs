//! Groups of asynchronous copies from global to shared memory: `cp.async`.

use core::arch::asm;

#[inline(always)]
pub fn commit_group() {
    // SAFETY: touches no memory by itself; not `nomem`, so that no copy is moved past it.
    unsafe { asm!("cp.async.commit_group;", options(nostack, preserves_flags)) };
}

#[inline(always)]
pub fn wait_group<const PENDING: u32>() {
    // SAFETY: as in `commit_group`; no read of what was copied is moved before it.
    unsafe {
        asm!("cp.async.wait_group {};", const PENDING, options(nostack, preserves_flags));
    }
}
