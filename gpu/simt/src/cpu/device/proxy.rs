//! Two ways to the same memory, and what puts them in order.

use crate::cpu::block;

/// What this thread has written to shared memory, and what it knows that others have, is seen by tensor cores and
/// tensor copies that begin after this: in this thread, or behind a barrier that follows.
#[track_caller]
pub fn fence_proxy_async() {
    if let Some(checker) = block::checker() {
        checker.fence_proxy();
    }
}

/// The same of global memory: what this thread knows to have been written there is seen by tensor copies that it begins after this.
/// (A checked launch does not ask for it.)
pub fn fence_proxy_async_global() {
    block::current();
}
