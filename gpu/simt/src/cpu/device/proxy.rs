//! Proxy fences: they order accesses of threads with those of tensor cores and TMA.

use crate::cpu::block;

/// Makes what this thread has written to shared memory, and what it has seen of others' writes,
/// visible to tensor cores and TMA copies that begin after this: in this thread, or after a
/// following barrier.
#[track_caller]
pub fn fence_proxy_async() {
    if let Some(checker) = block::checker() {
        checker.fence_proxy();
    }
}

/// The same for global memory: TMA copies that this thread begins after this see the writes that
/// this thread has seen. (A checked launch does not require it.)
pub fn fence_proxy_async_global() {
    block::current();
}
