//! What is being done, on standard error: a bar on a terminal, lines with `--verbose`, and elsewhere a line for each part of what is long.

use std::{
    fmt::Write,
    io::{self, IsTerminal},
    thread,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use simt::cpu::gives_a_thread;

use super::{duration::duration, note};

/// How to tell of steps that may take a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// On lines of their own too: each before it begins, so that it is known which one hangs or was
    /// interrupted, and when it has ended.
    pub(super) verbose: bool,
}

impl Steps {
    /// Says that one of several long parts begins, where no bar is seen and no step has a line.
    pub(super) fn part(self, what: &str) {
        if !self.verbose && !io::stderr().is_terminal() {
            note(format_args!("{what} ..."));
        }
    }

    /// Does something, shown while it lasts with how much of it is done, where that is known.
    pub(super) fn step<T, E>(
        self,
        name: &str,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.step_with(name, percent, work)
    }

    /// As [`step`](Steps::step), with words of its own for how far it is.
    pub(super) fn step_with<T, E>(
        self,
        name: &str,
        how_far: impl Fn() -> String + Clone + Send + Sync + 'static,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        if self.verbose {
            note(format_args!("{name} ..."));
        }
        let bar = bar(name, how_far);
        let begin = Instant::now();
        let outcome = work();
        bar.finish_and_clear();
        if self.verbose {
            let time = duration(begin.elapsed().as_secs_f64() * 1e6);
            match outcome {
                Ok(_) => note(format_args!("{name}: {time}")),
                Err(_) => note(format_args!("{name}: ended early, after {time}")),
            }
        }
        outcome
    }
}

/// Of the launch or the comparison that was begun last.
fn percent() -> String {
    match host::progress() {
        // What has just begun has not said yet of how many parts it is.
        (done, total) if 0 < done && done < total => format!("{} %", 100 * done / total),
        _ => String::new(),
    }
}

/// A line that moves, hidden where standard error is no terminal.
fn bar(name: &str, how_far: impl Fn() -> String + Clone + Send + Sync + 'static) -> ProgressBar {
    let how_far = move |state: &ProgressState, out: &mut dyn Write| {
        // What is soon over need not flicker.
        if state.elapsed() > Duration::from_millis(500) {
            let _ = out.write_str(&how_far());
        }
    };
    let style = ProgressStyle::with_template("{spinner} {msg} {how_far} {elapsed}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_message(name.to_owned());
    bar.set_style(style.with_key("how_far", how_far));
    // It is moved by a thread of its own, and ends the process where there is none.
    if !bar.is_hidden() && gives_a_thread() && thread::Builder::new().spawn(|| ()).is_ok() {
        bar.enable_steady_tick(Duration::from_millis(120));
    }
    bar
}
