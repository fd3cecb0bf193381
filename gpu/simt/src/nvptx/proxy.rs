//! Two ways to the same memory, and what puts them in order.

use core::arch::asm;

/// What this thread has written to shared memory, and what it knows that others have, is seen by tensor cores and
/// tensor copies that begin after this: in this thread, or behind a barrier that follows.
#[inline(always)]
pub fn fence_proxy_async() {
    // SAFETY: orders accesses, touches none.
    unsafe { asm!("fence.proxy.async.shared::cta;", options(nostack, preserves_flags)) };
}

/// The same of global memory: what this thread knows to have been written there is seen by tensor copies that it begins after this.
#[inline(always)]
pub fn fence_proxy_async_global() {
    // SAFETY: orders accesses, touches none.
    unsafe { asm!("fence.proxy.async.global;", options(nostack, preserves_flags)) };
}
