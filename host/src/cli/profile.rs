//! `profile`: the memory accesses of each source line of a kernel.

mod html;
mod print;
mod report;

use std::{io::Write, time::Instant};

use host::{
    Device, Shape,
    check::{Seen, merge},
    gpu::registry::Entry,
    picture,
    product::{self, Launch},
    profile::{self, Fit},
    simt::{
        check::{Operation, Order},
        cpu::LIMITS,
        types::NumberFormat,
    },
};
use serde_json::{Map, Value, json};

use self::report::{LineReport, Report};
use super::{
    Failure,
    args::{On, Profile as Args},
    findings::FindingLine,
    list::{json, six_digits},
    memory::check_memory,
    note, page,
    steps::Steps,
};

/// Profiles the kernels asked for, one after another.
pub(super) fn profile(args: &Args, steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    let shape = args.sizes.shape()?;
    let gpu = match args.on {
        Some(On::Named(gpu)) => Where::Named(gpu, ""),
        Some(On::Cuda(index)) => Where::Here(Device::cuda(index)?),
        None => match Device::best() {
            best if best.device.is_cuda() => Where::Here(best.device),
            _ => Where::Named(profile::default_gpu(), NO_GPU),
        },
    };
    let entries = args.kernel.get().to_count(shape)?;
    let page = args.html.as_deref().map(page::create).transpose()?;
    let mut parts = Vec::new();
    if !args.json {
        let of = entries.first().map_or("f32", |entry| type_of(entry));
        writeln!(out, "{shape}   {of}, row-major, seed {}", args.seed)?;
    }
    let mut clean = true;
    for (number, entry) in entries.into_iter().enumerate() {
        if number > 0 && !args.json {
            writeln!(out)?;
        }
        clean &= profile_kernel(args, steps, entry, shape, &gpu, &mut parts, out)?;
    }
    if let Some(file) = page {
        page::write(file, &format!("Profile of {shape}"), &parts)?;
    }
    if clean { Ok(()) } else { Err(Failure::Wrong) }
}

/// The type of A, B and C.
fn type_of(entry: &Entry) -> &'static str {
    entry.product.as_ref().map_or("f32", |product| product.variant.operands.name())
}

/// The format in which it multiplies and adds on CUDA cores.
fn computed_in(entry: &Entry) -> NumberFormat {
    let sums = entry.product.as_ref().and_then(|product| product.variant.operands.sums());
    sums.unwrap_or(NumberFormat::F32)
}

/// Printed if no GPU was named and there is none. Not in JSON.
const NO_GPU: &str = " (no GPU is at hand; --on names another)";

/// The GPU for the occupancy.
enum Where {
    Here(Device),
    /// And why this one.
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

/// Profiles a kernel and prints it; adds it to the `parts` of a page, if one is asked for. Returns
/// whether it is clean.
fn profile_kernel(
    args: &Args,
    steps: Steps,
    entry: &'static Entry,
    shape: Shape,
    gpu: &Where,
    parts: &mut Vec<String>,
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
    let worst = counted.worst();
    let totals = profile::totals(counted, computed_in(entry));
    let per_byte = |operation| profile::flop_per_byte(counted, operation, shape).map(six_digits);
    let report = Report {
        kernel: entry.name(),
        m: shape.m(),
        n: shape.n(),
        k: shape.k(),
        dtype: type_of(entry),
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
        false => print::print(out, &report, counted, &totals, fit.as_ref(), entry, &seen)?,
    }
    if args.html.is_some() {
        parts.push(html::counts(&report, &totals));
        if !launches.is_empty() {
            let step = format!("{}: traced", entry.name());
            let traced = || picture::of_block(entry, shape, [0, 0], args.seed);
            parts.push(picture::page::samples(&steps.step(&step, traced)?));
        }
    }
    complain(args, entry, &seen);
    Ok(seen.is_empty())
}

/// Reports on standard error how to see more of the findings.
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
        "shared_bytes": fit.shared_bytes(),
        "blocks": occupancy.map(|occupancy| occupancy.blocks),
        "warps": occupancy.map(|occupancy| occupancy.warps),
        "percent": occupancy.map(|occupancy| six_digits(occupancy.percent())),
        "limited_by": occupancy.map(|occupancy| occupancy.limited_by.to_string()),
        "blocks_by": limits.collect::<Map<_, _>>(),
    })
}
