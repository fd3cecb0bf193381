//! One product: operands, launches, times, verification, and a report.

mod test;

use std::{io::Write, time::Duration};

use host::{
    Buffer, Compute, Device, Error, Gemm, Matrix, PlannedGemm, Shape, TuningCache, Type,
    gemm::{Choice, Output, Request, Scalar},
    gpu::registry::Entry,
    operands,
    scaling::Scaling,
    simt::with_types,
};
use serde::Serialize;

use self::test::{Product, Test};
use super::{
    Failure,
    args::{Init, Run, Verify, name_of},
    duration::duration,
    list::{in_six_digits, json},
    memory::check_memory,
    note,
    steps::Steps,
    types::{Value, as_it_is, not_multiplied, rounded, words},
    verification::{Verification, off},
};

/// The report, also the object of `--json`.
#[derive(Serialize)]
struct Report {
    device: String,
    kernel: &'static str,
    /// Why this kernel was selected.
    reason: String,
    m: usize,
    n: usize,
    k: usize,
    /// The types of A and B, and of C.
    dtype: &'static str,
    out_dtype: &'static str,
    /// The arithmetic: `fp32`, `tf32`, and so on.
    compute: String,
    /// What the scales of A and B are of. `null`: there are none.
    scales: Option<String>,
    init: String,
    seed: u64,
    iters: u32,
    warmup: u32,
    /// The median time of the product, without transfers.
    #[serde(serialize_with = "in_six_digits")]
    time_us: f64,
    #[serde(serialize_with = "in_six_digits")]
    min_time_us: f64,
    #[serde(serialize_with = "in_six_digits")]
    gflops: f64,
    /// The first launch. It includes the driver's compilation of the kernels.
    #[serde(serialize_with = "in_six_digits")]
    first_launch_us: f64,
    /// Copies of A and B to the device, and of C back.
    #[serde(serialize_with = "in_six_digits")]
    upload_us: f64,
    #[serde(serialize_with = "in_six_digits")]
    download_us: f64,
    /// Elements of C that a kernel for emulated fp32 recomputed by fused multiply-adds. `null` for
    /// other kernels.
    recomputed: Option<u64>,
    /// `full`, `sample` or `none`.
    verify: &'static str,
    /// Over the compared elements, against the product in float64. `null` for NaN, and if none was
    /// compared.
    max_abs_err: Option<f64>,
    max_err_over_bound: Option<f64>,
    /// Whether C was exact on integers. `null` if not tried.
    exact_on_integers: Option<bool>,
    /// Elements of C compared one by one.
    compared: u64,
    /// Among them, elements that must be NaN.
    compared_nan: u64,
    /// Random projections of C compared.
    projections: usize,
    /// Whether everything is right, also on integers. `null` if nothing was compared.
    verified: Option<bool>,
}

/// Runs the product. A failure says how to reproduce it.
pub(super) fn run(args: &Run, steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    let shape = args.sizes.shape()?;
    let types = args.types.types()?;
    let device = super::open(args.device)?;
    let ran = with_types!(types, |T, O| run_on::<T, O>(args, steps, shape, &device))
        .unwrap_or_else(|| Err(not_multiplied(types.0, types.1)));
    let outcome = ran.and_then(|ran| tell(args, types, &ran, shape, &device, out));
    outcome.map_err(|failure| {
        let again = args.to_command(&device.name());
        match failure {
            // A refused or interrupted run needs no reproduction.
            Failure::Error(error, _) if !matches!(error.exit_code(), 2 | 130) => {
                Failure::Error(error, Some(again))
            }
            Failure::Wrong => {
                note(format_args!("reproduce: {again}"));
                Failure::Wrong
            }
            other => other,
        }
    })
}

/// The products of a run.
struct Ran {
    choice: Choice,
    iters: u32,
    warmup: u32,
    /// On the data asked for, unless that is integers.
    real: Option<Product>,
    exact: Option<Product>,
}

fn run_on<T: Scalar<O> + Value, O: Value>(
    args: &Run,
    steps: Steps,
    shape: Shape,
    device: &Device,
) -> Result<Ran, Failure> {
    let cache = args.tuning()?;
    let (of_real, of_exact) = (args.scaling(shape, false)?, args.scaling(shape, true)?);
    let here = |of: &Option<Scaling>| of.as_ref().map(|of| of.upload(device)).transpose();
    let [scales, exact_scales] = [here(&of_real)?, here(&of_exact)?];
    let plain = args.product::<T, O>()?;
    let gemm = scaled(plain, scales.as_ref(), cache.as_ref())?;
    if cache.is_some() {
        // While kernels are timed there is a second C.
        let second = size_of::<O>() as u64 * shape.c_len() as u64;
        checked_plan(args, &gemm, shape, device, second)?;
        tune(&gemm, shape, device, args.seed)?;
    }
    let planned = checked_plan(args, &gemm, shape, device, 0)?;
    // Integers have scales of their own. Without scales the plan is the same.
    let on_integers = exact_scales.as_ref().map(|of| -> Result<_, Error> {
        checked_plan(args, &scaled(plain, Some(of), cache.as_ref())?, shape, device, 0)
    });
    let on_integers = on_integers.transpose()?;
    let choice = *planned.choice();
    let (iters, warmup) = if device.is_cuda() { (20, 1) } else { (1, 0) };
    let (iters, warmup) = (args.iters.unwrap_or(iters), args.warmup.unwrap_or(warmup));
    let (stream, scaling) = (device.stream()?, of_real.as_ref());
    let test = Test { stream, planned: &planned, scaling, shape, args, steps };

    let mut exact = None;
    let real = (args.init != Init::Int).then(|| test.product(args.init, iters, warmup));
    let real = real.transpose()?;
    // Also on integers, where no rounding can hide a dropped product.
    if args.verify != Verify::None || real.is_none() {
        let (iters, warmup) = if real.is_none() { (iters, warmup) } else { (1, 0) };
        let (planned, scaling) = (on_integers.as_ref().unwrap_or(&planned), of_exact.as_ref());
        exact = Test { planned, scaling, ..test }.exact(iters, warmup)?;
    }
    Ok(Ran { choice, iters, warmup, real, exact })
}

/// Prints the report, and what is wrong.
fn tell(
    args: &Run,
    types: (Type, Type),
    Ran { choice, iters, warmup, real, exact }: &Ran,
    shape: Shape,
    device: &Device,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let entry = choice.entry;
    let Some(shown) = real.as_ref().or(exact.as_ref()) else {
        let limit = format!(
            "{} for --init int: no longer sum of integers is sure to be exact",
            operands::most_exact_steps(types.0)
        );
        return Err(Error::argument("k", shape.k(), limit).into());
    };

    let seconds = shown.times.median.as_secs_f64();
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let verifications =
        [real.as_ref(), exact.as_ref()].map(|product| product?.verification.as_ref());
    let checked = verifications[0].or(verifications[1]);
    let report = Report {
        device: device.name(),
        kernel: entry.name(),
        reason: choice.reason.to_string(),
        m: shape.m(),
        n: shape.n(),
        k: shape.k(),
        dtype: types.0.name(),
        out_dtype: types.1.name(),
        compute: args.types.compute_name(),
        scales: args.scales.map(|kind| kind.to_string()),
        init: name_of(&args.init),
        seed: args.seed,
        iters: *iters,
        warmup: *warmup,
        time_us: us(shown.times.median),
        min_time_us: us(shown.times.min),
        gflops: if seconds > 0.0 { shape.flop() / seconds * 1e-9 } else { 0.0 },
        first_launch_us: us(shown.times.first_launch),
        upload_us: us(shown.times.upload),
        download_us: us(shown.times.download),
        recomputed: shown.recomputed,
        verify: checked.map_or("none", Verification::name),
        max_abs_err: checked.map(|verification| verification.elements().max_abs_err),
        max_err_over_bound: checked.map(|verification| verification.elements().max_err_over_bound),
        // An empty C is neither exact nor inexact.
        exact_on_integers: verifications[1]
            .filter(|_| shape.c_len() > 0)
            .map(Verification::nothing_wrong),
        compared: checked.map_or(0, |verification| verification.elements().elements),
        compared_nan: checked.map_or(0, |verification| verification.elements().nan),
        projections: checked.map_or(0, Verification::projections),
        verified: checked.filter(|verification| verification.elements().elements > 0).map(
            |verification| {
                verification.passed() && verifications[1].is_some_and(Verification::passed)
            },
        ),
    };
    let right = verifications.into_iter().flatten().all(Verification::nothing_wrong);
    if args.json {
        json(out, &report)?;
    } else {
        print(out, &report, right, device, (entry, args.types.compute()), shape)?;
    }
    for (what, verification) in ["this data", "integers"].into_iter().zip(verifications) {
        if let Some(verification) =
            verification.filter(|verification| !verification.nothing_wrong())
        {
            verification.complain(what);
        }
    }
    if right { Ok(()) } else { Err(Failure::Wrong) }
}

/// The product with these scales, if there are any, and tuned, if there is a cache.
pub(super) fn scaled<'a, T: Scalar<O>, O: Output>(
    gemm: Gemm<'a, T, O>,
    scales: Option<&'a Scaling<Buffer<f32>>>,
    cache: Option<&'a TuningCache>,
) -> Result<Gemm<'a, T, O>, Error> {
    let gemm = cache.map_or(gemm, |cache| gemm.tuned(cache));
    Ok(match scales {
        Some(scales) => gemm.scales(scales.scales()?),
        None => gemm,
    })
}

/// The plan of the product, if there is memory for it and `more` bytes.
fn checked_plan<'a, T: Scalar<O>, O: Output>(
    args: &Run,
    gemm: &Gemm<'a, T, O>,
    shape: Shape,
    device: &Device,
    more: u64,
) -> Result<PlannedGemm<'a, T, O>, Error> {
    let planned = gemm.plan_on(device, &Request::dense(shape))?;
    let workspace = planned.choice().workspace_bytes.saturating_add(more);
    let on_device = shape.bytes_of::<T, O>().saturating_add(workspace);
    check_memory(shape, on_device, args.verify != Verify::None, device)?;
    Ok(planned)
}

/// Launches a tuned product once, so that its cache has the answer.
fn tune<T: Scalar<O> + Value, O: Output>(
    gemm: &Gemm<T, O>,
    shape: Shape,
    device: &Device,
    seed: u64,
) -> Result<(), Error> {
    let draw = |seed, rows, cols| {
        Matrix::from_row_major(device, rows, cols, &operands::uniform::<T>(seed, rows * cols)?)
    };
    let a = draw(seed, shape.m(), shape.k())?;
    let b = draw(operands::seed_of_b(seed), shape.k(), shape.n())?;
    let mut c = Matrix::zeros(device, shape.m(), shape.n())?;
    gemm.run(&device.stream()?, a.view(), b.view(), c.view_mut()).map(|_| ())
}

/// GFLOP/s per core of the lessons' kernels on the CPU device (docs/log/cpu.md).
const LESSONS_GFLOPS: f64 = 0.5;

/// Before a measurement on the CPU device: prints the estimated time of one run, if it is more than
/// ten seconds.
pub(super) fn note_a_long_run(shape: Shape, device: &Device) {
    let flop = 2.0 * shape.m() as f64 * shape.n() as f64 * shape.k() as f64;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let seconds = flop / (LESSONS_GFLOPS * 1e9 * cores as f64);
    if !device.is_cuda() && seconds > 10.0 {
        let (m, n, k) = (shape.m(), shape.n(), shape.k());
        note(format_args!(
            "note: on the CPU a run of {m}x{n}x{k} takes a slow kernel some {seconds:.0} s, and each runs several times; Ctrl-C ends it"
        ));
    }
}

/// The line about recomputed elements, for people.
pub(super) fn recomputed(count: Option<u64>, (rows, cols): (usize, usize)) -> Option<String> {
    let count = count.filter(|&count| count > 0)?;
    Some(format!("recomputed  {count} of {} elements, by fused multiply-adds", rows * cols))
}

fn print(
    out: &mut impl Write,
    report: &Report,
    right: bool,
    device: &Device,
    (entry, compute): (&Entry, Compute),
    shape: Shape,
) -> Result<(), Failure> {
    let Report { init, seed, scales, .. } = report;
    let types = words(report.dtype, report.out_dtype);
    let types = match &*report.compute {
        "fp32" | "fp64" => types,
        "int32" => format!("{types}, sums of i32"),
        how => format!("{types} as {how}"),
    };
    let scales = scales.as_ref().map_or(String::new(), |scales| format!(", scales {scales}"));
    writeln!(out, "{shape}   {types}, row-major, {init}, seed {seed}{scales}")?;
    writeln!(out, "device    {device}")?;
    writeln!(out, "kernel    {}: {} ({})", entry.name(), entry.summary, report.reason)?;
    if let Some(line) = as_it_is(compute, entry) {
        writeln!(out, "{line}")?;
    }
    if shape.c_len() == 0 {
        writeln!(out, "C is empty: nothing was launched, there is nothing to verify")?;
        return Ok(());
    }
    let runs = if report.iters == 1 { "one run" } else { &format!("median of {}", report.iters) };
    writeln!(out, "time      {} ({runs}), {:.2} GFLOP/s", duration(report.time_us), report.gflops)?;
    if let Some(line) = recomputed(report.recomputed, (report.m, report.n)) {
        writeln!(out, "{line}")?;
    }
    let (Some(abs), Some(over)) = (report.max_abs_err, report.max_err_over_bound) else {
        writeln!(out, "C was not compared with anything (--verify none)")?;
        return Ok(());
    };
    let word = match (right, report.exact_on_integers) {
        (false, _) => "WRONG    ",
        (true, None) => "unsettled",
        (true, Some(_)) => "verified ",
    };
    let sampled = match report.verify {
        "sample" => {
            let Report { compared, projections, .. } = report;
            format!("in a sample ({compared} elements, {projections} random projections): ")
        }
        _ => String::new(),
    };
    let exact = match report.exact_on_integers {
        Some(true) => "exact on integers",
        Some(false) => "not exact on integers",
        None => "k is too large for an exact run on integers",
    };
    let nan = match (report.compared_nan, report.compared) {
        (0, _) => String::new(),
        (nan, compared) => format!("; {nan} of {compared} elements must be NaN"),
    };
    writeln!(out, "{word} {sampled}{}{nan}; {exact}", off(abs, over, rounded(report.out_dtype)))?;
    Ok(())
}
