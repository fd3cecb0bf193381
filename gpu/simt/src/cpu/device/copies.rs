//! Groups of asynchronous copies from global to shared memory (`cp.async`), which
//! [`Shared::copy_async`](super::Shared) begins.
//!
//! A fast launch on the CPU carries out a copy where it begins, as the hardware may. A checked
//! launch carries it out as late as possible, where the thread waits for it, and reports reads of
//! its destination before that.

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use crate::cpu::{fast::Fast, mode::Mode};

/// Makes a group of the asynchronous copies that this thread has begun since the last call. The
/// group may be empty.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline(always)]
pub fn commit_group() {
    Fast::commit_group();
}

/// Waits until at most the last `PENDING` groups of this thread's copies are in flight.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline(always)]
pub fn wait_group<const PENDING: u32>() {
    Fast::wait_group(PENDING);
}
