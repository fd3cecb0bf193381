//! When a cluster gives control back to its worker: it waits for a flag, or polls, and other
//! clusters may have to run first.
//!
//! In a checked launch this is also where a cluster that does not end is found. A cluster has a
//! budget of rounds. Past that it counts as polling. It is endless when its budget has been used up
//! once more and no cluster of the launch has made progress meanwhile.

use super::{Scheduler, location};
use crate::cpu::{
    block::State,
    check::Checker,
    cluster::Wait,
    fault::{FaultKind, Stop},
    flag::FlagWait,
    launch_state::Suspension,
    quiescence::{Activity, Resumption},
};

/// In a fast launch: rounds between two suspensions of a cluster in which some threads poll while
/// others go on.
const FAST_INTERVAL: u64 = 64;

/// In a checked launch: rounds between two suspensions of a cluster past its budget, while no other
/// cluster makes progress.
const CHECKED_INTERVAL: u64 = 16;

impl Scheduler<'_> {
    /// Ends a round, in which `some` waits were over; otherwise only threads that poll go on. This
    /// is the one place where a cluster lets others run although it could go on.
    #[inline]
    pub(super) fn end_round(&mut self, some: bool) -> Result<(), Stop> {
        match self.checker {
            Some(checker) => self.end_checked_round(checker, some),
            None if self.polling => self.end_polling_round(some),
            None => Ok(()),
        }
    }

    /// Ends a round of a fast launch in which a thread polls.
    fn end_polling_round(&mut self, some: bool) -> Result<(), Stop> {
        self.rounds += 1;
        if some && !self.rounds.is_multiple_of(FAST_INTERVAL) {
            return Ok(());
        }
        self.yielder.suspend(Suspension::Poll(Activity::Progress));
        self.check_launch_goes_on()
    }

    /// Counts the round, suspends the cluster if it polls or is past its budget, and finds one that
    /// does not end.
    fn end_checked_round(&mut self, checker: &Checker, some: bool) -> Result<(), Stop> {
        self.rounds += u64::from(some);
        let progress = self.launch.quiescence.progress();
        if progress != self.seen_progress {
            (self.seen_progress, self.budget_from) = (progress, self.rounds);
        }
        let budget = checker.most_rounds();
        let is_past_budget = some && self.rounds > budget;
        if !self.polling && !(is_past_budget && self.rounds >= self.next_suspension) {
            return Ok(());
        }
        let activity = if self.has_progressed {
            Activity::Progress
        } else if self.rounds - self.budget_from > budget {
            Activity::Stalled(self.seen_progress)
        } else {
            Activity::Polling
        };
        let resumption = self.suspend(Suspension::Poll(activity));
        self.check_launch_goes_on()?;
        self.next_suspension = self.rounds + 1;
        match (resumption, self.slot.parked.first()) {
            (Resumption::OthersActive, _) => checker.reset_accesses(),
            (Resumption::Quiescent, Some(&first)) if is_past_budget => {
                let thread = self.thread_of(first);
                return Err(self.fault(thread, FaultKind::Endless { location: location(thread) }));
            }
            _ => {
                self.next_suspension = self.rounds + CHECKED_INTERVAL;
                // The clusters that it polled for may have made progress, and ended.
                if self.launch.quiescence.progress() != self.seen_progress {
                    checker.reset_accesses();
                } else if matches!(resumption, Resumption::OthersUnknown) {
                    checker.limit_accesses(self.counted);
                }
            }
        }
        self.counted = checker.counted_accesses();
        Ok(())
    }

    /// Threads have gone on. Others may have waited for that, so it is progress. Past the budget it
    /// is none: otherwise two clusters that never end would each take the other's rounds for
    /// progress.
    #[inline]
    pub(super) fn note_progress(&mut self) {
        if let Some(checker) = self.checker {
            self.has_progressed |= self.rounds <= checker.most_rounds();
        }
    }

    /// Gives control back. Before that it records whether the cluster has made progress.
    fn suspend(&mut self, suspension: Suspension) -> Resumption {
        if std::mem::take(&mut self.has_progressed) {
            let progress = self.launch.quiescence.record_progress();
            if progress == self.seen_progress + 1 {
                // No other cluster has made progress.
                self.seen_progress = progress;
            }
        }
        self.yielder.suspend(suspension)
    }

    fn check_launch_goes_on(&self) -> Result<(), Stop> {
        match self.launch.ends_early() {
            true => Err(Stop::Interrupted),
            false => Ok(()),
        }
    }

    /// No thread can go on by what the cluster does itself. Where threads wait for flags, other
    /// clusters may raise them.
    pub(super) fn wait_for_others(&mut self) -> Result<(), Stop> {
        let flags = self.slot.threads.iter().filter_map(|thread| {
            match (thread.state.get(), self.cluster.wait_of(thread.number).get()) {
                (State::Waits, Wait::Flag(flag)) => Some(flag),
                _ => None,
            }
        });
        let flags = flags.collect::<Vec<FlagWait>>();
        if flags.is_empty() {
            return Err(self.deadlock());
        }
        match self.suspend(Suspension::Flags(flags)) {
            Resumption::Quiescent => Err(self.deadlock()),
            Resumption::Continue | Resumption::OthersActive | Resumption::OthersUnknown => {
                self.check_launch_goes_on()
            }
        }
    }
}
