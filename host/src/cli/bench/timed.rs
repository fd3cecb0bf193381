//! The candidates of a size judged and timed, whatever their types.

use host::{
    Stream, Type,
    baseline::Epilogue,
    gemm::Times,
    gpu::registry,
    timing::{
        self, Candidate as Timed, Measurement, Rounds, telemetry::Telemetry, telemetry::Watch,
    },
    verify::NumberFormat,
};

use super::{
    case::Case,
    row::{Role, Row},
    verdict::Verdict,
};
use crate::cli::{
    Failure,
    args::{AsFlags, Bench, Verify, name_of},
    list::six_digits,
    note,
    steps::Steps,
    verification::Verification,
};

/// What is known of a candidate of any types.
pub(super) struct About {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) epilogue: Epilogue,
    /// The predicted time by part. `None` for a library, and for a kernel that was not measured.
    pub(super) predicted: Option<Times>,
}

impl About {
    /// Its name in messages: `auto`'s kernel, and the epilogue, if there is one.
    pub(super) fn words(&self) -> String {
        self.of_row().map_or(self.name.clone(), |epilogue| format!("{} {epilogue}", self.name))
    }

    /// Its epilogue as a row has it. `None`: the plain product.
    pub(super) fn of_row(&self) -> Option<String> {
        (!self.epilogue.is_plain()).then(|| self.epilogue.to_string())
    }

    /// Its row, from the fields that all rows of the size share.
    pub(super) fn row(&self, of_size: Row) -> Row {
        let mut row =
            Row { kernel: self.name.clone(), role: self.role, epilogue: self.of_row(), ..of_size };
        row.predicted(self.predicted.as_ref());
        row
    }
}

/// What the measurements of all sizes share.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) args: &'a Bench,
    pub(super) steps: Steps,
    pub(super) stream: &'a Stream,
    /// Whether to read clocks and power at each size.
    pub(super) watch: bool,
}

/// The number of operand sets, and the launch of a candidate on one of them, both by number.
pub(super) type Launched<'l> = (usize, &'l dyn Fn(usize, usize) -> host::Result<()>);

impl Run<'_> {
    /// The verdict on a candidate's C, for real numbers and for integers. Errors are reported on
    /// standard error.
    pub(super) fn judge(
        &self,
        case: &Case,
        candidate: &About,
        verify: Verify,
        (real, exact): (&[Verification], Option<&[Verification]>),
        row: &Row,
    ) -> Verdict {
        let (own, is_own) = (&candidate.words(), candidate.role != Role::Baseline);
        let verdict = Verdict::new(&case.product, verify, real, exact, is_own);
        if !is_own {
            if !verdict.is_a_product() {
                note(format_args!("error: {own} computes another product, and is not timed"));
            }
            return verdict;
        }
        for (found, data) in [(real, "uniform data"), (exact.unwrap_or(&[]), "integers")] {
            if let Some(wrong) = found.iter().find(|found| !found.nothing_wrong()) {
                wrong.complain(&format!("{data}, with {own},"));
            }
        }
        if !verdict.nothing_wrong {
            let Row { m, n, k, batch, trans, .. } = row;
            let (device, seed) = (self.stream.device().name(), self.args.seed);
            let (verify, types) = (name_of(&verify), self.args.types);
            // `--m --n --k` computes one product of row-major matrices.
            let is_plain = *batch == 1 && trans == "nn" && candidate.epilogue.is_plain();
            let own = &candidate.name;
            match registry::find(own).and_then(|entry| entry.product.as_ref()) {
                Some(product) if is_plain && product.is_of_f32_views() => note(format_args!(
                    "reproduce: cargo run -p host -- --m {m} --n {n} --k {k}{types} --device {device} --kernel {own} \
                     --seed {seed} --verify {verify}"
                )),
                _ => note(format_args!(
                    "reproduce: cargo run -p host -- bench --sizes '{batch}*{m}x{n}x{k}' --trans {trans}{types}{} \
                     --device {device} --kernels {own} --seed {seed} --verify {verify}",
                    AsFlags(candidate.epilogue)
                )),
            }
        }
        verdict
    }

    /// Times the candidates that are right, and writes the times to their rows.
    pub(super) fn compare(
        &self,
        (name, c): (&str, Type),
        case: &Case,
        (candidates, verdicts): (&[&About], &[Verdict]),
        rows: &mut [Row],
        launched: Launched,
    ) -> Result<(), Failure> {
        // Wrong candidates are not timed. A library need only compute the product: rows report its
        // arithmetic.
        let right = |&number: &usize| match candidates[number].role {
            Role::Baseline => verdicts[number].is_a_product(),
            _ => verdicts[number].nothing_wrong,
        };
        let right = (0..candidates.len()).filter(right).collect::<Vec<_>>();
        let (measured, seen) = self.time(name, candidates, &right, launched)?;
        let measured = right.iter().copied().zip(&measured).collect::<Vec<_>>();
        for &(number, measurement) in &measured {
            tell_times(&mut rows[number], measurement);
        }
        for epilogue in &case.epilogues {
            let of_it = |number: &usize| candidates[*number].epilogue == *epilogue;
            let first = (0..candidates.len()).find(of_it);
            // The fastest library. Without libraries, the first kernel.
            let baseline = measured.iter().filter(|(number, _)| match self.args.vs {
                Some(_) => of_it(number) && candidates[*number].role == Role::Baseline,
                None => Some(*number) == first,
            });
            let baseline = baseline
                .min_by(|one, other| one.1.summary().median.total_cmp(&other.1.summary().median));
            let Some(&(baseline, than)) = baseline else { continue };
            let told = rows[baseline].clone();
            for number in (0..candidates.len()).filter(of_it) {
                let row = &mut rows[number];
                row.baseline = Some(told.kernel.clone());
                row.baseline_instead.clone_from(&told.instead);
                row.baseline_time_us = told.time_us;
                row.baseline_tflops = told.tflops;
                row.baseline_err = told.err;
                row.baseline_is_fp32 = match c.format() {
                    NumberFormat::F32 => verdicts[baseline].is_fp32(),
                    _ => None,
                };
            }
            for &(number, measurement) in measured.iter().filter(|(number, _)| of_it(number)) {
                let ratio = measurement.speed_over(than);
                rows[number].ratio = finite(ratio.median);
                rows[number].ratio_low = finite(ratio.low);
                rows[number].ratio_high = finite(ratio.high);
            }
        }
        // What each takes beyond this library's plain product: the first kernel's.
        let is_own_plain = |number: usize| {
            let candidate = &candidates[number];
            candidate.role != Role::Baseline && candidate.epilogue.is_plain()
        };
        if let Some((_, plain)) = measured.iter().find(|(number, _)| is_own_plain(*number)) {
            for &(number, measurement) in &measured {
                if candidates[number].epilogue.is_plain() {
                    continue;
                }
                let times = plain.speed_over(measurement);
                let row = &mut rows[number];
                row.plain_time_us = finite(plain.summary().median);
                row.over_plain = finite(times.median);
                row.over_plain_low = finite(times.low);
                row.over_plain_high = finite(times.high);
            }
        }
        if let Some(seen) = seen {
            rows.iter_mut().for_each(|row| row.watched(&seen));
        }
        Ok(())
    }

    /// Times these candidates round by round. Second, clocks and power meanwhile.
    fn time(
        &self,
        name: &str,
        candidates: &[&About],
        right: &[usize],
        (sets, launch): Launched,
    ) -> Result<(Vec<Measurement>, Option<Telemetry>), Failure> {
        if right.is_empty() {
            return Ok((Vec::new(), None));
        }
        let Run { stream, args, steps, .. } = *self;
        let device = stream.device();
        let names = right.iter().map(|&number| candidates[number].words()).collect::<Vec<_>>();
        let how_far = move || {
            let Rounds { candidate, done, total } = timing::rounds();
            let name = names.get(candidate).map_or("", |name| name);
            match total {
                0 => format!("({name}, warming up)"),
                _ => format!("({name}) {} %", 100 * done / total),
            }
        };
        let options = args.options(device, right.len());
        let (measured, seen) = steps.step_with(&format!("{name}: timing"), how_far, || {
            let watch = self.watch.then(|| Watch::start(device));
            let timed =
                right.iter().map(|&number| -> Timed { Box::new(move |set| launch(number, set)) });
            let mut timed = timed.collect::<Vec<_>>();
            let measured = timing::compare(stream, &mut timed, sets, &options)?;
            Ok::<_, Failure>((measured, watch.map(Watch::finish)))
        })?;
        let seen = seen.and_then(|seen| {
            let told = |why| {
                if device.is_cuda() {
                    note(format_args!("note: no clocks or power: {why}"));
                }
            };
            seen.map_err(told).ok()
        });
        Ok((measured, seen))
    }
}

fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite()).map(six_digits)
}

fn tell_times(row: &mut Row, measurement: &Measurement) {
    let summary = measurement.summary();
    row.time_us = finite(summary.median);
    row.tflops = finite(row.flop() / summary.median * 1e-6);
    row.min_us = finite(summary.min);
    row.spread = finite(summary.spread());
    row.rounds = Some(measurement.times_us.len());
    row.launches_per_round = Some(measurement.batch);
}
