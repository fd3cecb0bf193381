//! Limits of files, PTX and builds: each with its measure, the reason, and what to do.
//!
//! Limits are only lowered. Whoever needs more first looks for what can be removed.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};

use crate::{
    build_ptx,
    builder::ptx_files,
    environment::{known_files, output, shown},
    ptx::Module,
};

/// A quantity with a limit.
struct Budget {
    what: &'static str,
    limit: u64,
    unit: &'static str,
    /// Why there is this limit.
    reason: &'static str,
    /// What to do if it is exceeded.
    advice: &'static str,
}

const PTX: Budget = Budget {
    what: "PTX in the repository",
    limit: 7_870_000,
    unit: "bytes",
    reason: "every clone carries it; 33.7 MB before constants were set at load, 7.1 on 2026-11-27, 6.8 since GELU is one function a kernel, 69 KB more for thin products, 33 for sums of partial products, 200 for products of few rows, 690 for the ten rungs on tensor cores, 70 for tiles of few columns, and 6.5 are planned without these",
    advice: "make the new kernel a case of one that there is, by a constant set at load",
};

const KERNELS: Budget = Budget {
    what: "kernels in the PTX",
    limit: 114,
    unit: "kernels",
    reason: "each is compiled for the GPU and twice for the CPU; 93 before those of thin products, two add partial products, three have threads that split k, ten are rungs on tensor cores, two have tiles of few columns, and 80 are planned without these",
    advice: "make the new kernel a case of one that there is, by a constant set at load",
};

const LINES: Budget = Budget {
    what: "lines of a source file",
    limit: 500,
    unit: "lines",
    reason: "a file is one idea, and is read on a few screens",
    advice: "give its second idea a file of its own",
};

const BINARY: Budget = Budget {
    what: "the command, a dev build, stripped",
    limit: 46_000_000,
    unit: "bytes",
    reason: "it is what a user copies; most of it is PTX and kernels compiled for the CPU; 70.8 MB on 2026-11-26, 35.3 MB since kernels have constants",
    advice: "look at what the new code instantiates",
};

const GPU: Budget = Budget {
    what: "compiling crate gpu, dev build",
    limit: 85,
    unit: "CPU seconds",
    reason: "it is half of a newcomer's first command; 62 s on 2026-11-26 with nothing else running, and a third for other machines",
    advice: "instantiate fewer kernels, or inline less on the CPU",
};

impl Budget {
    fn holds(&self, value: u64) -> Result<()> {
        let Budget { what, limit, unit, reason, advice } = self;
        println!("ci: {what}: {value} of {limit} {unit}");
        ensure!(
            value <= *limit,
            "{what}: {value} {unit}, and {limit} are allowed ({reason}). Look first for what can go; {advice}"
        );
        Ok(())
    }
}

/// Checks the limits of the repository's files.
pub fn of_files(root: &Path) -> Result<()> {
    let (mut bytes, mut kernels) = (0, 0);
    for target in build_ptx::TARGETS {
        let folder = root.join(build_ptx::FOLDER).join(target.cpu());
        for path in ptx_files(&folder) {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            bytes += text.len() as u64;
            kernels += Module::parse(&text)?.kernels().count() as u64;
        }
    }
    PTX.holds(bytes)?;
    KERNELS.holds(kernels)?;
    lines(root)
}

/// Checks that no source file is too long.
fn lines(root: &Path) -> Result<()> {
    let mut longest = 0;
    for (name, text) in known_files(root, &["*.rs"])? {
        let lines = text.lines().count() as u64;
        ensure!(
            lines <= LINES.limit,
            "{}: {lines} lines, and {} are allowed ({}): {}",
            shown(&root.join(&name), root),
            LINES.limit,
            LINES.reason,
            LINES.advice
        );
        longest = longest.max(lines);
    }
    LINES.holds(longest)
}

/// Checks the limits of a build: the time of compiling crate `gpu`, and the size of the command.
pub fn of_build(gpu: Option<Duration>, command: &Path) -> Result<()> {
    match gpu {
        Some(took) => GPU.holds(took.as_secs())?,
        None => println!("ci: {}: NOT MEASURED, it was compiled already", GPU.what),
    }
    let stripped = command.with_extension("stripped");
    output(Command::new("strip").arg("--strip-all").arg("-o").arg(&stripped).arg(command))?;
    let bytes = fs::metadata(&stripped).map(|of| of.len());
    let _ = fs::remove_file(&stripped);
    BINARY.holds(bytes.context("the stripped command")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_says_what_to_do() {
        assert!(LINES.holds(500).is_ok());
        let error = LINES.holds(501).unwrap_err().to_string();
        for part in ["501 lines", "500 are allowed", "Look first", "file of its own"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
