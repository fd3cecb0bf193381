//! Limits of files, PTX and builds: each with its measure, the reason, and what to do.
//!
//! A limit guides. It is on what costs somebody something, and leaves room for what is planned.
//! Whoever needs more looks first for what can go, and then raises it with the reason in its row.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};

use crate::{
    build_ptx,
    builder::ptx_files,
    environment::{known_files, output, say, shown},
    ptx_commits,
    times::Cost,
};

/// A quantity with a limit.
pub(crate) struct Budget {
    pub what: &'static str,
    pub limit: u64,
    pub unit: &'static str,
    /// Why there is this limit.
    pub reason: &'static str,
    /// What to do if it is exceeded.
    pub advice: &'static str,
}

const PTX: Budget = Budget {
    what: "PTX in the repository",
    limit: 14_100_000,
    unit: "bytes",
    reason: "every clone and, packed, every program carries it; 7.9 MB on 2026-11-28; 13.64 MB on 2026-11-30; 0.37 MB for i8 on the tensor cores of other GPUs",
    advice: "make the new kernel a case of one that there is, by a constant set at load",
};

const MEDIAN_DESIGN: Budget = Budget {
    what: "PTX of a design, the median",
    limit: 90_000,
    unit: "bytes",
    reason: "it is read by people, and compiled by the driver at each load; 60 KB on 2026-11-28",
    advice: "unroll less, or set at load what the copies of the code differ in",
};

const LARGEST_DESIGN: Budget = Budget {
    what: "PTX of a design, the largest",
    limit: 440_000,
    unit: "bytes",
    reason: "the driver compiles it at its first load, and longer than in proportion; 436 KB on 2026-11-28",
    advice: "unroll less, or set at load what the copies of the code differ in",
};

const LINES: Budget = Budget {
    what: "lines of a source file",
    limit: 500,
    unit: "lines",
    reason: "a file is one idea, and is read on a few screens",
    advice: "give its second idea a file of its own",
};

const TREE: Budget = Budget {
    what: "lines of Rust",
    limit: 192_800,
    unit: "lines",
    reason: "all of it is read and kept right, tests and comments too; 154,595 on 2026-11-28; 180,000 with what was planned before i8; files over several devices took 1,000, products over MPI 2,400, e4m3 and e5m2 1,250, their scales 750, scales in Python, batches and bench 900, i8 with a C of floats 150, the fit of the selection 700, code without types that was generic 250, words and messages that readers missed 250, times on eleven cards 500, assembly for seven architectures and a report of a card 850, scales over several devices and functions for C 850; tests lost 1,500; numbers of 8 bits made from others 1,150, f32 by fragments 350; i8 on other GPUs and their transpose 550, and tests lost 600",
    advice: "make one text of two",
};

const BINARY: Budget = Budget {
    what: "the command, a dev build, stripped",
    limit: 37_300_000,
    unit: "bytes",
    reason: "it is what a user copies; most of it is PTX and kernels compiled for the CPU; 70.8 MB on 2026-11-26, 30.1 MB on 2026-11-29; 39.4 MB with the six pairs of types of e4m3 and e5m2, 32.8 MB on 2026-11-30, since what needs no types is compiled once; 36.1 with i8 and a C of floats, before four kernels went; 36.7 with two kernels of tf32 in the loop of f64, scales watched, and report; 37.2 with i8 on the tensor cores of other GPUs",
    advice: "look at what the new code instantiates",
};

const FIRST_COMMAND: Budget = Budget {
    what: "the first command in a fresh clone",
    limit: 200,
    unit: "CPU seconds",
    reason: "a newcomer waits for it; 153 on 2026-11-29, and 218 the day before; 158 to 183 on 2026-11-30, with fp8, i8 with a C of floats and their scales",
    advice: "instantiate fewer kernels, inline less on the CPU, or have fewer dependencies",
};

const TESTS: Budget = Budget {
    what: "cargo test, after the first command",
    limit: 1_300,
    unit: "CPU seconds",
    reason: "nobody runs tests that take long; 1117 on 2026-11-29, before tuned products and the kernels of f64 by TMA",
    advice: "look in docs/testing/times.md for what takes longest: a smaller case that finds the same fault",
};

const CI: Budget = Budget {
    what: "`.ci/run` on two cores",
    limit: 32,
    unit: "minutes",
    reason: "a change waits for it; 28 on 2026-11-29",
    advice: "look at the times of the steps above",
};

impl Budget {
    pub(crate) fn holds(&self, value: u64) -> Result<()> {
        let Budget { what, limit, unit, reason, advice } = self;
        say(&format!("ci: {what}: {value} of {limit} {unit}\n"))?;
        ensure!(
            value <= *limit,
            "{what}: {value} {unit}, and {limit} are allowed ({reason}). Look first for what can go; {advice}"
        );
        Ok(())
    }

    fn was_not_measured(&self, why: &str) -> Result<()> {
        say(&format!("ci: {}: NOT MEASURED: {why}\n", self.what))
    }
}

/// Checks the limits of the repository's files, and of the changes to its PTX.
pub fn of_files(root: &Path) -> Result<()> {
    of_designs(designs(root)?)?;
    ptx_commits::check(root)?;
    lines(root)
}

/// The sizes of the designs' PTX: a file each.
///
/// # Errors
/// A target without PTX: its budgets would hold, wherever the files are.
fn designs(root: &Path) -> Result<Vec<u64>> {
    let mut designs = Vec::new();
    for target in build_ptx::TARGETS {
        let folder = root.join(build_ptx::FOLDER).join(target.cpu());
        let paths = ptx_files(&folder)?;
        ensure!(!paths.is_empty(), "there is no PTX in {}", folder.display());
        for path in paths {
            let size = fs::metadata(&path).map(|of| of.len());
            designs.push(size.with_context(|| format!("cannot read {}", path.display()))?);
        }
    }
    Ok(designs)
}

/// Checks the sizes of the designs' PTX: a file each.
fn of_designs(mut sizes: Vec<u64>) -> Result<()> {
    sizes.sort_unstable();
    PTX.holds(sizes.iter().sum())?;
    LARGEST_DESIGN.holds(sizes.last().copied().unwrap_or(0))?;
    MEDIAN_DESIGN.holds(sizes.get(sizes.len() / 2).copied().unwrap_or(0))
}

/// Checks that no source file is too long, nor all together.
fn lines(root: &Path) -> Result<()> {
    let (mut longest, mut all) = (0, 0);
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
        all += lines;
    }
    LINES.holds(longest)?;
    TREE.holds(all)
}

/// Seconds on the machine of the limits, for these here.
fn there(seconds: u64, slowness: Option<f64>) -> Result<u64> {
    let Some(slowness) = slowness else {
        say(&format!("ci: {seconds} s here; how slow this machine is was not measured\n"))?;
        return Ok(seconds);
    };
    say(&format!(
        "ci: {seconds} s here; this machine is {slowness:.2} times as slow as that of the limits\n"
    ))?;
    Ok((seconds as f64 / slowness) as u64)
}

/// Checks the cost of the first command, where it has compiled all that it needs, and the size of
/// what it has built. `slowness`: the machine's, which was measured by that.
pub fn of_first_command(cost: Cost, slowness: Option<f64>, command: &Path) -> Result<()> {
    match slowness {
        Some(_) => FIRST_COMMAND.holds(there(cost.cpu.as_secs(), slowness)?)?,
        None => FIRST_COMMAND.was_not_measured("something was compiled already")?,
    }
    let stripped = command.with_extension("stripped");
    output(Command::new("strip").arg("--strip-all").arg("-o").arg(&stripped).arg(command))?;
    let bytes = fs::metadata(&stripped).map(|of| of.len());
    let _ = fs::remove_file(&stripped);
    BINARY.holds(bytes.context("the stripped command")?)
}

/// Checks the cost of building and running the tests, where they were built.
pub fn of_tests(cost: Cost, has_compiled: bool, slowness: Option<f64>) -> Result<()> {
    match has_compiled {
        true => TESTS.holds(there(cost.cpu.as_secs(), slowness)?),
        false => TESTS.was_not_measured("the tests were compiled already"),
    }
}

/// Checks the time of all of CI. On a developer's machine other things run too, so there it is only
/// told.
pub fn of_ci(wall: Duration, cores: usize, is_ci: bool, slowness: Option<f64>) -> Result<()> {
    let minutes = wall.as_secs_f64() / 60.0;
    match cores {
        0 | 1 => CI.was_not_measured("there is one core"),
        _ if is_ci => CI.holds(there(wall.as_secs(), slowness)?.div_ceil(60)),
        _ => CI.was_not_measured(&format!("CI is not set. It took {minutes:.1} on {cores} cores")),
    }
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

    #[test]
    fn a_target_without_ptx_holds_no_budget() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let of =
            |target: usize| root.join(build_ptx::FOLDER).join(build_ptx::TARGETS[target].cpu());
        for target in 0..build_ptx::TARGETS.len() {
            let error = designs(root).unwrap_err().to_string();
            assert!(error.starts_with("cannot read the folder"), "{error}");
            fs::create_dir_all(of(target)).unwrap();
            let error = designs(root).unwrap_err().to_string();
            assert!(error.starts_with("there is no PTX in"), "{error}");
            fs::write(of(target).join("a.ptx"), "abc").unwrap();
        }
        assert_eq!(designs(root).unwrap(), vec![3; build_ptx::TARGETS.len()]);
    }

    #[test]
    fn a_design_may_be_large_and_most_may_not() {
        let sizes =
            |[small, large]: [usize; 2]| [vec![60_000; small], vec![440_000; large]].concat();
        assert!(of_designs(sizes([11, 10])).is_ok());
        // Neither their number nor their order counts.
        assert!(of_designs(sizes([200, 4])).is_ok());
        let error = of_designs(sizes([10, 11])).unwrap_err().to_string();
        assert!(error.starts_with("PTX of a design, the median: 440000 bytes"), "{error}");
        let error = of_designs(vec![1, 440_001, 2]).unwrap_err().to_string();
        assert!(error.starts_with("PTX of a design, the largest: 440001 bytes"), "{error}");
        let error = of_designs(vec![80_000; 177]).unwrap_err().to_string();
        assert!(error.starts_with("PTX in the repository: 14160000 bytes"), "{error}");
    }

    #[test]
    fn what_was_compiled_before_is_not_measured() {
        let cost = |seconds| Cost { wall: Duration::ZERO, cpu: Duration::from_secs(seconds) };
        assert!(of_tests(cost(1_300), true, None).is_ok());
        assert!(of_tests(cost(2_600), true, Some(2.0)).is_ok());
        assert!(of_tests(cost(9_999), false, None).is_ok());
        let error = TESTS.holds(1_301).unwrap_err().to_string();
        assert!(error.contains("1301 CPU seconds, and 1300 are allowed"), "{error}");
        // Twice as slow a machine is no excuse for more than twice the time.
        let error = of_tests(cost(2_602), true, Some(2.0)).unwrap_err().to_string();
        assert!(error.contains("CPU seconds, and 1300 are allowed"), "{error}");
    }

    #[test]
    fn a_change_waits_so_long_in_ci_alone() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert!(of_ci(minutes(32), 2, true, None).is_ok());
        assert!(of_ci(minutes(33), 2, true, None).is_err());
        assert!(of_ci(minutes(64), 2, true, Some(2.0)).is_ok());
        assert!(of_ci(minutes(65), 2, true, Some(2.0)).is_err());
        assert!(of_ci(minutes(90), 2, false, None).is_ok());
        assert!(of_ci(minutes(90), 1, true, None).is_ok());
    }
}
