//! The summary of random shapes: means, shares, the worst.

use std::io::{self, Write};

use host::timing::quantile;

use super::row::{Role, Row};
use crate::cli::{args::INVARIANT, duration::duration};

/// A larger ratio counts as this in a mean. So very slow baselines cannot make up for slow kernels.
const CAP: f64 = 2.0;
/// From this ratio on a kernel counts as equal.
const EQUAL: f64 = 0.99;
/// The number of worst shapes to print.
const WORST: usize = 10;

/// The summary of ratios, at least one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Summary {
    shapes: usize,
    /// The geometric mean, with each ratio at most [`CAP`].
    mean: f64,
    /// The share of ratios that are at least [`EQUAL`].
    share: f64,
    fifth_percentile: f64,
    worst: f64,
}

impl Summary {
    fn of(ratios: &[f64]) -> Option<Self> {
        let shapes = ratios.len();
        let logs = ratios.iter().map(|ratio| ratio.min(CAP).ln()).sum::<f64>();
        let equal = ratios.iter().filter(|ratio| **ratio >= EQUAL).count();
        (shapes > 0).then(|| Summary {
            shapes,
            mean: (logs / shapes as f64).exp(),
            share: equal as f64 / shapes as f64,
            fifth_percentile: quantile(ratios, 0.05),
            worst: quantile(ratios, 0.0),
        })
    }
}

/// Prints the summary of the random shapes among the rows, if there are any. `cut_short`: how far a
/// run came that ended early, which is said of any run.
pub(super) fn print(out: &mut dyn Write, rows: &[Row], cut_short: Option<&str>) -> io::Result<()> {
    let is_drawn = |row: &&Row| row.role == Role::Auto && row.drawn.is_some();
    let shapes = rows.iter().filter(is_drawn).collect::<Vec<_>>();
    let cut = |out: &mut dyn Write| {
        cut_short.map_or(Ok(()), |words| {
            writeln!(out, "CUT SHORT: {}", words.trim_start_matches("cut short: "))
        })
    };
    if shapes.is_empty() {
        return cut(out);
    }
    writeln!(
        out,
        "\nratio_low, the lower end of the 95 % interval of the baseline's time over ours; in the mean at most {CAP}"
    )?;
    writeln!(
        out,
        "{:<36} {:>6} {:>8} {:>8} {:>8} {:>8}",
        "", "shapes", "mean", ">= 0.99", "5th pct", "worst"
    )?;
    let mut types = Vec::<&Row>::new();
    for row in &shapes {
        if !types.iter().any(|other| other.is_of_types(row)) {
            types.push(row);
        }
    }
    for of_type in &types {
        let shapes = shapes.iter().copied().filter(|row| row.is_of_types(of_type));
        by_group(out, &of_type.types(), &shapes.collect::<Vec<_>>())?;
    }
    if types.len() > 1 {
        by_group(out, "all types", &shapes)?;
    }
    for of_type in &types {
        let shapes = shapes.iter().copied().filter(|row| row.is_of_types(of_type));
        invariant(out, &of_type.types(), shapes, rows)?;
    }
    for of_type in &types {
        let shapes = shapes.iter().copied().filter(|row| row.is_of_types(of_type));
        worst(out, &of_type.types(), &shapes.collect::<Vec<_>>())?;
    }
    for of_type in &types {
        let shapes = shapes.iter().copied().filter(|row| row.is_of_types(of_type));
        complete(out, &of_type.types(), &shapes.collect::<Vec<_>>())?;
    }
    cut(out)
}

/// A line for all shapes of a type, for each half and for each class.
fn by_group(out: &mut dyn Write, types: &str, shapes: &[&Row]) -> io::Result<()> {
    line(out, types, shapes.iter().copied())?;
    for (half, aligned) in [("aligned", true), ("not aligned", false)] {
        let of_half = shapes.iter().copied().filter(|row| row.aligned == Some(aligned));
        line(out, &format!("{types}, {half}"), of_half)?;
    }
    if shapes.iter().any(|row| row.epilogue.is_some()) {
        for (half, has_epilogue) in [("plain", false), ("with an epilogue", true)] {
            let is_of_half = |row: &&Row| row.epilogue.is_some() == has_epilogue;
            let of_half = shapes.iter().copied().filter(is_of_half);
            line(out, &format!("{types}, {half}"), of_half)?;
        }
    }
    let mut classes = shapes.iter().filter_map(|row| row.group.as_deref()).collect::<Vec<_>>();
    classes.sort_unstable();
    classes.dedup();
    for class in classes {
        let of_class = shapes.iter().copied().filter(|row| row.group.as_deref() == Some(class));
        line(out, &format!("{types}, {class}"), of_class)?;
    }
    Ok(())
}

fn line<'a>(
    out: &mut dyn Write,
    what: &str,
    shapes: impl Iterator<Item = &'a Row>,
) -> io::Result<()> {
    let ratios = shapes.filter_map(|row| row.ratio_low).collect::<Vec<_>>();
    match Summary::of(&ratios) {
        None => writeln!(out, "{what:<36} {:>6}", 0),
        Some(Summary { shapes, mean, share, fifth_percentile, worst }) => writeln!(
            out,
            "{what:<36} {shapes:>6} {mean:>8.3} {:>6.1} % {fifth_percentile:>8.3} {worst:>8.3}",
            100.0 * share
        ),
    }
}

/// Says what invariant products take of the time of those that need not be.
fn invariant<'a>(
    out: &mut dyn Write,
    types: &str,
    shapes: impl Iterator<Item = &'a Row>,
    rows: &[Row],
) -> io::Result<()> {
    let mut ratios = Vec::new();
    for auto in shapes {
        let is_it = |row: &&Row| {
            row.kernel.ends_with(INVARIANT)
                && (row.seed, row.drawn) == (auto.seed, auto.drawn)
                && row.is_of_types(auto)
        };
        let of_both = rows.iter().find(is_it).and_then(|row| Some(row.time_us? / auto.time_us?));
        ratios.extend(of_both.map(|ratio| (auto.m, ratio)));
    }
    let mean = |most: usize| {
        let few = ratios.iter().filter(|(m, _)| *m <= most);
        let logs = few.map(|(_, ratio)| ratio.ln()).collect::<Vec<_>>();
        (logs.len(), (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    };
    for (what, most) in [("", usize::MAX), (", m <= 16", 16)] {
        let (count, mean) = mean(most);
        if count > 0 {
            writeln!(
                out,
                "{types}{what}: {count} invariant products take {mean:.3} of auto's time"
            )?;
        }
    }
    Ok(())
}

/// Prints the worst shapes of a type. Those without a ratio come first.
fn worst(out: &mut dyn Write, types: &str, shapes: &[&Row]) -> io::Result<()> {
    let mut worst = shapes.to_vec();
    worst.sort_by(|one, other| {
        one.ratio_low.unwrap_or(0.0).total_cmp(&other.ratio_low.unwrap_or(0.0))
    });
    worst.retain(|row| row.ratio_low.is_none_or(|ratio| ratio < EQUAL));
    let named = worst.iter().take(WORST).collect::<Vec<_>>();
    if !named.is_empty() {
        writeln!(out, "the worst of {types}:")?;
    }
    for row in named {
        let half = if row.aligned == Some(true) { "aligned" } else { "not aligned" };
        let ratio = row.ratio_low.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
        let times = match (row.time_us, row.baseline_time_us, &row.baseline) {
            (None, ..) => "WRONG, not timed".to_owned(),
            (Some(own), Some(time), Some(name)) => {
                format!("{}, {name} {}", duration(own), duration(time))
            }
            _ => "no baseline".to_owned(),
        };
        writeln!(
            out,
            "{ratio:>8} {:<26} {:<12} {half:<12} {}: {times}",
            row.work(),
            row.group.as_deref().unwrap_or_default(),
            row.kernel
        )?;
    }
    Ok(())
}

/// Says how many of a seed's shapes are there, and how many of them have no ratio.
fn complete(out: &mut dyn Write, types: &str, shapes: &[&Row]) -> io::Result<()> {
    let mut draws = shapes.iter().map(|row| (row.seed, row.drawn_of)).collect::<Vec<_>>();
    draws.sort_unstable();
    draws.dedup();
    for draw in draws {
        let (seed, of) = (draw.0, draw.1.unwrap_or_default());
        let shapes = shapes.iter().filter(|row| (row.seed, row.drawn_of) == draw);
        let (mut ran, mut without) = (0, 0);
        for row in shapes {
            ran += 1;
            without += usize::from(row.ratio_low.is_none());
        }
        let incomplete = if ran < of { "INCOMPLETE, " } else { "" };
        write!(out, "{types}: {incomplete}{ran} of {of} shapes of seed {seed} ({seed:#x})")?;
        match without {
            0 => writeln!(out)?,
            _ => writeln!(out, "; {without} without a ratio, which do not count above")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ratio: f64, class: &str, aligned: bool) -> Row {
        Row {
            group: Some(class.to_owned()),
            aligned: Some(aligned),
            drawn: Some(1),
            drawn_of: Some(4),
            seed: 7,
            m: 5,
            n: 6,
            k: 7,
            batch: 1,
            trans: "nt".to_owned(),
            dtype: "f32".to_owned(),
            out_dtype: "f32".to_owned(),
            compute: "fp32".to_owned(),
            kernel: "a_kernel".to_owned(),
            time_us: Some(2.0),
            baseline: Some("cublas".to_owned()),
            baseline_time_us: Some(1.0),
            ratio_low: Some(ratio),
            ..Row::default()
        }
    }

    fn printed(rows: &[Row], cut_short: Option<&str>) -> String {
        let mut out = Vec::new();
        print(&mut out, rows, cut_short).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_ratio_above_two_counts_as_two() {
        let summary = Summary::of(&[0.5, 8.0]).unwrap();
        assert!((summary.mean - 1.0).abs() < 1e-12, "{summary:?}");
        let without = Summary::of(&[0.5, 2.0]).unwrap();
        assert!((without.mean - summary.mean).abs() < 1e-12);
        assert_eq!((summary.shapes, summary.share, summary.worst), (2, 0.5, 0.5));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn the_share_and_the_percentile() {
        let ratios = (1..=101).map(|i| 0.5 + f64::from(i - 1) / 100.0).collect::<Vec<_>>();
        let summary = Summary::of(&ratios).unwrap();
        // 0.99 counts.
        assert_eq!(summary.share, 52.0 / 101.0);
        assert!((summary.fifth_percentile - 0.55).abs() < 1e-12, "{summary:?}");
        assert_eq!((summary.shapes, summary.worst), (101, 0.5));
    }

    #[test]
    fn groups_and_the_worst_are_named() {
        let rows = [
            row(0.25, "tall", true),
            row(4.0, "tall", false),
            row(1.0, "square", true),
            Row { time_us: None, ratio_low: None, ..row(0.0, "square", false) },
            Row { role: Role::Baseline, ..row(0.1, "tall", true) },
        ];
        let text = printed(&rows, Some("cut short: 4 of 9 shapes ran"));
        let words = |start: &str| {
            let line = text.lines().find(|line| line.starts_with(start)).unwrap_or_default();
            line[36..].split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words("f32  "), "3 0.794 66.7 % 0.325 0.250");
        assert_eq!(words("f32, aligned "), "2 0.500 50.0 % 0.287 0.250");
        assert_eq!(words("f32, tall "), "2 0.707 50.0 % 0.438 0.250");
        assert!(
            text.contains("   0.250 5x6x7 nt                   tall         aligned"),
            "{text}"
        );
        assert!(text.contains("WRONG, not timed"), "{text}");
        assert!(text.contains("f32: 4 of 4 shapes of seed 7 (0x7); 1 without a ratio"), "{text}");
        assert!(text.ends_with("CUT SHORT: 4 of 9 shapes ran\n"), "{text}");
        assert!(!text.contains("all types"), "{text}");
        let more = [&rows[..], &[Row { dtype: "bf16".to_owned(), ..row(1.0, "tall", true) }]];
        let text = printed(&more.concat(), None);
        assert!(text.contains("all types, tall"), "{text}");
        assert!(text.contains("bf16, C f32: INCOMPLETE, 1 of 4 shapes"), "{text}");
        assert_eq!(printed(&[Row { drawn: None, ..row(1.0, "tall", true) }], None), "");
    }
}
