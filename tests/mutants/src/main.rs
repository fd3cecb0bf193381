//! `cargo xtask mutants`, which runs this.

#![warn(clippy::print_stderr, clippy::print_stdout)] // they panic: `said` does not

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use lexopt::{Arg::Long, Parser, ValueExt};
use mutants::{
    Options,
    said::{note, say},
};

const USAGE: &str = "\
Makes mistakes in the kernels, one at a time, and counts how many are found, and by whom

Usage: cargo xtask mutants [OPTIONS]

      --file TEXT      those of files with TEXT in their path, such as wgmma/main_loop
      --only TEXT      those with TEXT in their name
      --changed [REV]  those of functions that are not so in revision REV (HEAD)
      --stale          those of files that have changed since the table's row was written
      --sample N       N of each file, four times as many where it has changed
      --list           names alone; nothing is run
      --json           a JSON object a line
      --jobs N         how many run at once
      --build          builds the program for these and runs nothing
      --built          runs the program that was built for the same options; it needs no Rust
      --from FILE      runs nothing, and takes what such a run printed with --json
      --write          renews the rows of tests/mutants/record.txt
  -h, --help           this
";

fn options() -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options::default();
    let mut parser = Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("file") => options.file = Some(parser.value()?.string()?),
            Long("only") => options.only = Some(parser.value()?.string()?),
            Long("changed") => {
                let revision = parser.optional_value().map(ValueExt::string).transpose()?;
                let next = parser.try_raw_args();
                let next = next
                    .and_then(|mut raw| raw.next_if(|arg| !arg.to_string_lossy().starts_with('-')));
                let next = next.map(ValueExt::string).transpose()?;
                options.changed = revision.or(next).or(Some("HEAD".into()));
            }
            Long("stale") => options.stale = true,
            Long("sample") => options.sample = Some(parser.value()?.parse()?),
            Long("list") => options.list = true,
            Long("json") => options.json = true,
            Long("jobs") => options.jobs = Some(parser.value()?.parse()?),
            Long("build") => options.build = true,
            Long("built") => options.built = true,
            Long("from") => options.from = Some(parser.value()?.into()),
            Long("write") => options.write = true,
            Long("help") | lexopt::Arg::Short('h') => return Ok(None),
            _ => return Err(arg.unexpected()),
        }
    }
    Ok(Some(options))
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(Some(options)) => options,
        Ok(None) => return ended(say(USAGE)),
        Err(error) => {
            note(&format!("error: {error}\n\n{USAGE}\n"));
            return ExitCode::from(2);
        }
    };
    // The folder of the compilation. On a machine without Rust, the current folder.
    let compiled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = if compiled.exists() { compiled } else { PathBuf::from(".") };
    let done = root.canonicalize().context("the project's folder");
    let done = done.and_then(|root| mutants::run(&root, &options));
    ended(done)
}

fn ended(done: Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("error: {error:#}\n"));
            ExitCode::FAILURE
        }
    }
}
