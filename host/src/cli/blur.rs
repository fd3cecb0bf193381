//! `blur`: an image is read, blurred and written.

mod png;

use std::{
    io::Write,
    time::{Duration, Instant},
};

use host::{Device, Error, blur, gpu::registry};
use serde::Serialize;

use self::png::{Picture, Target};
use super::{
    Failure,
    args::Blur,
    duration::duration,
    list::{in_six_digits, json},
    note,
    steps::Steps,
};

/// The result of a blur, also the object of `--json`.
#[derive(Serialize)]
struct Report {
    device: String,
    kernel: &'static str,
    #[serde(rename = "in")]
    input: String,
    out: String,
    width: u32,
    height: u32,
    channels: u32,
    radius: u32,
    iters: u32,
    /// The median time of the kernel, without transfers and files.
    #[serde(serialize_with = "in_six_digits")]
    time_us: f64,
    #[serde(serialize_with = "in_six_digits")]
    mpixel_per_s: f64,
    /// Copies of the image to the device and back.
    #[serde(serialize_with = "in_six_digits")]
    upload_us: f64,
    #[serde(serialize_with = "in_six_digits")]
    download_us: f64,
    /// Whether every byte is the reference's. A wrong image is not written.
    verified: bool,
}

/// Blurs a file. Unsuitable files are refused before anything is computed.
pub(super) fn blur(args: &Blur, steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    let read = format!("read {}", args.input.display());
    let picture = steps.step(&read, || Picture::read(&args.input))?;
    blur::check_radius(args.kernel, picture.size, args.radius)?;
    super::spare_inputs(args.force, ("--out", &args.output), &[("--in", &args.input)])?;
    let target = Target::new(&args.output)?;
    let device = super::open(args.device)?;
    blur_on(args, steps, picture, target, &device, out).map_err(|failure| match failure {
        Failure::Error(error, _)
            if !matches!(
                error,
                Error::Interrupted | Error::Argument { .. } | Error::Unwritten { .. }
            ) =>
        {
            Failure::Error(error, Some(args.to_command(&device.name())))
        }
        Failure::Wrong => {
            note(format_args!("reproduce: {}", args.to_command(&device.name())));
            Failure::Wrong
        }
        other => other,
    })
}

fn blur_on(
    args: &Blur,
    steps: Steps,
    picture: Picture,
    target: Target,
    device: &Device,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let (kernel, size) = (args.kernel, picture.size);
    let (iters, warmup) = if device.is_cuda() { (20, 1) } else { (1, 0) };
    let iters = args.iters.unwrap_or(iters);
    let step = format!("kernel {}", kernel.name());
    let launched = steps.step(&step, || launch(args, &picture, device, iters, warmup))?;
    let wanted =
        steps.step("verification", || blur::reference(size, args.radius, &picture.bytes))?;
    let wrong = wanted.iter().zip(&launched.blurred).position(|(wanted, is)| wanted != is);

    let seconds = launched.kernel.as_secs_f64();
    let pixels = f64::from(size.width()) * f64::from(size.height());
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let report = Report {
        device: device.name(),
        kernel: kernel.name(),
        input: args.input.display().to_string(),
        out: args.output.display().to_string(),
        width: size.width(),
        height: size.height(),
        channels: size.channels(),
        radius: args.radius,
        iters,
        time_us: us(launched.kernel),
        mpixel_per_s: if seconds > 0.0 { pixels / seconds * 1e-6 } else { 0.0 },
        upload_us: us(launched.upload),
        download_us: us(launched.download),
        verified: wrong.is_none(),
    };
    if wrong.is_none() {
        let write = format!("write {}", report.out);
        steps.step(&write, || target.write(picture, &launched.blurred))?;
    }
    match args.json {
        true => json(out, &report)?,
        false => print(out, &report, size, device)?,
    }
    let Some(place) = wrong else { return Ok(()) };
    let (is, wanted) = (launched.blurred[place], wanted[place]);
    let channels = size.channels() as usize;
    let (pixel, channel) = (place / channels, place % channels);
    let (row, col) = (pixel / size.width() as usize, pixel % size.width() as usize);
    note(format_args!(
        "error: the pixel at row {row}, column {col}, channel {channel} is {is}, should be {wanted}; nothing \
         is written"
    ));
    Err(Failure::Wrong)
}

/// A blurred image, and its times.
struct Launched {
    blurred: Vec<u8>,
    upload: Duration,
    /// The median.
    kernel: Duration,
    download: Duration,
}

fn launch(
    args: &Blur,
    picture: &Picture,
    device: &Device,
    iters: u32,
    warmup: u32,
) -> Result<Launched, Error> {
    let stream = device.stream()?;
    let begin = Instant::now();
    let input = device.upload(&picture.bytes)?;
    stream.synchronize()?;
    let upload = begin.elapsed();
    let mut output = device.zeros(picture.bytes.len())?;
    let mut times = Vec::new();
    for number in 0..u64::from(warmup) + u64::from(iters) {
        host::check_interrupt()?;
        let start = stream.record()?;
        blur::blur(&stream, args.kernel, picture.size, args.radius, &input, &mut output)?;
        let time = stream.record()?.since(&start)?;
        if number >= warmup.into() {
            times.push(time);
        }
    }
    times.sort_unstable();
    let begin = Instant::now();
    let blurred = output.to_vec()?;
    let (kernel, download) = (times[times.len() / 2], begin.elapsed());
    Ok(Launched { blurred, upload, kernel, download })
}

fn print(
    out: &mut impl Write,
    report: &Report,
    size: blur::Size,
    device: &Device,
) -> std::io::Result<()> {
    let Report { kernel, radius, iters, time_us, mpixel_per_s, .. } = report;
    let side = 2 * radius + 1;
    writeln!(out, "in        {}: {size}", report.input)?;
    writeln!(out, "box       {side} x {side} pixels, as far as they lie inside the image")?;
    writeln!(out, "device    {device}")?;
    let summary = registry::find(kernel).map_or("", |entry| entry.summary);
    writeln!(out, "kernel    {kernel}: {summary}")?;
    let runs = if *iters == 1 { "one run" } else { &format!("median of {iters}") };
    writeln!(out, "time      {} ({runs}), {mpixel_per_s:.2} Mpixel/s", duration(*time_us))?;
    if report.verified {
        writeln!(out, "verified  each of {} bytes is the reference's", size.bytes())?;
        writeln!(out, "out       {}", report.out)
    } else {
        writeln!(out, "WRONG     not the reference's; nothing is written")
    }
}
