//! `--plan`: what would run, and why, without a device.

use std::{cmp::Ordering, io::Write};

use host::{
    gemm::{self, Candidate, Choice, Request, Target},
    product, simt,
};
use serde::Serialize;

use super::{
    Failure,
    args::{DeviceChoice, Run},
    list::{json, optional_in_six_digits},
};

/// What would run; also the object of `--json`.
#[derive(Serialize)]
struct Plan {
    /// As asked for: no device is opened.
    device: String,
    kernel: &'static str,
    reason: String,
    m: usize,
    n: usize,
    k: usize,
    /// One for each launch: blocks along x and y.
    grids: Vec<[u32; 2]>,
    block: [u32; 3],
    shared_bytes: Option<usize>,
    /// Of A, B and C together.
    operand_bytes: u64,
    /// What the kernel needs besides.
    workspace_bytes: u64,
    /// What the choice is made for.
    multiprocessors: u32,
    candidates: Vec<CandidateLine>,
}

/// A kernel that may or may not have been taken.
#[derive(Serialize)]
struct CandidateLine {
    kernel: &'static str,
    /// Why it may not run; `null` where it may.
    ineligible: Option<String>,
    /// `null` where nobody has measured it: it is taken by name alone.
    #[serde(serialize_with = "optional_in_six_digits")]
    predicted_us: Option<f64>,
}

impl From<&Candidate> for CandidateLine {
    fn from(candidate: &Candidate) -> Self {
        CandidateLine {
            kernel: candidate.entry.name(),
            ineligible: candidate.ineligible.map(|why| why.to_string()),
            predicted_us: candidate.predicted_us,
        }
    }
}

/// The device that a choice is made for, and how the plan calls it.
fn target(device: DeviceChoice) -> (Target, String) {
    match device {
        DeviceChoice::Cpu => {
            let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
            (Target::cpu(cores), format!("{cores} cores"))
        }
        _ => (Target::H200, "an H200's 132 multiprocessors".to_owned()),
    }
}

/// Prints the plan for the device asked for. No device is opened: CUDA's limits are the same for all.
pub(super) fn plan(args: &Run, out: &mut impl Write) -> Result<(), Failure> {
    let shape = args.sizes.shape()?;
    let (target, of) = target(args.device);
    let Choice { entry, reason, workspace_bytes, .. } = args.kernel.resolve(shape, &target)?;
    let candidates = gemm::candidates::<f32>(&Request::dense(shape), &target);
    let launches = product::launches(entry, shape, &simt::cpu::LIMITS)?;
    let declaration = entry.declaration();
    let plan = Plan {
        device: args.device.to_string(),
        kernel: entry.name(),
        reason: reason.to_string(),
        m: shape.m(),
        n: shape.n(),
        k: shape.k(),
        grids: launches
            .iter()
            .map(|launch| [launch.config.grid[0], launch.config.grid[1]])
            .collect(),
        block: launches.first().map_or([0; 3], |launch| launch.config.block),
        shared_bytes: declaration.shared,
        operand_bytes: shape.bytes(),
        workspace_bytes,
        multiprocessors: target.multiprocessors,
        candidates: candidates.iter().map(CandidateLine::from).collect(),
    };
    if args.json {
        return json(out, &plan);
    }
    writeln!(out, "{shape}   f32, row-major")?;
    let place = match args.device {
        DeviceChoice::Auto => "a GPU where there is one, otherwise the CPU".to_owned(),
        choice => choice.to_string(),
    };
    writeln!(out, "device    {place} (not looked at: a launch has the limits of any CUDA device)")?;
    writeln!(out, "kernel    {}: {} ({reason})", plan.kernel, entry.summary)?;
    match &plan.grids[..] {
        [] => writeln!(out, "launches  none: C is empty")?,
        [first, rest @ ..] => {
            let [x, y, z] = plan.block;
            write!(out, "launches  {} of {} x {} blocks", 1 + rest.len(), first[0], first[1])?;
            if let Some(last) = rest.last() {
                write!(
                    out,
                    " (the last {} x {}: a grid has at most 65535 rows)",
                    last[0], last[1]
                )?;
            }
            write!(out, ", each of {x} x {y} x {z} threads")?;
            match plan.shared_bytes {
                Some(bytes) => writeln!(out, " and {bytes} bytes of shared memory")?,
                None => writeln!(out)?,
            }
        }
    }
    let Plan { operand_bytes, workspace_bytes, .. } = plan;
    writeln!(out, "memory    {operand_bytes} bytes for A, B and C, {workspace_bytes} besides")?;
    let mut by_time = candidates.iter().filter(|one| one.ineligible.is_none()).collect::<Vec<_>>();
    by_time.retain(|candidate| candidate.predicted_us.is_some());
    by_time.sort_by(|a, b| a.predicted_us.partial_cmp(&b.predicted_us).unwrap_or(Ordering::Equal));
    writeln!(out, "predicted for {of}:")?;
    for Candidate { entry, predicted_us, .. } in by_time {
        writeln!(out, "  {:<16} {:>10.1} us", entry.name(), predicted_us.unwrap_or_default())?;
    }
    Ok(())
}
