//! Groups of copies of boxes from shared to global memory, which [`DynamicShared::store_box`](super::DynamicShared) begins
//! (PTX ISA, "Bulk async-group").
//!
//! A launch on the CPU carries a copy out where it begins, which is one of the times that the hardware may choose. A
//! checked launch reads shared memory at some time until the thread waits for that, and writes global memory at some time
//! after that.

use crate::cpu::block;

/// The copies of boxes that this thread has begun since the last call become a group (an empty one, where there are none).
#[track_caller]
pub fn commit_group() {
    if let Some(checker) = block::checker() {
        checker.commit_stores();
    }
}

/// Waits until of this thread's groups at most the last `PENDING` may still read shared memory: what the others have copied
/// from may be written again, and the block may end. Other threads know of that after a barrier.
#[track_caller]
pub fn wait_group_read<const PENDING: u32>() {
    if let Some(checker) = block::checker() {
        checker.wait_for_stores(PENDING, false);
    }
}

/// Waits until of this thread's groups at most the last `PENDING` are on their way: what the others have copied is in global
/// memory.
#[track_caller]
pub fn wait_group<const PENDING: u32>() {
    if let Some(checker) = block::checker() {
        checker.wait_for_stores(PENDING, true);
    }
}
