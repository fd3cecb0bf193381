//! Fewer kernels for each case than there are: in turn, so that each kernel runs some cases and each case has some kernel.
//! What that leaves out is counted and told, and `FULL=1` runs it all.

use std::sync::atomic::{AtomicUsize, Ordering};

use host::Device;

use crate::{
    full,
    skip::{at_end, is_set},
};

/// What was run of what there is.
static RAN: AtomicUsize = AtomicUsize::new(0);
static OF: AtomicUsize = AtomicUsize::new(0);

/// Is everything to run that can, whatever time it takes: with `FULL=1`?
pub fn everything() -> bool {
    is_set("FULL")
}

/// Counts runs: so many of so many that there are. When the program ends, one line tells of both, whatever the test harness
/// captures.
pub fn ran(count: usize, of: usize) {
    if OF.fetch_add(of, Ordering::Relaxed) == 0 {
        at_end(tell);
    }
    RAN.fetch_add(count, Ordering::Relaxed);
}

fn tell(name: &str) -> Vec<String> {
    let (ran, of) = (RAN.load(Ordering::Relaxed), OF.load(Ordering::Relaxed));
    vec![format!("{name}: {ran} of {of} runs; FULL=1 runs all")]
}

/// Some things, kernels for the most part, of which each case has one by default, in turn, and all with `FULL=1`.
#[derive(Clone, Debug)]
pub struct Turns {
    /// How often each has been had.
    runs: Vec<usize>,
    all: bool,
}

impl Turns {
    /// Of so many things.
    ///
    /// # Panics
    /// Where there is none.
    pub fn of(things: usize) -> Self {
        assert!(things > 0, "nothing to take turns: nothing would be tested");
        Turns { runs: vec![0; things], all: everything() }
    }

    /// Of so many kernels on that device: a GPU runs all where one is required, as it takes no time there.
    ///
    /// # Panics
    /// As [`Turns::of`].
    pub fn on(device: &Device, kernels: usize) -> Self {
        let turns = Turns::of(kernels);
        Turns { all: turns.all || device.is_cuda() && full(), ..turns }
    }

    /// Has each case all?
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// The things of the next case.
    pub fn next_case(&mut self) -> Vec<usize> {
        self.among(&(0..self.runs.len()).collect::<Vec<_>>())
    }

    /// Of the things that may be had with the next case: all, or that which has been had least often. Of several such the first,
    /// counted from one further on each time that all have been had, so that cases in groups do not always meet the same.
    ///
    /// # Panics
    /// Where none may be had.
    pub fn among(&mut self, things: &[usize]) -> Vec<usize> {
        let count = self.runs.len();
        let round = self.runs.iter().sum::<usize>() / count;
        let least = things.iter().min_by_key(|&&thing| {
            let behind = (thing + count - round % count) % count;
            (self.runs[thing], behind)
        });
        let least = *least.expect("there is none for the next case: nothing would be tested");
        let had = if self.all { things.to_vec() } else { vec![least] };
        had.iter().for_each(|&thing| self.runs[thing] += 1);
        ran(had.len(), things.len());
        had
    }

    /// Each thing has been had with some case.
    ///
    /// # Panics
    /// Where one has not.
    pub fn each_had_one(&self) {
        let missed = self.runs.iter().position(|&runs| runs == 0);
        assert_eq!(missed, None, "by number: it was had with no case");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_take_turns() {
        let turns = || Turns { all: false, ..Turns::of(3) };
        let mut all = turns();
        let had = (0..9).map(|_| all.next_case()[0]).collect::<Vec<_>>();
        assert_eq!(had, [0, 1, 2, 1, 2, 0, 2, 0, 1]);
        // Whoever may not be had catches up.
        let mut some = turns();
        let had = [&[0, 1][..], &[0, 1], &[0, 1, 2], &[0, 2]].map(|of| some.among(of)[0]);
        assert_eq!(had, [0, 1, 2, 2]);
        some.each_had_one();
        assert_eq!(Turns { all: true, ..turns() }.among(&[0, 2]), [0, 2]);
    }

    #[test]
    #[should_panic(expected = "it was had with no case")]
    fn what_is_had_with_no_case_is_missed() {
        let mut turns = Turns { all: false, ..Turns::of(2) };
        turns.among(&[1]);
        turns.each_had_one();
    }
}
