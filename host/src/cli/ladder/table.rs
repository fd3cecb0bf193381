//! The ladder printed for people: two tables, and a line for each rung.

use std::io::{self, Write};

use super::line::{Counted, FitLine, Line};
use crate::cli::duration::duration;

/// Prints the ladder.
pub(super) fn print(out: &mut impl Write, lines: &[Line]) -> io::Result<()> {
    let Some(first) = lines.first() else { return Ok(()) };
    let Line { device, description, m, n, k, dtype, .. } = first;
    writeln!(out, "A {m}x{k} · B {k}x{n} = C {m}x{n}   {dtype}, on {device}: {description}")?;
    if let Some(file) = &first.recorded {
        writeln!(
            out,
            "recorded there, in {file}: this machine has no GPU, and the times of fibers are not those of a GPU\n\
             (--device cpu, a size or --seconds measures here)"
        )?;
    }
    let width = lines.iter().map(|line| line.kernel.chars().count()).max().unwrap_or(0).max(6);
    speeds(out, lines, width)?;
    writeln!(out)?;
    figures(out, lines, width)?;
    writeln!(out, "\nwhat changes, rung by rung")?;
    for line in lines.iter().filter(|line| line.rung.is_some()) {
        writeln!(out, "{:>3}  {:<width$}  {}", number(line), line.kernel, line.idea)?;
    }
    Ok(())
}

fn number(line: &Line) -> String {
    line.rung.map_or("-".to_owned(), |number| number.to_string())
}

/// A number with `decimals` digits. `-` if there is none.
fn figure(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

/// The measurements on this machine's device.
fn speeds(out: &mut impl Write, lines: &[Line], width: usize) -> io::Result<()> {
    writeln!(
        out,
        "{:>3}  {:<width$}  {:>11} {:>10} {:>24} {:>8} {:>9} {:>9}",
        "#",
        "kernel",
        "time",
        "GFLOP/s",
        "gain over the one before",
        "of roof",
        "of cuBLAS",
        "err/bound"
    )?;
    for line in lines {
        write!(out, "{:>3}  {:<width$}  ", number(line), line.kernel)?;
        if !line.verified {
            let err = figure(line.max_err_over_bound, 4);
            writeln!(out, "WRONG, not timed; err/bound {err}")?;
            continue;
        }
        let gain = match (line.gain, line.gain_low, line.gain_high) {
            (Some(gain), Some(low), Some(high)) => format!("{gain:.3} ({low:.3} to {high:.3})"),
            (gain, ..) => figure(gain, 3),
        };
        let time = line.median_us.map_or("-".to_owned(), duration);
        writeln!(
            out,
            "{time:>11} {:>10} {gain:>24} {:>8} {:>9} {:>9}{}",
            figure(line.gflops, if line.gflops >= Some(100.0) { 1 } else { 3 }),
            percent(line.share_of_roof),
            percent(line.share_of_cublas),
            figure(line.max_err_over_bound, 4),
            if line.verify == "sample" { "  sampled" } else { "" }
        )?;
    }
    let roof = lines.iter().find_map(|line| line.roof_gflops);
    match roof {
        Some(roof) => writeln!(
            out,
            "roof: {roof:.0} GFLOP/s, {} of all SMs at their highest clock",
            match lines.iter().any(|line| line.dtype == "f32") {
                true => "the float32 multiply-adds",
                false => "the tensor cores",
            }
        ),
        None => writeln!(
            out,
            "roof: the CPU device has none; its times are those of fibers, not of a GPU"
        ),
    }
}

/// The counts, and how the blocks fit.
fn figures(out: &mut impl Write, lines: &[Line], width: usize) -> io::Result<()> {
    let counted = lines.iter().find_map(|line| line.counted.as_ref());
    let fit = lines.iter().find_map(|line| line.fit.as_ref());
    if let (Some(Counted { m, n, k, .. }), Some(FitLine { gpu, source, .. })) = (counted, fit) {
        writeln!(
            out,
            "counted on the CPU at m = {m}, n = {n}, k = {k}; registers by {source}, occupancy on {gpu}"
        )?;
    }
    // Products of bf16 use tensor cores and TMA.
    let is_tensor = lines.iter().any(|line| line.dtype != "f32");
    let tma = |copied: &str| if is_tensor { format!(" {copied:>11}") } else { String::new() };
    writeln!(
        out,
        "     {:<width$}  {:>12} {:>12}{}  {:^21}  {:^29}  {:^20}",
        "",
        "sectors",
        "wavefronts",
        tma("TMA KiB"),
        "FLOP a byte",
        "a warp's",
        ""
    )?;
    writeln!(
        out,
        "{:>3}  {:<width$}  {:>12} {:>12}{}  {:>6} {:>6} {:>7}  {:>7} {:>6} {:>6} {:>7}  {:>4} {:>5} limit",
        "#",
        "kernel",
        "a load",
        "an access",
        tma("in, out"),
        "paper",
        "asked",
        "sectors",
        "barrier",
        if is_tensor { "MMA" } else { "FMA" },
        "loads",
        "stores",
        "regs",
        "occup"
    )?;
    for line in lines {
        let (Some(Counted { counts, clean, .. }), Some(fit)) = (&line.counted, &line.fit) else {
            continue;
        };
        // A count, and its ideal if it differs.
        let beside = |count: Option<f64>, ideal: Option<f64>| match (count, ideal) {
            (Some(count), Some(ideal)) => format!("{count:.2} ({ideal:.2})"),
            (count, _) => figure(count, 2),
        };
        let kib = |bytes: Option<f64>| figure(bytes.map(|bytes| bytes / 1024.0), 0);
        let occupancy = fit.occupancy_percent.map_or("-".to_owned(), |p| format!("{p:.0} %"));
        writeln!(
            out,
            "{:>3}  {:<width$}  {:>12} {:>12}{}  {:>6} {:>6} {:>7}  {:>7.0} {:>6.0} {:>6.0} {:>7.0}  {:>4} {:>5} {}{}",
            number(line),
            line.kernel,
            beside(counts.sectors_per_request, counts.sectors_per_request_ideal),
            beside(counts.wavefronts_per_request, counts.wavefronts_per_request_ideal),
            tma(&format!("{}, {}", kib(counts.tma_load_bytes), kib(counts.tma_store_bytes))),
            figure(line.flop_per_byte_derived, 2),
            figure(counts.flop_per_byte, 2),
            figure(counts.flop_per_sector_byte, 2),
            counts.barriers_per_warp,
            counts.tensor_ops_per_warp.unwrap_or(counts.fma_per_warp),
            counts.global_loads_per_warp + counts.shared_loads_per_warp,
            counts.global_stores_per_warp + counts.shared_stores_per_warp,
            fit.registers.map_or("-".to_owned(), |registers| registers.to_string()),
            occupancy,
            fit.limited_by.as_deref().unwrap_or("-"),
            if *clean { "" } else { "  (check finds something)" }
        )?;
    }
    writeln!(
        out,
        "in brackets the ideal; loads and stores of global and shared memory together; the rest is in --json"
    )
}
