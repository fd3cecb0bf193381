//! Groups of asynchronous copies from global to shared memory, which
//! [`Shared::copy_async`](super::Shared) begins: `cp.async` of PTX.
//!
//! A launch on the CPU carries a copy out where it begins, which is one of the times that the hardware may
//! choose. A checked launch carries it out as late as it may, where the thread waits for it, and reports whoever
//! reads what has not come.

use crate::cpu::mode::{Fast, Mode};

/// The copies that this thread has begun since the last call become a group (an empty one, where there are
/// none).
#[inline(always)]
pub fn commit_group() {
    Fast::commit_group();
}

/// Waits until of this thread's groups at most the last `PENDING` are on their way.
#[inline(always)]
pub fn wait_group<const PENDING: u32>() {
    Fast::wait_group(PENDING);
}
