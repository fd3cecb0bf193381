//! What a named barrier does: rounds that end when as many threads have come as it is for, whole warps.

use std::{collections::BTreeMap, panic::Location};

use super::block::WARP;

/// A named barrier that a block has declared.
pub(super) struct NamedBarrier {
    threads: u32,
    declared: &'static Location<'static>,
    /// Of this round, by the threads' numbers.
    come: BTreeMap<u32, Arrival>,
    /// Warps all of whose lanes are among these.
    whole: Vec<u32>,
    /// Rounds that have ended.
    rounds: u64,
}

/// A thread that has come.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    /// Its number in the cluster.
    pub(super) thread: u32,
    /// Does it wait for the others?
    pub(super) waits: bool,
    pub(super) place: &'static Location<'static>,
}

impl NamedBarrier {
    pub(super) fn new(threads: u32, declared: &'static Location<'static>) -> Self {
        NamedBarrier { threads, declared, come: BTreeMap::new(), whole: Vec::new(), rounds: 0 }
    }

    /// Is it the one that is declared there?
    pub(super) fn check_declaration(
        &self,
        threads: u32,
        declared: &'static Location<'static>,
    ) -> Result<(), String> {
        match self.declared == declared && self.threads == threads {
            true => Ok(()),
            false => Err(format!(
                "for {threads} threads, and for {} at {}: an id is one barrier's",
                self.threads, self.declared
            )),
        }
    }

    /// Has the round ended that a thread has come to?
    pub(super) fn has_ended(&self, thread: u32) -> bool {
        !self.come.contains_key(&thread)
    }

    /// A thread comes, of a warp of so many. Gives all for whom that ends the round, if it does.
    pub(super) fn come(
        &mut self,
        arrival: Arrival,
        lanes: usize,
    ) -> Result<Option<Vec<Arrival>>, String> {
        let warp = arrival.thread / WARP;
        if self.come.contains_key(&arrival.thread) {
            return Err("a thread comes again, and the round that it has come to has not ended: it waits for that \
                        in between, here or elsewhere"
                .to_owned());
        }
        self.come.insert(arrival.thread, arrival);
        let of_warp = || self.come.range(warp * WARP..(warp + 1) * WARP).map(|(_, other)| other);
        if of_warp().any(|other| other.waits != arrival.waits) {
            return Err("some lanes of a warp wait, and others do not".to_owned());
        }
        if of_warp().count() == lanes {
            self.whole.push(warp);
        }
        // Warps are counted, as if they had all their lanes (PTX ISA, "barrier"). Of others, lanes have come too early.
        let counted = self.whole.len() as u32 * WARP;
        Ok((counted == self.threads).then(|| {
            self.rounds += 1;
            let whole = std::mem::take(&mut self.whole);
            let ended = self.come.extract_if(.., |thread, _| whole.contains(&(thread / WARP)));
            ended.map(|(_, arrival)| arrival).collect()
        }))
    }

    /// What the round waits for.
    pub(super) fn missing(&self) -> String {
        let NamedBarrier { threads, whole, rounds, come, .. } = self;
        let missing = threads - whole.len() as u32 * WARP;
        let lanes = match come.keys().filter(|&thread| !whole.contains(&(thread / WARP))).count() {
            0 => String::new(),
            lanes => format!(", and for others of the warps of {lanes} that have come"),
        };
        format!("its round {rounds} waits for {missing} of {threads} threads{lanes}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(thread: u32, waits: bool) -> Arrival {
        Arrival { thread, waits, place: Location::caller() }
    }

    #[test]
    fn a_round_ends_with_the_last_lane_of_the_last_warp() {
        let mut barrier = NamedBarrier::new(64, Location::caller());
        for thread in (0..32).chain(64..95) {
            assert!(barrier.come(arrival(thread, thread < 32), 32).unwrap().is_none());
        }
        assert_eq!(
            barrier.missing(),
            "its round 0 waits for 32 of 64 threads, and for others of the warps of 31 that have come"
        );
        let come = barrier.come(arrival(95, false), 32).unwrap().unwrap();
        assert!(come.len() == 64 && barrier.has_ended(95) && barrier.has_ended(0));
        // A warp that is not full counts like one that is.
        for thread in 0..8 {
            assert!(barrier.come(arrival(thread, true), 8).unwrap().is_none());
        }
        assert_eq!(barrier.missing(), "its round 1 waits for 32 of 64 threads");
    }

    #[test]
    fn lanes_that_come_too_early_are_of_the_next_round() {
        let mut barrier = NamedBarrier::new(32, Location::caller());
        assert!(barrier.come(arrival(40, true), 32).unwrap().is_none());
        for thread in 0..31 {
            assert!(barrier.come(arrival(thread, true), 32).unwrap().is_none());
        }
        assert_eq!(barrier.come(arrival(31, true), 32).unwrap().unwrap().len(), 32);
        assert!(barrier.has_ended(31) && !barrier.has_ended(40));
    }

    #[test]
    fn what_a_warp_must_not_do_is_an_error() {
        let mut barrier = NamedBarrier::new(64, Location::caller());
        assert!(barrier.come(arrival(3, false), 32).is_ok());
        assert!(barrier.come(arrival(3, true), 32).is_err_and(|reason| reason.contains("again")));
        assert!(barrier.come(arrival(4, true), 32).is_err_and(|reason| reason.contains("lanes")));
        assert!(barrier.check_declaration(32, Location::caller()).is_err());
    }
}
