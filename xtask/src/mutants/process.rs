//! One mutant at a time, in a process of its own, which it may end or keep for ever.

use std::{
    io::Read,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// How long a kernel without a mistake may take: what takes longer does not end.
pub const LIMIT: Duration = Duration::from_secs(600);

/// How long a mutant of kernels may take that took so long without a mistake. Then nothing else was running, and mistakes
/// make some of them walk twice as far.
pub fn limit(original: Duration) -> Duration {
    (5 * original).max(Duration::from_secs(60))
}

/// What the runs of a mutant have shown: nothing where it passed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What the checker found.
    pub check: Vec<String>,
    /// What was wrong with the result.
    pub verification: Vec<String>,
}

/// Runs one stage of the program, for so long at most: `check`, `verify` or `both`.
pub fn run(
    limit: Duration,
    program: &Path,
    stage: &str,
    module: &str,
    kernels: &[String],
) -> Result<Findings> {
    let mut command = Command::new(program);
    command.args([stage, module]).args(kernels).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // As many processes as cores are at work already.
    command.env("RAYON_NUM_THREADS", "1");
    let mut child = command.spawn().with_context(|| format!("cannot run {}", program.display()))?;
    let (out, err) = (read(child.stdout.take()), read(child.stderr.take()));
    let start = Instant::now();
    let status = loop {
        match child.try_wait().context("the program was lost")? {
            Some(status) => break Some(status),
            None if start.elapsed() > limit => {
                child.kill().context("a mutant cannot be ended")?;
                child.wait().context("the program was lost")?;
                break None;
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    let [out, err] = [out, err].map(|reader| reader.join().unwrap_or_default());
    let all = |what: &str| {
        let lines = out.lines().filter_map(|line| line.strip_prefix(what));
        lines.map(|line| line.trim_start().to_owned()).collect::<Vec<_>>()
    };
    let mut found = Findings { check: all("found "), verification: all("wrong ") };
    let end = match status {
        None => Some("hang".to_owned()),
        Some(status) if status.success() && out.lines().last() == Some("done") => None,
        // 101 is a panic outside of the kernel: the driver's own, or the check mode's.
        Some(status) if status.code().is_some() => {
            bail!("{stage} {module} {}: {status}\n{}", kernels.join(" "), err.trim_end())
        }
        // A signal: an access to nobody's memory, or an abort.
        Some(status) => Some(format!("crash: {status}")),
    };
    match stage {
        "verify" => found.verification.extend(end),
        _ => found.check.extend(end),
    }
    found.check.dedup();
    Ok(found)
}

/// Everything that comes through a pipe, read as it comes so that the writer never waits.
fn read(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was written before the end counts, however the end came.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    /// What comes of a program that does this, called as a mutant is.
    fn of(stage: &str, script: &str) -> Result<Findings> {
        let name = format!("mutants-process-{}-{:?}", std::process::id(), thread::current().id());
        let path = env::temp_dir().join(name);
        // Written by another process: while one of ours has it open to write, nobody can run it, and a
        // child of another test may have inherited that.
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod +x "$2""#;
        let written = Command::new("sh").args(["-c", write, "sh", script]).arg(&path).status();
        assert!(written.unwrap().success());
        let limit = Duration::from_millis(500);
        let outcome = run(limit, &path, stage, "m", &["k".into(), "l".into()]);
        fs::remove_file(&path).unwrap();
        outcome
    }

    #[test]
    fn every_end_of_a_mutant() {
        let check = |script: &str| of("check", script).unwrap().check;
        assert_eq!(of("check", "echo done").unwrap(), Findings::default());
        assert_eq!(check("echo \"found $1 $2 $3 $4\"; echo done"), ["check m k l"]);
        assert_eq!(check("echo found it; exec sleep 60"), ["it", "hang"]);
        let crash = check("echo found it; kill -SEGV $$");
        assert!(crash[0] == "it" && crash[1].starts_with("crash: signal: 11"), "{crash:?}");

        let both = "echo found race; echo wrong C; echo found race; echo done";
        let wanted = Findings { check: vec!["race".into()], verification: vec!["C".into()] };
        assert_eq!(of("both", both).unwrap(), wanted);
        let hang = of("verify", "echo wrong C; exec sleep 60").unwrap();
        assert_eq!((hang.check, hang.verification), (vec![], vec!["C".into(), "hang".into()]));
    }

    #[test]
    fn an_error_of_the_program_is_no_finding() {
        let script = "echo found it; echo 'no such mutant' >&2; exit 101";
        let error = of("check", script).unwrap_err().to_string();
        assert!(error.contains("check m k l") && error.contains("no such mutant"), "{error}");
        assert!(of("check", "exit 0").is_err(), "it did not come to its end");
    }
}
