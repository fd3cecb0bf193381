//! Groups of copies of boxes from shared to global memory, which [`DynamicShared::store_box`](super::DynamicShared) begins
//! (PTX ISA, "Bulk async-group").

use core::arch::asm;

/// The copies of boxes that this thread has begun since the last call become a group (an empty one, where there are none).
#[inline(always)]
pub fn commit_group() {
    // SAFETY: touches no memory by itself; not `nomem`, so that no copy is moved past it.
    unsafe { asm!("cp.async.bulk.commit_group;", options(nostack, preserves_flags)) };
}

/// Waits until of this thread's groups at most the last `PENDING` may still read shared memory: what the others have copied
/// from may be written again, and the block may end. Other threads know of that after a barrier.
#[inline(always)]
pub fn wait_group_read<const PENDING: u32>() {
    // SAFETY: as in `commit_group`; no write to what was copied from is moved before it.
    unsafe {
        asm!("cp.async.bulk.wait_group.read {};", const PENDING, options(nostack, preserves_flags));
    }
}

/// Waits until of this thread's groups at most the last `PENDING` are on their way: what the others have copied is in global
/// memory.
#[inline(always)]
pub fn wait_group<const PENDING: u32>() {
    // SAFETY: as in `commit_group`; no read of what was copied is moved before it.
    unsafe {
        asm!("cp.async.bulk.wait_group {};", const PENDING, options(nostack, preserves_flags));
    }
}
