//! Measures one size: every candidate verified, then those that are right timed in turn.

use std::time::{Duration, Instant};

use host::{baseline::Epilogue, verify::Criterion};

use super::{
    added::Added,
    candidates::Bencher,
    case::{Case, Set, Views, draw},
    library::Compared,
    once::{Known, Numbers, us},
    row::{Role, Row, row_of},
    timed::Run,
    verdict::{How, Numbered, Reference},
};
use crate::cli::{Failure, args::Verify, types::Value, verification::Verification};

/// The reference, the operand sets on the device, and the time of copying the first.
type Prepared<T, O> = (Reference<T, O>, Vec<Set<T, O>>, Duration);

impl<T: Compared<O>, O: Value> Bencher<'_, T, O> {
    /// A row for each candidate. `name` is the name of the size in progress messages.
    pub(super) fn case(&self, name: &str, case: &Case) -> Result<Vec<Row>, Failure> {
        let Run { steps, stream, args, .. } = self.run;
        let device = stream.device();
        let added = Added::draw(case, args.seed, None)?;
        let scaling = added.scaling.iter().map(|of| of.upload(device));
        let scaling = scaling.collect::<host::Result<Vec<_>>>()?;
        let mut candidates = self.candidates(case, &scaling)?;
        if candidates.iter().all(|candidate| candidate.about.role == Role::Baseline) {
            return Ok(Vec::new());
        }
        steps.part(&format!("{name}: {} candidates to verify and time", candidates.len()));
        let (mut reference, mut sets, upload) =
            steps.step(&format!("{name}: operands"), || self.operands(case, added))?;
        self.choose(name, &mut candidates, &mut sets)?;
        let (mut rows, mut verdicts) = (Vec::new(), Vec::new());
        for candidate in &candidates {
            let mut row = candidate.about.row(row_of([T::TYPE, O::TYPE], case, device, args));
            row.operand_sets = sets.len();
            row.upload_us = us(upload);
            let (reference, set) = (&mut reference, &mut sets[0]);
            let mut known = OfSize { bencher: self, case, reference, set };
            let (verdict, download) = self.verdict(name, case, candidate, &mut known, &mut row)?;
            row.download_us = us(download);
            verdict.tell(&mut row);
            rows.push(row);
            verdicts.push(verdict);
        }
        drop(reference);
        if args.untimed {
            return Ok(rows);
        }
        self.compare(name, case, (&candidates, &verdicts), &mut rows, &mut sets)?;
        Ok(rows)
    }

    /// The reference, the operand sets on the device, and the time of copying the first.
    fn operands(&self, case: &Case, added: Added<O>) -> Result<Prepared<T, O>, Failure> {
        let Run { stream, args, .. } = self.run;
        let (device, product) = (stream.device(), &case.product);
        let real = draw::<T>(product, args.seed, None)?;
        let begin = Instant::now();
        let first = Set::upload(device, product, real.each_ref().map(|one| &one[..]))?;
        let mut sets = vec![first.with(&added.bias, &added.scaling)?];
        stream.synchronize()?;
        let upload = begin.elapsed();
        for set in 1..case.sets::<T, O>(device) {
            let set = Set::uniform(device, product, args.seed.wrapping_add(set))?;
            sets.push(set.with(&added.bias, &added.scaling)?);
        }
        let seconds = if args.vs.is_some() { 1.0 } else { 30.0 };
        let real = Numbered { operands: real, added };
        let reference = Reference::new(device, case, real, args.verify, args.seed, seconds)?;
        Ok((reference, sets, upload))
    }
}

/// The operands of a named size.
struct OfSize<'a, T, O> {
    bencher: &'a Bencher<'a, T, O>,
    case: &'a Case,
    reference: &'a mut Reference<T, O>,
    set: &'a mut Set<T, O>,
}

impl<T: Value, O: Value> Known<T, O> for OfSize<'_, T, O> {
    fn verify(&self) -> Verify {
        self.reference.verify
    }

    fn has_integers(&self) -> bool {
        self.reference.integers.is_some()
    }

    fn start(
        &mut self,
        numbers: Numbers,
        epilogue: Epilogue,
    ) -> host::Result<Option<Views<'_, T, O>>> {
        let Reference { real, integers, .. } = &mut *self.reference;
        let (added, set) = match (numbers, integers) {
            (Numbers::Real, _) => (&real.added, &mut *self.set),
            (_, Some((operands, set))) => (&operands.added, set),
            (_, None) => return Ok(None),
        };
        match epilogue.beta {
            0.0 => set.c.fill_bytes(0xff)?,
            _ => set.c.write(0, &added.before)?,
        }
        Ok(Some(set.views()))
    }

    fn compare(
        &mut self,
        numbers: Numbers,
        epilogue: Epilogue,
    ) -> Result<(Vec<Verification>, Duration), Failure> {
        let Reference { real, integers, verify, known: [of_real, of_integers] } = self.reference;
        let (operands, set, known, criterion) = match (numbers, integers) {
            (Numbers::Real, _) => (&*real, &*self.set, of_real, Criterion::Bound),
            (_, Some((operands, set))) => (&*operands, &*set, of_integers, Criterion::Exact),
            (_, None) => return Ok((Vec::new(), Duration::ZERO)),
        };
        let begin = Instant::now();
        let c = set.c.to_vec()?;
        let read = begin.elapsed();
        let args = self.bencher.run.args;
        let how = How { compute: args.types.compute(), epilogue, criterion };
        let product = &self.case.product;
        let found = known.compare(product, *verify, operands, c, how, args.seed)?;
        Ok((found, read))
    }
}
