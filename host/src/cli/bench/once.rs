//! Launches a candidate once on uniform numbers and once on integers, and compares C.

use std::time::{Duration, Instant};

use super::{
    candidates::{Bencher, Candidate, Work},
    case::{Case, Views},
    library::Compared,
    row::{Role, Row},
    verdict::Verdict,
};
use crate::cli::{
    Failure, args::Verify, list::six_digits, types::Value, verification::Verification,
};

/// The numbers in A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// Uniform floating-point numbers. The error of C has a bound.
    Real,
    /// Small integers. C must be exact.
    Integers,
}

/// The operands of a size, and the reference for C.
pub(super) trait Known<T, O> {
    /// How much of C is compared.
    fn verify(&self) -> Verify;

    /// The operands on the device. `None` if there is no reference for integers.
    fn views(&mut self, numbers: Numbers) -> host::Result<Option<Views<'_, T, O>>>;

    /// Reads C and compares it. Also returns the time of the copy to the host.
    fn compare(&mut self, numbers: Numbers) -> Result<(Vec<Verification>, Duration), Failure>;
}

impl<T: Compared<O>, O: Value> Bencher<'_, T, O> {
    /// The verdict on a candidate, and the time of the copies of C to the host. Sets the row's time
    /// of the first launch.
    pub(super) fn verdict(
        &self,
        name: &str,
        case: &Case,
        candidate: &Candidate<T, O>,
        known: &mut impl Known<T, O>,
        row: &mut Row,
    ) -> Result<(Verdict, Duration), Failure> {
        let own = &candidate.name;
        let step = format!("{name}: {own} once, on uniform data");
        let (real, read) = self.steps.step(&step, || {
            row.first_launch_us = us(self.launch_once(case, candidate, known, Numbers::Real)?);
            if let Work::Library(ready) = &candidate.work {
                row.algorithm = ready.algorithm();
            }
            known.compare(Numbers::Real)
        })?;
        // For a library the error on real numbers counts.
        let is_own = candidate.role != Role::Baseline;
        let exact = match is_own && known.views(Numbers::Integers)?.is_some() {
            false => None,
            true => Some(self.steps.step(&format!("{name}: {own} once, on integers"), || {
                self.launch_once(case, candidate, known, Numbers::Integers)?;
                Ok::<_, Failure>(known.compare(Numbers::Integers)?.0)
            })?),
        };
        let verdict = self.judge(case, candidate, known.verify(), (&real, exact.as_deref()), row);
        Ok((verdict, read))
    }

    /// Fills C with NaN, launches, waits, and returns the time of the last two.
    fn launch_once(
        &self,
        case: &Case,
        candidate: &Candidate<T, O>,
        known: &mut impl Known<T, O>,
        numbers: Numbers,
    ) -> host::Result<Duration> {
        let Some(mut views) = known.views(numbers)? else { return Ok(Duration::ZERO) };
        views.c.fill_bytes(0xff)?;
        let begin = Instant::now();
        self.launch(case, candidate, views)?;
        self.stream.synchronize()?;
        Ok(begin.elapsed())
    }
}

/// A time in microseconds, as a row has it.
pub(super) fn us(time: Duration) -> Option<f64> {
    Some(six_digits(time.as_secs_f64() * 1e6))
}
