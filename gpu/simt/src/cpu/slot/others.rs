//! What a cluster leaves to others: they may do what its threads wait for, or ask for again and again.

use super::{Scheduler, location};
use crate::cpu::{
    block::State,
    cluster::Wait,
    fault::{FaultKind, Stop},
    worker::{Go, Pause},
};

impl Scheduler<'_> {
    /// Counts a round. A cluster that is checked and whose threads come to waits again and again, more often than they may, is taken to ask
    /// for what others may do. Where these only ask themselves, or have ended, it does not end.
    #[inline]
    pub(super) fn count_round(&self) -> Result<(), Stop> {
        self.rounds.set(self.rounds.get() + 1);
        if self.goes_round() { self.let_others_do_something() } else { Ok(()) }
    }

    /// Has it gone more rounds than it may?
    #[inline]
    fn goes_round(&self) -> bool {
        self.checker.is_some_and(|checker| self.rounds.get() > checker.most_rounds())
    }

    #[cold]
    fn let_others_do_something(&self) -> Result<(), Stop> {
        let go = self.waits.suspend(Pause::Asks { again: true });
        self.unless_it_ends()?;
        match (go, self.slot.parked.first()) {
            (Go::On | Go::InVain, Some(&first)) => {
                let thread = self.thread_of(first);
                Err(self.fault(thread, FaultKind::Endless { location: location(thread) }))
            }
            _ => Ok(()),
        }
    }

    /// Does a thread ask again and again for what others may do?
    pub(super) fn is_polling(&self) -> bool {
        let parked = self.slot.parked.iter().map(|&number| self.thread_of(number));
        parked.into_iter().any(|thread| thread.state.get() == State::Released)
    }

    /// Lets other clusters run, which may do what a thread of this one asks for.
    pub(super) fn let_others_run(&self) -> Result<(), Stop> {
        self.asks.set(false);
        let again = !self.did.replace(false) || self.goes_round();
        let go = self.waits.suspend(Pause::Asks { again });
        if let (Go::OnAmongOthers, Some(checker)) = (go, self.checker) {
            checker.goes_on();
        }
        self.unless_it_ends()
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
    pub(super) fn wait_for_others(&self) -> Result<(), Stop> {
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
        match self.waits.suspend(Pause::Words(words)) {
            Go::InVain => Err(self.stuck()),
            Go::On | Go::OnAmongOthers => self.unless_it_ends(),
        }
    }
}
