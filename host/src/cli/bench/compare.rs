//! Changes since an older run that exceed the noise of both.

use std::io::{self, Write};

use super::row::{Role, Row};

/// A figure of a size in both runs: its name, and low, median and high of each.
struct Change<'a> {
    row: &'a Row,
    kernel: String,
    old: [f64; 3],
    new: [f64; 3],
}

impl Change<'_> {
    /// Whether the intervals do not overlap, and the medians differ by more than two runs of the
    /// same program.
    fn is_beyond_noise(&self) -> bool {
        let apart = self.new[0] > self.old[2] || self.new[2] < self.old[0];
        apart && (self.factor() - 1.0).abs() >= BETWEEN_RUNS
    }

    fn factor(&self) -> f64 {
        self.new[1] / self.old[1]
    }
}

/// Relative difference between two runs of the same program, beyond the spread of one run's rounds.
const BETWEEN_RUNS: f64 = 0.01;

/// Prints the rows that changed beyond noise, and how many there are. It compares the ratios to a
/// common baseline, or else the speeds with their spread.
pub(super) fn print(out: &mut dyn Write, old: &[Row], new: &[Row]) -> io::Result<()> {
    let is_own = |row: &&Row| row.role != Role::Baseline;
    let pairs = new.iter().filter(is_own).filter_map(|row| {
        let before = old.iter().find(|before| before.is_same(row))?;
        Some((before, row))
    });
    let pairs = pairs.collect::<Vec<_>>();
    let broken = pairs.iter().filter(|(before, row)| !before.is_wrong() && row.is_wrong());
    for (_, row) in broken {
        writeln!(out, "{:<22} {:<18} is WRONG now", row.work(), row.kernel)?;
    }
    let changes = pairs.iter().filter_map(|(before, row)| change(before, row)).collect::<Vec<_>>();
    let beyond = changes.iter().filter(|change| change.is_beyond_noise()).collect::<Vec<_>>();
    for change in &beyond {
        let figure = |[low, median, high]: [f64; 3]| format!("{median:.3} ({low:.3} to {high:.3})");
        writeln!(
            out,
            "{:<22} {:<18} {:>23} -> {:<23} {}, {:+.1} %",
            change.row.work(),
            change.kernel,
            figure(change.old),
            figure(change.new),
            if change.factor() > 1.0 { "faster" } else { "SLOWER" },
            100.0 * (change.factor() - 1.0)
        )?;
    }
    let within = changes.len() - beyond.len();
    writeln!(
        out,
        "{} of {} kernels at sizes of both runs changed beyond the noise, {within} did not",
        beyond.len(),
        changes.len()
    )
}

/// A figure of both runs: the ratio to the same baseline, or the speed in TFLOP/s.
fn change<'a>(before: &Row, row: &'a Row) -> Option<Change<'a>> {
    let kernel = match before.kernel == row.kernel {
        true => row.kernel.clone(),
        false => format!("{} -> {}", before.kernel, row.kernel),
    };
    let ratio = |row: &Row| {
        let other = row.baseline.as_ref().is_some_and(|baseline| *baseline != row.kernel);
        let figure = [row.ratio_low, row.ratio, row.ratio_high];
        let [Some(low), Some(ratio), Some(high)] = figure else { return None };
        other.then_some([low, ratio, high])
    };
    // Another algorithm of the same library may be the fastest by a hair. That is no change.
    let family = |row: &Row| row.baseline.as_ref().map(|name| name.starts_with("cublas"));
    let same = before.baseline == row.baseline
        || family(before) == Some(true) && family(row) == Some(true);
    if let (Some(old), Some(new), true) = (ratio(before), ratio(row), same) {
        return Some(Change { row, kernel, old, new });
    }
    let speed = |row: &Row| {
        let (tflops, spread) = (row.tflops?, row.spread?);
        Some([tflops / (1.0 + spread / 2.0), tflops, tflops * (1.0 + spread / 2.0)])
    };
    Some(Change { row, kernel, old: speed(before)?, new: speed(row)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kernel: &str, ratio: f64) -> Row {
        Row {
            kernel: kernel.to_owned(),
            role: Role::Auto,
            m: 5,
            n: 5,
            k: 5,
            batch: 1,
            trans: "nn".to_owned(),
            time_us: Some(2.0),
            tflops: Some(1.0),
            spread: Some(0.1),
            baseline: Some("cublas".to_owned()),
            ratio: Some(ratio),
            ratio_low: Some(ratio - 0.01),
            ratio_high: Some(ratio + 0.01),
            ..Row::default()
        }
    }

    fn printed(old: &[Row], new: &[Row]) -> String {
        let mut out = Vec::new();
        print(&mut out, old, new).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_what_is_beyond_the_noise_is_shown() {
        let same = printed(&[row("a", 1.0)], &[row("a", 1.015)]);
        assert!(same.starts_with("0 of 1 kernels"), "{same}");
        let faster = printed(&[row("a", 1.0)], &[row("b", 1.1)]);
        assert!(faster.contains("a -> b") && faster.contains("faster, +10.0 %"), "{faster}");
        let slower = printed(&[row("a", 1.0)], &[row("a", 0.9)]);
        assert!(slower.contains("SLOWER, -10.0 %") && slower.contains("1 of 1"), "{slower}");
        // Different sizes are not compared.
        let other = printed(&[Row { m: 6, ..row("a", 1.0) }], &[row("a", 0.5)]);
        assert!(other.starts_with("0 of 0 kernels"), "{other}");
    }

    #[test]
    fn without_a_common_baseline_it_is_the_speed() {
        let old = Row { baseline: None, ratio: None, ..row("a", 1.0) };
        let new = |tflops| Row { tflops: Some(tflops), ..row("a", 3.0) };
        assert!(printed(std::slice::from_ref(&old), &[new(1.08)]).starts_with("0 of 1"));
        assert!(printed(&[old], &[new(1.2)]).contains("faster, +20.0 %"));
    }

    #[test]
    fn what_is_wrong_now_is_said() {
        let now = Row { time_us: None, tflops: None, ratio: None, ..row("a", 1.0) };
        assert!(printed(&[row("a", 1.0)], &[now]).contains("is WRONG now"));
    }
}
