//! Flags in global memory: counters by which the blocks of a launch wait for each other.
//!
//! A block adds to a flag with release semantics (PTX `red.release.gpu`). Another waits until the
//! flag has reached a value, and reads it with acquire semantics (`ld.acquire.gpu`).

use std::sync::atomic::{AtomicU32, Ordering};

/// A value that a thread waits for a flag to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlagWait {
    /// The flag's address.
    pub(super) address: usize,
    /// The least value that ends the wait.
    pub(super) at_least: u32,
}

impl FlagWait {
    /// Whether the flag has reached the value.
    pub(super) fn is_over(&self) -> bool {
        // SAFETY: an element of a view, which is valid and aligned while the launch runs. Other
        // threads access it as a flag, too, or a checked launch reports a race.
        let flag = unsafe { AtomicU32::from_ptr(self.address as *mut u32) };
        flag.load(Ordering::Acquire) >= self.at_least
    }
}
