//! Progress on standard error: a bar on a terminal, lines with `--verbose`, otherwise a line for
//! each long part.

use std::{
    fmt::Write,
    io::{self, IsTerminal},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use simt::cpu::gives_a_thread;

use super::{duration::duration, note};

/// How to show progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// Also print a line before and after each step. So it is known which step hangs or was
    /// interrupted.
    pub(super) verbose: bool,
}

impl Steps {
    /// Announces a long part, if there is neither a bar nor a line for each step.
    pub(super) fn part(self, what: &str) {
        if !self.verbose && !io::stderr().is_terminal() {
            note(format_args!("{what} ..."));
        }
    }

    /// Runs a step, and shows how much of it is done.
    pub(super) fn step<T, E>(
        self,
        name: &str,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.step_with(name, percent, work)
    }

    /// As [`step`](Steps::step), with its own text for how much is done.
    pub(super) fn step_with<T, E>(
        self,
        name: &str,
        how_far: impl Fn() -> String + Send + Sync + 'static,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let begun = self.begin(name, Arc::new(how_far));
        let outcome = work();
        begun.end(name, outcome.is_ok());
        outcome
    }

    fn begin(self, name: &str, how_far: Arc<dyn Fn() -> String + Send + Sync>) -> Begun {
        if self.verbose {
            note(format_args!("{name} ..."));
        }
        Begun { steps: self, bar: bar(name, how_far), begin: Instant::now() }
    }
}

/// A step that runs.
struct Begun {
    steps: Steps,
    bar: ProgressBar,
    begin: Instant,
}

impl Begun {
    fn end(self, name: &str, is_ok: bool) {
        let Begun { steps, bar, begin } = self;
        bar.finish_and_clear();
        if steps.verbose {
            let time = duration(begin.elapsed().as_secs_f64() * 1e6);
            match is_ok {
                true => note(format_args!("{name}: {time}")),
                false => note(format_args!("{name}: ended early, after {time}")),
            }
        }
    }
}

/// The percentage of the current launch or comparison.
fn percent() -> String {
    match host::progress() {
        // Work that has just started may not have set its total yet.
        (done, total) if 0 < done && done < total => format!("{} %", 100 * done / total),
        _ => String::new(),
    }
}

/// A progress bar, hidden if standard error is no terminal.
fn bar(name: &str, how_far: Arc<dyn Fn() -> String + Send + Sync>) -> ProgressBar {
    let how_far = move |state: &ProgressState, out: &mut dyn Write| {
        // Short steps need no bar.
        if state.elapsed() > Duration::from_millis(500) {
            let _ = out.write_str(&how_far());
        }
    };
    let style = ProgressStyle::with_template("{spinner} {msg} {how_far} {elapsed}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_message(name.to_owned());
    bar.set_style(style.with_key("how_far", how_far));
    // A thread of its own moves the bar. The process would end if no thread could be started, so
    // that is checked first.
    if !bar.is_hidden() && gives_a_thread() && thread::Builder::new().spawn(|| ()).is_ok() {
        bar.enable_steady_tick(Duration::from_millis(120));
    }
    bar
}
