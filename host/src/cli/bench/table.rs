//! Rows printed for people.

use std::io::{self, Write};

use super::row::{Role, Row};
use crate::cli::{
    Failure,
    draw::unit::Unit,
    duration::duration,
    list::json,
    types::{rounded, words},
};

/// The width of sizes with epilogues.
const WIDE: usize = 40;

/// The headings of the columns.
pub(super) fn head(
    out: &mut impl Write,
    [operands, out_type]: [&str; 2],
    device: &str,
    description: &str,
    has_epilogues: bool,
) -> io::Result<()> {
    let types = words(operands, out_type);
    writeln!(out, "C = A B, {types}, on {device}: {description}")?;
    if has_epilogues {
        writeln!(
            out,
            "with an epilogue: C = activation(alpha A B + beta C + bias); over plain: beyond our plain product's \
             time in the same rounds"
        )?;
        writeln!(
            out,
            "A library that lacks it computes what the line says. A copy of C stands for the kernel that does the \
             rest: that reads and writes all of C, too, and takes no less"
        )?;
    }
    if let Some(of) = rounded(out_type) {
        writeln!(
            out,
            "nearest: correctly rounded, C is the {of} nearest to a sum within the bound"
        )?;
    }
    writeln!(
        out,
        "{:<width$} {:<18} {:>11} {:>15} {:>8} {:>9}  {:<23} baseline",
        "size",
        "kernel",
        "time",
        "speed",
        "err",
        "err/bound",
        "ratio (95 % interval)",
        width = if has_epilogues { WIDE } else { 22 },
    )
}

/// Prints the rows of a recorded run, those of each type below their heading.
pub(super) fn all(as_json: bool, out: &mut impl Write, all: &[Row]) -> Result<(), Failure> {
    if as_json {
        return all.iter().try_for_each(|row| json(out, row));
    }
    for of_types in all.chunk_by(Row::is_of_types) {
        let row = &of_types[0];
        let is_wide = of_types.iter().any(|row| row.epilogue.is_some());
        head(out, [&row.dtype, &row.out_dtype], &row.device, &row.description, is_wide)?;
        let mut sizes = of_types.chunk_by(|one, other| one.size() == other.size());
        sizes.try_for_each(|of_one| rows(out, of_one, is_wide))?;
    }
    Ok(())
}

/// Prints the rows of one size when they are done.
pub(super) fn size(
    as_json: bool,
    out: &mut impl Write,
    all: &[Row],
    has_epilogues: bool,
) -> Result<(), Failure> {
    match as_json {
        true => all.iter().try_for_each(|row| json(out, row))?,
        false => rows(out, all, has_epilogues)?,
    }
    Ok(out.flush()?)
}

/// The rows of one size.
fn rows(out: &mut impl Write, rows: &[Row], is_wide: bool) -> io::Result<()> {
    rows.iter().try_for_each(|row| writeln!(out, "{}", line(row, is_wide)))?;
    rows.first().map_or(Ok(()), |row| telemetry(out, row))
}

/// The largest error over its bound, for people.
pub(super) fn over_bound(row: &Row) -> String {
    row.max_err_over_bound.map_or("-".to_owned(), |over| match rounded(&row.out_dtype) {
        Some(_) if over <= 1.0 => "nearest".to_owned(),
        _ => format!("{over:.4}"),
    })
}

/// A row, without trailing spaces.
fn line(row: &Row, is_wide: bool) -> String {
    let err = row.err.map_or("-".to_owned(), |err| format!("{err:.1e}"));
    let over = over_bound(row);
    let width = if is_wide { WIDE } else { 22 };
    let start = format!("{:<width$} {:<18}", row.work(), row.kernel);
    let (Some(time), Some(tflops)) = (row.time_us, row.tflops) else {
        return format!("{start} WRONG, not timed; err {err}, err/bound {over}");
    };
    let ratio = match (row.ratio, row.ratio_low, row.ratio_high) {
        (Some(ratio), Some(low), Some(high)) => format!("{ratio:.3} ({low:.3} to {high:.3})"),
        (Some(ratio), ..) => format!("{ratio:.3}"),
        _ => "-".to_owned(),
    };
    let baseline = match (&row.baseline, row.baseline_time_us, row.baseline_tflops) {
        (Some(name), ..) if *name == row.kernel => String::new(),
        (Some(name), Some(time), Some(tflops)) => {
            let not = if row.baseline_is_fp32 == Some(false) { ", NOT fp32" } else { "" };
            let did = row.baseline_instead.as_ref().map_or(String::new(), |it| format!(" ({it})"));
            format!("{name}{did}: {}, {}{not}", duration(time), speed(tflops))
        }
        _ => String::new(),
    };
    let algorithm = row.algorithm.as_ref().map_or(String::new(), |one| format!("algorithm {one}"));
    let verdict = match (&*row.verify, row.verified, row.role) {
        (_, _, Role::Baseline) => algorithm,
        (_, None, _) => "not compared".to_owned(),
        // k is too large for exact integers.
        (_, Some(false), _) => "unsettled".to_owned(),
        ("sample", Some(true), _) => "sampled".to_owned(),
        (_, Some(true), _) => String::new(),
    };
    let line = format!(
        "{start} {:>11} {:>15} {err:>8} {over:>9}  {ratio:<23}",
        duration(time),
        speed(tflops),
    );
    let alone =
        row.sustained_s.map_or(String::new(), |seconds| format!("sustained for {seconds} s"));
    let instead = row.instead.as_ref().map_or(String::new(), |it| format!("computes {it}"));
    let rest = [over_plain(row), baseline, instead, verdict, alone]
        .into_iter()
        .filter(|words| !words.is_empty());
    let rest = rest.collect::<Vec<_>>().join("  ");
    format!("{line} {rest}").trim_end().to_owned()
}

/// What an epilogue takes beyond the plain product.
fn over_plain(row: &Row) -> String {
    let figures = [row.over_plain, row.over_plain_low, row.over_plain_high];
    let [Some(median), Some(low), Some(high)] = figures else { return String::new() };
    let (Some(plain), Some(time)) = (row.plain_time_us, row.time_us) else { return String::new() };
    let percent = |times: f64| 100.0 * (times - 1.0);
    format!(
        "over plain {}: {:+.1} % ({:+.1} to {:+.1}), {:+.2} us",
        duration(plain),
        percent(median),
        percent(low),
        percent(high),
        time - plain
    )
}

/// A speed, in a suitable unit.
pub(super) fn speed(tflops: f64) -> String {
    let gflops = tflops * 1e3;
    Unit::of(gflops).words(gflops)
}

/// Clocks and power while a size was timed, if known.
fn telemetry(out: &mut impl Write, row: &Row) -> io::Result<()> {
    let (Some(clock), Some(low)) = (row.sm_mhz, row.sm_mhz_low) else { return Ok(()) };
    let (Some(power), Some(high)) = (row.power_w, row.power_w_high) else { return Ok(()) };
    let limited = match row.limited_by.as_deref() {
        None | Some("") => "nothing",
        Some(by) => by,
    };
    writeln!(
        out,
        "    clock {clock} MHz (from {low}), power {power} W (to {high}), {} C; limited by {limited}",
        row.temperature_c.unwrap_or_default()
    )
}
