//! The candidates at a size: their verification and their timing.

use std::{cell::RefCell, collections::BTreeMap};

use host::{
    Error, Gemm, Stream,
    baseline::{DenseBatch, Epilogue},
    gemm::{Choice, Request, Target, Times},
    gpu::registry::{self, Product, Scheme},
    timing::{
        self, Candidate as Timed, Measurement, Rounds, telemetry::Telemetry, telemetry::Watch,
    },
    verify::NumberFormat,
};

use super::{
    case::{Case, Sets, Views},
    every,
    library::{Compared, Library, Ready},
    row::{Role, Row},
    verdict::Verdict,
};
use crate::cli::{
    Failure,
    args::{AsFlags, Bench, BenchKernel, Verify, name_of},
    list::six_digits,
    note,
    steps::Steps,
    types::Value,
    verification::Verification,
};

/// Measures sizes, one after another.
pub(super) struct Bencher<'a, T, O> {
    pub(super) args: &'a Bench,
    pub(super) steps: Steps,
    pub(super) stream: &'a Stream,
    pub(super) libraries: &'a [Box<dyn Library<T, O> + 'a>],
    /// Whether to read clocks and power at each size.
    pub(super) watch: bool,
}

/// A kernel or a library that is verified and timed.
pub(super) struct Candidate<'l, T: 'static, O: 'static> {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) epilogue: Epilogue,
    /// The predicted time by part. `None` for a library, and for a kernel that was not measured.
    pub(super) predicted: Option<Times>,
    pub(super) work: Work<'l, T, O>,
}

impl<T, O> Candidate<'_, T, O> {
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

pub(super) enum Work<'l, T: 'static, O: 'static> {
    Own(Gemm<'static, T, O>),
    Library(Box<dyn Ready<T, O> + 'l>),
}

impl<T: Compared<O>, O: Value> Bencher<'_, T, O> {
    /// The product as a program calls it.
    fn gemm(&self) -> Gemm<'static, T, O> {
        let any = Gemm::<T, O>::of_types().compute(self.args.types.compute());
        match self.args.workspace_limit {
            Some(limit) => any.workspace_limit(limit),
            None => any,
        }
    }

    /// The kernel that is selected for a product. `None` if there is none: that is reported when it
    /// is measured.
    pub(super) fn kernel_of(&self, case: &Case) -> Option<&'static str> {
        let target = Target::of(self.stream.device());
        let epilogue = case.epilogues.first().copied().unwrap_or_default();
        let choice = self.gemm().choose(&request(&case.product, epilogue), &target);
        choice.ok().map(|choice| choice.entry.name())
    }

    /// The kernels that are compared if none is named: of f32 lessons and general products, in the
    /// order of the registry; of other types and arithmetics `auto`, then the library's kernels for
    /// them.
    fn usual(&self, request: &Request, target: &Target) -> Vec<BenchKernel> {
        let is_f32 = T::FORMAT == NumberFormat::F32 && self.args.types.scheme() == Scheme::Native;
        let is_usual = |product: &Product| match is_f32 {
            true => !product.is_tma_or_ldg(),
            false => !product.is_lesson(),
        };
        let candidates = self.gemm().candidates(request, target).into_iter();
        let named = candidates
            .map(|candidate| candidate.entry)
            // Kernels of another arithmetic compute another product.
            .filter(|entry| entry.scheme() == self.args.types.scheme())
            .filter(|entry| entry.product.as_ref().is_some_and(is_usual))
            .map(BenchKernel::of);
        let auto = (!is_f32).then_some(BenchKernel::AUTO);
        auto.into_iter().chain(named).collect()
    }

    /// The kernels asked for that can compute the product, and the libraries that can, with each
    /// epilogue.
    pub(super) fn candidates(&self, case: &Case) -> Result<Vec<Candidate<'_, T, O>>, Failure> {
        let mut all = Vec::new();
        for &epilogue in &case.epilogues {
            all.extend(self.candidates_with(case, epilogue)?);
        }
        Ok(all)
    }

    fn candidates_with(
        &self,
        case: &Case,
        epilogue: Epilogue,
    ) -> Result<Vec<Candidate<'_, T, O>>, Failure> {
        let product = &case.product;
        let target = Target::of(self.stream.device());
        let (any, request) = (epilogue.of(self.gemm(), None), request(product, epilogue));
        let kernels = match (&self.args.kernels[..], self.args.vs) {
            ([], Some(_)) if self.args.random.all_candidates => {
                every::drawn(&any, &request, &target, self.args.seed, case)?
            }
            ([], Some(_)) => vec![BenchKernel::AUTO],
            ([], None) => self.usual(&request, &target),
            (asked, _) => asked.to_vec(),
        };
        let invariant = self.args.invariant.then_some(BenchKernel::INVARIANT);
        let kernels = kernels.into_iter().chain(invariant);
        let mut candidates = Vec::<Candidate<T, O>>::new();
        let mut left_out = BTreeMap::<String, Vec<String>>::new();
        for kernel in kernels {
            let gemm = match kernel.split_k {
                Some(blocks) => any.split_k(blocks)?,
                None => any,
            };
            let gemm = match kernel.partials {
                Some(count) => gemm.partials(count)?,
                None => gemm,
            };
            let gemm = if kernel.invariant { gemm.invariant() } else { gemm };
            let (gemm, role, asked) = match kernel.entry {
                // `auto` is one kernel a shape.
                None if kernel.invariant => (gemm, Role::Named, true),
                None => (gemm, Role::Auto, false),
                Some(entry) => (gemm.entry(entry)?, Role::Named, true),
            };
            // As it would be asked for.
            let name = |choice: Choice| {
                let more = |count: u32| (count > 1).then_some(count);
                let Choice { entry, split_k, partials, times, .. } = choice;
                let [split_k, partials] = [split_k, partials].map(more);
                let named = BenchKernel { entry: Some(entry), split_k, partials, ..kernel };
                (named.to_string(), times)
            };
            match gemm.choose(&request, &target).map(name) {
                // `auto` may be the same kernel.
                Ok((name, _)) if candidates.iter().any(|other| other.name == name) => {}
                Ok((name, predicted)) => {
                    let work = Work::Own(gemm);
                    candidates.push(Candidate { name, role, epilogue, predicted, work });
                }
                Err(Error::Argument { limit, .. }) if asked => {
                    left_out.entry(limit).or_default().push(kernel.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        for (why, kernels) in left_out {
            let size = case.name();
            let with = if epilogue.is_plain() { "" } else { &format!(", {epilogue}") };
            note(format_args!("note: {size}{with}: without {}: {why}", kernels.join(", ")));
        }
        for library in self.libraries {
            if let Some(ready) = library.prepare(product, epilogue)? {
                let (name, work) = (library.name().to_owned(), Work::Library(ready));
                let (role, predicted) = (Role::Baseline, None);
                candidates.push(Candidate { name, role, epilogue, predicted, work });
            }
        }
        Ok(candidates)
    }

    pub(super) fn launch(
        &self,
        case: &Case,
        candidate: &Candidate<T, O>,
        views: Views<T, O>,
    ) -> host::Result<()> {
        match &candidate.work {
            Work::Own(gemm) => {
                let Views { a, b, bias, c } = views;
                let gemm = candidate.epilogue.of(*gemm, bias);
                case.product.launch(&gemm, self.stream, a, b, c).map(|_| ())
            }
            Work::Library(ready) => ready.launch(views),
        }
    }

    /// Each library with several algorithms selects the fastest.
    pub(super) fn choose(
        &self,
        name: &str,
        candidates: &mut [Candidate<T, O>],
        sets: &mut dyn Sets<T, O>,
    ) -> Result<(), Failure> {
        for candidate in candidates {
            let library = candidate.words();
            if let Work::Library(ready) = &mut candidate.work {
                let step = format!("{name}: {library}, its algorithms");
                self.steps.step(&step, || ready.choose(self.stream, sets))?;
            }
        }
        Ok(())
    }

    /// The verdict on a candidate's C, for real numbers and for integers. Errors are reported on
    /// standard error.
    pub(super) fn judge(
        &self,
        case: &Case,
        candidate: &Candidate<T, O>,
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
        name: &str,
        case: &Case,
        (candidates, verdicts): (&[Candidate<T, O>], &[Verdict]),
        rows: &mut [Row],
        sets: &mut dyn Sets<T, O>,
    ) -> Result<(), Failure> {
        // Wrong candidates are not timed. A library need only compute the product: rows report its
        // arithmetic.
        let right = |&number: &usize| match candidates[number].role {
            Role::Baseline => verdicts[number].is_a_product(),
            _ => verdicts[number].nothing_wrong,
        };
        let right = (0..candidates.len()).filter(right).collect::<Vec<_>>();
        let timed = right.iter().map(|&number| &candidates[number]).collect::<Vec<_>>();
        let (measured, seen) = self.time(name, case, &timed, sets)?;
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
                row.baseline_is_fp32 = match O::FORMAT {
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
        case: &Case,
        candidates: &[&Candidate<T, O>],
        sets: &mut dyn Sets<T, O>,
    ) -> Result<(Vec<Measurement>, Option<Telemetry>), Failure> {
        if candidates.is_empty() {
            return Ok((Vec::new(), None));
        }
        let Bencher { stream, args, steps, .. } = *self;
        let device = stream.device();
        let names = candidates.iter().map(|candidate| candidate.words()).collect::<Vec<_>>();
        let how_far = move || {
            let Rounds { candidate, done, total } = timing::rounds();
            let name = names.get(candidate).map_or("", |name| name);
            match total {
                0 => format!("({name}, warming up)"),
                _ => format!("({name}) {} %", 100 * done / total),
            }
        };
        let options = args.options(device, candidates.len());
        let (measured, seen) = steps.step_with(&format!("{name}: timing"), how_far, || {
            let watch = self.watch.then(|| Watch::start(device));
            let count = sets.count();
            // The candidates share the operands: one launch at a time uses them.
            let sets = RefCell::new(sets);
            let mut timed = candidates
                .iter()
                .map(|candidate| -> Timed {
                    let sets = &sets;
                    Box::new(move |set| self.launch(case, candidate, sets.borrow_mut().views(set)?))
                })
                .collect::<Vec<_>>();
            let measured = timing::compare(stream, &mut timed, count, &options)?;
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

/// The request for a product. A program that asks for a bias has no plain product, so it may get
/// another kernel.
fn request(product: &DenseBatch, epilogue: Epilogue) -> Request {
    let mut request = Request::new(product.shape, product.strides());
    request.batch = product.count;
    request.plain = epilogue.is_plain();
    request
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
