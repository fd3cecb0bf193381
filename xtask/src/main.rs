//! `cargo xtask`: the project's chores. This file reads arguments and calls; the work is in the library.

use std::{env, path::Path, process::ExitCode};

use anyhow::Result;
use lexopt::prelude::*;
use xtask::{ToolchainAbsent, build_ptx, ci, workspace_root};

const HELP: &str = "\
The project's chores.

Usage: cargo xtask <TASK>

Tasks:
  build-ptx   build the kernels into gpu/ptx, and check the PTX
      --check        compare with gpu/ptx instead of writing it
      --offline      download nothing
      --fetch-ptxas  download NVIDIA's assembler where there is none
  ci          run what CI runs

Options:
  -h, --help  print this

Exit codes: 0 done, 1 a check failed or something does not compile, 2 usage,
3 no compiler for the device (the message says what to install).
";

enum Task {
    Help,
    BuildPtx(build_ptx::Options),
    Ci,
}

fn main() -> ExitCode {
    let task = match arguments() {
        Ok(task) => task,
        Err(error) => {
            eprintln!("error: {error}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match run(task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            // It may be under the context of a step of `ci`.
            ExitCode::from(if error.downcast_ref::<ToolchainAbsent>().is_some() { 3 } else { 1 })
        }
    }
}

fn run(task: Task) -> Result<()> {
    // Cargo says where this package is; the path it was compiled with may be of another checkout.
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let root = || workspace_root(Path::new(&package));
    match task {
        Task::Help => print!("{HELP}"),
        Task::BuildPtx(options) => build_ptx::run(&root()?, options)?,
        Task::Ci => ci::run(&root()?)?,
    }
    Ok(())
}

fn arguments() -> Result<Task, lexopt::Error> {
    let mut parser = lexopt::Parser::from_env();
    let mut task = None;
    while let Some(argument) = parser.next()? {
        match (argument, &mut task) {
            (Short('h') | Long("help"), _) => return Ok(Task::Help),
            (Value(name), None) if name == "build-ptx" => {
                task = Some(Task::BuildPtx(build_ptx::Options::default()));
            }
            (Value(name), None) if name == "ci" => task = Some(Task::Ci),
            (Long("check"), Some(Task::BuildPtx(options))) => options.check = true,
            (Long("offline"), Some(Task::BuildPtx(options))) => options.offline = true,
            (Long("fetch-ptxas"), Some(Task::BuildPtx(options))) => options.fetch_ptxas = true,
            (argument, _) => return Err(argument.unexpected()),
        }
    }
    task.ok_or_else(|| "which task?".into())
}
