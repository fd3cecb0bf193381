//! Running launches of the process, and copies of kernels' variables between them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Counts the running launches. A copy of a variable waits until none runs, and new launches wait
/// until it is done.
#[derive(Default)]
pub(super) struct Launches {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    /// Callers that copy a variable, or wait to. While there are any, no launch begins: otherwise
    /// they might wait for ever.
    copying: usize,
}

impl Launches {
    /// Begins a launch. It waits for copies of variables, and for no other launch.
    pub(super) fn begin(&self) -> Running<'_> {
        let copied = |state: &mut State| state.copying > 0;
        let state = self.changed.wait_while(self.lock(), copied);
        state.unwrap_or_else(PoisonError::into_inner).running += 1;
        Running(self)
    }

    /// Calls `copy` while no launch runs. Not to be called in a kernel, which would wait for
    /// itself.
    pub(super) fn between<R>(&self, copy: impl FnOnce() -> R) -> R {
        let mut state = self.lock();
        state.copying += 1;
        let runs = |state: &mut State| state.running > 0;
        let state = self.changed.wait_while(state, runs);
        // Copies run one at a time, under the lock.
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let result = copy();
        state.copying -= 1;
        drop(state);
        self.changed.notify_all();
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A launch that runs, until this is dropped.
pub(super) struct Running<'a>(&'a Launches);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
        self.0.changed.notify_all();
    }
}
