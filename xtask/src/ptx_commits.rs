//! A commit that changes much PTX says why.
//!
//! Nobody reads 20,000 changed lines of PTX. Each such change is in every clone for good, and hides
//! whether kernels changed that should not have.

use std::{path::Path, process::Command};

use anyhow::{Result, bail};

use crate::{
    build_ptx,
    environment::{output, say},
};

/// Lines of PTX that a commit may add and remove without a reason in its message.
const LINES: u64 = 20_000;

/// The line of a message with the reason.
const REASON: &str = "PTX: ";

/// Commits after this one are checked. Most before it were made without the rule.
const SINCE: &str = "1bb8dcb2a961b1c252af8ac12326f834b3385bac";

/// The most commits that are read, the last ones that change PTX. A push has fewer.
const COMMITS: &str = "--max-count=50";

/// Checks the commits that this clone has.
///
/// # Errors
/// The commits without a reason.
pub(crate) fn check(root: &Path) -> Result<()> {
    check_since(root, SINCE)
}

fn check_since(root: &Path, since: &str) -> Result<()> {
    let git = |args: &[&str]| output(Command::new("git").current_dir(root).args(args));
    let is_shallow = git(&["rev-parse", "--is-shallow-repository"])?.trim() == "true";
    let range = match git(&["merge-base", "--is-ancestor", since, "HEAD"]) {
        Ok(_) => format!("{since}..HEAD"),
        // A part of the history: what there is.
        Err(_) if is_shallow => {
            say(
                "ci: lines of PTX a commit: NOT CHECKED before the first commit of this shallow clone\n",
            )?;
            "HEAD".to_owned()
        }
        Err(_) => {
            say(&format!(
                "ci: lines of PTX a commit: NOT CHECKED: commit {since} is not in this history\n"
            ))?;
            return Ok(());
        }
    };
    // Of a merge the merged commits are looked at. A commit without a parent adds all files; in a
    // shallow clone this is the oldest one.
    let options = ["--no-merges", "--min-parents=1", COMMITS, "--numstat"];
    let format = "--format=%x00%h%x01%B%x01";
    let of = [&range, "--", build_ptx::FOLDER];
    let log = git(&[&["log", format], &options[..], &of].concat())?;
    let changes = changes(&log);
    say(&format!("ci: lines of PTX a commit: {} commits change PTX\n", changes.len()))?;
    let silent = changes.iter().filter(|change| change.lines > LINES && !change.has_reason);
    let silent = silent
        .map(|Change { commit, lines, .. }| format!("{commit} changes {lines} lines of PTX"))
        .collect::<Vec<_>>();
    if silent.is_empty() {
        return Ok(());
    }
    bail!(
        "{}: a commit that changes more than {LINES} says why, in a line `{REASON}reason` of its message",
        silent.join("; ")
    )
}

/// What a commit changes.
#[derive(Debug, PartialEq)]
struct Change {
    commit: String,
    has_reason: bool,
    /// Lines of PTX, added and removed.
    lines: u64,
}

/// Reads `git log --numstat` in the format of `check_since`.
fn changes(log: &str) -> Vec<Change> {
    let change = |record: &str| {
        let mut parts = record.split('\x01');
        let (commit, message, numbers) = (parts.next()?, parts.next()?, parts.next()?);
        let has_reason = message
            .lines()
            .any(|line| line.strip_prefix(REASON).is_some_and(|reason| !reason.trim().is_empty()));
        let lines = numbers.lines().map(changed).sum();
        Some(Change { commit: commit.to_owned(), has_reason, lines })
    };
    log.split('\0').filter_map(change).collect()
}

/// The lines added and removed, in a line of `--numstat`: other files of the folder do not count.
fn changed(line: &str) -> u64 {
    let mut cells = line.split('\t');
    let mut number = || cells.next().and_then(|cell| cell.parse::<u64>().ok()).unwrap_or(0);
    let lines = number() + number();
    if line.ends_with(".ptx") { lines } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::PathBuf};

    use super::*;

    /// A repository with one empty commit. It is removed on drop.
    struct Repository(PathBuf);

    impl Drop for Repository {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    impl Repository {
        fn new(name: &str) -> Repository {
            let own = Repository(env::temp_dir().join(format!("{name}-{}", std::process::id())));
            let _ = fs::remove_dir_all(&own.0);
            fs::create_dir_all(own.0.join(build_ptx::FOLDER)).unwrap();
            own.git(&["init", "--quiet"]);
            own.git(&["commit", "--quiet", "--allow-empty", "-m", "Start"]);
            own
        }

        fn git(&self, args: &[&str]) -> String {
            let mut git = Command::new("git");
            git.current_dir(&self.0).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
            output(git.args(["-c", "commit.gpgsign=false"]).args(args)).unwrap()
        }

        fn head(&self) -> String {
            self.git(&["rev-parse", "HEAD"]).trim().to_owned()
        }

        /// A commit in which a file has so many lines of its own.
        fn commit(&self, file: &str, lines: u64, message: &str) {
            let text = message.lines().next().unwrap();
            let text = format!("{text}\n").repeat(lines as usize);
            fs::write(self.0.join(build_ptx::FOLDER).join(file), text).unwrap();
            self.git(&["add", "."]);
            self.git(&["commit", "--quiet", "-m", message]);
        }
    }

    #[test]
    fn a_commit_with_much_ptx_says_why() {
        let own = Repository::new("ptx-commits");
        own.commit("a.ptx", LINES + 1, "Before the rule");
        let since = own.head();
        own.commit("a.ptx", 10, "Fewer\n\nPTX: this removes the lines from before the rule");
        own.commit("b.ptx", LINES, "As many as may be");
        own.commit("table.tsv", LINES + 1, "Not PTX");
        check_since(&own.0, &since).unwrap();

        own.commit("c.ptx", LINES + 1, "Too many\n\nOf PTX: no line begins so.\nPTX: ");
        let commit = own.git(&["rev-parse", "--short", "HEAD"]);
        let error = check_since(&own.0, &since).unwrap_err().to_string();
        let expected = format!("{} changes 20001 lines of PTX: ", commit.trim());
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.contains("`PTX: reason`"), "{error}");

        let why = "Too many\n\nPTX: all kernels have a new header";
        own.git(&["commit", "--quiet", "--amend", "-m", why]);
        check_since(&own.0, &since).unwrap();
    }

    #[test]
    fn a_part_of_a_history_is_checked_as_far_as_it_goes() {
        let own = Repository::new("ptx-commits-whole");
        own.commit("a.ptx", LINES + 1, "The oldest of the part, with all files");
        own.commit("b.ptx", 10, "A little");
        let part = Repository(own.0.with_extension("part"));
        let _ = fs::remove_dir_all(&part.0);
        let clone = |depth: &str| {
            let _ = fs::remove_dir_all(&part.0);
            let from = format!("file://{}", own.0.display());
            own.git(&["clone", "--quiet", "--depth", depth, &from, &part.0.to_string_lossy()]);
        };
        clone("2");
        check_since(&part.0, "1111111111111111111111111111111111111111").unwrap();
        own.commit("c.ptx", LINES + 1, "Too many");
        clone("2");
        assert!(check_since(&part.0, "1111111111111111111111111111111111111111").is_err());
        // A whole history without that commit is another one: nothing can be told.
        check_since(&own.0, "1111111111111111111111111111111111111111").unwrap();
    }
}
