//! A profile printed for people.

use std::io::{self, Write};

use host::{
    check::Seen,
    gpu::registry::Entry,
    occupancy::Occupancy,
    profile::{Fit, Total},
    simt::{
        check::{Order, Profile},
        count_of,
    },
};

use super::report::Report;
use crate::cli::findings;

pub(super) fn print(
    out: &mut impl Write,
    report: &Report,
    counted: &Profile,
    totals: &[Total],
    fit: Option<&Fit>,
    entry: &Entry,
    seen: &[Seen],
) -> io::Result<()> {
    writeln!(out, "kernel    {}: {}", entry.name(), entry.summary)?;
    let Some(fit) = fit else {
        return writeln!(out, "C is empty: nothing was launched, there is nothing to count");
    };
    launch(out, report, fit)?;
    let Report { blocks, sampled, seconds, .. } = report;
    let scaled = if sampled < blocks { ", scaled to all" } else { "" };
    writeln!(out, "counted   {sampled} of {blocks} blocks in {seconds:.2} s{scaled}")?;
    if !seen.is_empty() {
        let found = count_of(seen.len(), "finding");
        writeln!(out, "FOUND     {found}, below: the counts may be wrong too")?;
    }
    write!(out, "\n{}", counted.table(findings::source))?;
    sums(out, report, totals)?;
    findings::print(out, seen, &[Order::Forward])
}

/// The launches, and how the blocks fit.
fn launch(out: &mut impl Write, report: &Report, fit: &Fit) -> io::Result<()> {
    let [x, y, z] = report.block;
    let [columns, rows] = report.grids.first().copied().unwrap_or_default();
    write!(out, "launch    ")?;
    match report.grids[..] {
        [_, .., [x, y]] => {
            let times = report.grids.len();
            write!(out, "{times} times {columns} x {rows} blocks, the last time {x} x {y},")?;
        }
        _ => write!(out, "{columns} x {rows} blocks")?,
    }
    write!(out, " of {x} x {y} x {z} threads")?;
    let Some(resources) = fit.resources else {
        writeln!(out)?;
        return writeln!(
            out,
            "fits      not known on {}: {} has not seen this kernel (cargo xtask build-ptx \
             --fetch-ptxas)",
            fit.gpu, fit.source
        );
    };
    writeln!(
        out,
        ", {} bytes of shared memory; {} registers a thread ({})",
        fit.shared_bytes().unwrap_or(resources.shared),
        resources.registers,
        fit.source
    )?;
    let Some(Occupancy { blocks, warps, most_warps, limited_by, limits }) = fit.occupancy else {
        return writeln!(out, "fits      not known on {} (--on names another)", fit.gpu);
    };
    let percent = 100.0 * f64::from(warps) / f64::from(most_warps);
    writeln!(out, "fits on   {}", fit.gpu)?;
    writeln!(
        out,
        "          {blocks} blocks, {warps} of {most_warps} warps an SM ({percent:.0} %), limited \
         by {limited_by}"
    )?;
    let limits = limits.iter().filter_map(|(what, limit)| Some(format!("{what} {}", (*limit)?)));
    writeln!(out, "          blocks by {}", limits.collect::<Vec<_>>().join(", "))
}

/// The totals under Nsight Compute's names, and figures derived from them.
fn sums(out: &mut impl Write, report: &Report, totals: &[Total]) -> io::Result<()> {
    let (source, merged) = ("as in the source", "128-bit reads");
    writeln!(out, "\n{:56} {source:>16} {merged:>14}", "totals, as Nsight Compute names them")?;
    for Total { name, value, merged, .. } in totals {
        write!(out, "{name:56} {value:>16}")?;
        match merged {
            Some(merged) => writeln!(out, " {merged:>14}")?,
            None => writeln!(out)?,
        }
        if name.contains("ffma") && *value == 0 && report.flop > 0.0 && report.dtype == "f32" {
            writeln!(out, "    arithmetic by operators is not counted, fma() alone is")?;
        }
    }
    writeln!(
        out,
        "128-bit reads: neighbouring reads of shared memory made together, as ptxas does in loops that it \
         unrolls"
    )?;
    let loaded = report.flop_per_global_byte_loaded;
    if let (Some(loaded), Some(stored)) = (loaded, report.flop_per_global_byte_stored) {
        writeln!(
            out,
            "global memory: {loaded:.2} FLOP for each byte loaded, {stored:.1} for each stored (sectors x 32; \
             FLOP are the contract's, 2 m n k)"
        )?;
    }
    let share = 100.0 * report.divergent_share;
    writeln!(out, "divergent: {share:.1} % of the warps' intervals between waits")
}
