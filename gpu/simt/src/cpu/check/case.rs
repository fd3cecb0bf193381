//! Cases: launches that `#[check]` makes a test of, and that `cargo gpu-check` finds.

use std::{
    env,
    fmt::Debug,
    fs::OpenOptions,
    io::{self, Write},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use super::{
    diagnostic::{Diagnostic, quoted},
    finding::{Finding, Kind},
    launch::Options,
    recorded::{Launch, Launches},
    report::Report,
    seen::merge,
};
use crate::{count_of, cpu::order::Order};

/// What the test of a case is called: this, and the name of its function.
pub const PREFIX: &str = "gpu_check_";
/// The variable with the name of a file, to which findings are added: a line of JSON each, and one
/// for each case.
pub const FILE: &str = "GPU_CHECK_FILE";
/// The variable with a part of the names of those cases that are run: module, function and values,
/// as in findings. Others do nothing.
pub const NAME: &str = "GPU_CHECK_NAME";
/// The variable that says where findings are shown: `plain` or `colour`, at standard error; `none`:
/// only in the file. Then a test with findings passes. If it is not set, they are the test's panic.
pub const SHOWN: &str = "GPU_CHECK_SHOWN";
/// How the line of a case begins in the file.
pub const CASE_LINE: &str = "{\"$message_type\":\"case\"";
/// What the line of an error has, and no other.
pub const ERROR_LINE: &str = "\"level\":\"error\"";

/// The orders in which a case is run.
const ORDERS: [Order; 10] = [
    Order::Forward,
    Order::Reverse,
    Order::Random(1),
    Order::Random(2),
    Order::Random(3),
    Order::Random(4),
    Order::Random(5),
    Order::Random(6),
    Order::Random(7),
    Order::Random(8),
];

/// What the function of a case may return.
pub trait Outcome {
    /// The error, if it is one.
    #[doc(hidden)]
    fn error(self) -> Option<String>;
}

impl Outcome for () {
    fn error(self) -> Option<String> {
        None
    }
}

impl Outcome for Report {
    fn error(self) -> Option<String> {
        None
    }
}

impl<T: Outcome, E: Debug> Outcome for Result<T, E> {
    fn error(self) -> Option<String> {
        self.map_or_else(|error| Some(format!("{error:?}")), Outcome::error)
    }
}

/// A launch, the number of its case, and the order.
type Run = (usize, Order, Launch);

/// Runs the cases of a function in each order, and reports what the launches with the given options
/// found. `path`: the function's module and name. `cases`: their values, as in the source.
///
/// # Panics
/// If something was found, with what it is, unless [`SHOWN`] is set. If a case makes no launch with
/// its options, returns an error, or panics without a finding.
pub fn run_cases<R: Outcome>(path: &str, cases: &[&str], run: impl Fn(usize, Options) -> R) {
    let is_asked = env::var_os(FILE).is_some();
    let name = path.rsplit("::").next().unwrap_or(path);
    let name_of = |case: usize| match cases[case] {
        "" => name.to_owned(),
        values if values.starts_with('(') => format!("{name}{values}"),
        value => format!("{name}({value})"),
    };
    let part = env::var(NAME).ok().filter(|_| is_asked);
    let modules = &path[..path.len() - name.len()];
    let is_meant = |case: &usize| match &part {
        Some(part) => format!("{modules}{}", name_of(*case)).contains(part),
        None => true,
    };
    let mut runs = Vec::<Run>::new();
    let (mut failed, mut ran) = (None, Vec::new());
    'cases: for case in (0..cases.len()).filter(is_meant) {
        ran.push(case);
        for order in ORDERS {
            let launches = Launches::default();
            let options = Options { order, launches: Some(&launches), ..Options::default() };
            let ended = catch_unwind(AssertUnwindSafe(|| run(case, options).error()));
            let launches = launches.into_all();
            // What a kernel with a finding computes may be wrong.
            let is_clean = launches.iter().all(|launch| launch.findings.is_empty());
            let launched = !launches.is_empty();
            let mut found = launches.iter().flat_map(|launch| &launch.findings);
            let is_endless = found.any(|finding| finding.kind == Kind::Endless);
            runs.extend(launches.into_iter().map(|launch| (case, order, launch)));
            // It took ten seconds or more, and each further run would.
            if is_endless {
                break 'cases;
            }
            let failure = match ended {
                Err(panic) => Err(panic),
                Ok(Some(error)) => Ok(error),
                Ok(None) if launched => continue,
                Ok(None) => Ok("it makes no checked launch with its `options`".to_owned()),
            };
            if is_clean {
                failed = Some((format!("{}, order {order}", name_of(case)), failure));
                break 'cases;
            }
        }
    }
    let (diagnostics, errors) = diagnostics(&runs, name_of);
    write_to_file(&diagnostics, ran.into_iter().map(name_of));
    let rendered =
        |colours| diagnostics.iter().map(|it| it.rendered(colours) + "\n").collect::<String>();
    let shown = env::var(SHOWN).ok().filter(|_| is_asked);
    if let Some(shown @ ("plain" | "colour")) = shown.as_deref() {
        // Not by `eprint!`, which a test keeps to itself.
        let _ = io::stderr().lock().write_all(rendered(shown == "colour").as_bytes());
    }
    match failed {
        Some((case, Ok(error))) => panic!("{case}: {error}"),
        Some((case, Err(panic))) => {
            eprintln!("this was in {case}");
            resume_unwind(panic)
        }
        None => {}
    }
    assert!(
        errors == 0 || shown.is_some_and(|how| ["plain", "colour", "none"].contains(&&*how)),
        "{} in {name}:\n\n{}",
        count_of(errors, "finding"),
        rendered(false)
    );
}

/// What the runs found, and the number of errors among it.
fn diagnostics(runs: &[Run], name_of: impl Fn(usize) -> String) -> (Vec<Diagnostic>, usize) {
    let found = runs.iter().flat_map(|run| {
        let findings = &run.2.findings;
        let is_cut_off = findings.iter().any(|it| it.kind <= Kind::Endless);
        findings.iter().filter(move |it| !(is_cut_off && is_untouched(it))).map(move |it| (run, it))
    });
    let found = found.collect::<Vec<_>>();
    let seen = merge(found.iter().map(|((_, order, _), finding)| (*order, *finding)));
    let mut diagnostics = Vec::new();
    for seen in &seen {
        let mut like = found.iter().filter(|(_, finding)| seen.finding.is_like(finding)).peekable();
        let kernel = like.peek().map(|(run, _)| run.2.place.clone());
        let mut cases = like.map(|(run, _)| run.0).collect::<Vec<_>>();
        cases.dedup();
        let names = cases.iter().take(3).map(|&case| name_of(case)).collect::<Vec<_>>().join(", ");
        let more = match cases.len().saturating_sub(3) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let found_in = match (seen.finding.kind, &*seen.orders) {
            (Kind::Endless, [order, ..]) => {
                format!("in {names}, order {order}; nothing was run after that")
            }
            _ => format!("in {names}{more}; {}", seen.in_orders(ORDERS.len())),
        };
        diagnostics.extend(kernel.map(|kernel| Diagnostic::of(seen, kernel, found_in)));
    }
    let errors = diagnostics.len();
    let mut limits = Vec::new();
    for limit in runs.iter().flat_map(|run| &run.2.limits) {
        if !limits.contains(limit) {
            limits.push(*limit);
            let message = format!("limit reached: {}", limit.says());
            diagnostics.push(Diagnostic::note("warning", message));
        }
    }
    (diagnostics, errors)
}

/// Whether it only says what a launch has not done. After one that was cut off it says nothing.
fn is_untouched(finding: &Finding) -> bool {
    matches!(finding.kind, Kind::NeverRead | Kind::NeverWritten)
}

/// Adds what was found to the file, if one is named, and a line for each case.
fn write_to_file(diagnostics: &[Diagnostic], cases: impl Iterator<Item = String>) {
    let Some(path) = env::var_os(FILE) else { return };
    let mut lines = diagnostics.iter().map(Diagnostic::json).collect::<String>();
    lines.extend(cases.map(|case| format!("{CASE_LINE},\"name\":{}}}\n", quoted(&case))));
    let file = OpenOptions::new().append(true).create(true).open(&path);
    if let Err(error) = file.and_then(|mut file| file.write_all(lines.as_bytes())) {
        panic!("{FILE} = {}: {error}", path.display());
    }
}
