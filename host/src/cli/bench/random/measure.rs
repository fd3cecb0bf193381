//! Measures one random shape, on operands of a pool.

use std::time::{Duration, Instant};

use host::{Error, baseline::Epilogue, verify::Criterion};

use super::{
    super::{
        candidates::Bencher,
        case::{Case, Sets, Views},
        library::Compared,
        once::{Known, Numbers},
        row::{Role, Row, row_of},
        timed::Run,
        verdict::How,
    },
    pool::{Places, Pool, PoolSets},
    spots::Spots,
};
use crate::cli::{Failure, args::Verify, note, types::Value, verification::Verification};

/// Some elements of C, and their rows of A and columns of B, of real numbers and of integers.
struct KnownSpots<T> {
    spots: Spots,
    real: Vec<[Vec<T>; 2]>,
    integers: Vec<[Vec<T>; 2]>,
}

/// A row for each candidate. `name` is the name of the shape in progress messages.
pub(super) fn measure<T: Compared<O>, O: Value>(
    bencher: &Bencher<T, O>,
    name: &str,
    case: &Case,
    places: Places,
    pool: &mut Pool<T, O>,
) -> Result<Vec<Row>, Failure> {
    let Run { steps, args, stream, .. } = bencher.run;
    let mut candidates = bencher.candidates(case, &[])?;
    if candidates.iter().all(|candidate| candidate.about.role == Role::Baseline) {
        return Ok(Vec::new());
    }
    steps.part(&format!("{name}: {} candidates to verify and time", candidates.len()));
    bencher.choose(name, &mut candidates, &mut pool.of(places))?;
    let compared = args.verify != Verify::None;
    let known = compared.then(|| {
        steps.step(&format!("{name}: reference"), || known(case, places, pool, args.seed))
    });
    let known = known.transpose()?;
    let (mut rows, mut verdicts) = (Vec::new(), Vec::new());
    let mut taken = Vec::new();
    for candidate in candidates {
        let mut row = candidate.about.row(row_of([T::TYPE, O::TYPE], case, stream.device(), args));
        row.operand_sets = pool.of(places).count();
        let mut known = OfShape { bencher, case, places, pool, spots: known.as_ref() };
        let verdict = bencher.verdict(name, case, &candidate, &mut known, &mut row);
        let verdict = match verdict {
            // A library may have no algorithm for a shape. Then the other library is the baseline.
            Err(Failure::Error(Error::Driver { call, code, name: state, .. }, _))
                if candidate.about.role == Role::Baseline && call.starts_with("cublas") =>
            {
                note(format_args!(
                    "note: {name}: without {}: {call} failed: {state} ({code})",
                    candidate.about.words()
                ));
                continue;
            }
            verdict => verdict?.0,
        };
        verdict.tell(&mut row);
        rows.push(row);
        verdicts.push(verdict);
        taken.push(candidate);
    }
    bencher.compare(name, case, (&taken, &verdicts), &mut rows, &mut pool.of(places))?;
    Ok(rows)
}

fn known<T: Value, O: Value>(
    case: &Case,
    places: Places,
    pool: &Pool<T, O>,
    seed: u64,
) -> host::Result<KnownSpots<T>> {
    let spots = Spots::of(&case.product, seed);
    let operands = |numbers| spots.operands(&case.product, places, numbers);
    let real = operands(&pool.real)?;
    let integers = pool.integers.as_ref().map_or(Ok(Vec::new()), operands)?;
    Ok(KnownSpots { spots, real, integers })
}

/// The operands of a random shape.
struct OfShape<'a, T, O> {
    bencher: &'a Bencher<'a, T, O>,
    case: &'a Case,
    places: Places,
    pool: &'a mut Pool<T, O>,
    spots: Option<&'a KnownSpots<T>>,
}

impl<T: Value, O: Value> OfShape<'_, T, O> {
    fn sets(&mut self, numbers: Numbers) -> Option<PoolSets<'_, T, O>> {
        match numbers {
            Numbers::Real => Some(self.pool.of(self.places)),
            Numbers::Integers => self.pool.integers_of(self.places),
        }
    }
}

impl<T: Value, O: Value> Known<T, O> for OfShape<'_, T, O> {
    fn verify(&self) -> Verify {
        if self.spots.is_some() { Verify::Sample } else { Verify::None }
    }

    fn has_integers(&self) -> bool {
        self.pool.integers.is_some()
    }

    fn start(
        &mut self,
        numbers: Numbers,
        epilogue: Epilogue,
    ) -> host::Result<Option<Views<'_, T, O>>> {
        self.sets(numbers).map(|sets| sets.start(epilogue.beta != 0.0)).transpose()
    }

    fn compare(
        &mut self,
        numbers: Numbers,
        epilogue: Epilogue,
    ) -> Result<(Vec<Verification>, Duration), Failure> {
        const NOTHING: (Vec<Verification>, Duration) = (Vec::new(), Duration::ZERO);
        let (Some(known), product) = (self.spots, self.case.product) else { return Ok(NOTHING) };
        let Some(sets) = self.sets(numbers) else { return Ok(NOTHING) };
        let begin = Instant::now();
        let c = known.spots.read(&product, sets.into_views(0)?.c.as_view())?;
        let read = begin.elapsed();
        let (operands, drawn, criterion) = match (numbers, &self.pool.integers) {
            (Numbers::Real, _) => (&known.real, &self.pool.real, Criterion::Bound),
            (_, Some(integers)) => (&known.integers, integers, Criterion::Exact),
            (_, None) => return Ok(NOTHING),
        };
        let how = How { compute: self.bencher.run.args.types.compute(), epilogue, criterion };
        Ok((known.spots.compare(&product, operands, drawn, &c, how)?, read))
    }
}
