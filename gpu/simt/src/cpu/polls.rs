//! Threads that let others run though they do not wait, and threads that are left.

use std::panic::Location;

use super::{
    block::{State, Thread, current},
    fiber::Event,
};

/// A thread lets others run because it may wait for what they do.
pub(super) const POLLING: u8 = u8::MAX;
/// Atomic operations before it does.
const MOST_POLLS: u8 = 64;

/// The running thread has made an atomic operation. After some of them others run, should it wait for what they do.
#[inline(always)]
pub(super) fn polls(place: &'static Location<'static>) {
    let thread = current();
    match thread.polls.get() {
        polls if polls < MOST_POLLS => thread.polls.set(polls + 1),
        _ => let_others_run(thread, place),
    }
}

#[cold]
#[inline(never)]
fn let_others_run(thread: &Thread, place: &'static Location<'static>) {
    thread.polls.set(POLLING);
    thread.state.set(State::Released);
    thread.wait(place, Event::Some);
    thread.state.set(State::Running);
    thread.polls.set(0);
}

/// Leaves the running thread, which is not resumed.
#[cold]
#[inline(never)]
pub(super) fn leave(event: Event, place: &'static Location<'static>) -> ! {
    loop {
        current().wait(place, event);
    }
}
