//! Measures one size: every candidate verified, then those that are right timed in turn.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    time::{Duration, Instant},
};

use host::{
    Error, Gemm, Stream,
    gemm::{Choice, Ineligible, Request, Target},
    gpu::registry::{self, Product, Type},
    timing::{
        self, Candidate as Timed, Measurement, Rounds, telemetry::Telemetry, telemetry::Watch,
    },
    verify::{Criterion, Format},
};

use super::{
    case::{Case, Set, draw},
    library::{Compared, Library, Ready},
    row::{Role, Row, row_of},
    verdict::{Reference, Verdict},
};
use crate::cli::{
    Failure,
    args::{Bench, BenchKernel, name_of},
    list::six_digits,
    note,
    steps::Steps,
    types::Value,
};

/// Measures sizes, one after another.
pub(super) struct Bencher<'a, T, O> {
    pub(super) args: &'a Bench,
    pub(super) steps: Steps,
    pub(super) stream: &'a Stream,
    pub(super) libraries: &'a [Box<dyn Library<T, O> + 'a>],
}

/// What to compare with, sets of operands on the device, and how long the copies of the first took.
type Prepared<T, O> = (Reference<T, O>, Vec<Set<T, O>>, Duration);

/// Something that is verified and timed.
struct Candidate<'l, T: 'static, O: 'static> {
    name: String,
    role: Role,
    work: Work<'l, T, O>,
}

enum Work<'l, T: 'static, O: 'static> {
    Own(Gemm<'static, T, O>),
    Library(Box<dyn Ready<T, O> + 'l>),
}

impl<T: Compared<O>, O: Value> Bencher<'_, T, O> {
    /// A row for each candidate. `name` is that of the size in steps.
    pub(super) fn case(&self, name: &str, case: &Case) -> Result<Vec<Row>, Failure> {
        let Bencher { steps, stream, args, .. } = *self;
        let device = stream.device();
        let mut candidates = self.candidates(case)?;
        if candidates.iter().all(|candidate| candidate.role == Role::Baseline) {
            return Ok(Vec::new());
        }
        steps.part(&format!("{name}: {} candidates to verify and time", candidates.len()));
        let (mut reference, mut sets, upload) =
            steps.step(&format!("{name}: operands"), || self.operands(case))?;
        for Candidate { name: library, work, .. } in &mut candidates {
            if let Work::Library(ready) = work {
                let step = format!("{name}: {library}, its algorithms");
                steps.step(&step, || ready.choose(stream, &mut sets))?;
            }
        }
        let (mut rows, mut verdicts) = (Vec::new(), Vec::new());
        for candidate in &candidates {
            let mut row = row_of::<T, O>(case, device, args);
            row.kernel.clone_from(&candidate.name);
            row.role = candidate.role;
            row.operand_sets = sets.len();
            row.upload_us = us(upload);
            let set = &mut sets[0];
            let verdict = self.verdict(name, case, candidate, &mut reference, set, &mut row)?;
            verdict.tell(&mut row);
            rows.push(row);
            verdicts.push(verdict);
        }
        drop(reference);

        // What is wrong is not timed. Of a library it is enough that it is the product: its arithmetic is told.
        let right = |&number: &usize| match candidates[number].role {
            Role::Baseline => verdicts[number].is_a_product(),
            _ => verdicts[number].nothing_wrong,
        };
        let right = (0..candidates.len()).filter(right).collect::<Vec<_>>();
        let timed = right.iter().map(|&number| &candidates[number]).collect::<Vec<_>>();
        let (measured, seen) = self.time(name, case, &timed, &mut sets)?;
        let measured = right.iter().copied().zip(&measured).collect::<Vec<_>>();
        for &(number, measurement) in &measured {
            tell_times(&mut rows[number], measurement);
        }
        // The fastest library; without libraries the first kernel.
        let baseline = measured.iter().filter(|(number, _)| match args.vs {
            Some(_) => candidates[*number].role == Role::Baseline,
            None => *number == 0,
        });
        let baseline = baseline
            .min_by(|one, other| one.1.summary().median.total_cmp(&other.1.summary().median));
        if let Some(&(baseline, than)) = baseline {
            let told = rows[baseline].clone();
            for row in &mut rows {
                row.baseline = Some(told.kernel.clone());
                row.baseline_time_us = told.time_us;
                row.baseline_tflops = told.tflops;
                row.baseline_err = told.err;
                row.baseline_is_fp32 = match O::FORMAT {
                    Format::F32 => verdicts[baseline].is_fp32(),
                    _ => None,
                };
            }
            for &(number, measurement) in &measured {
                let ratio = measurement.speed_over(than);
                rows[number].ratio = finite(ratio.median);
                rows[number].ratio_low = finite(ratio.low);
                rows[number].ratio_high = finite(ratio.high);
            }
        }
        if let Some(seen) = seen {
            rows.iter_mut().for_each(|row| row.watched(&seen));
        }
        Ok(rows)
    }

    /// The kernels asked for, as far as they take such operands, and the libraries, as far as they have something.
    fn candidates(&self, case: &Case) -> Result<Vec<Candidate<'_, T, O>>, Failure> {
        let product = &case.product;
        let target = Target::of(self.stream.device());
        let mut request = Request::new(product.shape, product.strides());
        request.batch = product.count;
        let any = Gemm::<T, O>::of_types().compute(self.args.types.compute());
        let any = match self.args.workspace_limit {
            Some(limit) => any.workspace_limit(limit),
            None => any,
        };
        let kernels = match (&self.args.kernels[..], self.args.vs) {
            ([], Some(_)) => vec![BenchKernel::AUTO],
            ([], None) => any
                .candidates(&request, &target)
                .into_iter()
                // Where factors may not be rounded, these are not left out but another product's.
                .filter(|candidate| candidate.ineligible != Some(Ineligible::Tf32))
                .map(|candidate| candidate.entry)
                .filter(|entry| {
                    let is_f32 = |of: &Product| of.variant.operands == Type::F32;
                    !entry.product.as_ref().is_some_and(|of| of.is_particular() && is_f32(of))
                })
                .map(BenchKernel::of)
                .collect(),
            (asked, _) => asked.to_vec(),
        };
        let mut candidates = Vec::<Candidate<T, O>>::new();
        let mut left_out = BTreeMap::<String, Vec<String>>::new();
        for kernel in kernels {
            let gemm = match kernel.split_k {
                Some(blocks) => any.split_k(blocks)?,
                None => any,
            };
            let (gemm, role, asked) = match kernel.entry {
                None => (gemm, Role::Auto, false),
                Some(entry) => (gemm.entry(entry)?, Role::Named, true),
            };
            let name = |choice: &Choice| match choice.split_k {
                1 => choice.entry.name().to_owned(),
                blocks => format!("{}:{blocks}", choice.entry.name()),
            };
            match gemm.choose(&request, &target).map(|choice| name(&choice)) {
                // `auto` may have taken it already.
                Ok(name) if candidates.iter().any(|other| other.name == name) => {}
                Ok(name) => candidates.push(Candidate { name, role, work: Work::Own(gemm) }),
                Err(Error::Argument { limit, .. }) if asked => {
                    left_out.entry(limit).or_default().push(kernel.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        for (why, kernels) in left_out {
            let size = row_of::<T, O>(case, self.stream.device(), self.args).size();
            note(format_args!("note: {size}: without {}: {why}", kernels.join(", ")));
        }
        for library in self.libraries {
            if let Some(ready) = library.prepare(product)? {
                let (name, work) = (library.name().to_owned(), Work::Library(ready));
                candidates.push(Candidate { name, role: Role::Baseline, work });
            }
        }
        Ok(candidates)
    }

    /// What to compare with, operands on the device, and how long the copies of the first took.
    fn operands(&self, case: &Case) -> Result<Prepared<T, O>, Failure> {
        let Bencher { stream, args, .. } = *self;
        let (device, product) = (stream.device(), &case.product);
        let real = draw::<T>(product, args.seed, None)?;
        let begin = Instant::now();
        let mut sets = vec![Set::upload(device, product, real.each_ref().map(|one| &one[..]))?];
        stream.synchronize()?;
        let upload = begin.elapsed();
        for set in 1..case.sets::<T, O>(device) {
            sets.push(Set::uniform(device, product, args.seed.wrapping_add(set))?);
        }
        let seconds = if args.vs.is_some() { 1.0 } else { 30.0 };
        let reference = Reference::new(device, product, real, args.verify, args.seed, seconds)?;
        Ok((reference, sets, upload))
    }

    fn launch(
        &self,
        case: &Case,
        candidate: &Candidate<T, O>,
        set: &mut Set<T, O>,
    ) -> host::Result<()> {
        match &candidate.work {
            Work::Own(gemm) => {
                let Set { a, b, c } = set;
                case.product.launch(gemm, self.stream, a, b, c).map(|_| ())
            }
            Work::Library(ready) => ready.launch(set),
        }
    }

    /// Once, from C full of NaN, on real numbers, and on integers where that can be exact. The first launch is timed.
    fn verdict(
        &self,
        name: &str,
        case: &Case,
        candidate: &Candidate<T, O>,
        reference: &mut Reference<T, O>,
        set: &mut Set<T, O>,
        row: &mut Row,
    ) -> Result<Verdict, Failure> {
        let (product, verify, seed) = (&case.product, reference.verify, self.args.seed);
        let [of_real, of_integers] = &mut reference.known;
        let own = &candidate.name;
        let how = (self.args.types.compute(), O::FORMAT);
        let run = |set: &mut Set<T, O>| -> Result<(Duration, Duration, Vec<f32>), Failure> {
            set.c.fill_bytes(0xff)?;
            let begin = Instant::now();
            self.launch(case, candidate, set)?;
            self.stream.synchronize()?;
            let first_launch = begin.elapsed();
            let begin = Instant::now();
            let c = set.c.to_vec()?;
            Ok((first_launch, begin.elapsed(), O::widened(c)))
        };
        let step = format!("{name}: {own} once, on uniform data");
        let real = self.steps.step(&step, || {
            let (first_launch, download, c) = run(set)?;
            row.first_launch_us = us(first_launch);
            row.download_us = us(download);
            if let Work::Library(ready) = &candidate.work {
                row.algorithm = ready.algorithm();
            }
            let [a, b] = &reference.real;
            of_real.compare(product, verify, [a, b], c, how, Criterion::Bound, seed)
        })?;
        let step = format!("{name}: {own} once, on integers");
        // Of a library the error on real numbers is what counts.
        let integers = reference.integers.as_mut().filter(|_| candidate.role != Role::Baseline);
        let exact = integers.map(|([a, b], set)| {
            self.steps.step(&step, || {
                let (_, _, c) = run(set)?;
                of_integers.compare(product, verify, [a, b], c, how, Criterion::Exact, seed)
            })
        });
        let exact = exact.transpose()?;
        let verdict = Verdict::new(
            product,
            verify,
            &real,
            exact.as_deref(),
            candidate.role != Role::Baseline,
        );
        if candidate.role == Role::Baseline {
            if !verdict.is_a_product() {
                note(format_args!("error: {own} computes another product, and is not timed"));
            }
            return Ok(verdict);
        }
        for (found, data) in
            [(&real[..], "uniform data"), (exact.as_deref().unwrap_or(&[]), "integers")]
        {
            if let Some(wrong) = found.iter().find(|found| !found.nothing_wrong()) {
                wrong.complain(&format!("{data}, with {own},"));
            }
        }
        if !verdict.nothing_wrong {
            let device = self.stream.device().name();
            let (verify, types) = (name_of(&verify), self.args.types);
            // The command's product is one, of row-major matrices, and not by TMA.
            match registry::find(own).and_then(|entry| entry.product.as_ref()) {
                Some(product) if product.is_of_f32_views() => note(format_args!(
                    "reproduce: cargo run -p host -- --m {} --n {} --k {}{types} --device {device} --kernel {own} \
                     --seed {seed} --verify {verify}",
                    row.m, row.n, row.k
                )),
                _ => note(format_args!(
                    "reproduce: cargo run -p host -- bench --sizes {}x{}x{} --trans {}{types} --device {device} \
                     --kernels {own} --seed {seed} --verify {verify}",
                    row.m, row.n, row.k, row.trans
                )),
            }
        }
        Ok(verdict)
    }

    /// All of these in turn, round after round, and what the device did meanwhile.
    fn time(
        &self,
        name: &str,
        case: &Case,
        candidates: &[&Candidate<T, O>],
        sets: &mut [Set<T, O>],
    ) -> Result<(Vec<Measurement>, Option<Telemetry>), Failure> {
        if candidates.is_empty() {
            return Ok((Vec::new(), None));
        }
        let Bencher { stream, args, steps, .. } = *self;
        let device = stream.device();
        let names = candidates.iter().map(|candidate| candidate.name.clone()).collect::<Vec<_>>();
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
            let watch = Watch::start(device);
            let count = sets.len();
            // The candidates share the operands, one launch at a time.
            let sets = RefCell::new(sets);
            let mut timed = candidates
                .iter()
                .map(|candidate| -> Timed {
                    let sets = &sets;
                    Box::new(move |set| self.launch(case, candidate, &mut sets.borrow_mut()[set]))
                })
                .collect::<Vec<_>>();
            let measured = timing::compare(stream, &mut timed, count, &options)?;
            Ok::<_, Failure>((measured, watch.finish()))
        })?;
        let seen = seen.map_err(|why| {
            if device.is_cuda() {
                note(format_args!("note: no clocks or power: {why}"));
            }
        });
        Ok((measured, seen.ok()))
    }
}

fn us(time: Duration) -> Option<f64> {
    Some(six_digits(time.as_secs_f64() * 1e6))
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
