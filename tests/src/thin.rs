//! Fewer kernels for each case: they alternate, so that each kernel runs some cases and each case
//! runs with some kernel. The runs left out are counted and reported, and `FULL=1` runs all.

use std::sync::atomic::{AtomicUsize, Ordering};

use host::Device;

use crate::{
    full,
    skip::{at_end, is_set},
};

/// Runs made, and all possible runs.
static RAN: AtomicUsize = AtomicUsize::new(0);
static OF: AtomicUsize = AtomicUsize::new(0);

/// Whether to run everything, however long it takes: with `FULL=1`.
pub fn everything() -> bool {
    is_set("FULL")
}

/// Counts runs: `count` of `of`. When the program ends, one line reports both, even if the test
/// harness captures output.
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

/// A set of things, mostly kernels. By default each case has one of them, in turn, and with
/// `FULL=1` all.
#[derive(Clone, Debug)]
pub struct Turns {
    /// How often each was used.
    runs: Vec<usize>,
    all: bool,
}

impl Turns {
    /// For this many things.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(things: usize) -> Self {
        assert!(things > 0, "nothing to take turns: nothing would be tested");
        Turns { runs: vec![0; things], all: everything() }
    }

    /// For this many kernels on that device. If a GPU is required it runs all, because that takes
    /// no time.
    ///
    /// # Panics
    /// As [`Turns::of`].
    pub fn on(device: &Device, kernels: usize) -> Self {
        let turns = Turns::of(kernels);
        Turns { all: turns.all || device.is_cuda() && full(), ..turns }
    }

    /// Whether each case has all.
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// The things for the next case.
    pub fn next_case(&mut self) -> Vec<usize> {
        self.among(&(0..self.runs.len()).collect::<Vec<_>>())
    }

    /// Those of `things` for the next case: all, or the one that was used least often. Of several
    /// such the first, counted from one further on after each full round, so that groups of cases
    /// do not always get the same one.
    ///
    /// # Panics
    /// If `things` is empty.
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

    /// Checks that each thing was used in some case.
    ///
    /// # Panics
    /// If one was not.
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
        // A thing that could not be used catches up.
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
