//! `cargo xtask fit`: finds the figures by which kernels are selected (docs/design/selection.md).

mod descent;
mod figures;
mod record;

use std::{
    fs,
    io::{Write as _, stdout},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use lexopt::prelude::*;

use crate::record::{Measured, read, report};

const HELP: &str = "\
Fits the figures by which kernels are selected to records of all candidates, so that the choice loses little.

Usage: cargo xtask fit RECORD.. [--write] [--judge RECORD..]

A record is the results.csv of `bench --all-candidates`. The loss of a product is the time of the kernel that
is selected among those timed, over that of the fastest. Paths begin at the repository's root.

Options:
  --judge RECORD..  print the loss at these, too, before and after; alone: the loss as it is
  --write           write the figures to gpu/src/kernels/*/table.rs
  -h, --help        print help
";

fn main() -> Result<()> {
    let (mut parser, mut fitted, mut judged) = (lexopt::Parser::from_env(), vec![], vec![]);
    let mut writes = false;
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return say(HELP),
            Long("write") => writes = true,
            Long("judge") => judged.extend(parser.values()?.map(PathBuf::from)),
            Value(record) => fitted.push(record.into()),
            _ => return Err(argument.unexpected().into()),
        }
    }
    ensure!(fitted.len() + judged.len() > 0, "which records? --help says more");
    ensure!(!writes || !fitted.is_empty(), "--write needs records to fit to");
    let all = |paths: &[PathBuf]| -> Result<Vec<Measured>> {
        let mut all = Vec::new();
        for path in paths {
            let text = fs::read_to_string(path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            all.extend(read(&path.display().to_string(), &text)?);
        }
        Ok(all)
    };
    let (fitted, judged, known) = (all(&fitted)?, all(&judged)?, figures::known());
    let figures = descent::fitted(&fitted, &known);
    let after = (!fitted.is_empty()).then_some(("after", &figures));
    for (when, figures) in [("before", &known)].into_iter().chain(after) {
        say(&report(&format!("fitted, {when}"), &fitted, figures))?;
        say(&report(&format!("judged, {when}"), &judged, figures))?;
    }
    // Cargo says where the checkout is that is built.
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    if writes { figures::write(&Path::new(&package).join("../.."), &figures) } else { Ok(()) }
}

fn say(text: &str) -> Result<()> {
    stdout().write_all(text.as_bytes()).context("standard output")
}
