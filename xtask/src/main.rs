//! `cargo xtask`: the project's chores. This file reads arguments and calls; the work is in the library.

use std::{env, path::Path, process::ExitCode};

use anyhow::Result;
use lexopt::prelude::*;
use xtask::{ToolchainAbsent, build_ptx, ci, doctor, inspect, workspace_root};

const HELP: &str = "\
The project's chores.

Usage: cargo xtask <TASK>

Tasks:
  build-ptx   build the kernels into gpu/ptx, and check the PTX
      --check        compare with gpu/ptx instead of writing it
      --offline      download nothing
      --fetch-ptxas  download NVIDIA's assembler where there is none
  inspect KERNEL
              what a kernel came to: registers, occupancy, instructions, main loop
      --target NAME  sm_80 or sm_90a (the default)
      --ptx          print its PTX too, the main loop marked
      --sass         print its machine code too, the main loop marked
      --json         one JSON object
      --fetch        download NVIDIA's assembler and disassembler where there are none
  doctor      what this machine has for building and running kernels, and what is wrong
      --json         one JSON object a line
      --offline      let cargo download nothing
  ci          run what CI runs

Options:
  -h, --help  print this

Exit codes: 0 done, 1 a check failed or something does not compile, 2 usage or no such kernel,
3 no compiler for the device, or doctor found something to mend (the message says what to do).
";

enum Task {
    Help,
    BuildPtx(build_ptx::Options),
    Inspect(inspect::Options),
    Doctor(doctor::Options),
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
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            // They may be under the context of a step of `ci`.
            ExitCode::from(match () {
                _ if error.downcast_ref::<inspect::UnknownKernel>().is_some() => 2,
                _ if error.downcast_ref::<ToolchainAbsent>().is_some() => 3,
                _ => 1,
            })
        }
    }
}

fn run(task: Task) -> Result<ExitCode> {
    // Cargo says where this package is; the path it was compiled with may be of another checkout.
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let root = || workspace_root(Path::new(&package));
    match task {
        Task::Help => print!("{HELP}"),
        Task::BuildPtx(options) => build_ptx::run(&root()?, options)?,
        Task::Inspect(options) => inspect::run(&root()?, &options)?,
        Task::Doctor(options) => return Ok(doctor::run(&root()?, options).exit_code()),
        Task::Ci => ci::run(&root()?)?,
    }
    Ok(ExitCode::SUCCESS)
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
            (Value(name), None) if name == "inspect" => {
                task = Some(Task::Inspect(inspect::Options::default()));
            }
            (Value(name), None) if name == "doctor" => {
                task = Some(Task::Doctor(doctor::Options::default()));
            }
            (Value(name), None) if name == "ci" => task = Some(Task::Ci),
            (Long("check"), Some(Task::BuildPtx(options))) => options.check = true,
            (Long("offline"), Some(Task::BuildPtx(options))) => options.offline = true,
            (Long("fetch-ptxas"), Some(Task::BuildPtx(options))) => options.fetch_ptxas = true,
            (Value(name), Some(Task::Inspect(options))) if options.kernel.is_empty() => {
                options.kernel = name.string()?;
            }
            (Long("target"), Some(Task::Inspect(options))) => {
                options.target = parser.value()?.parse_with(inspect::target)?;
            }
            (Long("ptx"), Some(Task::Inspect(options))) => options.ptx = true,
            (Long("sass"), Some(Task::Inspect(options))) => options.sass = true,
            (Long("json"), Some(Task::Inspect(options))) => options.json = true,
            (Long("fetch"), Some(Task::Inspect(options))) => options.fetch = true,
            (Long("json"), Some(Task::Doctor(options))) => options.json = true,
            (Long("offline"), Some(Task::Doctor(options))) => options.offline = true,
            (argument, _) => return Err(argument.unexpected()),
        }
    }
    match task {
        Some(Task::Inspect(options)) if options.kernel.is_empty() => {
            Err("inspect which kernel?".into())
        }
        Some(task) => Ok(task),
        None => Err("which task?".into()),
    }
}
