//! `bench`: kernels side by side, at several sizes.

use std::io::Write;

use host::{
    Error, Shape, Stream,
    gemm::Target,
    gpu::registry::{self, Entry},
    product,
    timing::{self, Interval, Measurement, Operands, Rounds, telemetry::Watch},
    verify::Criterion,
};
use serde::Serialize;

use super::{
    Failure,
    args::{Bench, Verify},
    list::{in_six_digits, json},
    note,
    run::{check_memory, duration},
    steps::Steps,
    verification::Verification,
};

/// What is said of one kernel at one size; also the object of `--json`.
#[derive(Serialize)]
struct Line {
    device: String,
    kernel: &'static str,
    m: usize,
    n: usize,
    k: usize,
    dtype: &'static str,
    seed: u64,
    rounds: usize,
    launches_per_round: usize,
    operand_sets: usize,
    /// Of one launch, over the rounds.
    #[serde(serialize_with = "in_six_digits")]
    median_us: f64,
    #[serde(serialize_with = "in_six_digits")]
    min_us: f64,
    /// From the tenth to the ninetieth percentile, over the median.
    #[serde(serialize_with = "in_six_digits")]
    spread: f64,
    #[serde(serialize_with = "in_six_digits")]
    gflops: f64,
    /// The kernel that the next three compare with: the first of the list.
    baseline: &'static str,
    #[serde(serialize_with = "in_six_digits")]
    speed_over_baseline: f64,
    /// 95 % interval; `null` where there are too few rounds for one.
    #[serde(serialize_with = "in_six_digits")]
    speed_low: f64,
    #[serde(serialize_with = "in_six_digits")]
    speed_high: f64,
    /// The first launch: the driver's compilation of the kernels (once a process) and a cold cache.
    #[serde(serialize_with = "in_six_digits")]
    first_launch_us: f64,
    /// Copies of one set of operands to the device, and of C back.
    #[serde(serialize_with = "in_six_digits")]
    upload_us: f64,
    #[serde(serialize_with = "in_six_digits")]
    download_us: f64,
    /// `full`, `sample` or `none`.
    verify: &'static str,
    /// Of the elements compared; `null` where none was.
    max_abs_err: Option<f64>,
    max_err_over_bound: Option<f64>,
    exact_on_integers: Option<bool>,
    /// Is everything right, on integers too? `null` where nothing was compared.
    verified: Option<bool>,
}

/// Times every kernel asked for at every size asked for.
pub(super) fn bench(args: &Bench, steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    let device = super::open(args.device)?;
    let target = Target::of(&device);
    let stream = device.stream()?;
    let mut all_right = true;
    // All sizes are looked at before the first one runs.
    let sizes = args.sizes_on(&device);
    let shapes = sizes.iter().map(|size| size.shape()).collect::<Result<Vec<_>, _>>()?;
    for &shape in &shapes {
        let verify = args.verify != Verify::None;
        let bytes = shape.bytes().saturating_mul(Operands::sets(&device, shape));
        check_memory(shape, bytes, verify, &device)?;
    }
    for (number, &shape) in (1..).zip(&shapes) {
        let (m, n, k) = (shape.m(), shape.n(), shape.k());
        let name = format!("{m}x{n}x{k} ({number} of {})", shapes.len());
        let entries = match &args.kernels[..] {
            [] => registry::products().map(|(entry, _)| entry).collect::<Vec<_>>(),
            names => {
                let entries = names.iter().map(|name| Ok(name.resolve(shape, &target)?.entry));
                entries.collect::<Result<_, Error>>()?
            }
        };
        all_right &= bench_size(args, steps, &name, &stream, &entries, shape, out)?;
    }
    if all_right { Ok(()) } else { Err(Failure::Wrong) }
}

/// One size, which steps call by that name. Is every C right?
fn bench_size(
    args: &Bench,
    steps: Steps,
    name: &str,
    stream: &Stream,
    entries: &[&'static Entry],
    shape: Shape,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let device = stream.device();
    let sets = Operands::sets(device, shape);
    let (a, b, mut operands, upload) = steps.step(&format!("{name}: operands"), || {
        let a = host::operands::uniform(args.seed, shape.a_len())?;
        let b = host::operands::uniform(host::operands::seed_of_b(args.seed), shape.b_len())?;
        let begin = stream.record()?;
        let mut operands = vec![Operands::upload(device, shape, &a, &b)?];
        stream.synchronize()?;
        let upload = stream.record()?.since(&begin)?;
        for set in 1..sets {
            operands.push(Operands::new(device, shape, args.seed.wrapping_add(set))?);
        }
        Ok::<_, Failure>((a, b, operands, upload))
    })?;

    // Each kernel once, from C full of NaN, to be compared, and the first launch timed apart.
    let mut lines = Vec::new();
    for entry in entries {
        let first = format!("{name}: {} once, on uniform data", entry.name());
        let (verification, first_launch, download) = steps.step(&first, || {
            let Operands { a: a_matrix, b: b_matrix, c } = &mut operands[0];
            c.buffer_mut().fill_bytes(0xff)?;
            let begin = std::time::Instant::now();
            product::multiply(stream, entry, a_matrix, b_matrix, c)?;
            stream.synchronize()?;
            let first_launch = begin.elapsed();
            let begin = std::time::Instant::now();
            let result = c.to_row_major()?;
            let download = begin.elapsed();
            let (data, criterion) = ([&*a, &*b, &*result], Criterion::Bound);
            let verification = Verification::run(args.verify, shape, data, criterion, args.seed)?;
            Ok::<_, Failure>((verification, first_launch, download))
        })?;
        let second = format!("{name}: {} once, on integers", entry.name());
        let exact = match args.verify {
            Verify::None => None,
            _ => steps.step(&second, || exact(args, stream, entry, shape))?,
        };
        lines.push((verification, exact, first_launch, download));
    }
    drop((a, b));

    let names = entries.iter().map(|entry| entry.name()).collect::<Vec<_>>();
    let timing = format!("{name}: timing");
    let how_far = move || {
        let Rounds { candidate, done, total } = timing::rounds();
        let name = names.get(candidate).copied().unwrap_or_default();
        match total {
            0 => format!("({name}, warming up)"),
            _ => format!("({name}) {} %", 100 * done / total),
        }
    };
    let (measured, telemetry) = steps.step_with(&timing, how_far, || {
        let options = args.options(device, entries.len());
        let watch = Watch::start(device);
        let measured = timing::compare_kernels(stream, entries, &mut operands, &options)?;
        Ok::<_, Failure>((measured, watch.finish()))
    })?;

    let us = |time: std::time::Duration| time.as_secs_f64() * 1e6;
    let mut all_right = true;
    if !args.json {
        writeln!(out, "{shape}   f32, on {device}")?;
        writeln!(
            out,
            "  {:<18} {:>12} {:>12} {:>7} {:>10}  {:<26} {:>9}",
            "kernel", "median", "least", "spread", "GFLOP/s", "speed (95 % interval)", "err/bound"
        )?;
    }
    for ((entry, measurement), (verification, exact, first_launch, download)) in
        entries.iter().zip(&measured).zip(&lines)
    {
        let summary = measurement.summary();
        let speed = measurement.speed_over(&measured[0]);
        let line = Line {
            device: device.name(),
            kernel: entry.name(),
            m: shape.m(),
            n: shape.n(),
            k: shape.k(),
            dtype: "f32",
            seed: args.seed,
            rounds: measurement.times_us.len(),
            launches_per_round: measurement.batch,
            operand_sets: operands.len(),
            median_us: summary.median,
            min_us: summary.min,
            spread: summary.spread(),
            gflops: shape.flop() / summary.median * 1e-3,
            baseline: entries[0].name(),
            speed_over_baseline: speed.median,
            speed_low: speed.low,
            speed_high: speed.high,
            first_launch_us: us(*first_launch),
            upload_us: us(upload),
            download_us: us(*download),
            verify: verification.as_ref().map_or("none", Verification::name),
            max_abs_err: verification
                .as_ref()
                .map(|verification| verification.elements().max_abs_err),
            max_err_over_bound: verification
                .as_ref()
                .map(|verification| verification.elements().max_err_over_bound),
            exact_on_integers: exact.as_ref().map(Verification::nothing_wrong),
            verified: verification.as_ref().map(|verification| {
                verification.passed() && exact.as_ref().is_some_and(Verification::passed)
            }),
        };
        let mut right = true;
        for (verification, data) in [(verification, "uniform data"), (exact, "integers")] {
            if let Some(verification) =
                verification.as_ref().filter(|verification| !verification.nothing_wrong())
            {
                verification.complain(&format!("{data}, with {},", entry.name()));
                right = false;
            }
        }
        if !right {
            all_right = false;
            note(format_args!(
                "reproduce: cargo run -p host -- --m {} --n {} --k {} --device {} --kernel {} --seed {} \
                 --verify {}",
                line.m, line.n, line.k, line.device, line.kernel, line.seed, line.verify
            ));
        }
        if args.json {
            json(out, &line)?;
        } else {
            print(out, &line, right, measurement, &speed)?;
        }
    }
    match telemetry {
        Ok(seen) if args.json => json(out, &serde_json::json!({ "telemetry": seen }))?,
        Ok(seen) => {
            let range = |[low, median, high]: [u32; 3]| format!("{median} ({low} to {high})");
            writeln!(
                out,
                "  clock {} MHz, power {} W, {} C; limited by: {}",
                range(seen.sm_mhz),
                range(seen.power_w),
                range(seen.temperature_c),
                if seen.throttled.is_empty() {
                    "nothing".into()
                } else {
                    seen.throttled.join(", ")
                }
            )?;
        }
        Err(why) if device.is_cuda() => note(format_args!("note: no clocks or power: {why}")),
        Err(_) => {}
    }
    Ok(all_right)
}

/// The kernel once on integers, where the result must be exact; `None` where no sum of k is sure to be.
fn exact(
    args: &Bench,
    stream: &Stream,
    entry: &Entry,
    shape: Shape,
) -> Result<Option<Verification>, Failure> {
    let Some(magnitude) = host::operands::exact_magnitude(shape.k()) else { return Ok(None) };
    let draw = |seed, len| host::operands::integers(seed, len, magnitude);
    let a = draw(args.seed, shape.a_len())?;
    let b = draw(host::operands::seed_of_b(args.seed), shape.b_len())?;
    let mut operands = Operands::upload(stream.device(), shape, &a, &b)?;
    operands.c.buffer_mut().fill_bytes(0xff)?;
    product::multiply(stream, entry, &operands.a, &operands.b, &mut operands.c)?;
    let c = operands.c.to_row_major()?;
    Ok(Verification::run(args.verify, shape, [&a, &b, &c], Criterion::Exact, args.seed)?)
}

fn print(
    out: &mut impl Write,
    line: &Line,
    right: bool,
    measurement: &Measurement,
    speed: &Interval,
) -> Result<(), Failure> {
    let summary = measurement.summary();
    let interval = match speed.low.is_finite() {
        true => format!("{:.3} ({:.3} to {:.3})", speed.median, speed.low, speed.high),
        false => format!("{:.3}", speed.median),
    };
    let verdict = match (line.verify, line.verified) {
        _ if !right => "  WRONG",
        (_, None) => "  not compared",
        // k is too large for an exact run on integers.
        (_, Some(false)) => "  unsettled",
        ("sample", Some(true)) => "  sampled",
        (_, Some(true)) => "",
    };
    writeln!(
        out,
        "  {:<18} {:>12} {:>12} {:>6.1}% {:>10.1}  {interval:<26} {:>9.4}{verdict}",
        line.kernel,
        duration(summary.median),
        duration(summary.min),
        100.0 * line.spread,
        line.gflops,
        line.max_err_over_bound.unwrap_or(f64::NAN)
    )?;
    Ok(())
}
