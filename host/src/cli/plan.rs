//! `--plan`: what would run, and why, without a device.

use std::io::Write;

use host::{product, simt};
use serde::Serialize;

use super::{
    Failure,
    args::{DeviceChoice, KernelChoice, Run},
    list::json,
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
}

/// Prints the plan for the device asked for. No device is opened: CUDA's limits are the same for all.
pub(super) fn plan(args: &Run, out: &mut impl Write) -> Result<(), Failure> {
    let shape = args.sizes.shape()?;
    let (entry, reason) = match args.kernel {
        KernelChoice::Named(entry) => (entry, "asked for by name".to_owned()),
        KernelChoice::Auto => {
            let (entry, why) = product::preferred();
            (entry, format!("auto: {why}"))
        }
    };
    let launches = product::launches(entry, shape, &simt::cpu::LIMITS)?;
    let declaration = entry.declaration();
    let plan = Plan {
        device: args.device.to_string(),
        kernel: entry.name(),
        reason: reason.clone(),
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
    writeln!(out, "memory    {} bytes for A, B and C", plan.operand_bytes)?;
    Ok(())
}
