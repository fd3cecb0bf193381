//! A planned product launched on operands of a kind, timed and verified.

use std::time::{Duration, Instant};

use host::{
    Error, Matrix, PlannedGemm, Shape, Stream, gemm::Scalar, operands, scaling::Scaling,
    verify::Criterion,
};

use crate::cli::{
    args::{Init, Run, name_of},
    steps::Steps,
    types::Value,
    verification::Verification,
};

/// Times of a product's parts.
pub(super) struct Times {
    pub(super) median: Duration,
    pub(super) min: Duration,
    pub(super) first_launch: Duration,
    pub(super) upload: Duration,
    pub(super) download: Duration,
}

/// The results of one run.
pub(super) struct Product {
    pub(super) times: Times,
    /// For one launch of a kernel for emulated fp32.
    pub(super) recomputed: Option<u64>,
    /// `None` if nothing was to be compared.
    pub(super) verification: Option<Verification>,
}

/// A planned product on a device.
pub(super) struct Test<'a, T, O> {
    pub(super) stream: Stream,
    pub(super) planned: &'a PlannedGemm<'a, T, O>,
    pub(super) scaling: Option<&'a Scaling>,
    pub(super) shape: Shape,
    pub(super) args: &'a Run,
    pub(super) steps: Steps,
}

/// The name of the exact run in progress messages.
const EXACT: &str = "integers";

impl<T: Scalar<O> + Value, O: Value> Test<'_, T, O> {
    /// A run on operands of this kind.
    pub(super) fn product(&self, init: Init, iters: u32, warmup: u32) -> Result<Product, Error> {
        let (shape, seeds) = (self.shape, [self.args.seed, operands::seed_of_b(self.args.seed)]);
        let name = name_of(&init);
        if init == Init::Nan && !T::FORMAT.is_float() {
            let limit = format!("must be another one: {} has no NaN", T::NAME);
            return Err(Error::argument("--init", name, limit));
        }
        let (a, b) = self.step(&name, "operands", || {
            let draw = match init {
                Init::Normal => operands::normal::<T>,
                _ => operands::uniform::<T>,
            };
            let (mut a, mut b) = (draw(seeds[0], shape.a_len())?, draw(seeds[1], shape.b_len())?);
            if init == Init::Nan {
                operands::sprinkle_nan(self.args.seed, shape, &mut a, &mut b);
            }
            Ok((a, b))
        })?;
        self.finish(&name, &a, &b, iters, warmup, Criterion::Bound)
    }

    /// The same product on integers, where the result must be exact. `None` if k is so large that a
    /// sum of integers may be inexact.
    pub(super) fn exact(&self, iters: u32, warmup: u32) -> Result<Option<Product>, Error> {
        let (shape, seed) = (self.shape, self.args.seed);
        // Scales are up to two, of A and of B.
        let factor = if self.scaling.is_some() { 4 } else { 1 };
        let steps = shape.k().saturating_mul(factor);
        let Some(magnitude) = operands::exact_magnitude_of(steps, (T::TYPE, O::TYPE)) else {
            return Ok(None);
        };
        let (a, b) = self.step(EXACT, "operands", || {
            let draw = |seed, len| operands::integers(seed, len, magnitude);
            Ok((draw(seed, shape.a_len())?, draw(operands::seed_of_b(seed), shape.b_len())?))
        })?;
        self.finish(EXACT, &a, &b, iters, warmup, Criterion::Exact).map(Some)
    }

    /// Runs and compares.
    fn finish(
        &self,
        name: &str,
        a: &[T],
        b: &[T],
        iters: u32,
        warmup: u32,
        criterion: Criterion,
    ) -> Result<Product, Error> {
        let entry = self.planned.choice().entry;
        let kernel = format!("kernel {}", entry.name());
        let is_sliced = entry.is_emulated();
        let before = if is_sliced { self.stream.recomputed()? } else { 0 };
        let launches = u64::from(warmup) + u64::from(iters);
        let (c, times) = self.step(name, &kernel, || self.launch(a, b, iters, warmup))?;
        let recomputed = match is_sliced {
            // Every launch has the same operands.
            true => Some((self.stream.recomputed()? - before) / launches.max(1)),
            false => None,
        };
        let verification = self.step(name, "verification", || {
            let Run { verify, seed, types, .. } = *self.args;
            let (of, compute) = ((a, b, &c[..]), types.compute());
            Verification::run(verify, self.shape, of, self.scaling, compute, criterion, seed)
        })?;
        Ok(Product { times, recomputed, verification })
    }

    /// C, and the times of `iters` launches. C is filled with NaN before each, so that an element
    /// that is not written shows.
    fn launch(&self, a: &[T], b: &[T], iters: u32, warmup: u32) -> Result<(Vec<O>, Times), Error> {
        let stream = &self.stream;
        let (device, shape) = (stream.device(), self.shape);
        let begin = Instant::now();
        let a = Matrix::from_row_major(device, shape.m(), shape.k(), a)?;
        let b = Matrix::from_row_major(device, shape.k(), shape.n(), b)?;
        let mut c = Matrix::<O>::zeros(device, shape.m(), shape.n())?;
        let upload = begin.elapsed();
        let mut first_launch = None;
        let mut times = Vec::new();
        for number in 0..u64::from(warmup) + u64::from(iters) {
            host::check_interrupt()?;
            c.buffer_mut().fill_bytes(0xff)?;
            let begin = Instant::now();
            let start = stream.record()?;
            self.planned.launch(stream, a.view(), b.view(), c.view_mut())?;
            let time = stream.record()?.since(&start)?;
            first_launch.get_or_insert(begin.elapsed());
            if number >= warmup.into() {
                times.push(time);
            }
        }
        times.sort_unstable();
        let begin = Instant::now();
        let c = c.to_row_major()?;
        let times = Times {
            median: times[times.len() / 2],
            min: times[0],
            first_launch: first_launch.unwrap_or_default(),
            upload,
            download: begin.elapsed(),
        };
        Ok((c, times))
    }

    /// A step of a run. `run` is its name: a product runs twice, on different operands.
    fn step<R>(
        &self,
        run: &str,
        what: &str,
        work: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.steps.step(&format!("{run}: {what}"), work)
    }
}
