//! What a cluster leaves to others: they may do what its threads wait for, or ask for again and again.

use super::{Scheduler, location};
use crate::cpu::{
    block::State,
    check::Checker,
    cluster::Wait,
    fault::{FaultKind, Stop},
    worker::{Asks, Go, Pause},
};

/// In a launch that is not checked, rounds of a cluster some of whose threads ask, from one pause to the next, as long as others of its
/// threads go on.
const BETWEEN_PAUSES: u64 = 64;

/// In a checked launch, rounds of a cluster past its budget from one pause to the next, while no other does anything.
const BETWEEN_QUESTIONS: u64 = 16;

impl Scheduler<'_> {
    /// Ends a round, in which some threads' waits have come to their ends, or those go on alone that ask again and again. The one place
    /// where a cluster lets others run although it could go on.
    #[inline]
    pub(super) fn end_round(&mut self, some: bool) -> Result<(), Stop> {
        match self.checker {
            Some(checker) => self.end_checked_round(checker, some),
            None if self.polling => self.let_others_run(some),
            None => Ok(()),
        }
    }

    /// A thread asks for what others may do.
    fn let_others_run(&mut self, some: bool) -> Result<(), Stop> {
        self.rounds += 1;
        if some && !self.rounds.is_multiple_of(BETWEEN_PAUSES) {
            return Ok(());
        }
        self.waits.suspend(Pause::Asks(Asks::Did));
        self.unless_it_ends()
    }

    /// Counts the round. A cluster whose threads have come to more waits than they may is taken to ask for what others may do. It does not
    /// end where nobody does anything, and nobody has for a whole budget of its rounds.
    fn end_checked_round(&mut self, checker: &Checker, some: bool) -> Result<(), Stop> {
        self.rounds += u64::from(some);
        let done = self.launch.others.done();
        if done != self.seen {
            (self.seen, self.budget_from) = (done, self.rounds);
        }
        let most = checker.most_rounds();
        let is_past = some && self.rounds > most;
        if !self.polling && !(is_past && self.rounds >= self.next_pause) {
            return Ok(());
        }
        let asks = match () {
            () if self.did => Asks::Did,
            () if self.rounds - self.budget_from > most => Asks::InVain(self.seen),
            () => Asks::Again,
        };
        let go = self.pause(Pause::Asks(asks));
        self.unless_it_ends()?;
        self.next_pause = self.rounds + 1;
        match (go, self.slot.parked.first()) {
            (Go::OnAmongOthers, _) => checker.goes_on(),
            (Go::InVain, Some(&first)) if is_past => {
                let thread = self.thread_of(first);
                return Err(self.fault(thread, FaultKind::Endless { location: location(thread) }));
            }
            _ => {
                self.next_pause = self.rounds + BETWEEN_QUESTIONS;
                // Those that it had asked may have done something, and ended.
                if self.launch.others.done() != self.seen {
                    checker.goes_on();
                } else if matches!(go, Go::OnBeforeOthers) {
                    checker.discount(self.counted);
                }
            }
        }
        self.counted = checker.counted();
        Ok(())
    }

    /// Threads have gone on. Only within the budget is that something that others may have waited for: or two that never end would
    /// wait for each other.
    #[inline]
    pub(super) fn goes_on(&mut self) {
        if let Some(checker) = self.checker {
            self.did |= self.rounds <= checker.most_rounds();
        }
    }

    /// Gives control back, and tells before whether the cluster has done something.
    fn pause(&mut self, pause: Pause) -> Go {
        if std::mem::take(&mut self.did) {
            let done = self.launch.others.something_was_done();
            if done == self.seen + 1 {
                // By nobody else.
                self.seen = done;
            }
        }
        self.waits.suspend(pause)
    }

    /// The launch goes on.
    fn unless_it_ends(&self) -> Result<(), Stop> {
        match (self.launch.job.cancelled)() || self.launch.has_failed() {
            true => Err(Stop::Interrupted),
            false => Ok(()),
        }
    }

    /// No thread can go on by what the cluster does itself. Others may do what one of them waits for, while there are others that do
    /// anything.
    pub(super) fn wait_for_others(&mut self) -> Result<(), Stop> {
        let words = self.slot.threads.iter().filter_map(|thread| {
            match (thread.state.get(), self.cluster.wait_of(thread).get()) {
                (State::Waits, Wait::Word(place, wanted)) => Some((place.addr(), wanted)),
                _ => None,
            }
        });
        let words = words.collect::<Vec<_>>();
        if words.is_empty() {
            return Err(self.stuck());
        }
        match self.pause(Pause::Words(words)) {
            Go::InVain => Err(self.stuck()),
            Go::On | Go::OnAmongOthers | Go::OnBeforeOthers => self.unless_it_ends(),
        }
    }
}
