//! Launches a candidate once on uniform numbers and once on integers, and compares C.

use std::time::{Duration, Instant};

use host::baseline::Epilogue;

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

    /// Whether there is a reference for integers.
    fn has_integers(&self) -> bool;

    /// The operands on the device. C is the old one if it is read, otherwise full of NaN. `None` if
    /// there is no reference for these numbers.
    fn start(
        &mut self,
        numbers: Numbers,
        epilogue: Epilogue,
    ) -> host::Result<Option<Views<'_, T, O>>>;

    /// Reads C and compares it with the product with this epilogue. Also returns the time of the
    /// copy to the host.
    fn compare(
        &mut self,
        numbers: Numbers,
        epilogue: Epilogue,
    ) -> Result<(Vec<Verification>, Duration), Failure>;
}

impl<T: Compared<O>, O: Value> Bencher<'_, T, O> {
    /// The verdict on a candidate, and the time of the copies of C to the host. Sets the row's time
    /// of the first launch.
    pub(super) fn verdict(
        &self,
        name: &str,
        case: &Case,
        candidate: &Candidate<T, O>,
        known: &mut dyn Known<T, O>,
        row: &mut Row,
    ) -> Result<(Verdict, Duration), Failure> {
        let about = &candidate.about;
        let own = &about.words();
        let step = format!("{name}: {own} once, on uniform data");
        let (real, read) = self.run.steps.step(&step, || {
            row.first_launch_us = us(self.launch_once(case, candidate, known, Numbers::Real)?);
            let mut computes = candidate.about.epilogue;
            if let Work::Library(ready) = &candidate.work {
                row.algorithm = ready.algorithm();
                row.instead = ready.instead().map(in_words);
                computes = ready.instead().unwrap_or(computes);
            }
            known.compare(Numbers::Real, computes)
        })?;
        // For a library the error on real numbers counts.
        let is_own = about.role != Role::Baseline;
        let exact = match is_own && known.has_integers() {
            false => None,
            true => {
                Some(self.run.steps.step(&format!("{name}: {own} once, on integers"), || {
                    self.launch_once(case, candidate, known, Numbers::Integers)?;
                    Ok::<_, Failure>(known.compare(Numbers::Integers, candidate.about.epilogue)?.0)
                })?)
            }
        };
        let verdict = self.run.judge(case, about, known.verify(), (&real, exact.as_deref()), row);
        Ok((verdict, read))
    }

    /// Launches on an old C or one full of NaN, waits, and returns the time of both.
    fn launch_once(
        &self,
        case: &Case,
        candidate: &Candidate<T, O>,
        known: &mut dyn Known<T, O>,
        numbers: Numbers,
    ) -> host::Result<Duration> {
        let started = known.start(numbers, candidate.about.epilogue)?;
        let Some(views) = started else { return Ok(Duration::ZERO) };
        let begin = Instant::now();
        self.launch(case, candidate, views)?;
        self.run.stream.synchronize()?;
        Ok(begin.elapsed())
    }
}

/// What a library computes that lacks an epilogue, and what stands for the rest.
fn in_words(instead: Epilogue) -> String {
    match instead.is_plain() {
        true => "A B, then a copy of C".to_owned(),
        false => format!("A B {instead}, then a copy of C"),
    }
}

/// A time in microseconds, as a row has it.
pub(super) fn us(time: Duration) -> Option<f64> {
    Some(six_digits(time.as_secs_f64() * 1e6))
}
