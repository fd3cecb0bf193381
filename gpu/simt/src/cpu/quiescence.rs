//! Detection of deadlock and livelock among the workers of a launch.
//!
//! A cluster may wait for a *flag* that another block raises, or *poll*: repeat an atomic operation
//! until another block has changed the memory. Nothing tells what a polling thread waits for. So a
//! cluster waits in vain only when no other cluster can make *progress*:
//!
//! * deadlock: all workers wait for flags, and no flag has been raised;
//! * livelock: all workers only poll, each for longer than its budget, and no worker has made
//!   progress meanwhile.
//!
//! Each worker reports its [`Activity`] here, and is answered what the other workers do.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use super::flag::FlagWait;

/// What a cluster, or a worker with all its clusters, has done since its last report. Ordered: a
/// worker reports the least of its clusters'.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Activity {
    /// It has made progress.
    Progress,
    /// It has only polled.
    Polling,
    /// It has only polled, its budget of rounds is used up, and no cluster has made progress since
    /// the launch's count was this one ([`Quiescence::progress`]).
    Stalled(u64),
}

/// How a cluster that was suspended goes on.
#[derive(Clone, Copy)]
pub(super) enum Resumption {
    /// What it waited for has come, or the launch ends; or it polls again while all other workers
    /// only poll.
    Continue,
    /// It polls again, and other workers may make progress.
    OthersActive,
    /// It polls again. Another worker that polled has not reported since: it may have found what it
    /// polled for, and make progress.
    OthersUnknown,
    /// No worker can make progress: what it waits for never comes.
    Quiescent,
}

/// The state of a wait for flags.
pub(super) enum WaitState {
    /// One of the flags has been raised.
    Raised,
    /// None has been raised, and other workers may still do it.
    Pending,
    /// No worker is active, and no flag that anybody waits for has been raised.
    Quiescent,
}

/// What the workers of a launch do.
#[derive(Default)]
pub(super) struct Quiescence {
    state: Mutex<State>,
    /// The launch's progress: how often a cluster has done something that others may have waited
    /// for. Changed under the lock.
    progress: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Workers in the launch that do not wait for flags.
    active: usize,
    /// Active workers that only poll.
    polling: usize,
    /// Polling workers that are stalled, since the last progress.
    stalled: usize,
    /// Rounds: in each, all active workers have polled anew.
    rounds: u64,
    /// Workers that have polled in the current round.
    in_round: usize,
    /// The flags that the other workers wait for.
    flags: Vec<FlagWait>,
}

/// A worker's last report.
pub(super) struct Report {
    activity: Activity,
    /// The launch's progress at that time.
    progress: u64,
    /// The round in which it reported that it polls.
    round: Option<u64>,
    /// The number of rounds at its last poll.
    rounds: u64,
}

impl Default for Report {
    fn default() -> Self {
        Report { activity: Activity::Progress, progress: 0, round: None, rounds: 0 }
    }
}

impl Quiescence {
    /// A worker joins the launch.
    pub(super) fn add_worker(&self) {
        self.lock().active += 1;
    }

    /// A worker has left the launch.
    pub(super) fn remove_worker(&self) {
        self.lock().active -= 1;
    }

    /// A cluster has done something that others may have waited for. Workers that were stalled have
    /// to poll again. Gives the new count.
    pub(super) fn record_progress(&self) -> u64 {
        let mut state = self.lock();
        state.stalled = 0;
        self.progress.fetch_add(1, Ordering::Release) + 1
    }

    /// The launch's progress so far.
    #[inline]
    pub(super) fn progress(&self) -> u64 {
        self.progress.load(Ordering::Acquire)
    }

    /// A worker reports its activity in place of its `last` report, and is told what the others do.
    ///
    /// A worker that polled and was resumed may have found what it polled for, and compute: it
    /// reports that only when it suspends again. So the answer is that all workers only poll where
    /// each of them has polled anew since this worker's last poll.
    pub(super) fn report(&self, last: &mut Report, activity: Activity) -> Resumption {
        let mut state = self.lock();
        let progress = self.progress();
        let before = std::mem::replace(last, state.new_report(activity, progress, last.rounds));
        state.polling -= usize::from(before.activity != Activity::Progress);
        let was_stalled = matches!(before.activity, Activity::Stalled(_));
        state.stalled -= usize::from(was_stalled && before.progress == progress);
        state.in_round -= usize::from(before.round == Some(state.rounds));
        if activity == Activity::Progress {
            return Resumption::OthersActive;
        }
        state.polling += 1;
        state.stalled += usize::from(matches!(last.activity, Activity::Stalled(_)));
        state.in_round += 1;
        if state.in_round == state.active {
            (state.rounds, state.in_round) = (state.rounds + 1, 0);
        }
        let no_new_round = last.rounds == state.rounds;
        last.rounds = state.rounds;
        if state.polling < state.active || state.flags.iter().any(FlagWait::is_over) {
            Resumption::OthersActive
        } else if no_new_round {
            Resumption::OthersUnknown
        } else if state.stalled < state.active {
            Resumption::Continue
        } else {
            Resumption::Quiescent
        }
    }

    /// A worker waits for any of these flags, until `ends` gives a result for the state of the
    /// wait.
    pub(super) fn wait_for_flags<R>(
        &self,
        flags: &[FlagWait],
        ends: impl Fn(WaitState) -> Option<R>,
    ) -> R {
        let mut state = self.lock();
        state.active -= 1;
        state.flags.extend_from_slice(flags);
        loop {
            let wait = match state.active {
                _ if flags.iter().any(FlagWait::is_over) => WaitState::Raised,
                0 if !state.flags.iter().any(FlagWait::is_over) => WaitState::Quiescent,
                _ => WaitState::Pending,
            };
            if let Some(result) = ends(wait) {
                state.active += 1;
                for flag in flags {
                    let at = state.flags.iter().position(|other| other == flag);
                    at.map(|at| state.flags.swap_remove(at));
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

impl State {
    /// The report of a worker whose last poll was when there had been that number of rounds.
    fn new_report(&self, activity: Activity, progress: u64, rounds: u64) -> Report {
        let activity = match activity {
            // There has been progress since.
            Activity::Stalled(since) if since != progress => Activity::Polling,
            activity => activity,
        };
        let round = (activity != Activity::Progress).then_some(self.rounds);
        Report { activity, progress, round, rounds }
    }
}
