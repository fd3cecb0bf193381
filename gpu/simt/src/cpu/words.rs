//! Words of global memory that a launch's blocks wait for each other at: `red.release.gpu`, `ld.acquire.gpu`.

use std::{
    panic::Location,
    sync::atomic::{AtomicU32, Ordering},
};

use super::{
    block::{self, wait_for},
    cluster::Wait,
};

/// The word of that place.
fn word<'a>(place: *mut u32) -> &'a AtomicU32 {
    // SAFETY: an element of a view, which is valid and aligned while the launch runs; others touch it in this way, too, or a
    // checked launch reports a race.
    unsafe { AtomicU32::from_ptr(place) }
}

/// Adds, and lets those see what this thread knows who wait for it.
pub(super) fn release_add(place: *mut u32, value: u32) {
    // Before the word says so.
    if let Some(checker) = block::checker() {
        checker.release(place.addr());
    }
    word(place).fetch_add(value, Ordering::Release);
}

/// Waits until the word is at least so much.
pub(super) fn wait_for_at_least(
    place: *mut u32,
    wanted: u32,
    location: &'static Location<'static>,
) {
    if !is_at_least(place, wanted) {
        wait_for(Wait::Word(place, wanted), location);
    }
    if let Some(checker) = block::checker() {
        checker.acquire(place.addr());
    }
}

/// Is it?
pub(super) fn is_at_least(place: *mut u32, wanted: u32) -> bool {
    word(place).load(Ordering::Acquire) >= wanted
}
