//! Words of global memory that a launch's blocks wait for each other at: `red.release.gpu`, `ld.acquire.gpu`.

use std::{
    panic::Location,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
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
    let add = || word(place).fetch_add(value, Ordering::Release).wrapping_add(value);
    match block::checker() {
        Some(checker) => checker.release(place.addr(), add),
        None => _ = add(),
    }
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
        checker.acquire(place.addr(), wanted);
    }
}

/// Is it?
pub(super) fn is_at_least(place: *mut u32, wanted: u32) -> bool {
    word(place).load(Ordering::Acquire) >= wanted
}

/// The same of a word by its address.
pub(super) fn has_come(&(address, wanted): &(usize, u32)) -> bool {
    is_at_least(address as *mut u32, wanted)
}

/// Who runs the clusters of a launch: how many do something, and the words that the others wait for.
#[derive(Default)]
pub(super) struct Others(Mutex<State>);

#[derive(Default)]
struct State {
    busy: usize,
    /// Of these, who only ask again and again.
    asking: usize,
    /// Their addresses, and how much they are to be.
    words: Vec<(usize, u32)>,
}

/// What has become of a wait.
pub(super) enum Waited {
    Come,
    NotYet,
    /// Nobody does anything, and no word has come that anybody waits for.
    InVain,
}

impl Others {
    /// One begins.
    pub(super) fn begin(&self) {
        self.lock().busy += 1;
    }

    /// This one, who is counted as doing something, only asks again and again; or it does not. Do others do more?
    pub(super) fn others_do_something(&self, only_asks: bool, asked: &mut bool) -> bool {
        let mut state = self.lock();
        match (std::mem::replace(asked, only_asks), only_asks) {
            (false, true) => state.asking += 1,
            (true, false) => state.asking -= 1,
            _ => {}
        }
        state.busy - state.asking > usize::from(!only_asks)
    }

    /// One has no more to do.
    pub(super) fn end(&self) {
        self.lock().busy -= 1;
    }

    /// One waits for any of these words, until `ends` gives something for what has become of that.
    pub(super) fn wait<R>(&self, words: &[(usize, u32)], ends: impl Fn(Waited) -> Option<R>) -> R {
        let mut state = self.lock();
        state.busy -= 1;
        state.words.extend_from_slice(words);
        loop {
            let waited = match state.busy {
                _ if words.iter().any(has_come) => Waited::Come,
                0 if !state.words.iter().any(has_come) => Waited::InVain,
                _ => Waited::NotYet,
            };
            if let Some(result) = ends(waited) {
                state.busy += 1;
                for word in words {
                    let at = state.words.iter().position(|other| other == word);
                    at.map(|at| state.words.swap_remove(at));
                }
                return result;
            }
            drop(state);
            thread::yield_now();
            state = self.lock();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
