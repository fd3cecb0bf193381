//! `gemm`: a product of files, written to a file.

mod files;
mod planned;
mod report;

use std::{io::Write, time::Instant};

use host::{
    Device, Devices, Error, Type,
    blocks::{Product, Source},
    gemm::{Scalar, Target},
    npy::{self, Element, Header, Reader, Writer},
    verify::{Claim, Criterion},
};

use self::{
    files::{Files, Sources},
    planned::{Factors, Outcome, Planned},
    report::Report,
};
use super::{
    Failure,
    args::{ComputeMode, DevicesChoice, Gemm, Verify, name_of},
    list::json,
    memory::check_bytes,
    note,
    plan::{PlannedFor, place},
    steps::Steps,
    verification::{Verification, factors},
};

/// Multiplies files. Unsuitable files are refused before anything is computed.
pub(super) fn gemm(args: &Gemm, steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    let files = Files::open(args)?;
    match files.dtype == Type::F64 {
        true if args.compute != ComputeMode::Fp32 => {
            let limit = "must be fp32 where an operand is of float64";
            Err(Error::argument("--compute", name_of(&args.compute), limit).into())
        }
        true => multiply::<f64>(args, &files, steps, out),
        false => multiply::<f32>(args, &files, steps, out),
    }
}

fn multiply<T: Scalar + Element>(
    args: &Gemm,
    files: &Files,
    steps: Steps,
    out: &mut impl Write,
) -> Result<(), Failure>
where
    Reader: Source<T> + Source<f64>,
{
    let factors = Factors::of::<T>(args)?;
    if args.plan {
        return plan::<T>(args, files, factors, out);
    }
    let operands =
        [Some(("--a", &args.a)), Some(("--b", &args.b)), args.c.as_ref().map(|c| ("--c", c))];
    let operands =
        operands.into_iter().flatten().map(|(flag, path)| (flag, &**path)).collect::<Vec<_>>();
    super::spare_inputs(args.force, ("--out", &args.out), &operands)?;
    let dtype = args.out_dtype(T::TYPE);
    let (m, n) = (files.shape.m(), files.shape.n());
    let writer = Writer::create("--out", &args.out, m, n, dtype, args.out_order.into())?;
    let devices = args.device.open()?;
    run::<T>(args, files, factors, &devices, writer, steps, out)
        .map_err(|failure| with_command(failure, args, &devices))
}

/// Adds the command that reproduces a failure, if that helps.
fn with_command(failure: Failure, args: &Gemm, devices: &Devices) -> Failure {
    let again = args.to_command(&match args.device {
        DevicesChoice::One(_) => devices.to_string(),
        _ => args.device.to_string(),
    });
    match failure {
        Failure::Error(
            error @ (Error::Interrupted
            | Error::Argument { .. }
            | Error::File { .. }
            | Error::Unwritten { .. }),
            _,
        ) => Failure::Error(error, None),
        Failure::Error(error, _) => Failure::Error(error, Some(again)),
        Failure::Wrong => {
            note(format_args!("reproduce: {again}"));
            Failure::Wrong
        }
        other => other,
    }
}

/// How many of the devices have the memory of this one. All CPU devices have the host's.
fn sharing(devices: &Devices, device: &Device) -> u64 {
    devices.iter().filter(|other| !device.is_cuda() || *other == device).count() as u64
}

/// The memory limit of each device: as given, or the default.
fn memory_limit(args: &Gemm, devices: &Devices) -> Result<u64, Error> {
    if let Some(limit) = args.device_memory_limit {
        return Ok(limit);
    }
    let limit = |device: &Device| -> Result<u64, Error> {
        let (free, _) = device.memory()?;
        // The rest is for the kernels' code and for the driver.
        let most = if device.is_cuda() { free - free / 16 } else { free / 2 };
        Ok(most / sharing(devices, device))
    };
    devices.iter().map(limit).try_fold(u64::MAX, |least, limit| Ok(least.min(limit?)))
}

/// All devices are of one kind.
fn target_of(devices: &Devices) -> Target {
    devices.iter().next().map_or(Target::cpu(1), Target::of)
}

/// For people.
fn described(devices: &Devices) -> String {
    match devices.iter().next() {
        Some(device) if devices.len() == 1 => device.to_string(),
        _ => devices.to_string(),
    }
}

/// `--plan`.
fn plan<T: Scalar + Element>(
    args: &Gemm,
    files: &Files,
    factors: Factors,
    out: &mut impl Write,
) -> Result<(), Failure>
where
    Reader: Source<T>,
{
    let (target, limit, names, words, planned_for) = match args.device_memory_limit {
        Some(limit) => {
            let kind = args.device.kind();
            let PlannedFor { target, name, words, hint, .. } = PlannedFor::of(args.on, kind)?;
            let names = args.device.names().ok_or_else(|| {
                let limit = "must be a list, as cuda:0,1, where no device is opened: with --plan and --device-memory-limit";
                Error::argument("--device", &args.device, limit)
            })?;
            let place = match args.device {
                DevicesChoice::One(device) => place(device),
                _ => names.join(", "),
            };
            let names = if names.is_empty() { vec![args.device.to_string()] } else { names };
            let words = format!("{place} (not looked at)\nplanned   for {words}{hint}");
            (target, limit, names, words, Some(name))
        }
        None => {
            let devices = args.device.open()?;
            let limit = memory_limit(args, &devices)?;
            let names = devices.iter().map(Device::name).collect();
            (target_of(&devices), limit, names, described(&devices), None)
        }
    };
    let planned = Planned::new::<T>(args, files, factors, &target, (names.len(), limit))?;
    let mut report = Report::new::<T>(args, files, factors, &planned, names);
    report.planned_for = planned_for;
    if args.json { Ok(json(out, &report)?) } else { Ok(report.print_plan(out, &words)?) }
}

/// Computes the product into the file, compares it, and prints the report.
fn run<T: Scalar + Element>(
    args: &Gemm,
    files: &Files,
    factors: Factors,
    devices: &Devices,
    mut writer: Writer,
    steps: Steps,
    out: &mut impl Write,
) -> Result<(), Failure>
where
    Reader: Source<T> + Source<f64>,
{
    let (target, on) = (target_of(devices), (devices.len(), memory_limit(args, devices)?));
    let planned = Planned::new::<T>(args, files, factors, &target, on)?;
    let Planned { choice, blocks, workspace_limit, .. } = &planned;
    // Chunks are host memory, whatever the device.
    for device in devices.iter() {
        let of_devices = blocks.device_bytes().saturating_mul(sharing(devices, device));
        check_bytes(blocks.host_bytes(), of_devices, device)?;
    }
    let begin = Instant::now();
    let step = match devices.len() {
        1 => format!("kernel {}", choice.entry.name()),
        _ => format!("kernel {} on {devices}", choice.entry.name()),
    };
    let how_far = move || report::how_far(begin);
    let recomputed = steps
        .step_with(&step, how_far, || {
            files.with_sources(|Sources { a, b, c }: Sources<T>| {
                let mut product = Product::new(choice.entry.name(), a, b);
                (product.alpha, product.beta, product.c) = (factors.alpha, factors.beta, c);
                product.compute = args.compute.into();
                product.workspace_limit = *workspace_limit;
                product.run_on(devices, blocks, &mut writer)
            })
        })?
        .and_then(|choice| choice.recomputed);
    let time = begin.elapsed();
    let verification = steps.step("verification", || verify::<T>(args, files, factors, &writer))?;
    let outcome = Outcome { time, recomputed, verification, overflows: writer.overflows() };
    let dtype = writer.header().dtype;
    let wrong = outcome.verification.as_ref().filter(|verification| !verification.nothing_wrong());
    if wrong.is_none() {
        steps.step(&format!("write {}", args.out.display()), || writer.finish())?;
    }
    let names = devices.iter().map(Device::name).collect();
    let report = Report::new::<T>(args, files, factors, &planned, names);
    let report = report.with(files, &outcome);
    match args.json {
        true => json(out, &report)?,
        false => report.print(out, &described(devices), choice.entry)?,
    }
    if outcome.overflows > 0 {
        note(format_args!(
            "note: {} finite elements of C are too large for {} and infinite in the file",
            outcome.overflows,
            npy::name(dtype)
        ));
    }
    match wrong {
        None => Ok(()),
        Some(wrong) => {
            wrong.complain("this data");
            note(format_args!("error: nothing is written"));
            Err(Failure::Wrong)
        }
    }
}

/// Compares the new file with the operands, as far as asked for.
fn verify<T: Scalar + Element>(
    args: &Gemm,
    files: &Files,
    Factors { alpha, beta }: Factors,
    writer: &Writer,
) -> Result<Option<Verification>, Error>
where
    Reader: Source<f64>,
{
    if args.verify == Verify::None {
        return Ok(None);
    }
    let Header { dtype, .. } = *writer.header();
    // A file with a wider type holds every computed value.
    let stored = if dtype.bytes() < T::TYPE.bytes() { dtype } else { T::TYPE };
    let c = writer.reader()?;
    files.with_sources(|Sources { a, b, c: before }: Sources<f64>| {
        let mut claim = Claim::product(a, b, &c);
        (claim.alpha, claim.beta, claim.before) = (alpha, beta, before);
        (claim.computed, claim.stored) = (T::FORMAT, stored.format());
        claim.factors = factors(args.compute.into());
        claim.sliced = matches!(args.compute, ComputeMode::Fp32Bf16x6 | ComputeMode::Fp32F16x3);
        Verification::of_claim(args.verify, files.shape, &claim, Criterion::Bound, args.seed)
    })
}
