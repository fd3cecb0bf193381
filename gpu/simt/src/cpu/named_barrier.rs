//! The state of a named barrier. A round ends when the barrier's number of threads have arrived, in
//! whole warps.

use std::{collections::BTreeMap, panic::Location};

use super::limits::WARP;

/// A named barrier that a block has declared.
pub(super) struct NamedBarrier {
    threads: u32,
    declared: &'static Location<'static>,
    /// The arrivals of this round, by the threads' numbers in the cluster.
    arrivals: BTreeMap<u32, Arrival>,
    /// Warps all of whose lanes have arrived.
    whole: Vec<u32>,
    /// Rounds that have ended.
    rounds: u64,
}

/// A thread's arrival.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    /// The thread's number in the cluster.
    pub(super) thread: u32,
    /// Whether the thread waits for the others (`sync`) or not (`arrive`).
    pub(super) waits: bool,
    pub(super) place: &'static Location<'static>,
}

impl NamedBarrier {
    pub(super) fn new(threads: u32, declared: &'static Location<'static>) -> Self {
        NamedBarrier { threads, declared, arrivals: BTreeMap::new(), whole: Vec::new(), rounds: 0 }
    }

    /// Checks that a declaration is this barrier's.
    pub(super) fn check_declaration(
        &self,
        threads: u32,
        declared: &'static Location<'static>,
    ) -> Result<(), String> {
        match self.declared == declared && self.threads == threads {
            true => Ok(()),
            false => Err(format!(
                "for {threads} threads, and for {} at {}: each id is for one barrier",
                self.threads, self.declared
            )),
        }
    }

    /// Whether the round has ended at which a thread arrived.
    pub(super) fn has_ended(&self, thread: u32) -> bool {
        !self.arrivals.contains_key(&thread)
    }

    /// A thread arrives; its warp has that number of lanes. If that ends the round, gives the
    /// round's arrivals.
    pub(super) fn arrive(
        &mut self,
        arrival: Arrival,
        lanes: usize,
    ) -> Result<Option<Vec<Arrival>>, String> {
        let warp = arrival.thread / WARP;
        if self.arrivals.contains_key(&arrival.thread) {
            return Err("a thread arrives again, and the round of its last arrival has not ended: it must wait for \
                        that in between, here or elsewhere"
                .to_owned());
        }
        self.arrivals.insert(arrival.thread, arrival);
        let of_warp =
            || self.arrivals.range(warp * WARP..(warp + 1) * WARP).map(|(_, other)| other);
        if of_warp().any(|other| other.waits != arrival.waits) {
            return Err("some lanes of a warp wait, and others do not".to_owned());
        }
        if of_warp().count() == lanes {
            self.whole.push(warp);
        }
        // Whole warps are counted, as if each had 32 lanes (PTX ISA, "barrier"). Lanes of other
        // warps belong to the next round.
        let counted = self.whole.len() as u32 * WARP;
        Ok((counted == self.threads).then(|| {
            self.rounds += 1;
            let whole = std::mem::take(&mut self.whole);
            let ended = self.arrivals.extract_if(.., |thread, _| whole.contains(&(thread / WARP)));
            ended.map(|(_, arrival)| arrival).collect()
        }))
    }

    /// What the round waits for, as text.
    pub(super) fn missing(&self) -> String {
        let NamedBarrier { threads, whole, rounds, arrivals, .. } = self;
        let missing = threads - whole.len() as u32 * WARP;
        let lanes =
            match arrivals.keys().filter(|&thread| !whole.contains(&(thread / WARP))).count() {
                0 => String::new(),
                lanes => format!(", and for the other lanes of {lanes} threads that have arrived"),
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
            assert!(barrier.arrive(arrival(thread, thread < 32), 32).unwrap().is_none());
        }
        assert_eq!(
            barrier.missing(),
            "its round 0 waits for 32 of 64 threads, and for the other lanes of 31 threads that have arrived"
        );
        let come = barrier.arrive(arrival(95, false), 32).unwrap().unwrap();
        assert!(come.len() == 64 && barrier.has_ended(95) && barrier.has_ended(0));
        // A warp that is not full counts like one that is.
        for thread in 0..8 {
            assert!(barrier.arrive(arrival(thread, true), 8).unwrap().is_none());
        }
        assert_eq!(barrier.missing(), "its round 1 waits for 32 of 64 threads");
    }

    #[test]
    fn lanes_that_come_too_early_are_of_the_next_round() {
        let mut barrier = NamedBarrier::new(32, Location::caller());
        assert!(barrier.arrive(arrival(40, true), 32).unwrap().is_none());
        for thread in 0..31 {
            assert!(barrier.arrive(arrival(thread, true), 32).unwrap().is_none());
        }
        assert_eq!(barrier.arrive(arrival(31, true), 32).unwrap().unwrap().len(), 32);
        assert!(barrier.has_ended(31) && !barrier.has_ended(40));
    }

    #[test]
    fn what_a_warp_must_not_do_is_an_error() {
        let mut barrier = NamedBarrier::new(64, Location::caller());
        assert!(barrier.arrive(arrival(3, false), 32).is_ok());
        assert!(barrier.arrive(arrival(3, true), 32).is_err_and(|reason| reason.contains("again")));
        assert!(barrier.arrive(arrival(4, true), 32).is_err_and(|reason| reason.contains("lanes")));
        assert!(barrier.check_declaration(32, Location::caller()).is_err());
    }
}
