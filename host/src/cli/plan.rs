//! `--plan`: prints what would run, and why, without a device.

use std::{cmp::Ordering, collections::BTreeMap, io::Write};

use host::{
    Device, Error,
    gemm::{self, Candidate, Card, Choice, Launch, Request, Role, Scalar, Target, Times},
    gpu::registry,
    simt::{self, with_types},
};
use occupancy::Sm;
use serde::Serialize;

use super::{
    Failure,
    args::{DeviceChoice, Run},
    list::{json, optional_in_six_digits, six_digits},
    run::scaled,
    types::{Value, as_it_is, not_multiplied, words},
};

/// The plan, also the object of `--json`.
#[derive(Serialize)]
struct Plan {
    /// As asked for. No device is opened.
    device: String,
    /// The GPU that is planned for, as `--on` names it, or `cpu`.
    planned_for: &'static str,
    /// Whether the times follow from published figures, and no GPU of this kind was measured.
    estimated: bool,
    kernel: &'static str,
    reason: String,
    m: usize,
    n: usize,
    k: usize,
    /// The grid of each launch: blocks along x, y and z.
    grids: Vec<[u32; 3]>,
    block: [u32; 3],
    shared_bytes: Option<usize>,
    /// Shared memory whose size is set at the launch.
    dynamic_shared_bytes: u32,
    /// The size of a cluster along x, y and z.
    cluster: [u32; 3],
    /// The blocks of a cluster that split k.
    split_k: u32,
    /// Partial products that split k over the grid.
    partials: u32,
    /// `null` unless the product is invariant.
    invariant: Option<InvariantLine>,
    /// Launches before, which prepare operands.
    copies: Vec<CopyLine>,
    /// Launches after, which add partial products.
    sums: Vec<CopyLine>,
    /// Of A, B and C together.
    operand_bytes: u64,
    /// The workspace.
    workspace_bytes: u64,
    /// SMs of the GPU that is planned for.
    sms: u32,
    candidates: Vec<CandidateLine>,
}

/// What an invariant product is compared with.
#[derive(Serialize)]
struct InvariantLine {
    /// The order in which a block adds the products of an element.
    order: String,
    /// The kernel that would be used otherwise, and the predicted times of both.
    auto: &'static str,
    #[serde(serialize_with = "optional_in_six_digits")]
    auto_us: Option<f64>,
    #[serde(serialize_with = "optional_in_six_digits")]
    predicted_us: Option<f64>,
}

impl InvariantLine {
    /// The line of a product for which `choice` was made, instead of `auto`.
    fn new(choice: &Choice, auto: &Choice, k: usize) -> Self {
        let order = choice.entry.product.as_ref().map(|product| product.sum_order(k));
        let us = |choice: &Choice| choice.times.map(|times| times.us());
        InvariantLine {
            order: order.map_or(String::new(), |order| order.to_string()),
            auto: auto.entry.name(),
            auto_us: us(auto),
            predicted_us: us(choice),
        }
    }
}

/// A launch that prepares an operand, or adds partial products.
#[derive(Serialize)]
struct CopyLine {
    kernel: &'static str,
    grid: [u32; 3],
    block: [u32; 3],
}

impl From<&Launch> for CopyLine {
    fn from(&Launch { kernel, config, .. }: &Launch) -> Self {
        CopyLine { kernel, grid: config.grid, block: config.block }
    }
}

/// A candidate of the selection.
#[derive(Serialize)]
struct CandidateLine {
    kernel: &'static str,
    /// The rule that rejects it. `null` if it can run.
    ineligible: Option<String>,
    /// `null` if it is used by name only, mostly because it was not measured.
    #[serde(serialize_with = "optional_in_six_digits")]
    predicted_us: Option<f64>,
    /// The blocks of a cluster that split k.
    split_k: u32,
    /// That time by part. `null` as `predicted_us` is.
    parts: Option<BTreeMap<&'static str, f64>>,
}

/// The parts of a predicted time, each with its name.
fn parts(times: &Times) -> [(&'static str, f64); 8] {
    let Times { copies_us, fixed_us, multiply_us, .. } = *times;
    let Times { host_us, l2_us, epilogue_us, memory_us, sum_us, .. } = *times;
    [
        ("host", host_us),
        ("copies", copies_us),
        ("fixed", fixed_us),
        ("multiply", multiply_us),
        ("l2", l2_us),
        ("epilogue", epilogue_us),
        ("memory", memory_us),
        ("sum", sum_us),
    ]
}

impl From<&Candidate> for CandidateLine {
    fn from(candidate: &Candidate) -> Self {
        CandidateLine {
            kernel: candidate.entry.name(),
            ineligible: candidate.ineligible.map(|why| why.to_string()),
            predicted_us: candidate.predicted_us,
            split_k: candidate.split_k,
            parts: candidate.times.as_ref().map(|times| {
                parts(times).into_iter().map(|(part, us)| (part, six_digits(us))).collect()
            }),
        }
    }
}

/// The device that is planned for.
pub(super) struct PlannedFor {
    pub(super) target: Target,
    /// As `--on` names it, or `cpu`.
    pub(super) name: &'static str,
    /// The GPU.
    card: Option<&'static Card>,
    /// For people.
    pub(super) words: String,
    /// How to plan for another one.
    pub(super) hint: &'static str,
}

impl PlannedFor {
    /// The device to plan for. No device is opened.
    pub(super) fn of(on: Option<&'static Card>, device: DeviceChoice) -> Result<Self, Error> {
        let (card, hint) = match (on, device) {
            (Some(card), DeviceChoice::Cpu) => {
                let limit = "is a GPU, and --device cpu is none: leave out one of the two";
                return Err(Error::argument("--on", card.name, limit));
            }
            (None, DeviceChoice::Cpu) => {
                let cores = Device::cpu().sms();
                let words = format!("this machine's CPU, {cores} cores");
                let target = Target::cpu(cores);
                return Ok(PlannedFor { target, name: "cpu", card: None, words, hint: "" });
            }
            (Some(card), _) => (card, ""),
            (None, _) => (&Card::H200, " (--on names another GPU)"),
        };
        let mut words = format!("{}, {} SMs", card.title, card.sms);
        if !card.is_measured {
            words += " (estimated: no card of this kind was measured)";
        }
        let target = Target::from(card);
        Ok(PlannedFor { target, name: card.name, card: Some(card), words, hint })
    }
}

/// A requested device, for people.
pub(super) fn place(device: DeviceChoice) -> String {
    match device {
        DeviceChoice::Auto => "a GPU where there is one, otherwise the CPU".to_owned(),
        choice => choice.to_string(),
    }
}

/// What is planned of a product.
struct Planned {
    choice: Choice,
    plan: gemm::Plan,
    /// The choice without `--invariant`, if that is asked for.
    auto: Option<Choice>,
    candidates: Vec<Candidate>,
    /// Of A, B and C together.
    operand_bytes: u64,
}

fn planned<T: Scalar<O> + Value, O: Value>(
    args: &Run,
    request: &Request,
    target: &Target,
) -> Result<Planned, Failure> {
    // Their sizes and strides count, not where they are.
    let scaling = args.scaling(request.shape, false)?;
    let scaling = scaling.map(|of| of.upload(&Device::cpu())).transpose()?;
    let gemm = scaled(args.product::<T, O>()?, scaling.as_ref(), None)?;
    let (choice, plan) = gemm.plan(request, target, &simt::cpu::LIMITS)?;
    let auto = match args.invariant {
        true => {
            let auto = args.kernel.product::<T, O>(args.types.compute())?;
            let auto = scaled(auto, scaling.as_ref(), None)?;
            Some(auto.choose(request, target)?)
        }
        false => None,
    };
    let candidates = gemm.candidates(request, target);
    Ok(Planned { choice, plan, auto, candidates, operand_bytes: request.shape.bytes_of::<T, O>() })
}

/// Prints the plan for the requested device. No device is opened: the limits of CUDA's launches are
/// the same for all.
pub(super) fn plan(args: &Run, out: &mut impl Write) -> Result<(), Failure> {
    let types = args.types.types()?;
    let planned = with_types!(types, |T, O| planned::<T, O> as fn(&_, &_, &_) -> _)
        .ok_or_else(|| not_multiplied(types.0, types.1))?;
    let shape = args.sizes.shape()?;
    let PlannedFor { target, name: planned_for, card, words: of, hint } =
        PlannedFor::of(args.on, args.device)?;
    let Planned { choice, plan, auto, candidates, operand_bytes } =
        planned(args, &Request::dense(shape), &target)?;
    let invariant = auto.map(|auto| InvariantLine::new(&choice, &auto, shape.k()));
    let Choice { entry, reason, workspace_bytes, split_k, partials, .. } = choice;
    let launches = plan.launches().collect::<Vec<_>>();
    let by = |role: Role| launches.iter().filter(move |launch| launch.role == role);
    let (copies, sums) = (by(Role::Prepare), by(Role::Reduce));
    let copies = copies.map(CopyLine::from).collect::<Vec<_>>();
    let sums = sums.map(CopyLine::from).collect::<Vec<_>>();
    let launches = by(Role::Multiply).collect::<Vec<_>>();
    let launched = launches.last().map_or(entry.name(), |launch| launch.kernel);
    let first = launches.first().map(|launch| launch.config);
    let declaration = registry::find(launched).unwrap_or(entry).declaration();
    let plan = Plan {
        device: args.device.to_string(),
        planned_for,
        estimated: card.is_some_and(|card| !card.is_measured),
        kernel: entry.name(),
        reason: reason.to_string(),
        m: shape.m(),
        n: shape.n(),
        k: shape.k(),
        grids: launches.iter().map(|launch| launch.config.grid).collect(),
        block: first.map_or([0; 3], |config| config.block),
        shared_bytes: declaration.shared,
        dynamic_shared_bytes: first.map_or(0, |config| config.dynamic_shared),
        cluster: first.map_or([1; 3], |config| config.cluster),
        split_k,
        partials,
        invariant,
        copies,
        sums,
        operand_bytes,
        workspace_bytes,
        sms: target.sms,
        candidates: candidates.iter().map(CandidateLine::from).collect(),
    };
    if args.json {
        return json(out, &plan);
    }
    writeln!(out, "{shape}   {}, row-major", words(types.0.name(), types.1.name()))?;
    let place = place(args.device);
    writeln!(out, "device    {place} (not looked at: a launch has the limits of any CUDA device)")?;
    writeln!(out, "planned   for {of}{hint}")?;
    if let Some(card) = card {
        writeln!(out, "          {}", figures(card))?;
    }
    writeln!(out, "kernel    {}: {} ({reason})", plan.kernel, entry.summary)?;
    if let Some(line) = as_it_is(args.types.compute(), entry) {
        writeln!(out, "{line}")?;
    }
    if let Some(InvariantLine { order, auto, auto_us, predicted_us }) = &plan.invariant {
        let us = |us: &Option<f64>| us.map_or("?".to_owned(), |us| format!("{us:.1} us"));
        writeln!(
            out,
            "invariant {order}; blocks that split k: {split_k}, partial products: {partials}, as for every m"
        )?;
        writeln!(
            out,
            "          predicted {}, without --invariant {auto} {}",
            us(predicted_us),
            us(auto_us)
        )?;
    }
    for CopyLine { kernel, grid, block: [x, y, z] } in &plan.copies {
        let blocks = blocks(*grid);
        writeln!(out, "copies    {kernel}: {blocks} blocks, each of {x} x {y} x {z} threads")?;
    }
    match &plan.grids[..] {
        [] => writeln!(out, "launches  none: C is empty")?,
        [first, rest @ ..] => {
            let [x, y, z] = plan.block;
            write!(out, "launches  {} of {} blocks", 1 + rest.len(), blocks(*first))?;
            if let Some(last) = rest.last() {
                let why = match partials {
                    1 => "a grid has at most 65535 rows",
                    _ => "a shorter range of k, or rows of C whose sums fit into the workspace",
                };
                write!(out, " (the last {}: {why})", blocks(*last))?;
            }
            if plan.split_k > 1 {
                write!(out, " in clusters of {} that split k", plan.split_k)?;
            }
            write!(out, ", each of {x} x {y} x {z} threads")?;
            let dynamic = plan.dynamic_shared_bytes as usize;
            match plan.shared_bytes.map(|bytes| bytes + dynamic) {
                Some(bytes) if dynamic > 0 => {
                    writeln!(out, " and {bytes} bytes of shared memory ({dynamic} dynamic)")?;
                }
                Some(bytes) => writeln!(out, " and {bytes} bytes of shared memory")?,
                None if dynamic > 0 => {
                    writeln!(out, " and {dynamic} bytes of dynamic shared memory")?;
                }
                None => writeln!(out)?,
            }
            if launched != plan.kernel {
                writeln!(out, "          of {launched}: nothing is multiplied where k is 0")?;
            }
        }
    }
    for CopyLine { kernel, grid, block: [x, y, z] } in &plan.sums {
        let (blocks, count) = (blocks(*grid), plan.partials);
        writeln!(
            out,
            "sums      {kernel}: {count} partial products, {blocks} blocks of {x} x {y} x {z} threads"
        )?;
    }
    let Plan { operand_bytes, workspace_bytes, .. } = plan;
    writeln!(out, "memory    {operand_bytes} bytes for A, B and C, {workspace_bytes} besides")?;
    let mut by_time = candidates.iter().filter(|one| one.ineligible.is_none()).collect::<Vec<_>>();
    by_time.retain(|candidate| candidate.predicted_us.is_some());
    by_time.sort_by(|a, b| a.predicted_us.partial_cmp(&b.predicted_us).unwrap_or(Ordering::Equal));
    writeln!(
        out,
        "predicted for {planned_for}, in microseconds: the longer of host and device, plus a tenth of the shorter; the device is the sum of the columns after host"
    )?;
    let width = by_time.iter().map(|one| one.entry.name().len()).max().unwrap_or(0).max(16);
    write!(out, "  {:<width$} {:>10}", "", "all")?;
    for (part, _) in parts(&Times::default()) {
        write!(out, " {part:>9}")?;
    }
    writeln!(out)?;
    for Candidate { entry, predicted_us, times, .. } in by_time {
        write!(out, "  {:<width$} {:>10.1}", entry.name(), predicted_us.unwrap_or_default())?;
        for (_, us) in parts(&times.unwrap_or_default()) {
            write!(out, " {us:>9.1}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The figures of a GPU, for people.
fn figures(card: &Card) -> String {
    let Card { capability: (major, minor), clock_mhz, gb_per_s, memory_gb, l2_mib, .. } = card;
    let mut line = format!(
        "compute capability {major}.{minor}, {clock_mhz} MHz, {memory_gb} GB at {gb_per_s} GB/s, {l2_mib} MiB of L2"
    );
    if let Some(sm) = Sm::of(10 * major + minor) {
        let Sm { registers, warps, shared, shared_reserved, .. } = sm;
        let [all, most] = [shared, shared - shared_reserved].map(|bytes| bytes >> 10);
        let threads = 32 * warps;
        line += &format!(
            "; an SM: {registers} registers, {threads} threads, {all} KiB of shared memory ({most} a block)"
        );
    }
    line
}

/// A grid, for people: most have one layer.
fn blocks([x, y, z]: [u32; 3]) -> String {
    if z == 1 { format!("{x} x {y}") } else { format!("{x} x {y} x {z}") }
}
