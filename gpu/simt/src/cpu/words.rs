//! Words of global memory that a launch's blocks wait for each other at: `red.release.gpu`, `ld.acquire.gpu`.

use std::{
    panic::Location,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    thread,
};

use super::{
    block::{self, wait_for},
    cluster::Wait,
    worker::{Asks, Go},
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
pub(super) struct Others {
    state: Mutex<State>,
    /// Counts what clusters have done that others may have waited for. Changed by who holds the lock.
    done: AtomicU64,
}

#[derive(Default)]
struct State {
    busy: usize,
    /// Of these, who only ask again and again; and of these, who have asked in vain since something was last done.
    asking: usize,
    in_vain: usize,
    /// How often all of them have asked, and who has since.
    rounds: u64,
    in_round: usize,
    /// Their addresses, and how much they are to be.
    words: Vec<(usize, u32)>,
}

/// What one who is counted as doing something has said of itself.
pub(super) struct Said {
    asks: Asks,
    /// What had been done then.
    done: u64,
    /// The round in which it last asked.
    round: Option<u64>,
    /// The rounds that there had been when it last said something.
    rounds: u64,
}

impl Default for Said {
    fn default() -> Self {
        Said { asks: Asks::Did, done: 0, round: None, rounds: 0 }
    }
}

impl State {
    /// What one says who asks now.
    fn said(&self, asks: Asks, done: u64, rounds: u64) -> Said {
        let asks = match asks {
            // Something has been done since.
            Asks::InVain(since) if since != done => Asks::Again,
            asks => asks,
        };
        let round = (asks != Asks::Did).then_some(self.rounds);
        Said { asks, done, round, rounds }
    }
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

    /// A cluster has done something that others may have waited for. Who has asked in vain is to ask again. Gives how often that was.
    pub(super) fn something_was_done(&self) -> u64 {
        let mut state = self.lock();
        state.in_vain = 0;
        self.done.fetch_add(1, Ordering::Release) + 1
    }

    /// How often one has.
    #[inline]
    pub(super) fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }

    /// One says of itself whether it only asks. What do the others do?
    ///
    /// Who asked and was resumed may have got what it asked for, and compute: it says so only at its next pause. So an answer is that
    /// all only ask where each of them has asked anew since this one last did.
    pub(super) fn say(&self, said: &mut Said, asks: Asks) -> Go {
        let mut state = self.lock();
        let done = self.done();
        let asked = std::mem::replace(said, state.said(asks, done, said.rounds));
        state.asking -= usize::from(asked.asks != Asks::Did);
        state.in_vain -= usize::from(matches!(asked.asks, Asks::InVain(_)) && asked.done == done);
        state.in_round -= usize::from(asked.round == Some(state.rounds));
        if asks == Asks::Did {
            return Go::OnAmongOthers;
        }
        state.asking += 1;
        state.in_vain += usize::from(matches!(said.asks, Asks::InVain(_)));
        state.in_round += 1;
        if state.in_round == state.busy {
            (state.rounds, state.in_round) = (state.rounds + 1, 0);
        }
        let first = said.rounds == state.rounds;
        said.rounds = state.rounds;
        match () {
            () if state.asking < state.busy || state.words.iter().any(has_come) => {
                Go::OnAmongOthers
            }
            () if first => Go::OnBeforeOthers,
            () if state.in_vain < state.busy => Go::On,
            () => Go::InVain,
        }
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
