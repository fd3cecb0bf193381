//! Threads that poll: a thread that makes many atomic operations may wait for other threads to
//! change the memory, so the others must run now and then. Also here: how a thread is abandoned.

use std::panic::Location;

use super::{
    block::{State, Thread, current},
    fiber::Event,
};

/// The value of [`Thread::polls`] while the thread lets others run.
pub(super) const POLLING: u8 = u8::MAX;

/// Atomic operations of a thread after which it lets others run.
const MOST_POLLS: u8 = 64;

/// Counts an atomic operation of the running thread. After [`MOST_POLLS`] of them it lets other
/// threads run.
#[inline(always)]
pub(super) fn count_atomic(place: &'static Location<'static>) {
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
    thread.wait(place, Event::Wait);
    thread.state.set(State::Running);
    thread.polls.set(0);
}

/// Abandons the running thread. It is never resumed.
#[cold]
#[inline(never)]
pub(super) fn abandon(event: Event, place: &'static Location<'static>) -> ! {
    loop {
        current().wait(place, event);
    }
}
