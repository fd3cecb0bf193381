//! `cargo xtask doctor`: the tools and settings of this machine for building and running kernels,
//! what is wrong, and what to do. It changes nothing, and downloads nothing itself.
//!
//! `host doctor` checks what concerns running. It is built and run here.

mod finding;

use std::{
    fmt, fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::Result;

pub use self::finding::Verdict;
use self::finding::{Line, Status};
use crate::{
    build_ptx,
    builder::{compiler_of, ptx_files},
    debian,
    environment::{cargo, keep_target, note, output, say, shown, target_folder},
    listing::sass,
    ptx::Module,
    ptxas,
    tool::Tool,
    toolchain::{self, Parts},
};

/// Free disk space for a first `build-ptx`: a compiler (1 GB) and its builds.
const DISK: u64 = 2_000_000_000;

/// The options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// One JSON object a line instead of text.
    pub json: bool,
    /// cargo, which builds `host`, must not use the network.
    pub offline: bool,
}

/// Checks everything for the workspace in `root`. Errors are findings.
pub fn run(root: &Path, options: Options) -> Verdict {
    let mut verdict = Verdict::default();
    let mut tell = |line: &Line| verdict.tell(options.json, line);
    toolchain_lines(toolchain::survey(root)).iter().for_each(&mut tell);
    tell(&tool(&ptxas::TOOL, root, "registers and spills", "cargo xtask build-ptx --fetch-ptxas"));
    tell(&tool(&sass::TOOL, root, "machine code", "cargo xtask inspect KERNEL --fetch"));
    for target in build_ptx::TARGETS {
        let name = format!("{}/{}", build_ptx::FOLDER, target.cpu());
        tell(&committed(&name, &root.join(&name)));
    }
    // The folders for builds and downloads, for PTX while it is built, and for finished PTX.
    let target = target_folder(root);
    let mut folders = vec![target.clone(), root.join("target"), root.join(build_ptx::FOLDER)];
    folders.dedup();
    for folder in folders {
        tell(&write_access(&shown(&folder, root), &folder));
    }
    tell(&disk(output(Command::new("df").arg("-Pk").arg(existing(&target)))));

    if !target.join("debug/host").exists() {
        note("compiling `host`, for its own `doctor`: this may take a minute\n");
    }
    let mut command = Command::new(cargo());
    keep_target(&mut command, root).args(["run", "--quiet", "--package", "host"]).current_dir(root);
    if options.offline {
        command.arg("--offline");
    }
    command.args(["--", "doctor", "--json"]).stderr(Stdio::inherit());
    let (lines, wrong) = match command.output() {
        Ok(done) => {
            of_host(&String::from_utf8_lossy(&done.stdout), done.status.code(), done.status)
        }
        Err(error) => (vec![host_fails(format!("cargo cannot be run: {error}"))], false),
    };
    lines.iter().for_each(&mut tell);
    verdict.wrong = wrong;
    if !options.json {
        let Verdict { failures, warnings, .. } = verdict;
        let _ = say(&format!("failures: {failures}, warnings: {warnings}\n"));
    }
    verdict
}

/// The ways to a compiler. One is enough. To run the kernels none is necessary.
fn toolchain_lines<const N: usize>(ways: [(&'static str, Result<Parts>); N]) -> Vec<Line> {
    let is_ready = |parts: &Result<Parts>| matches!(parts, Ok(Parts { missing: None, .. }));
    let any = ways.iter().any(|(_, parts)| is_ready(parts));
    let mut lines = Vec::new();
    for (way, parts) in ways {
        let not_needed = if any { "not needed: " } else { "" };
        lines.push(match parts {
            Ok(Parts { compiler, missing: None }) => Line::ok(way, compiler),
            Ok(Parts { compiler, missing: Some((what, get)) }) => {
                let found = format!("{not_needed}{compiler}; lacks {what}");
                match any {
                    true => Line::absent(way, found),
                    false => Line::new(Status::Warn, way, found, get),
                }
            }
            Err(reason) => {
                let reason = format!("{reason:#}").lines().collect::<Vec<_>>().join(" ");
                Line::absent(way, format!("{not_needed}{reason}"))
            }
        });
    }
    if !any {
        let debian = debian::PACKAGES.join(" ");
        lines.push(Line::new(
            Status::Warn,
            "compiler",
            "none is ready: kernels run, and cannot be changed",
            format!(
                "with rustup: what is missing above; on Debian: `apt-get install {debian}`, or let \
                 `cargo xtask build-ptx` unpack them"
            ),
        ));
    }
    lines
}

/// A program of NVIDIA's toolkit.
fn tool(tool: &Tool, root: &Path, what_for: &str, fetch: &str) -> Line {
    let (found, refused) = tool.look(root);
    let refused: String = refused.iter().map(|reason| format!("; not used: {reason}")).collect();
    match found {
        Some(program) => {
            let path = program.path.display();
            Line::ok(tool.name, format!("release {} ({path}){refused}", program.release))
        }
        None => Line::new(
            Status::Warn,
            tool.name,
            format!("not there, so {what_for} cannot be seen{refused}"),
            format!(
                "`{fetch}` downloads it ({} MB); ${} names one",
                tool.megabytes,
                tool.variable()
            ),
        ),
    }
}

/// The committed PTX for a target.
fn committed(name: &str, folder: &Path) -> Line {
    let restore = "`git checkout gpu/ptx`, or `cargo xtask build-ptx`";
    let (mut kernels, mut found) = (0, None);
    let paths = match ptx_files(folder) {
        Ok(paths) => paths,
        Err(error) => return Line::new(Status::Fail, name, format!("{error:#}"), restore),
    };
    for path in paths {
        let read = fs::read_to_string(&path).map_err(anyhow::Error::from);
        match read.and_then(|text| Ok((Module::parse(&text)?, text))) {
            Ok((module, text)) if module.kernels().next().is_some() => {
                kernels += module.kernels().count();
                let compiler = compiler_of(&text).unwrap_or("an unnamed compiler").to_owned();
                found = Some((module.version, compiler));
            }
            Ok(_) => {
                let what = format!("there is no kernel in {}", path.display());
                return Line::new(Status::Fail, name, what, restore);
            }
            Err(error) => return Line::new(Status::Fail, name, format!("{error:#}"), restore),
        }
    }
    match found {
        Some((version, compiler)) => {
            Line::ok(name, format!("PTX {version}, {kernels} kernels, by {compiler}"))
        }
        None => Line::new(Status::Fail, name, "there is no PTX in it", restore),
    }
}

/// Whether files can be created in a folder. If it does not exist, in the folder that would contain
/// it.
fn write_access(name: &str, folder: &Path) -> Line {
    let name = format!("write access to {name}");
    let existing = existing(folder);
    let probe = existing.join(format!(".doctor-{}", std::process::id()));
    match fs::write(&probe, "").and_then(|()| fs::remove_file(&probe)) {
        Ok(()) => Line::ok(name, existing.display().to_string()),
        Err(error) => Line::new(
            Status::Fail,
            name,
            format!("{}: {error}", existing.display()),
            "build as the user that the checkout belongs to",
        ),
    }
}

/// A folder, or if it does not exist, the one that would contain it.
fn existing(folder: &Path) -> &Path {
    folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder)
}

/// Free disk space, from the output of `df -Pk`.
fn disk(said: Result<String>) -> Line {
    const NAME: &str = "free disk";
    let free = said.ok().and_then(|said| {
        let field = said.lines().nth(1)?.split_whitespace().nth(3)?.parse::<u64>().ok()?;
        field.checked_mul(1024)
    });
    match free {
        None => Line::new(Status::Warn, NAME, "`df` does not say", "2 GB are enough"),
        Some(free) => {
            let found = format!("{:.1} GB", free as f64 * 1e-9);
            match free >= DISK {
                true => Line::ok(NAME, found),
                false => Line::new(Status::Warn, NAME, found, "a first build-ptx may need 2 GB"),
            }
        }
    }
}

/// The lines of `host doctor --json`, and whether a product was wrong. Its own exit codes are 0, 1
/// and 3. With any other it was aborted.
fn of_host(said: &str, code: Option<i32>, status: impl fmt::Display) -> (Vec<Line>, bool) {
    let mut lines = Vec::new();
    for text in said.lines() {
        lines.push(Line::parse(text).unwrap_or_else(|error| {
            host_fails(format!("it wrote `{text}`, which is no line of its own: {error:#}"))
        }));
    }
    match code {
        Some(0 | 1 | 3) if !lines.is_empty() => {}
        _ => lines.push(host_fails(format!("it ended with {status}; its messages are above"))),
    }
    (lines, code == Some(1))
}

fn host_fails(found: String) -> Line {
    let advice = "`cargo run -p host -- doctor` shows more; without a C linker Rust builds nothing";
    Line::new(Status::Fail, "host doctor", found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    fn parts(missing: Option<&str>) -> Result<Parts> {
        let missing = missing.map(|what| (what.to_string(), "get it".to_string()));
        Ok(Parts { compiler: "rustc 1.96".into(), missing })
    }

    #[test]
    fn one_way_to_a_compiler_is_enough() {
        let lines = toolchain_lines([
            ("a", parts(Some("rust-src"))),
            ("b", Err(anyhow!("not\ninstalled"))),
            ("c", parts(None)),
        ]);
        assert_eq!(
            lines,
            [
                Line::absent("a", "not needed: rustc 1.96; lacks rust-src"),
                Line::absent("b", "not needed: not installed"),
                Line::ok("c", "rustc 1.96"),
            ]
        );
    }

    #[test]
    fn no_way_to_a_compiler_is_a_warning_with_what_to_do() {
        let lines = toolchain_lines([("a", parts(Some("rust-src"))), ("b", Err(anyhow!("none")))]);
        let seen: Vec<_> = lines.iter().map(|line| (line.status, line.advice.is_some())).collect();
        assert_eq!(seen, [(Status::Warn, true), (Status::Absent, false), (Status::Warn, true)]);
        assert_eq!((&*lines[0].found, &*lines[1].found), ("rustc 1.96; lacks rust-src", "none"));
        assert_eq!(lines[0].advice.as_deref(), Some("get it"));
    }

    #[test]
    fn hosts_lines_are_taken_over_and_its_failures_are_lines() {
        let line = Line::ok("cpu", "2 cores");
        let said = format!("{}\n", line.json());
        assert_eq!(of_host(&said, Some(0), "exit 0"), (vec![line.clone()], false));
        assert_eq!(of_host(&said, Some(1), "exit 1"), (vec![line.clone()], true));
        for (said, code) in [("", Some(101)), ("", Some(0)), (&*said, Some(2)), (&*said, None)] {
            let (lines, wrong) = of_host(said, code, "some end");
            let last = lines.last().unwrap();
            assert!(last.status == Status::Fail && last.found.contains("some end"), "{last}");
            assert!(!wrong);
        }
        let (lines, _) = of_host("hello\n", Some(0), "exit 0");
        assert!(
            lines[0].status == Status::Fail && lines[0].found.contains("`hello`"),
            "{}",
            lines[0]
        );
    }

    #[test]
    fn free_disk_is_read() {
        let said = |kib: &str| {
            Ok(format!(
                "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda 9 9 {kib} 1% /\n"
            ))
        };
        assert_eq!(disk(said("73000000")), Line::ok("free disk", "74.8 GB"));
        assert_eq!(disk(said("1000000")).status, Status::Warn);
        for bad in [said("much"), Ok("df: no\n".into()), Err(anyhow!("no df"))] {
            assert!(disk(bad).found.contains("does not say"));
        }
    }

    #[test]
    fn write_access_is_tried() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert_eq!(write_access("x", &at("not/yet/there")).status, Status::Ok);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left behind");
        // A file is no folder, also for root.
        fs::write(at("file"), "").unwrap();
        assert_eq!(write_access("x", &at("file")).status, Status::Fail);
    }

    #[test]
    fn committed_ptx_is_read() {
        let line = |texts: &[&str]| {
            let folder = tempfile::tempdir().unwrap();
            for (number, text) in texts.iter().enumerate() {
                fs::write(folder.path().join(format!("{number}.ptx")), text).unwrap();
            }
            committed("f", folder.path())
        };
        let good = ".version 8.3\n.target sm_90a\n.entry k()\n{ ret; }\n";
        let found = "PTX 8.3, 2 kernels, by an unnamed compiler";
        assert_eq!(line(&[good, good]), Line::ok("f", found));
        for texts in [&[good, ".version 8.3\n"][..], &[".entry k() { ret;"], &[]] {
            assert_eq!(line(texts).status, Status::Fail, "{texts:?}");
        }
        let none = tempfile::tempdir().unwrap().path().join("none");
        assert_eq!(committed("f", &none).status, Status::Fail);
    }
}
