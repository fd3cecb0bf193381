//! A product: operands, launches, time, verification, and one result.

use std::{io::Write, time::Duration};

use host::{
    Device, Error, Matrix, Shape, Stream,
    gpu::registry::Entry,
    operands, product,
    verify::{Comparison, Criterion, compare},
};
use serde::Serialize;

use super::{Failure, args::Run, list::json, note};

/// What a run found out; also the object of `--json`.
#[derive(Serialize)]
struct Report {
    device: String,
    kernel: &'static str,
    m: usize,
    n: usize,
    k: usize,
    dtype: &'static str,
    seed: u64,
    iters: u32,
    /// Median time of the kernel alone, without transfers.
    time_us: f64,
    gflops: f64,
    /// Against the product in float64; `null` for NaN.
    max_abs_err: f64,
    max_err_over_bound: f64,
    /// Was C equal, on integers, to the exact product? `null` where k is too large for such a run.
    exact_on_integers: Option<bool>,
    /// Elements of C compared.
    compared: u64,
    /// All of C was compared, and all of it is right.
    verified: bool,
}

/// One run of the command.
pub(super) fn run(args: &Run, out: &mut impl Write) -> Result<(), Failure> {
    let shape = Shape::new(args.m, args.n, args.k)?;
    let (device, why_no_gpu) = args.device.open()?;
    if let Some(why) = &why_no_gpu {
        note(format_args!("note: {why}; running on the CPU"));
    }
    let entry = args.kernel.resolve(&device);
    check_memory(shape, &device)?;
    let iters = args.iters.unwrap_or(if device.is_cuda() { 20 } else { 1 });

    let bench = Bench { stream: device.stream()?, entry, shape };
    let a = operands::uniform(args.seed, shape.a_len());
    let b = operands::uniform(operands::seed_of_b(args.seed), shape.b_len());
    let (c, time) = bench.product(&a, &b, iters)?;
    let bound = compare(shape, &a, &b, &c, Criterion::Bound)?;
    drop((a, b, c));
    let exact = bench.exact(args.seed)?;

    let right = bound.wrong == 0 && exact.as_ref().is_none_or(|exact| exact.wrong == 0);
    let seconds = time.as_secs_f64();
    let report = Report {
        device: device.name(),
        kernel: entry.name(),
        m: shape.m(),
        n: shape.n(),
        k: shape.k(),
        dtype: "f32",
        seed: args.seed,
        iters,
        time_us: seconds * 1e6,
        gflops: if seconds > 0.0 { shape.flop() / seconds * 1e-9 } else { 0.0 },
        max_abs_err: bound.max_abs_err,
        max_err_over_bound: bound.max_err_over_bound,
        exact_on_integers: exact.as_ref().map(|exact| exact.wrong == 0),
        compared: bound.elements,
        verified: bound.passed() && exact.as_ref().is_some_and(Comparison::passed),
    };
    if args.json {
        json(out, &report)?;
    } else {
        print(out, &report, &device, entry, shape)?;
    }
    if right {
        return Ok(());
    }
    for (what, comparison) in [("real data", Some(&bound)), ("integers", exact.as_ref())] {
        if let Some(Comparison { wrong, elements, worst: Some(worst), .. }) = comparison
            && *wrong > 0
        {
            note(format_args!(
                "error: on {what} {wrong} of {elements} elements of C are wrong; the worst, in row {}, \
                 column {}, is {} and should be {}",
                worst.row, worst.col, worst.got, worst.want
            ));
        }
    }
    note(format_args!(
        "reproduce: cargo run -p host -- --m {} --n {} --k {} --device {} --kernel {} --seed {}",
        shape.m(),
        shape.n(),
        shape.k(),
        device.name(),
        entry.name(),
        args.seed
    ));
    Err(Failure::Wrong)
}

/// A kernel and a shape on a device.
struct Bench<'a> {
    stream: Stream,
    entry: &'a Entry,
    shape: Shape,
}

impl Bench<'_> {
    /// C, and the median time of `iters` runs. Before every run C is filled with NaN, so that an element
    /// nobody writes is seen.
    fn product(&self, a: &[f32], b: &[f32], iters: u32) -> Result<(Vec<f32>, Duration), Error> {
        let (device, shape) = (self.stream.device(), self.shape);
        let a = Matrix::from_row_major(device, shape.m(), shape.k(), a)?;
        let b = Matrix::from_row_major(device, shape.k(), shape.n(), b)?;
        let mut c = Matrix::zeros(device, shape.m(), shape.n())?;
        if device.is_cuda() {
            // The first launch pays for the driver's compilation of the kernels.
            product::multiply(&self.stream, self.entry, &a, &b, &mut c)?;
        }
        let mut times = Vec::new();
        for _ in 0..iters {
            host::check_interrupt()?;
            c.buffer_mut().fill_bytes(0xff)?;
            let start = self.stream.record()?;
            product::multiply(&self.stream, self.entry, &a, &b, &mut c)?;
            times.push(self.stream.record()?.since(&start)?);
        }
        times.sort_unstable();
        Ok((c.to_row_major()?, times[times.len() / 2]))
    }

    /// The same kernel and shape on integers, where the result must be exact. `None` where k is so large
    /// that no sum of k integers is sure to be.
    fn exact(&self, seed: u64) -> Result<Option<Comparison>, Error> {
        let shape = self.shape;
        let Some(magnitude) = operands::exact_magnitude(shape.k()) else { return Ok(None) };
        let a = operands::integers(seed, shape.a_len(), magnitude);
        let b = operands::integers(operands::seed_of_b(seed), shape.b_len(), magnitude);
        let (c, _) = self.product(&a, &b, 1)?;
        compare(shape, &a, &b, &c, Criterion::Exact).map(Some)
    }
}

/// Refuses a run whose matrices do not fit, before it has begun.
fn check_memory(shape: Shape, device: &Device) -> Result<(), Error> {
    let elements = (shape.a_len() + shape.b_len() + shape.c_len()) as u64;
    let on_device = elements * size_of::<f32>() as u64;
    // Verification holds the operands again, and B twice in float64.
    let on_host = on_device + 16 * shape.b_len() as u64;
    let (free, _) = device.memory()?;
    let cpu = Device::cpu();
    let needed = if device.is_cuda() { on_device } else { on_device + on_host };
    if needed > free {
        return Err(Error::OutOfMemory { device: device.name(), needed, free });
    }
    let (free, _) = cpu.memory()?;
    if on_host > free {
        return Err(Error::OutOfMemory { device: cpu.name(), needed: on_host, free });
    }
    Ok(())
}

fn print(
    out: &mut impl Write,
    report: &Report,
    device: &Device,
    entry: &Entry,
    shape: Shape,
) -> Result<(), Failure> {
    writeln!(out, "{shape}   f32, row-major, seed {}", report.seed)?;
    writeln!(out, "device    {device}")?;
    writeln!(out, "kernel    {}: {}", entry.name(), entry.summary)?;
    if report.m * report.n == 0 {
        writeln!(out, "C is empty: nothing was launched, there is nothing to verify")?;
        return Ok(());
    }
    let runs = if report.iters == 1 { "one run" } else { &format!("median of {}", report.iters) };
    let time = match report.time_us {
        us if us < 1e3 => format!("{us:.2} us"),
        us if us < 1e6 => format!("{:.3} ms", us * 1e-3),
        us => format!("{:.3} s", us * 1e-6),
    };
    writeln!(out, "time      {time} ({runs}), {:.2} GFLOP/s", report.gflops)?;
    let word = match (report.verified, report.exact_on_integers) {
        (true, _) => "verified ",
        (false, None) => "unsettled",
        (false, Some(_)) => "WRONG    ",
    };
    let exact = match report.exact_on_integers {
        Some(true) => "exact on integers",
        Some(false) => "not exact on integers",
        None => "k is too large for an exact run on integers",
    };
    writeln!(
        out,
        "{word} max |error| {:.2e} against float64, {:.4} of the bound; {exact}",
        report.max_abs_err, report.max_err_over_bound
    )?;
    Ok(())
}
