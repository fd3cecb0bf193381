//! Runs mutants, each in a process of its own, because it may crash or hang. Only trials that reach
//! it are run.

use std::{
    collections::BTreeSet,
    io::Read,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::mutant::Mutant;

/// A case of an unchanged kernel in one order of its threads.
#[derive(Deserialize)]
pub struct Trial {
    kernel: String,
    trial: u32,
    what: String,
    micros: u64,
    hash: String,
    found: Vec<String>,
    reached: BTreeSet<u32>,
}

/// The longest time of an unchanged kernel. One that takes longer does not end.
const LIMIT: Duration = Duration::from_secs(600);

/// Every trial of the kernels, the fastest first.
///
/// # Errors
/// An unchanged kernel that fails: otherwise every mutant would count as caught.
pub fn trials(program: &Path, kernels: &BTreeSet<String>, jobs: usize) -> Result<Vec<Trial>> {
    let kernels = kernels.iter().collect::<Vec<_>>();
    let of_kernel = |kernel: &&String| -> Result<Vec<Trial>> {
        let Run { out, err, end } = run(program, &["cover", kernel], LIMIT)?;
        ensure!(end == End::Success, "`{kernel}` cannot be run ({end:?}): {}", err.trim_end());
        out.lines().map(|line| serde_json::from_str(line).context("a trial")).collect()
    };
    let mut trials =
        in_parallel(&kernels, jobs, of_kernel)?.into_iter().flatten().collect::<Vec<_>>();
    for Trial { kernel, what, found, .. } in &trials {
        ensure!(found.is_empty(), "`{kernel}` fails as it is: {what}: {}", found.join(", "));
    }
    trials.sort_by_key(|trial| trial.micros);
    Ok(trials)
}

/// The results of a mutant's trials. Empty if it passed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The findings of the checker.
    pub check: Vec<String>,
    /// Where a result differs.
    pub result: Option<String>,
    /// Whether a trial reaches it.
    pub reached: bool,
}

/// Runs a mutant with these kernels, up to the first trial with a finding.
pub fn mutant(
    program: &Path,
    trials: &[Trial],
    kernels: &[String],
    mutant: &Mutant,
) -> Result<Findings> {
    let reaching = trials
        .iter()
        .filter(|trial| kernels.contains(&trial.kernel) && trial.reached.contains(&mutant.site));
    let reaching = reaching.collect::<Vec<_>>();
    if reaching.is_empty() {
        return Ok(Findings::default());
    }
    let names =
        reaching.iter().map(|Trial { kernel, trial, hash, .. }| format!("{kernel}:{trial}:{hash}"));
    let (id, names) = (mutant.id.to_string(), names.collect::<Vec<_>>());
    let mut args = vec!["run", &id];
    args.extend(names.iter().map(String::as_str));
    // Some mutants make a kernel run twice as long, and several run at once.
    let micros = reaching.iter().map(|trial| trial.micros).sum::<u64>();
    let limit = Duration::from_micros(8 * micros) + Duration::from_secs(5);
    let run = run(program, &args, limit)?;
    run.findings().with_context(|| format!("the driver failed at {}", mutant.name))
}

/// The output of a process, and how it ended.
struct Run {
    out: String,
    err: String,
    end: End,
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Success,
    /// With this exit code.
    Failure(i32),
    /// By a signal.
    Crash,
    /// After its time limit.
    Hang,
}

impl Run {
    fn findings(&self) -> Result<Findings> {
        let all = |what: &str| {
            let lines = self.out.lines().filter_map(|line| line.strip_prefix(what));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut result = all("wrong ").into_iter().next();
        match &self.end {
            End::Success if self.out.lines().last() == Some("done") => {}
            // An access to unmapped memory, or an abort. It shows, but the checker has not found
            // it.
            End::Crash => result = result.or(Some("crash".into())),
            End::Hang => result = result.or(Some("hang".into())),
            End::Success | End::Failure(_) => bail!("{:?}: {}", self.end, self.err.trim_end()),
        }
        Ok(Findings { check: all("found "), result, reached: true })
    }
}

fn run(program: &Path, args: &[&str], limit: Duration) -> Result<Run> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run {}", program.display()))?;
    let (out, err) = (read(child.stdout.take()), read(child.stderr.take()));
    let start = Instant::now();
    let status = loop {
        match child.try_wait().context("the driver was lost")? {
            Some(status) => break Some(status),
            None if start.elapsed() > limit => {
                child.kill().context("a mutant cannot be ended")?;
                child.wait().context("the driver was lost")?;
                break None;
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    let [out, err] = [out, err].map(|reader| reader.join().unwrap_or_default());
    let end = match status {
        None => End::Hang,
        Some(status) if status.success() => End::Success,
        Some(status) => status.code().map_or(End::Crash, End::Failure),
    };
    Ok(Run { out, err, end })
}

/// Reads everything from a pipe as it comes, so that the writer never waits.
fn read(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // The output before the end counts, however the process ended.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Calls a function for each item of a list, several at a time. The results are in the list's
/// order.
pub fn in_parallel<T: Sync, R: Send>(
    list: &[T],
    jobs: usize,
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::from_iter(list.iter().map(|_| None)));
    let worker = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = list.get(number) else { return Ok(()) };
            let result = work(item)?;
            results.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(result);
        }
    };
    thread::scope(|scope| {
        let workers = (0..jobs.max(1)).map(|_| scope.spawn(worker)).collect::<Vec<_>>();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => bail!("a worker has panicked"),
        })
    })?;
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(results.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(script: &str) -> Result<Findings> {
        let run = run(Path::new("/bin/sh"), &["-c", script], Duration::from_millis(500));
        run.unwrap().findings()
    }

    #[test]
    fn every_end_of_a_mutant() {
        let found = |check: &[&str], result: Option<&str>| {
            let check = check.iter().map(ToString::to_string).collect();
            Findings { check, result: result.map(Into::into), reached: true }
        };
        assert_eq!(of("echo done").unwrap(), found(&[], None));
        let both = of("echo 'wrong C'; echo 'found race'; echo done").unwrap();
        assert_eq!(both, found(&["race"], Some("C")));
        let hang = of("echo 'found race'; exec sleep 60").unwrap();
        assert_eq!(hang, found(&["race"], Some("hang")));
        assert_eq!(of("kill -SEGV $$").unwrap(), found(&[], Some("crash")));
        let error = of("echo 'no trial' >&2; exit 101").unwrap_err().to_string();
        assert!(error.contains("101") && error.contains("no trial"), "{error}");
        assert!(of("exit 0").is_err(), "it did not come to its end");
    }

    #[test]
    fn results_are_in_order() {
        let list = (0..50).collect::<Vec<_>>();
        assert_eq!(in_parallel(&list, 3, |x| Ok(2 * x)).unwrap()[49], 98);
        assert!(in_parallel(&list, 2, |x| if *x == 7 { bail!("seven") } else { Ok(()) }).is_err());
    }
}
