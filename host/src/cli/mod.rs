//! The command line: parses it, runs the subcommand, and gives the exit code.

mod args;
mod bench;
mod blur;
mod check;
mod device;
mod doctor;
mod draw;
mod duration;
mod errors;
mod explain;
mod failure;
mod families;
mod findings;
mod gemm;
mod kernels;
mod ladder;
mod list;
mod memory;
mod note;
mod page;
mod plan;
mod profile;
mod run;
mod several;
#[cfg(unix)]
mod signals;
mod spare;
mod steps;
mod tour;
mod types;
mod verification;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{CommandFactory, Parser};

use self::{
    args::{Command, Invocation},
    device::open,
    failure::Failure,
    note::note,
    spare::spare_inputs,
    steps::Steps,
};

/// What the command says where nothing was asked of it.
const BARE: &str = "\
error: neither sizes nor a subcommand. Begin with one of
  cargo run -p host -- --m 1000 --n 700 --k 513   multiply two matrices, verify the product, time it
  cargo run -p host -- tour                       two minutes: a kernel, its sectors, a race, three rungs
  cargo run -p host -- --help                     everything else";

/// Runs the command line, and gives its exit code.
pub(crate) fn main() -> ExitCode {
    #[cfg(target_env = "gnu")]
    crate::allocator::share_what_is_limited();
    if std::env::args_os().len() <= 1 {
        note(format_args!("{BARE}"));
        return ExitCode::from(2);
    }
    let invocation = match Invocation::try_parse() {
        Ok(invocation) => invocation,
        Err(refused) => return ended(told(&refused)),
    };
    #[cfg(unix)]
    if let Err(error) = signals::watch().and_then(|()| crate::allocator::end_in_order_on_abort()) {
        note(format_args!("note: Ctrl-C and other signals will end the process at once: {error}"));
    }
    let mut out = io::stdout().lock();
    let steps = Steps { verbose: invocation.verbose };
    let outcome = match &invocation.command {
        None if invocation.run.plan => match invocation.run.devices {
            Some(devices) => several::plan(&invocation.run, devices, &mut out),
            None => plan::plan(&invocation.run, &mut out),
        },
        None => run::run(&invocation.run, steps, &mut out),
        Some(Command::Bench(bench)) => bench::bench(bench, steps, &mut out),
        Some(Command::Errors(args)) => errors::errors(args, steps, &mut out),
        Some(Command::Tour) => tour::tour(steps, &mut out),
        Some(Command::Ladder(args)) => ladder::ladder(args, steps, &mut out),
        Some(Command::Explain(args)) => explain::explain(args, steps, &mut out),
        Some(Command::Check(args)) => check::check(args, steps, &mut out),
        Some(Command::Profile(args)) => profile::profile(args, steps, &mut out),
        Some(Command::Gemm(args)) => gemm::gemm(args, steps, &mut out),
        Some(Command::Blur(args)) => blur::blur(args, steps, &mut out),
        Some(Command::Kernels(args)) => kernels::kernels(args, &mut out),
        Some(Command::Devices(list)) => list::devices(list, &mut out),
        Some(Command::Doctor(list)) => doctor::doctor(list, &mut out),
        Some(Command::Report(args)) => bench::report(args, steps, &mut out),
        Some(Command::Completions(completions)) => {
            let mut script = Vec::new();
            let mut command = Invocation::command();
            clap_complete::generate(completions.shell, &mut command, "host", &mut script);
            out.write_all(&script).map_err(Failure::Output)
        }
    };
    ended(outcome.and_then(|()| Ok(out.flush()?)).map(|()| ExitCode::SUCCESS))
}

/// Prints the help or the version, or what is wrong with the command line.
fn told(refused: &clap::Error) -> Result<ExitCode, Failure> {
    if refused.use_stderr() {
        let _ = refused.print();
    } else {
        refused.print()?;
        io::stdout().flush()?;
    }
    Ok(ExitCode::from(u8::try_from(refused.exit_code()).unwrap_or(2)))
}

/// The exit code, and the message of a failure.
fn ended(outcome: Result<ExitCode, Failure>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(Failure::Wrong) => ExitCode::from(1),
        Err(Failure::Environment) => ExitCode::from(3),
        // The reader of the output has closed it.
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
            #[cfg(unix)]
            if matches!(error, host::Error::Interrupted) {
                signals::ended_in_order();
            }
            ExitCode::from(error.exit_code())
        }
    }
}
