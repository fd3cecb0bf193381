//! Measures the ladder: each rung is verified and counted, then all are timed in turn.

use std::cell::RefCell;

use host::{
    Bf16, Compute, Device, Shape, Stream, Type,
    baseline::DenseBatch,
    gemm::{Scalar, Target},
    gpu::registry::{self, Entry},
    product,
    timing::{self, Candidate as Timed, Measurement, Rounds, telemetry::Watch},
    verify::Criterion,
};

use super::{
    baseline::Baseline,
    candidate::Candidate,
    count,
    line::{Line, Verdict},
};
use crate::cli::{
    Failure,
    args::{Ladder, Verify},
    bench::case::{Case, Set, Views, draw},
    memory::check_memory,
    note,
    run::note_a_long_run,
    steps::Steps,
    types::{Value, not_multiplied},
    verification::Verification,
};

/// A line for each rung, and one for cuBLAS if it is there.
pub(super) fn measure(args: &Ladder, steps: Steps) -> Result<Vec<Line>, Failure> {
    // The types of lessons.
    match args.operands {
        of if of == Type::F32 => measure_of::<f32>(args, steps),
        of if of == Type::BF16 => measure_of::<Bf16>(args, steps),
        other => Err(not_multiplied(other, other)),
    }
}

fn measure_of<T: Value + Scalar>(args: &Ladder, steps: Steps) -> Result<Vec<Line>, Failure> {
    let device = crate::cli::open(args.device)?;
    let shape = args.shape_on(&device)?;
    let sets = Case::new((None, DenseBatch::one(shape))).sets::<T, T>(&device);
    // And a set of integers.
    check_memory(shape, shape.bytes().saturating_mul(sets + 1), true, &device)?;
    note_a_long_run(shape, &device);
    let stream = device.stream()?;
    let baseline = Baseline::open(&stream)?;
    let rungs = (1..).zip(registry::ladder_of(T::TYPE));
    let mut candidates = rungs
        .filter(|(_, (entry, _))| runs_on(entry, &device))
        .map(|(number, (entry, rung))| Candidate {
            number: Some(number),
            rung: Some(rung),
            entry: Some(entry),
        })
        .collect::<Vec<_>>();
    candidates.extend(baseline.as_ref().map(|_| Candidate {
        number: None,
        rung: None,
        entry: None,
    }));

    let verify = resolve(args.verify, shape, candidates.len());
    let tester = Tester { shape, stream: &stream, baseline: baseline.as_ref(), verify, args };
    let mut operands = steps.step("operands", || tester.operands::<T>(sets))?;
    let mut lines = Vec::new();
    for (number, candidate) in (1..).zip(&candidates) {
        let name = format!("{} ({number} of {})", candidate.name(), candidates.len());
        let verdict = steps.step(&format!("{name}: once, to be verified"), || {
            tester.verdict(candidate, &mut operands)
        })?;
        complain(&verdict, candidate, (args, T::NAME), shape, &device);
        let mut line = Line::new(candidate, &device, (shape, T::NAME), args.seed, &verdict);
        if let Some(entry) = candidate.entry {
            let counted = steps.step(&format!("{name}: counted"), || count::count(entry))?;
            if !counted.clean {
                note(format_args!(
                    "note: something is wrong with {name}: see `check --kernel {}`",
                    entry.name()
                ));
            }
            line.counted = Some(counted);
            line.fit = Some(count::fit(entry, &device)?);
        }
        lines.push(line);
    }
    drop(operands.host.take());

    let right = (0..lines.len()).filter(|&number| lines[number].verified).collect::<Vec<_>>();
    let timed = right.iter().map(|&number| &candidates[number]).collect::<Vec<_>>();
    let measurements = tester.time(&timed, &mut operands.sets, steps)?;
    let of = |number: usize| {
        right.iter().position(|&timed| timed == number).map(|place| &measurements[place])
    };
    let cublas = candidates.iter().position(|candidate| candidate.entry.is_none()).and_then(of);
    for (number, line) in lines.iter_mut().enumerate() {
        let Some(measurement) = of(number) else { continue };
        let before = number.checked_sub(1).filter(|_| line.rung.is_some()).and_then(of);
        line.timed(measurement, before, cublas);
    }
    Ok(lines)
}

/// Whether the device has the instructions of the kernel. If not, a note says so.
fn runs_on(entry: &Entry, device: &Device) -> bool {
    let target = Target::of(device);
    let arch = entry.declaration().arch.filter(|_| target.cuda);
    let Some(arch) = arch.filter(|arch| target.capability != (arch / 10, arch % 10)) else {
        return true;
    };
    let (name, major, minor) = (entry.name(), arch / 10, arch % 10);
    note(format_args!(
        "note: without {name}: it needs a GPU of compute capability {major}.{minor}"
    ));
    false
}

/// How much to compare for `auto`: all of C, if the products in float64 for all candidates take a
/// few seconds at most.
fn resolve(verify: Verify, shape: Shape, candidates: usize) -> Verify {
    // A core does at least 5 GFLOP/s in float64. There are three products for each candidate.
    let cores = f64::from(Device::cpu().sms());
    let seconds = 3.0 * candidates as f64 * shape.flop() / (5e9 * cores);
    match verify {
        Verify::Auto if seconds <= 30.0 => Verify::Full,
        Verify::Auto => Verify::Sample,
        asked => asked,
    }
}

/// Reports on standard error what is wrong, and how to reproduce it.
fn complain(
    verdict: &Verdict,
    candidate: &Candidate,
    (args, of): (&Ladder, &str),
    shape: Shape,
    device: &Device,
) {
    let name = candidate.name();
    let real = (Some(&verdict.real), "uniform data");
    for (verification, data) in [real, (verdict.exact.as_ref(), "integers")] {
        if let Some(wrong) = verification.filter(|verification| !verification.nothing_wrong()) {
            wrong.complain(&format!("{data}, with {name},"));
        }
    }
    if !verdict.right() && candidate.entry.is_some() {
        let of = if of == "f32" { String::new() } else { format!(" --type {of}") };
        note(format_args!(
            "reproduce: cargo run -p host -- --m {} --n {} --k {}{of} --device {} --kernel {name} --seed {}",
            shape.m(),
            shape.n(),
            shape.k(),
            device.name(),
            args.seed
        ));
    }
}

/// Operand sets on the device. The first one is also in host memory, for the comparison.
struct Sets<T> {
    sets: Vec<Set<T, T>>,
    host: Option<[Vec<T>; 2]>,
    /// Integers of the same sizes.
    integers: Option<Integers<T>>,
}

/// Operands of integers: in host memory, and on the device.
struct Integers<T> {
    host: [Vec<T>; 2],
    set: Set<T, T>,
}

/// Runs candidates.
struct Tester<'a> {
    shape: Shape,
    stream: &'a Stream,
    baseline: Option<&'a Baseline<'a>>,
    verify: Verify,
    args: &'a Ladder,
}

impl Tester<'_> {
    fn operands<T: Value>(&self, sets: u64) -> Result<Sets<T>, Failure> {
        let (device, seed) = (self.stream.device(), self.args.seed);
        let product = DenseBatch::one(self.shape);
        let [a, b] = draw::<T>(&product, seed, None)?;
        let mut all = vec![Set::upload(device, &product, [&a, &b])?];
        for set in 1..sets {
            all.push(Set::uniform(device, &product, seed.wrapping_add(set))?);
        }
        let integers = match host::operands::exact_magnitude_of(self.shape.k(), (T::TYPE, T::TYPE))
        {
            None => None,
            Some(magnitude) => {
                let [a, b] = draw::<T>(&product, seed, Some(magnitude))?;
                let set = Set::upload(device, &product, [&a, &b])?;
                Some(Integers { host: [a, b], set })
            }
        };
        Ok(Sets { sets: all, host: Some([a, b]), integers })
    }

    /// Launches a candidate once, with C full of NaN: on real numbers, and on integers if sums can
    /// be exact.
    fn verdict<T: Value + Scalar>(
        &self,
        candidate: &Candidate,
        operands: &mut Sets<T>,
    ) -> Result<Verdict, Failure> {
        let [a, b] = operands.host.as_ref().map_or([&[][..]; 2], |[a, b]| [&**a, &**b]);
        let real = self.verification(candidate, &mut operands.sets[0], [a, b], Criterion::Bound)?;
        let exact = match &mut operands.integers {
            None => None,
            Some(Integers { host: [a, b], set }) => {
                Some(self.verification(candidate, set, [a, b], Criterion::Exact)?)
            }
        };
        Ok(Verdict { real, exact })
    }

    fn verification<T: Value + Scalar>(
        &self,
        candidate: &Candidate,
        operands: &mut Set<T, T>,
        [a, b]: [&[T]; 2],
        criterion: Criterion,
    ) -> Result<Verification, Failure> {
        operands.c.fill_bytes(0xff)?;
        self.launch(candidate, operands)?;
        self.stream.synchronize()?;
        let c = operands.c.to_vec()?;
        let (shape, seed, compute) = (self.shape, self.args.seed, Compute::Native);
        let found =
            Verification::run(self.verify, shape, (a, b, &c), None, compute, criterion, seed)?;
        found.ok_or_else(|| {
            host::Error::argument("--verify", "none", "every rung is verified: full or sample")
                .into()
        })
    }

    fn launch<T: Value + Scalar>(
        &self,
        candidate: &Candidate,
        operands: &mut Set<T, T>,
    ) -> host::Result<()> {
        match (candidate.entry, self.baseline) {
            (Some(entry), _) => {
                let Views { a, b, c, .. } = operands.views();
                product::multiply_views(self.stream, entry, self.shape, a, b, c)
            }
            (None, Some(baseline)) => baseline.multiply(self.shape, operands),
            // Such a candidate exists only if there is a baseline.
            (None, None) => Ok(()),
        }
    }

    /// Times these candidates round by round.
    fn time<T: Value + Scalar>(
        &self,
        candidates: &[&Candidate],
        operands: &mut [Set<T, T>],
        steps: Steps,
    ) -> Result<Vec<Measurement>, Failure> {
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        let device = self.stream.device();
        let names = candidates.iter().map(|candidate| candidate.name()).collect::<Vec<_>>();
        let how_far = move || {
            let Rounds { candidate, done, total } = timing::rounds();
            let name = names.get(candidate).copied().unwrap_or_default();
            match total {
                0 => format!("({name}, warming up)"),
                _ => format!("({name}) {} %", 100 * done / total),
            }
        };
        let seconds = self.args.seconds_on(device) * candidates.len() as f64;
        let options = timing::Options {
            duration: std::time::Duration::from_secs_f64(seconds),
            ..timing::Options::new(device, candidates.len())
        };
        steps.step_with("timing", how_far, || {
            let watch = Watch::start(device);
            let sets = operands.len();
            // The candidates share the operands: one launch at a time uses them.
            let operands = RefCell::new(operands);
            let mut timed = candidates
                .iter()
                .map(|candidate| -> Timed {
                    let operands = &operands;
                    Box::new(move |set| self.launch(candidate, &mut operands.borrow_mut()[set]))
                })
                .collect::<Vec<_>>();
            let measured = timing::compare(self.stream, &mut timed, sets, &options)?;
            if let Ok(seen) = watch.finish() {
                let [low, median, high] = seen.sm_mhz;
                let why = match seen.throttled.is_empty() {
                    true => "nothing".to_owned(),
                    false => seen.throttled.join(", "),
                };
                note(format_args!(
                    "note: clock {median} MHz ({low} to {high}), power {} W; limited by: {why}",
                    seen.power_w[1]
                ));
            }
            Ok(measured)
        })
    }
}
