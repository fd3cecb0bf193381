//! Bulk groups: groups of TMA copies from shared to global memory, which
//! [`DynamicShared::store_box`](super::DynamicShared) begins (PTX ISA, "Bulk async-group").
//!
//! A fast launch on the CPU carries out a copy where it begins, as the hardware may. A checked
//! launch reads shared memory at some time before the thread's wait for that ends, and writes
//! global memory at some later time before the wait for that ends.

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use crate::cpu::block;

/// Makes a group of the TMA copies to global memory that this thread has begun since the last call.
/// The group may be empty.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn commit_group() {
    if let Some(checker) = block::checker() {
        checker.commit_stores();
    }
}

/// Waits until at most the last `PENDING` of this thread's groups still read shared memory. The
/// sources of the other groups may then be overwritten, and the block may end. Other threads know
/// of that after a barrier.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn wait_group_read<const PENDING: u32>() {
    if let Some(checker) = block::checker() {
        checker.wait_for_stores(PENDING, false);
    }
}

/// Waits until at most the last `PENDING` of this thread's groups are in flight. What the others
/// have copied is then in global memory.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn wait_group<const PENDING: u32>() {
    if let Some(checker) = block::checker() {
        checker.wait_for_stores(PENDING, true);
    }
}
