//! Compares C, as far as asked for.

use host::{
    Compute, Device, Error, Layout, Shape,
    baseline::Epilogue,
    blocks::{Dense, Source},
    scaling::Scaling,
    verify::{Claim, Compared, Comparison, Criterion, NumberFormat, Sample, Widened, slices},
};

use super::{args::Verify, note};

/// What follows a product, with its numbers. What the epilogue does not read may be empty.
#[derive(Clone, Copy)]
pub(super) struct After<'a, O> {
    pub(super) epilogue: Epilogue,
    /// An element for each column of C.
    pub(super) bias: &'a [O],
    /// The old C, row-major.
    pub(super) before: &'a [O],
    /// The scales of A and B, if there are any.
    pub(super) scaling: Option<&'a Scaling>,
}

/// The result of a comparison, of all or of a sample.
#[derive(Clone)]
pub(super) enum Verification {
    Full(Comparison),
    Sample(Sample),
}

impl Verification {
    /// Compares A, B and C as far as asked for. `scaling`: the scales of A and B, if there are any.
    /// `compute`: the arithmetic. `auto` compares all of C if three products in float64 take a few
    /// seconds at most.
    pub(super) fn run<T: Compared, O: Compared>(
        verify: Verify,
        shape: Shape,
        (a, b, c): (&[T], &[T], &[O]),
        scaling: Option<&Scaling>,
        compute: Compute,
        criterion: Criterion,
        seed: u64,
    ) -> Result<Option<Verification>, Error> {
        let after = After { epilogue: Epilogue::PLAIN, bias: &[], before: &[], scaling };
        Verification::after(verify, shape, (a, b, c), after, compute, criterion, seed)
    }

    /// As [`run`](Self::run), for a product with an epilogue.
    pub(super) fn after<T: Compared, O: Compared>(
        verify: Verify,
        shape: Shape,
        (a, b, c): (&[T], &[T], &[O]),
        After { epilogue, bias, before, scaling }: After<O>,
        compute: Compute,
        criterion: Criterion,
        seed: u64,
    ) -> Result<Option<Verification>, Error> {
        let Epilogue { alpha, beta, bias: has_bias, activation, .. } = epilogue;
        let bias = bias.iter().copied().map(Into::into).collect::<Vec<_>>();
        let before = match beta {
            0.0 => None,
            _ => Some(Dense::new::<O>(shape.m(), shape.n(), Layout::RowMajor, before)?),
        };
        let before = before.as_ref().map(|before| Widened(before));
        slices(shape, a, b, c, |claim| {
            // It also refers to the numbers of the epilogue, which may live shorter.
            let mut claim: Claim = claim;
            let scaled = scaling.map(|of| [of.of(0, claim.a), of.of(1, claim.b)]);
            if let Some([a, b]) = &scaled {
                (claim.a, claim.b) = (a, b);
            }
            (claim.alpha, claim.beta) = (alpha.into(), beta.into());
            claim.bias = has_bias.then_some(&bias[..]);
            claim.before = before.as_ref().map(|before| before as &dyn Source<f64>);
            claim.activation = activation;
            claim.factors = factors(compute);
            claim.sliced = matches!(compute, Compute::Fp32Bf16x6 | Compute::Fp32F16x3);
            Verification::of_claim(verify, shape, &claim, criterion, seed)
        })
    }

    /// As [`run`](Self::run), for any claim.
    pub(super) fn of_claim(
        verify: Verify,
        shape: Shape,
        claim: &Claim,
        criterion: Criterion,
        seed: u64,
    ) -> Result<Option<Verification>, Error> {
        Ok(match full(verify, shape) {
            None => None,
            Some(true) => Some(Verification::Full(claim.compare(criterion)?)),
            Some(false) => Some(Verification::Sample(claim.sample(criterion, seed)?)),
        })
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

    /// Reports on standard error what is wrong.
    pub(super) fn complain(&self, what: &str) {
        let Comparison { wrong, elements, worst, .. } = self.elements();
        if let Some(worst) = worst.filter(|_| *wrong > 0) {
            // An f32 is printed with its own digits.
            let single = worst.got as f32;
            let got = match f64::from(single) == worst.got {
                true => single.to_string(),
                false => worst.got.to_string(),
            };
            note(format_args!(
                "error: on {what} {wrong} of {elements} elements of C are wrong; the worst, in row {}, \
                 column {}, is {} and should be {}",
                worst.row, worst.col, got, worst.want
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

/// The error of C, for people. `rounded`: the type of C, if it is narrower than the computation.
/// Then only the nearest value is right, so an error is all of the bound or none.
pub(super) fn off(abs: f64, over: f64, rounded: Option<&str>) -> String {
    let of_bound = match rounded.filter(|_| over <= 1.0) {
        None => format!(", {over:.4} of the bound"),
        Some(of) => format!(
            ": correctly rounded, each element is the {of} nearest to a sum within the bound"
        ),
    };
    format!("max |error| {abs:.2e} against float64{of_bound}")
}

/// The type to which factors may have been rounded. (If they were not, the bound is wider than
/// necessary.)
pub(super) fn factors(compute: Compute) -> Option<NumberFormat> {
    matches!(compute, Compute::Tf32).then_some(NumberFormat::TF32)
}

/// Whether to compare all of C or a sample. `None`: nothing.
fn full(verify: Verify, shape: Shape) -> Option<bool> {
    match verify {
        Verify::None => None,
        Verify::Full => Some(true),
        Verify::Sample => Some(false),
        Verify::Auto => {
            // A core does at least 5 GFLOP/s in float64.
            let cores = f64::from(Device::cpu().sms());
            Some(3.0 * shape.flop() / (5e9 * cores) <= 30.0)
        }
    }
}
