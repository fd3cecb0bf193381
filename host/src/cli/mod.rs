//! The command line: what is asked for, who carries it out, and the exit code.

mod args;
mod bench;
mod blur;
mod check;
mod doctor;
mod draw;
mod errors;
mod explain;
mod findings;
mod gemm;
mod ladder;
mod list;
mod plan;
mod profile;
mod run;
mod steps;
mod types;
mod verification;

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use clap::{CommandFactory, Parser};

use self::{
    args::{Command, DeviceChoice, Invocation},
    steps::Steps,
};
use host::Device;

/// How the command ends when it does not end well.
#[derive(Debug)]
enum Failure {
    /// C is wrong, or a kernel: exit 1.
    Wrong,
    /// Something that `doctor` has told is broken: exit 3.
    Environment,
    /// The library's error, which knows its exit code; and the command that shows it again, if that is
    /// worth saying.
    Error(host::Error, Option<String>),
    /// Standard output cannot be written to.
    Output(io::Error),
}

impl From<host::Error> for Failure {
    fn from(error: host::Error) -> Self {
        Failure::Error(error, None)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

/// Carries out the command line and gives its exit code.
pub(crate) fn main() -> ExitCode {
    let invocation = Invocation::parse(); // exits with 2 where it cannot be understood
    end_in_order_on_ctrl_c();
    let mut out = io::stdout().lock();
    let steps = Steps { verbose: invocation.verbose };
    let outcome = match &invocation.command {
        None if invocation.run.plan => plan::plan(&invocation.run, &mut out),
        None => run::run(&invocation.run, steps, &mut out),
        Some(Command::Bench(bench)) => bench::bench(bench, steps, &mut out),
        Some(Command::Errors(args)) => errors::errors(args, steps, &mut out),
        Some(Command::Ladder(args)) => ladder::ladder(args, steps, &mut out),
        Some(Command::Explain(args)) => explain::explain(args, steps, &mut out),
        Some(Command::Check(args)) => check::check(args, steps, &mut out),
        Some(Command::Profile(args)) => profile::profile(args, steps, &mut out),
        Some(Command::Gemm(args)) => gemm::gemm(args, steps, &mut out),
        Some(Command::Blur(args)) => blur::blur(args, steps, &mut out),
        Some(Command::Kernels(list)) => list::kernels(list, &mut out),
        Some(Command::Devices(list)) => list::devices(list, &mut out),
        Some(Command::Doctor(list)) => doctor::doctor(list, &mut out),
        Some(Command::Completions(completions)) => {
            let mut script = Vec::new();
            let mut command = Invocation::command();
            clap_complete::generate(completions.shell, &mut command, "host", &mut script);
            out.write_all(&script).map_err(Failure::Output)
        }
    };
    match outcome.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Wrong) => ExitCode::from(1),
        Err(Failure::Environment) => ExitCode::from(3),
        // Whoever read our output has seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Output(error)) => {
            note(format_args!("error: standard output: {error}"));
            ExitCode::from(4)
        }
        Err(Failure::Error(error, again)) => {
            note(format_args!("error: {error}"));
            if let Some(again) = again {
                note(format_args!("reproduce: {again}"));
            }
            ExitCode::from(error.exit_code())
        }
    }
}

/// The first Ctrl-C ends what is running in order; the second ends the process where it is.
fn end_in_order_on_ctrl_c() {
    static AGAIN: AtomicBool = AtomicBool::new(false);
    let handler = || {
        if AGAIN.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        host::interrupt();
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        note(format_args!("note: Ctrl-C will end the process at once: {error}"));
    }
}

/// The device asked for. A run on the CPU for want of a GPU is never silent about being one.
fn open(choice: DeviceChoice) -> host::Result<Device> {
    let (device, why_no_gpu) = choice.open()?;
    if let Some(why) = why_no_gpu {
        // Most machines without a GPU have no driver: a word is enough for whoever knows that.
        let why = match Device::cuda_version() {
            Err(host::Error::NoDriver { .. }) => "no NVIDIA driver",
            _ => &why,
        };
        note(format_args!("note: {why}; running on the CPU (`doctor` says more)"));
    }
    Ok(device)
}

/// A line on standard error; whether it can be written changes nothing.
fn note(text: std::fmt::Arguments) {
    let _ = writeln!(io::stderr(), "{text}");
}
