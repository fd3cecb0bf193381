//! Times of each crate's compilation, each test program, and each step of CI.
//!
//! If `RUSTC_WRAPPER` is this program, it records the time of each call of the compiler.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write as _,
    ops::Add,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::environment::{cargo, note, output, target_folder};

/// The file that records calls of the compiler.
const LOG: &str = "XTASK_TIMES";

/// The document with the table.
const DOCUMENT: &str = "docs/testing/times.md";

/// The time that something took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Wall time.
    pub wall: Duration,
    /// Time of all processors, user and system.
    pub cpu: Duration,
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost { wall: self.wall + other.wall, cpu: self.cpu + other.cpu }
    }
}

impl Cost {
    /// The time of a call that waits for the processes that it starts. This process's own work does
    /// not count.
    pub fn of<T>(run: impl FnOnce() -> T) -> (T, Self) {
        let (start, before) = (Instant::now(), children());
        let result = run();
        (result, Cost { wall: start.elapsed(), cpu: children().saturating_sub(before) })
    }
}

/// The time of all child processes that have been waited for, with their children.
fn children() -> Duration {
    // SAFETY: a struct of integers, for which zeros are valid. The call fills it in.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let of = |time: libc::timeval| {
        Duration::new(time.tv_sec as u64, 0) + Duration::from_micros(time.tv_usec as u64)
    };
    of(usage.ru_utime) + of(usage.ru_stime)
}

/// Makes a cargo record the times of its calls of the compiler.
pub fn recorded<'c>(command: &'c mut Command, log: &Path) -> Result<&'c mut Command> {
    let own = env::current_exe().context("which program is this?")?;
    Ok(command.env("RUSTC_WRAPPER", own).env(LOG, log))
}

/// If this process stands for the compiler: calls it, and records the time.
pub fn as_compiler() -> Option<ExitCode> {
    let log = env::var_os(LOG)?;
    let mut args = env::args_os().skip(1);
    let compiler = args.next().filter(|name| Path::new(name).ends_with("rustc"))?;
    let args = args.collect::<Vec<_>>();
    let (status, cost) = Cost::of(|| Command::new(compiler).args(&args).status());
    let value = |flag: &str| {
        let at = args.iter().position(|arg| arg == flag)?;
        args.get(at + 1).map(|value| value.to_string_lossy().into_owned())
    };
    if let Some(name) = value("--crate-name").filter(|name| name != "___") {
        let kind = match args.iter().any(|arg| arg == "--test") {
            true => "test".into(),
            false => value("--crate-type").unwrap_or_default(),
        };
        let line = format!(
            "{name}\t{kind}\t{:.2}\t{:.2}\n",
            cost.wall.as_secs_f64(),
            cost.cpu.as_secs_f64()
        );
        // A missing line in the table is no reason to fail a build.
        let _ = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .and_then(|mut file| file.write_all(line.as_bytes()));
    }
    match status {
        Ok(status) => Some(ExitCode::from(status.code().unwrap_or(1) as u8)),
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// A call of the compiler: the crate's name, its kind, and the time.
pub type Compilation = (String, String, Cost);

/// The recorded compilations of a build.
pub fn compilations(log: &Path) -> Result<Vec<Compilation>> {
    let text = fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
    let line = |line: &str| {
        let mut cells = line.split('\t');
        let (name, kind) = (cells.next()?.to_owned(), cells.next()?.to_owned());
        let mut seconds = || Some(Duration::from_secs_f64(cells.next()?.parse().ok()?));
        Some((name, kind, Cost { wall: seconds()?, cpu: seconds()? }))
    };
    Ok(text.lines().filter_map(line).collect())
}

/// Builds the workspace in `root` anew in a folder of its own, runs each test program, and writes
/// the table.
pub fn run(root: &Path) -> Result<()> {
    let target = target_folder(root).join("times");
    let log = target.join("compilations.tsv");
    let _ = fs::remove_dir_all(&target);
    fs::create_dir_all(&target)?;
    let mut build = Command::new(cargo());
    build.current_dir(root).stdout(Stdio::piped());
    build.args(["test", "--workspace", "--no-run", "--message-format", "json", "--target-dir"]);
    recorded(build.arg(&target), &log)?;
    let (built, all) = Cost::of(|| build.output());
    let built = built.context("cannot run cargo")?;
    ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut text = String::new();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let line = |command: &mut Command| output(command).map(|text| text.trim().to_owned());
    let commit =
        line(Command::new("git").current_dir(root).args(["rev-parse", "--short", "HEAD"]))?;
    let date = line(Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
    let _ = write!(
        text,
        "# What takes how long\n\nWritten by `cargo xtask times`. {date}, commit {commit}, {cores} cores, dev build. Seconds; CPU is user \
         and system of all processors.\n\n## Compiling `cargo test --workspace`\n\nAll of it: wall {:.0}, CPU {:.0}. Crates of two \
         seconds and more:\n\n| crate | as | wall | CPU |\n|---|---|--:|--:|\n",
        all.wall.as_secs_f64(),
        all.cpu.as_secs_f64()
    );
    let mut compiled = compilations(&log)?;
    compiled.sort_by_key(|(.., cost)| std::cmp::Reverse(cost.cpu));
    for (name, kind, cost) in compiled.iter().filter(|(.., cost)| cost.cpu.as_secs_f64() >= 2.0) {
        text += &row(&[name, kind], *cost);
    }
    text += "\n## Test programs\n\n| package | program | wall | CPU |\n|---|---|--:|--:|\n";
    let mut programs = Vec::new();
    for line in String::from_utf8_lossy(&built.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        if let (Some(program), Some(manifest)) =
            (message["executable"].as_str(), message["manifest_path"].as_str())
            && message["profile"]["test"] == true
        {
            let kind = message["target"]["kind"][0].as_str().unwrap_or_default();
            let name = message["target"]["name"].as_str().unwrap_or_default();
            let folder = Path::new(manifest).parent().unwrap_or(root).to_path_buf();
            programs.push((folder, format!("{name} ({kind})"), PathBuf::from(program)));
        }
    }
    let mut failed = Vec::new();
    for (folder, name, program) in programs {
        let mut command = Command::new(program);
        command.current_dir(&folder).env("CARGO", cargo()).env("CACHE", "0").stdout(Stdio::null());
        let (status, cost) = Cost::of(|| command.stderr(Stdio::null()).status());
        if !status.is_ok_and(|status| status.success()) {
            failed.push(name.clone());
        }
        let package = folder.strip_prefix(root).unwrap_or(&folder).to_string_lossy().into_owned();
        text += &row(&[&package, &name], cost);
        note(&format!("{name}: {:.1} s\n", cost.wall.as_secs_f64()));
    }
    text += "\n## Steps of CI, the last time it ran here\n\n| step | wall | CPU |\n|---|--:|--:|\n";
    let steps = fs::read_to_string(target_folder(root).join(STEPS)).unwrap_or_default();
    text += &steps;
    fs::write(root.join(DOCUMENT), text).with_context(|| format!("cannot write {DOCUMENT}"))?;
    ensure!(failed.is_empty(), "these tests failed: {}", failed.join(", "));
    Ok(())
}

/// The file in the target folder with the times of CI's steps, as rows of the table.
pub const STEPS: &str = "ci-times.md";

/// A row of a table: its cells, and the time.
pub fn row(cells: &[&str], Cost { wall, cpu }: Cost) -> String {
    let (wall, cpu) = (wall.as_secs_f64(), cpu.as_secs_f64());
    format!("| {} | {wall:.1} | {cpu:.1} |\n", cells.join(" | "))
}

/// Times of the same name, added.
pub fn sums(all: &[Compilation]) -> BTreeMap<&str, Duration> {
    let mut sums = BTreeMap::<_, Duration>::new();
    for (name, kind, cost) in all {
        if kind.contains("lib") {
            *sums.entry(&**name).or_default() += cost.cpu;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_costs() {
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
        let (status, cost) = Cost::of(|| Command::new("sh").args(["-c", busy]).status().unwrap());
        assert!(status.success() && cost.cpu > Duration::from_millis(5), "{cost:?}");
    }

    #[test]
    fn what_the_compiler_has_cost_is_read_as_it_is_written() {
        let log = env::temp_dir().join(format!("times-{}", std::process::id()));
        fs::write(&log, "gpu\tlib\t70.00\t124.50\ngpu\ttest\t1.00\t2.00\nhalf\tlib\t0.10\t0.20\n")
            .unwrap();
        let all = compilations(&log).unwrap();
        fs::remove_file(&log).unwrap();
        assert_eq!((&*all[1].0, &*all[1].1), ("gpu", "test"));
        assert_eq!(sums(&all)["gpu"], Duration::from_millis(124_500));
    }
}
