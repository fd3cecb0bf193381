//! Proxy fences: they order accesses of threads with those of tensor cores and TMA.

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use crate::cpu::block;

/// Makes what this thread has written to shared memory, and what it has seen of others' writes,
/// visible to tensor cores and TMA copies that begin after this: in this thread, or after a
/// following barrier.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn fence_proxy_async() {
    if let Some(checker) = block::checker() {
        checker.fence_proxy();
    }
}

/// The same for global memory: TMA copies that this thread begins after this see the writes that
/// this thread has seen. (A checked launch does not require it.)
#[cfg_attr(not(feature = "cpu"), signatures)]
pub fn fence_proxy_async_global() {
    block::current();
}
