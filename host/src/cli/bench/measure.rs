//! Measures one size: every candidate verified, then those that are right timed in turn.

use std::time::{Duration, Instant};

use host::verify::Criterion;

use super::{
    candidates::{Bencher, Candidate, Work},
    case::{Case, Set, draw},
    library::Compared,
    row::{Role, Row, row_of},
    verdict::{Reference, Verdict},
};
use crate::cli::{Failure, list::six_digits, types::Value};

/// What to compare with, sets of operands on the device, and how long the copies of the first took.
type Prepared<T, O> = (Reference<T, O>, Vec<Set<T, O>>, Duration);

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
        self.choose(name, &mut candidates, &mut sets)?;
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
        self.compare(name, case, (&candidates, &verdicts), &mut rows, &mut sets)?;
        Ok(rows)
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
            self.launch(case, candidate, set.views())?;
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
        Ok(self.judge(case, candidate, verify, (&real, exact.as_deref()), row))
    }
}

fn us(time: Duration) -> Option<f64> {
    Some(six_digits(time.as_secs_f64() * 1e6))
}
