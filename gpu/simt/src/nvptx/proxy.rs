//! Proxy fences: they order accesses of threads with those of tensor cores and TMA.

use core::arch::asm;

/// Makes what this thread has written to shared memory, and what it has seen of others' writes,
/// visible to tensor cores and TMA copies that begin after this: in this thread, or after a
/// following barrier.
#[inline(always)]
pub fn fence_proxy_async() {
    // SAFETY: orders accesses, touches none.
    unsafe { asm!("fence.proxy.async.shared::cta;", options(nostack, preserves_flags)) };
}

/// The same for global memory: TMA copies that this thread begins after this see the writes that
/// this thread has seen.
#[inline(always)]
pub fn fence_proxy_async_global() {
    // SAFETY: orders accesses, touches none.
    unsafe { asm!("fence.proxy.async.global;", options(nostack, preserves_flags)) };
}
