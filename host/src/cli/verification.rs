//! Is C right? As much of an answer as was asked for.

use host::{
    Device, Error, Shape,
    verify::{Comparison, Criterion, Sample, compare, sample},
};

use super::{args::Verify, note};

/// What a comparison found, full or of a sample.
pub(super) enum Verification {
    Full(Comparison),
    Sample(Sample),
}

impl Verification {
    /// Compares `[a, b, c]` as far as is asked for. Where that is left open: all of C, if three products in
    /// float64 take no longer than a person waits.
    pub(super) fn run(
        verify: Verify,
        shape: Shape,
        [a, b, c]: [&[f32]; 3],
        criterion: Criterion,
        seed: u64,
    ) -> Result<Option<Verification>, Error> {
        let full = match verify {
            Verify::None => return Ok(None),
            Verify::Full => true,
            Verify::Sample => false,
            Verify::Auto => {
                // A core does at least 5 GFLOP/s in float64.
                let cores = f64::from(Device::cpu().multiprocessors());
                3.0 * shape.flop() / (5e9 * cores) <= 30.0
            }
        };
        Ok(Some(match full {
            true => Verification::Full(compare(shape, a, b, c, criterion)?),
            false => Verification::Sample(sample(shape, a, b, c, criterion, seed)?),
        }))
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Verification::Full(_) => "full",
            Verification::Sample(_) => "sample",
        }
    }

    pub(super) fn elements(&self) -> &Comparison {
        match self {
            Verification::Full(comparison) => comparison,
            Verification::Sample(sample) => &sample.elements,
        }
    }

    pub(super) fn projections(&self) -> usize {
        match self {
            Verification::Full(_) => 0,
            Verification::Sample(sample) => sample.projections,
        }
    }

    pub(super) fn passed(&self) -> bool {
        match self {
            Verification::Full(comparison) => comparison.passed(),
            Verification::Sample(sample) => sample.passed(),
        }
    }

    pub(super) fn nothing_wrong(&self) -> bool {
        match self {
            Verification::Full(comparison) => comparison.wrong == 0,
            Verification::Sample(sample) => sample.nothing_wrong(),
        }
    }

    /// Says on standard error what is wrong.
    pub(super) fn complain(&self, what: &str) {
        let Comparison { wrong, elements, worst, .. } = self.elements();
        if let Some(worst) = worst.filter(|_| *wrong > 0) {
            note(format_args!(
                "error: on {what} {wrong} of {elements} elements of C are wrong; the worst, in row {}, \
                 column {}, is {} and should be {}",
                worst.row, worst.col, worst.got, worst.want
            ));
        }
        if let Verification::Sample(Sample { wrong_rows, .. }) = self
            && *wrong_rows > 0
        {
            note(format_args!(
                "error: on {what} a random projection finds {wrong_rows} rows of C wrong"
            ));
        }
    }
}
