//! Flags in global memory, as the running thread uses them.

use std::panic::Location;

use crate::cpu::{
    block::{self, wait_for},
    cluster::Wait,
    flag::{self, FlagWait},
};

/// Adds to a flag. What the running thread knows is visible to whoever waits for the flag.
pub(super) fn release_add(place: *mut u32, value: u32) {
    let add = || flag::release_add(place, value);
    match block::checker() {
        Some(checker) => checker.release(place.addr(), add),
        None => _ = add(),
    }
}

/// Waits until a flag has reached a value.
pub(super) fn wait_for_at_least(
    place: *mut u32,
    at_least: u32,
    location: &'static Location<'static>,
) {
    let wait = FlagWait { address: place.addr(), at_least };
    if !wait.is_over() {
        wait_for(Wait::Flag(wait), location);
    }
    if let Some(checker) = block::checker() {
        checker.acquire(place.addr(), at_least);
    }
}
