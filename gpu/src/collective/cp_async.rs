//! Waiting for asynchronous copies.

use super::device::*;

/// Waits until at most the last `pending` groups of this thread's copies are in flight.
#[inline(always)]
pub fn wait_for_all_but(pending: usize) {
    match pending {
        0 => copies::wait_group::<0>(),
        1 => copies::wait_group::<1>(),
        _ => copies::wait_group::<2>(),
    }
}
