//! `cargo run --release --package fuzz -- --count 1000000`: random products, on every device there
//! is.

use std::{
    fmt::Display,
    io::{self, Write},
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use fuzz::{
    benches::Benches,
    campaign::{Options, one, run},
    digest,
    draw::{Pool, product},
    invariant, sharded,
    tally::Tally,
};
use gpu_gemm::Device;
use lexopt::prelude::*;

const USAGE: &str = "\
Random products beside exact integers, each twice, on every device there is

Usage: fuzz [--count N] [--seconds S] [--seed SEED] [--device cpu|cuda|all] [--threads T] [--failures N]
       fuzz --case SEED [--device D]     one product again, which is printed
       fuzz --sharded N [--seed SEED] [--seconds S] [--device D]     products over several devices, beside one
       fuzz --digest N [--seed SEED]     N lines: what is planned for products, and C's bits
       fuzz --invariant N [--seed SEED]  N pairs of invariant products with common rows, and 1000 N of plans

Without --count and --seconds it tries 100000. A seed is a number, also 0x1f. Ends with 1 where something is wrong.";

struct Arguments {
    options: Options,
    case: Option<u64>,
    digest: Option<u64>,
    invariant: Option<u64>,
    sharded: Option<u64>,
    help: bool,
}

fn number(text: &str) -> Result<u64, std::num::ParseIntError> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
}

fn arguments() -> Result<Arguments, lexopt::Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let (mut count, mut seconds, mut seed, mut case) = (None, None, None, None);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut threads, mut device, mut failures) = (threads, "all".to_owned(), 8);
    let (mut help, mut digest, mut sharded, mut invariant) = (false, None, None, None);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("count") => count = Some(parser.value()?.parse_with(number)?),
            Long("seconds") => seconds = Some(parser.value()?.parse_with(number)?),
            Long("seed") => seed = Some(parser.value()?.parse_with(number)?),
            Long("case") => case = Some(parser.value()?.parse_with(number)?),
            Long("digest") => digest = Some(parser.value()?.parse_with(number)?),
            Long("invariant") => invariant = Some(parser.value()?.parse_with(number)?),
            Long("sharded") => sharded = Some(parser.value()?.parse_with(number)?),
            Long("threads") => threads = parser.value()?.parse::<usize>()?.max(1),
            Long("failures") => failures = parser.value()?.parse::<usize>()?.max(1),
            Long("device") => device = parser.value()?.string()?,
            Long("help") | Short('h') => {
                help = true;
            }
            _ => return Err(argument.unexpected()),
        }
    }
    let cuda = || Device::cuda(0).map_err(|error| error.to_string());
    let devices = match &*device {
        "cpu" => vec![Device::cpu()],
        "cuda" => vec![cuda()?],
        "all" => {
            let cuda = cuda().inspect_err(|why| eprintln!("fuzz: SKIPPED on a GPU: {why}"));
            [Device::cpu()].into_iter().chain(cuda.ok()).collect()
        }
        other => return Err(format!("--device {other}: must be cpu, cuda or all").into()),
    };
    let count = count.unwrap_or(if seconds.is_some() { u64::MAX } else { 100_000 });
    let most = seconds.map_or(Duration::MAX, Duration::from_secs);
    // Digests of two programs are of the same products.
    let seed = seed.unwrap_or(if digest.is_some() { 1 } else { now });
    let options = Options { seed, count, most, failures, threads, devices };
    Ok(Arguments { options, case, digest, sharded, invariant, help })
}

fn main() -> ExitCode {
    let done = arguments().map_err(|error| format!("fuzz: {error}\n{USAGE}"));
    let outcome = done.and_then(|arguments| match arguments {
        Arguments { help: true, .. } => say(USAGE).map(|()| true),
        Arguments { options, sharded: Some(count), .. } => over_several(&options, count),
        Arguments { options, case: Some(case), .. } => again(&options, case),
        Arguments { options, digest: Some(count), .. } => digests(&options, count),
        Arguments { options, invariant: Some(count), .. } => pairs(&options, count),
        Arguments { options, .. } => many(&options),
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// A line on standard output.
fn say(line: impl Display) -> Result<(), String> {
    writeln!(io::stdout(), "{line}").map_err(|error| format!("fuzz: standard output: {error}"))
}

/// One product.
fn again(options: &Options, case: u64) -> Result<bool, String> {
    let pool = Pool::new();
    let benches = options.devices.iter().map(Benches::new).collect::<Result<Vec<_>, _>>();
    let mut benches = benches.map_err(|error| error.to_string())?;
    say(format_args!("{:?}", product(&pool, case)))?;
    let mut tallies = vec![Tally::default(); benches.len()];
    let failures = one(&pool, &mut benches, &mut tallies, case);
    failures.iter().try_for_each(say)?;
    for (bench, tally) in benches.iter().zip(tallies).filter(|(_, tally)| tally.tried() > 0) {
        say(format_args!("{}: {tally}", bench.device().name()))?;
    }
    Ok(failures.is_empty())
}

/// Products over several devices of the first kind.
fn over_several(options: &Options, count: u64) -> Result<bool, String> {
    let start = Instant::now();
    let device = options.devices.first().ok_or("fuzz: there is no device")?;
    let outcome = sharded::run(device, options.seed, count, || start.elapsed() < options.most);
    let is_right = outcome.is_ok();
    match outcome {
        Ok(tally) => {
            tally.iter().try_for_each(|(what, count)| say(format_args!("{count:>8} {what}")))?;
        }
        Err(wrong) => say(wrong)?,
    }
    say(format_args!("--seed {}, in {:.1} s", options.seed, start.elapsed().as_secs_f64()))?;
    Ok(is_right)
}

/// A line for each product, on the first device.
fn digests(options: &Options, count: u64) -> Result<bool, String> {
    let device = options.devices.first().ok_or("fuzz: there is no device")?;
    digest::lines(device, options.seed, count)?.try_for_each(|line| say(line?))?;
    Ok(true)
}

/// Pairs of invariant products.
fn pairs(options: &Options, count: u64) -> Result<bool, String> {
    let start = Instant::now();
    let device = options.devices.last().ok_or("fuzz: there is no device")?;
    say(format_args!("{}", device.description()))?;
    let tally = invariant::pairs(device, options.seed, count)?;
    say(format_args!("--seed {}: {tally}", options.seed))?;
    say(format_args!("in {:.1} s", start.elapsed().as_secs_f64()))?;
    Ok(true)
}

/// As many as the options say.
fn many(options: &Options) -> Result<bool, String> {
    let start = Instant::now();
    say(format_args!("fuzz: --seed {}, {} threads", options.seed, options.threads))?;
    let report = run(options).map_err(|error| error.to_string())?;
    for (device, tally) in options.devices.iter().zip(&report.tallies) {
        say(format_args!("{}: {tally}", device.description()))?;
    }
    say(format_args!("in {:.1} s", start.elapsed().as_secs_f64()))?;
    report.failures.iter().try_for_each(say)?;
    // What was stopped early has not tried everything.
    let missing = match report.failures.is_empty() {
        true => report.missing(&options.devices),
        false => Vec::new(),
    };
    missing.iter().try_for_each(|what| say(format_args!("MISSING {what}")))?;
    Ok(report.failures.is_empty() && missing.is_empty())
}
