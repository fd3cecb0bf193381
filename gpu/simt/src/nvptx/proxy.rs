//! Proxy fences: they order accesses of threads with those of tensor cores and TMA.

use core::arch::asm;

#[inline(always)]
pub fn fence_proxy_async() {
    // SAFETY: orders accesses, touches none.
    unsafe { asm!("fence.proxy.async.shared::cta;", options(nostack, preserves_flags)) };
}

#[inline(always)]
pub fn fence_proxy_async_global() {
    // SAFETY: orders accesses, touches none.
    unsafe { asm!("fence.proxy.async.global;", options(nostack, preserves_flags)) };
}
