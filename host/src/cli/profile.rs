//! `profile`: what each source line of a kernel does to memory.

mod print;

use std::{io::Write, time::Instant};

use host::{
    Device, Shape,
    check::{Seen, merge},
    gpu::registry::Entry,
    product::{self, Launch},
    profile::{self, Fit, GPUS},
    simt::{
        check::{Line, Operation, Order},
        cpu::LIMITS,
    },
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    Failure,
    args::{On, Profile as Args},
    findings::{FindingLine, PlaceLine},
    list::{in_six_digits, json, six_digits},
    note,
    run::check_memory,
    steps::Steps,
};

/// What is said of a kernel; also the object of `--json`. Counts are of all blocks.
#[derive(Serialize)]
struct Report<'a> {
    kernel: &'static str,
    m: usize,
    n: usize,
    k: usize,
    dtype: &'static str,
    seed: u64,
    /// Blocks along x and y, one for each launch.
    grids: Vec<[u32; 2]>,
    block: [u32; 3],
    /// Blocks of all launches, and those of them that were counted.
    blocks: u64,
    sampled: u64,
    lines: Vec<LineReport<'a>>,
    totals: Map<String, Value>,
    /// Those that change where reads of shared memory are made 128 bits at a time.
    totals_merged: Map<String, Value>,
    /// Of the contract, 2 m n k.
    flop: f64,
    /// `null` where no byte is moved.
    flop_per_global_byte_loaded: Option<f64>,
    flop_per_global_byte_stored: Option<f64>,
    #[serde(serialize_with = "in_six_digits")]
    divergent_share: f64,
    occupancy: Option<Value>,
    /// Was nothing found? `null` where nothing was launched.
    clean: Option<bool>,
    findings: Vec<FindingLine<'a>>,
    #[serde(serialize_with = "in_six_digits")]
    seconds: f64,
}

/// What a source line did.
#[derive(Serialize)]
struct LineReport<'a> {
    #[serde(flatten)]
    place: PlaceLine<'a>,
    operation: &'static str,
    /// Of a lane; 0 for what is no access.
    bytes: u32,
    /// Of warps; of threads for multiply-adds.
    requests: u64,
    /// What `units` are: sectors, wavefronts; for what is no access, what `requests` are of.
    unit: &'static str,
    units: u64,
    ideal_units: u64,
    merged_requests: u64,
    merged_units: u64,
    #[serde(serialize_with = "in_six_digits")]
    lanes_per_request: f64,
    #[serde(serialize_with = "in_six_digits")]
    units_per_request: f64,
    #[serde(serialize_with = "in_six_digits")]
    ideal_per_request: f64,
    /// How many times the ideal, where it is far above it.
    over_ideal: Option<f64>,
    /// Does it lose most of all lines?
    worst: bool,
}

impl<'a> LineReport<'a> {
    fn new(line: &'a Line, scale: f64, worst: Option<&Line>) -> Self {
        let all = |count: u64| (count as f64 * scale).round() as u64;
        let each = |count: u64| count as f64 / line.requests.max(1) as f64;
        LineReport {
            place: PlaceLine::new(&line.place),
            operation: line.operation.name(),
            bytes: line.width,
            requests: all(line.requests),
            unit: match line.operation {
                Operation::Fma => "threads",
                Operation::Barrier => "warps",
                operation if operation.is_global() => "sectors",
                _ => "wavefronts",
            },
            units: all(if line.width == 0 { line.requests } else { line.units }),
            ideal_units: all(if line.width == 0 { line.requests } else { line.ideal }),
            merged_requests: all(line.merged_requests),
            merged_units: all(line.merged_units),
            lanes_per_request: each(line.lanes),
            units_per_request: each(if line.width == 0 { line.requests } else { line.units }),
            ideal_per_request: each(if line.width == 0 { line.requests } else { line.ideal }),
            over_ideal: profile::over_ideal(line).map(six_digits),
            worst: worst.is_some_and(|worst| std::ptr::eq(worst, line)),
        }
    }
}

/// Profiles the kernels asked for, one after another.
pub(super) fn profile(args: &Args, steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    let shape = args.sizes.shape()?;
    let gpu = match args.on {
        Some(On::Named(gpu)) => Where::Named(gpu, ""),
        Some(On::Cuda(index)) => Where::Here(Device::cuda(index)?),
        None => match Device::best() {
            best if best.device.is_cuda() => Where::Here(best.device),
            // The newest that there are figures of.
            _ => Where::Named(&GPUS[GPUS.len() - 1], NO_GPU),
        },
    };
    let entries = args.kernel.to_count(shape)?;
    if !args.json {
        writeln!(out, "{shape}   f32, row-major, seed {}", args.seed)?;
    }
    let mut clean = true;
    for (number, entry) in entries.into_iter().enumerate() {
        if number > 0 && !args.json {
            writeln!(out)?;
        }
        clean &= profile_kernel(args, steps, entry, shape, &gpu, out)?;
    }
    if clean { Ok(()) } else { Err(Failure::Wrong) }
}

/// Said where nobody has named a GPU and there is none; not to programs.
const NO_GPU: &str = " (no GPU is at hand; --on names another)";

/// Where the blocks are to fit.
enum Where {
    Here(Device),
    /// And why that one.
    Named(&'static profile::Gpu, &'static str),
}

impl Where {
    fn fit(&self, entry: &Entry, launch: &Launch) -> host::Result<Fit> {
        match self {
            Where::Here(device) => profile::on_device(entry, &launch.config, device),
            Where::Named(gpu, why) => {
                let mut fit = profile::on_gpu(entry, &launch.config, gpu);
                fit.gpu += why;
                Ok(fit)
            }
        }
    }
}

/// Is this kernel clean? What it does is printed.
fn profile_kernel(
    args: &Args,
    steps: Steps,
    entry: &'static Entry,
    shape: Shape,
    gpu: &Where,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    check_memory(shape, profile::bytes(entry, shape), false, &Device::cpu())?;
    let launches = product::launches(entry, shape, &LIMITS)?;
    let fit = launches.first().map(|launch| gpu.fit(entry, launch)).transpose()?;
    let every = match args.every {
        Some(every) => every,
        None => profile::default_every(entry, shape)?,
    };
    let begin = Instant::now();
    let step = format!("{}: profile, one block in {every} counted", entry.name());
    let profiled = steps.step(&step, || profile::product(entry, shape, every, args.seed))?;
    let counted = &profiled.profile;
    let seen = merge(profiled.findings.iter().map(|finding| (Order::Forward, finding)));
    let worst = profile::worst(counted);
    let totals = profile::totals(counted);
    let per_byte = |operation| profile::flop_per_byte(counted, operation, shape).map(six_digits);
    let report = Report {
        kernel: entry.name(),
        m: shape.m(),
        n: shape.n(),
        k: shape.k(),
        dtype: "f32",
        seed: args.seed,
        grids: launches.iter().map(|l| [l.config.grid[0], l.config.grid[1]]).collect(),
        block: launches.first().map_or([0; 3], |launch| launch.config.block),
        blocks: counted.blocks,
        sampled: counted.sampled,
        lines: counted
            .lines
            .iter()
            .map(|line| LineReport::new(line, counted.scale(), worst))
            .collect(),
        totals: totals.iter().map(|t| (t.name.to_owned(), t.value.into())).collect(),
        totals_merged: totals
            .iter()
            .filter_map(|t| Some((t.name.to_owned(), t.merged?.into())))
            .collect(),
        flop: shape.flop(),
        flop_per_global_byte_loaded: per_byte(Operation::GlobalLoad),
        flop_per_global_byte_stored: per_byte(Operation::GlobalStore),
        divergent_share: profile::divergent_share(counted),
        occupancy: fit.as_ref().map(occupancy_json),
        clean: fit.is_some().then_some(seen.is_empty()),
        findings: seen.iter().map(FindingLine::new).collect(),
        seconds: begin.elapsed().as_secs_f64(),
    };
    match args.json {
        true => json(out, &report)?,
        false => print::print(out, &report, &totals, fit.as_ref(), entry, &seen)?,
    }
    complain(args, entry, &seen);
    Ok(seen.is_empty())
}

/// Says on standard error how to see more of what is wrong.
fn complain(args: &Args, entry: &Entry, seen: &[Seen]) {
    if !seen.is_empty() {
        note(format_args!("reproduce: {}", args.to_check(entry.name())));
    }
}

fn occupancy_json(fit: &Fit) -> Value {
    let Fit { gpu, source, resources, occupancy, .. } = fit;
    let limits = occupancy.iter().flat_map(|occupancy| &occupancy.limits);
    let limits = limits.map(|(what, limit)| (what.to_string().replace(' ', "_"), json!(limit)));
    json!({
        "gpu": gpu.trim_end_matches(NO_GPU),
        "source": source,
        "registers": resources.map(|resources| resources.registers),
        "shared_bytes": resources.map(|resources| resources.shared),
        "blocks": occupancy.map(|occupancy| occupancy.blocks),
        "warps": occupancy.map(|occupancy| occupancy.warps),
        "percent": occupancy.map(|occupancy| six_digits(occupancy.percent())),
        "limited_by": occupancy.map(|occupancy| occupancy.limited_by.to_string()),
        "blocks_by": limits.collect::<Map<_, _>>(),
    })
}
