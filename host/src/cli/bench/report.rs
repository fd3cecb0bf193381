//! `report`: the file about a card that is attached to an issue.

use std::{
    fmt::Write as _,
    io::{self, Write},
    time::{Duration, Instant},
};

use clap::Parser;
use host::{Device, Error, NewSet, gemm::Target, simt::with_types};

use super::{
    machine::Machine,
    measured::Measured,
    record,
    row::{Role, Row},
    sizes::{self, Budget},
    table::{over_bound, speed},
};
use crate::cli::{
    Failure,
    args::{Bench, Command, Invocation, Report as Args},
    duration::duration,
    families::{self, Runs},
    open,
    steps::Steps,
    types::not_multiplied,
};

const FILE: &str = "report.md";

/// The part of the time that verification may take.
const VERIFYING: f64 = 0.3;

/// Verifies and times the kernels of a device, and writes the file.
///
/// # Errors
/// [`Failure::Wrong`] if a kernel is wrong; the first failure. The file is written all the same.
pub(in crate::cli) fn report(
    args: &Args,
    steps: Steps,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let begin = Instant::now();
    // Open to the end, so that the driver compiles each kernel once.
    let device = open(args.device)?;
    let files = NewSet::create("FOLDER", &args.folder, &[FILE, record::TABLE])?;
    let mut bench = flags(&[])?;
    bench.commit.clone_from(&args.commit);
    let mut machine = Machine::of::<f32, f32>(&bench, &device, &[])?;
    let mut report = Report { steps, device, machine: &mut machine, failures: Vec::new() };
    let runs = families::on(&Target::of(&report.device));
    let all = Duration::from_secs_f64(args.seconds);
    let (verified, mut left_out) = report.verify(&runs, begin + all.mul_f64(VERIFYING));
    let (timed, not_timed) = report.time(&runs, begin + all);
    left_out.extend(not_timed);
    let Report { failures, .. } = report;
    machine.took(begin.elapsed());
    // What has been measured is not lost.
    host::resume();
    let of = Found { runs: &runs, verified: &verified, timed: &timed };
    let text = of.text(&machine, &left_out, &failures);
    let table = record::csv(&timed.concat()).into_bytes();
    files.finish(&[(FILE, text.into_bytes()), (record::TABLE, table)])?;
    let wrong = verified.iter().flatten().chain(timed.iter().flatten()).filter(|row| is_wrong(row));
    let (wrong, rows) = (wrong.count(), verified.iter().flatten().count());
    writeln!(
        out,
        "written: {}: {rows} products verified, {wrong} wrong, {} sizes timed, {} left out, {} failures",
        args.folder.join(FILE).display(),
        timed.iter().flatten().filter(|row| row.role == Role::Auto).count(),
        left_out.len(),
        failures.len()
    )?;
    match failures.into_iter().next() {
        _ if wrong > 0 => Err(Failure::Wrong),
        Some((_, failure)) => Err(failure),
        None => Ok(()),
    }
}

/// Whether it was compared and is wrong. Libraries are not judged.
fn is_wrong(row: &Row) -> bool {
    row.role != Role::Baseline && row.verified == Some(false)
}

/// The flags of `bench`.
fn flags(words: &[&str]) -> Result<Bench, Failure> {
    let all = [&["host", "bench"], words].concat();
    match Invocation::try_parse_from(&all).map(|invocation| invocation.command) {
        Ok(Some(Command::Bench(bench))) => Ok(bench),
        Ok(_) => Err(Error::argument("bench", words.join(" "), "is no benchmark").into()),
        Err(why) => Err(Error::argument("bench", words.join(" "), why.to_string()).into()),
    }
}

/// A report that is made.
struct Report<'a> {
    steps: Steps,
    device: Device,
    machine: &'a mut Machine,
    /// What failed, and why.
    failures: Vec<(String, Failure)>,
}

impl Report<'_> {
    fn is_interrupted(&self) -> bool {
        let is_it = |failure: &Failure| matches!(failure, Failure::Error(Error::Interrupted, _));
        self.failures.iter().any(|(_, failure)| is_it(failure))
    }

    /// The rows of `bench` with these flags on the device. A failure is kept, and what comes next
    /// may run.
    fn rows(&mut self, what: &str, words: &[&str], untimed: bool, budget: &mut Budget) -> Vec<Row> {
        self.steps.part(what);
        let device = self.device.name();
        let words = [words, &["--device", &device]].concat();
        let measured = flags(&words).and_then(|bench| {
            let (bench, types) = (Bench { untimed, ..bench }, bench.types.types()?);
            let (steps, out) = (self.steps, &mut io::sink());
            with_types!(types, |T, O| sizes::measure::<T, O>(&bench, steps, out, Some(budget)))
                .unwrap_or_else(|| Err(not_multiplied(types.0, types.1)))
        });
        match measured {
            Ok(Measured { rows, machine, cut }) => {
                self.machine.libraries.extend(machine.into_iter().flat_map(|of| of.libraries));
                self.failures.extend(cut.map(|cut| (what.to_owned(), cut.why)));
                rows
            }
            Err(failure) => {
                self.failures.push((what.to_owned(), failure));
                Vec::new()
            }
        }
    }

    /// The rows of each family, and what was left out. The first kernels of all families come
    /// first.
    fn verify(&mut self, runs: &[Runs], until: Instant) -> (Vec<Vec<Row>>, Vec<String>) {
        let (at_once, sizes) = match self.device.is_cuda() {
            true => (8, "33x65x17,250x1030x96,1000x700x513"),
            false => (1, "33x65x17,70x50x40"),
        };
        let (mut rows, mut left_out) = (vec![Vec::new(); runs.len()], Vec::new());
        let mut without = vec![0; runs.len()];
        let most = runs.iter().map(|of| of.kernels.len().div_ceil(at_once)).max().unwrap_or(0);
        for part in 0..most {
            for ((of, rows), without) in runs.iter().zip(&mut rows).zip(&mut without) {
                let Some(kernels) = of.kernels.chunks(at_once).nth(part) else { continue };
                if self.is_interrupted() || Instant::now() >= until {
                    *without += kernels.len();
                    continue;
                }
                let names = kernels.iter().map(|entry| entry.name()).collect::<Vec<_>>().join(",");
                let mut words = of.flags.split(' ').collect::<Vec<_>>();
                words.extend(["--sizes", sizes, "--kernels", &names]);
                let what = format!("verification: {}, {}", of.family.name(), of.types);
                let mut budget = Budget::new(until);
                rows.extend(self.rows(&what, &words, true, &mut budget));
                left_out.extend(budget.named(&format!("verification of {names}")));
            }
        }
        for (of, without) in runs.iter().zip(without).filter(|(_, without)| *without > 0) {
            let (family, types, all) = (of.family.name(), &of.types, of.kernels.len());
            left_out.push(format!(
                "verification of {family}, {types}: {without} of {all} kernels, for want of time"
            ));
        }
        (rows, left_out)
    }

    /// The rows of each kind of product, timed, and what was left out. Each type of A and B has its
    /// usual type of C, so that there is time for large sizes.
    fn time(&mut self, runs: &[Runs], until: Instant) -> (Vec<Vec<Row>>, Vec<String>) {
        let mut kinds = Vec::<&Runs>::new();
        for of in runs.iter().filter(|of| !of.flags.contains("--out-type")) {
            if kinds.iter().all(|kind| kind.flags != of.flags) {
                kinds.push(of);
            }
        }
        let mut all = Vec::new();
        let mut left_out = vec!["times of other types of C: `bench --out-type`".to_owned()];
        for (number, of) in kinds.iter().enumerate() {
            if self.is_interrupted() {
                left_out.push(format!("times of {}", of.types));
                continue;
            }
            // What a kind leaves of its time is for those after it.
            let left = until.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(kinds.len() - number).unwrap_or(1);
            let mut budget = Budget::new(Instant::now() + share);
            let mut words = of.flags.split(' ').collect::<Vec<_>>();
            words.extend(["--sizes", "all", "--seconds", "0.15"]);
            words.extend(match self.device.is_cuda() {
                true => ["--vs", "cublas"],
                false => ["--kernels", "auto"],
            });
            let rows = self.rows(&format!("times: {}", of.types), &words, false, &mut budget);
            all.push(rows);
            left_out.extend(budget.named(&format!("times of {}", of.types)));
        }
        (all, left_out)
    }
}

/// What a report found: rows of each family, and of each kind of product.
struct Found<'a> {
    runs: &'a [Runs],
    verified: &'a [Vec<Row>],
    timed: &'a [Vec<Row>],
}

impl Found<'_> {
    /// The file.
    fn text(
        &self,
        machine: &Machine,
        left_out: &[String],
        failures: &[(String, Failure)],
    ) -> String {
        let mut text = format!("# Report: {}\n\n", machine.description);
        table(&mut text, &["", ""], &about(machine));
        text += "\n## Kernels verified\n\n\
                 Each product is compared with float64. err: |C - ref| / |ref| in the Frobenius norm. err / bound: the \
                 largest of all elements; above 1 it is wrong. nearest: C is correctly rounded.\n\n";
        let head = ["family", "types", "kernels", "products", "wrong", "err", "err / bound", "of"];
        table(&mut text, &head, &self.families());
        let wrong = self.verified.iter().chain(self.timed).flatten().filter(|row| is_wrong(row));
        let wrong = wrong.map(|row| format!("{} at {}, {}", row.kernel, row.work(), row.types()));
        list(&mut text, "Wrong", wrong);
        for rows in self.timed.iter().filter(|rows| !rows.is_empty()) {
            let _ = write!(text, "\n## Times: {}\n\n", rows[0].types());
            let head = [
                "size",
                "kernel",
                "time",
                "speed",
                "err",
                "err / bound",
                "library",
                "its time",
                "speed over it (95 %)",
                "SM MHz",
                "W",
            ];
            let own = rows.iter().filter(|row| row.role == Role::Auto).map(times);
            table(&mut text, &head, &own.collect::<Vec<_>>());
        }
        let failures = failures.iter().map(|(what, failure)| format!("{what}: {failure}"));
        list(&mut text, "Failures", failures);
        list(&mut text, "Left out", left_out.iter().cloned());
        text
    }

    /// A line for each family and its types.
    fn families(&self) -> Vec<Vec<String>> {
        let lines = self.runs.iter().zip(self.verified).map(|(of, rows)| {
            let over = |row: &&Row| row.max_err_over_bound.unwrap_or(f64::INFINITY);
            let worst = rows.iter().max_by(|a, b| over(a).total_cmp(&over(b)));
            let ran = |name: &str| rows.iter().any(|row| kernel_of(row) == name);
            let ran = of.kernels.iter().filter(|entry| ran(entry.name())).count();
            vec![
                of.family.name().to_owned(),
                of.types.clone(),
                format!("{ran} of {}", of.kernels.len()),
                rows.len().to_string(),
                rows.iter().filter(|row| is_wrong(row)).count().to_string(),
                error(worst.and_then(|row| row.err)),
                worst.map_or("-".to_owned(), over_bound),
                worst.map_or(String::new(), |row| format!("{} at {}", row.kernel, row.size())),
            ]
        });
        lines.collect()
    }
}

/// The kernel of a row without its splits of k.
fn kernel_of(row: &Row) -> &str {
    row.kernel.split([':', '/']).next().unwrap_or_default()
}

fn error(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.1e}"))
}

/// A size that was timed.
fn times(row: &Row) -> Vec<String> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let ratio = match (row.ratio, row.ratio_low, row.ratio_high) {
        (Some(ratio), Some(low), Some(high)) => Some(format!("{ratio:.3} ({low:.3} to {high:.3})")),
        _ => None,
    };
    // Without a library the kernel is compared with itself.
    let has_library = row.baseline.as_ref().is_some_and(|name| *name != row.kernel);
    vec![
        row.size(),
        row.kernel.clone(),
        row.time_us.map_or("WRONG, not timed".to_owned(), duration),
        or_none(row.tflops.map(speed)),
        error(row.err),
        over_bound(row),
        or_none(row.baseline.clone().filter(|_| has_library)),
        or_none(row.baseline_time_us.filter(|_| has_library).map(duration)),
        or_none(ratio.filter(|_| has_library)),
        or_none(row.sm_mhz.map(|clock| clock.to_string())),
        or_none(row.power_w.map(|power| power.to_string())),
    ]
}

/// The machine and this program. What is not known has no line.
fn about(machine: &Machine) -> Vec<Vec<String>> {
    let Machine { card, cuda, libraries, .. } = machine;
    let of_card = |figure: Option<u32>, unit: &str| figure.map(|value| format!("{value} {unit}"));
    let card = card.as_ref();
    let libraries = libraries.iter().map(|(name, version)| format!("{name} {version}"));
    let libraries = Some(libraries.collect::<Vec<_>>().join(", ")).filter(|all| !all.is_empty());
    let lines = [
        ("device", Some(machine.description.clone())),
        ("SMs, or cores", Some(machine.sms.to_string())),
        ("memory", Some(format!("{:.1} GiB", machine.memory_bytes as f64 / f64::from(1 << 30)))),
        ("driver", card.map(|card| card.driver.clone())),
        ("CUDA of the driver", cuda.clone()),
        ("highest clock of the SMs", card.and_then(|card| of_card(card.sm_mhz_max, "MHz"))),
        ("highest clock of the memory", card.and_then(|card| of_card(card.memory_mhz_max, "MHz"))),
        ("power limit", card.and_then(|card| of_card(card.power_limit_w, "W"))),
        ("libraries", libraries),
        ("program", Some(format!("{}, {} build", machine.version, machine.profile))),
        ("commit", machine.commit.clone()),
        ("command", Some(format!("`{}`", machine.command))),
        ("date", Some(machine.date.clone())),
        ("seconds", machine.seconds.map(|seconds| seconds.to_string())),
        ("CPU", machine.cpu.clone().map(|cpu| format!("{cpu}, {} cores", machine.cores))),
        ("system", machine.os.clone()),
    ];
    lines.into_iter().filter_map(|(what, is)| Some(vec![what.to_owned(), is?])).collect()
}

/// A table of Markdown.
fn table(text: &mut String, head: &[&str], lines: &[Vec<String>]) {
    let _ = writeln!(text, "| {} |\n|{}", head.join(" | "), "---|".repeat(head.len()));
    for line in lines {
        let cells = line.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
}

/// A list of Markdown, if there is anything in it.
fn list(text: &mut String, head: &str, lines: impl Iterator<Item = String>) {
    for (number, line) in lines.enumerate() {
        if number == 0 {
            let _ = write!(text, "\n## {head}\n\n");
        }
        // An error may have several lines.
        let _ = writeln!(text, "- {}", line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
}
