//! Bulk groups: groups of TMA copies from shared to global memory, which
//! [`DynamicShared::store_box`](super::DynamicShared) begins (PTX ISA, "Bulk async-group").

use core::arch::asm;

#[inline(always)]
pub fn commit_group() {
    // SAFETY: touches no memory by itself; not `nomem`, so that no copy is moved past it.
    unsafe { asm!("cp.async.bulk.commit_group;", options(nostack, preserves_flags)) };
}

#[inline(always)]
pub fn wait_group_read<const PENDING: u32>() {
    // SAFETY: as in `commit_group`; no write to what was copied from is moved before it.
    unsafe {
        asm!("cp.async.bulk.wait_group.read {};", const PENDING, options(nostack, preserves_flags));
    }
}

#[inline(always)]
pub fn wait_group<const PENDING: u32>() {
    // SAFETY: as in `commit_group`; no read of what was copied is moved before it.
    unsafe {
        asm!("cp.async.bulk.wait_group {};", const PENDING, options(nostack, preserves_flags));
    }
}
