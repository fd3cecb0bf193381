//! Measures one random shape, on operands of a pool.

use std::time::{Duration, Instant};

use host::{Error, verify::Criterion};

use super::{
    super::{
        candidates::{Bencher, Candidate, Work},
        case::{Case, Sets},
        library::Compared,
        row::{Role, Row, row_of},
        verdict::Verdict,
    },
    pool::{Places, Pool, PoolSets},
    spots::Spots,
};
use crate::cli::{
    Failure, args::Verify, list::six_digits, note, types::Value, verification::Verification,
};

/// Some elements of C, with A's and B's of real numbers and of integers.
struct Known {
    spots: Spots,
    real: Vec<[Vec<f32>; 2]>,
    integers: Vec<[Vec<f32>; 2]>,
}

/// A row for each candidate. `name` is that of the shape in steps.
pub(super) fn measure<T: Compared<O>, O: Value>(
    bencher: &Bencher<T, O>,
    name: &str,
    case: &Case,
    places: Places,
    pool: &mut Pool<T, O>,
) -> Result<Vec<Row>, Failure> {
    let Bencher { steps, args, stream, .. } = *bencher;
    let mut candidates = bencher.candidates(case)?;
    if candidates.iter().all(|candidate| candidate.role == Role::Baseline) {
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
        let mut row = row_of::<T, O>(case, stream.device(), args);
        row.kernel.clone_from(&candidate.name);
        row.role = candidate.role;
        row.operand_sets = pool.of(places).count();
        let known = known.as_ref();
        let verdict = verdict(bencher, name, case, &candidate, places, pool, known, &mut row);
        let verdict = match verdict {
            // A library may have nothing for a shape: the other one is the baseline.
            Err(Failure::Error(Error::Driver { call, code, name: state, .. }, _))
                if candidate.role == Role::Baseline && call.starts_with("cublas") =>
            {
                note(format_args!(
                    "note: {name}: without {}: {call} failed: {state} ({code})",
                    candidate.name
                ));
                continue;
            }
            verdict => verdict?,
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
) -> host::Result<Known> {
    let spots = Spots::of(&case.product, seed);
    let operands = |numbers| spots.operands(&case.product, places, numbers);
    let real = operands(&pool.real)?;
    let integers = pool.integers.as_ref().map_or(Ok(Vec::new()), operands)?;
    Ok(Known { spots, real, integers })
}

/// Once from C full of NaN, on real numbers, and of our own on integers, where it must be exact. The first launch is timed.
fn verdict<T: Compared<O>, O: Value>(
    bencher: &Bencher<T, O>,
    name: &str,
    case: &Case,
    candidate: &Candidate<T, O>,
    places: Places,
    pool: &mut Pool<T, O>,
    known: Option<&Known>,
    row: &mut Row,
) -> Result<Verdict, Failure> {
    let (product, own) = (&case.product, &candidate.name);
    let how = (bencher.args.types.compute(), O::FORMAT);
    let run = |sets: &mut PoolSets<T, O>| -> Result<(Duration, Vec<Vec<f32>>), Failure> {
        sets.views(0)?.c.fill_bytes(0xff)?;
        let begin = Instant::now();
        bencher.launch(case, candidate, sets.views(0)?)?;
        bencher.stream.synchronize()?;
        let first_launch = begin.elapsed();
        let c = sets.views(0)?.c;
        let c = known.map_or(Ok(Vec::new()), |known| known.spots.read(product, c.as_view()))?;
        Ok((first_launch, c))
    };
    let compare = |c: &[Vec<f32>], integers: bool| -> Result<Vec<Verification>, Failure> {
        let Some(Known { spots, real, integers: exact }) = known else { return Ok(Vec::new()) };
        let (operands, criterion) = match integers {
            true => (exact, Criterion::Exact),
            false => (real, Criterion::Bound),
        };
        spots.compare(operands, c, product.shape.k(), how, criterion)
    };
    let real = bencher.steps.step(&format!("{name}: {own} once, on uniform data"), || {
        let (first_launch, c) = run(&mut pool.of(places))?;
        row.first_launch_us = Some(six_digits(first_launch.as_secs_f64() * 1e6));
        if let Work::Library(ready) = &candidate.work {
            row.algorithm = ready.algorithm();
        }
        compare(&c, false)
    })?;
    // Of a library the error on real numbers is what counts.
    let integers = pool.integers_of(places).filter(|_| candidate.role != Role::Baseline);
    let exact = integers.map(|mut sets| {
        bencher.steps.step(&format!("{name}: {own} once, on integers"), || {
            let (_, c) = run(&mut sets)?;
            compare(&c, true)
        })
    });
    let exact = exact.transpose()?;
    let verify = if known.is_some() { Verify::Sample } else { Verify::None };
    Ok(bencher.judge(case, candidate, verify, (&real, exact.as_deref()), row))
}
