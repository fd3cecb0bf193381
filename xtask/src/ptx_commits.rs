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

/// What git tells of a commit: its hash, and then the lines of each file of PTX.
///
/// * Commits that a merge brought in are looked at even where nothing is left of them
///   (`full-history`). Of a merge only what differs from a merge that git makes counts (`remerge`).
/// * A file that moved counts whole, under its name (`no-renames`), in whatever letters (`z`).
const OPTIONS: [&str; 8] = [
    "--format=tformat:commit %h",
    "--numstat",
    "-z",
    "--full-history",
    "--diff-merges=remerge",
    "--no-renames",
    "--root",
    "--no-show-signature",
];

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
    // In a shallow clone the oldest commits have lost their parents, and would add all files.
    let parents = if is_shallow { "--min-parents=1" } else { "--min-parents=0" };
    let log = git(&[&["log", parents], &OPTIONS[..], &[&range, "--", build_ptx::FOLDER]].concat())?;
    let changes = changes(&log);
    say(&format!("ci: lines of PTX a commit: {} commits change PTX\n", changes.len()))?;
    let mut silent = Vec::new();
    for Change { commit, lines } in &changes {
        let much = match lines {
            Some(lines) if *lines <= LINES => continue,
            Some(lines) => format!("{lines} lines of PTX"),
            // By a NUL in it, or by `.gitattributes`.
            None => "PTX that is binary for git, which counts no lines".to_owned(),
        };
        let message = git(&["log", "-1", "--format=%B", "--no-show-signature", commit])?;
        if !has_reason(&message) {
            silent.push(format!("{commit} changes {much}"));
        }
    }
    if silent.is_empty() {
        return Ok(());
    }
    bail!(
        "{}: a commit that changes more than {LINES} says why, in a line `{REASON}reason` of its message",
        silent.join("; ")
    )
}

/// Whether a message says why.
fn has_reason(message: &str) -> bool {
    let mut reasons = message.lines().filter_map(|line| line.strip_prefix(REASON));
    reasons.any(|reason| !reason.trim().is_empty())
}

/// What a commit changes.
#[derive(Debug, PartialEq)]
struct Change {
    commit: String,
    /// Lines of PTX, added and removed. `None`: git counts none.
    lines: Option<u64>,
}

/// Reads what git tells with [`OPTIONS`]. A name has no NUL, and a commit's line no tab.
fn changes(log: &str) -> Vec<Change> {
    let mut changes = Vec::<Change>::new();
    for part in log.split('\0') {
        let part = part.trim_start_matches('\n');
        match part.strip_prefix("commit ") {
            Some(commit) => changes.push(Change { commit: commit.to_owned(), lines: Some(0) }),
            None => {
                if let Some(last) = changes.last_mut() {
                    last.lines = last.lines.zip(changed(part)).map(|(sum, lines)| sum + lines);
                }
            }
        }
    }
    changes
}

/// The lines added and removed, in a part of `--numstat`: other files of the folder do not count.
/// `None`: git counts none in this one.
fn changed(part: &str) -> Option<u64> {
    let mut cells = part.splitn(3, '\t');
    let [added, removed, path] = [(); 3].map(|()| cells.next().unwrap_or_default());
    match path.ends_with(".ptx") {
        true => Some(added.parse::<u64>().ok()? + removed.parse::<u64>().ok()?),
        false => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A repository with one empty commit.
    struct Repository(tempfile::TempDir);

    impl Repository {
        fn new() -> Repository {
            let own = Repository(tempfile::tempdir().unwrap());
            fs::create_dir_all(own.root().join(build_ptx::FOLDER)).unwrap();
            own.git(&["init", "--quiet"]);
            own.git(&["commit", "--quiet", "--allow-empty", "-m", "Start"]);
            own
        }

        fn root(&self) -> &Path {
            self.0.path()
        }

        fn git(&self, args: &[&str]) -> String {
            let mut git = Command::new("git");
            git.current_dir(self.root()).args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@example.org",
            ]);
            output(git.args(["-c", "commit.gpgsign=false"]).args(args)).unwrap()
        }

        fn head(&self) -> String {
            self.git(&["rev-parse", "HEAD"]).trim().to_owned()
        }

        /// A commit in which a file has so many lines of its own.
        fn commit(&self, file: &str, lines: u64, message: &str) {
            let text = message.lines().next().unwrap();
            let text = format!("{text}\n").repeat(lines as usize);
            fs::write(self.root().join(build_ptx::FOLDER).join(file), text).unwrap();
            self.git(&["add", "."]);
            self.git(&["commit", "--quiet", "-m", message]);
        }
    }

    #[test]
    fn a_commit_with_much_ptx_says_why() {
        let own = Repository::new();
        own.commit("a.ptx", LINES + 1, "Before the rule");
        let since = own.head();
        own.commit("a.ptx", 10, "Fewer\n\nPTX: this removes the lines from before the rule");
        own.commit("b.ptx", LINES, "As many as may be");
        own.commit("table.tsv", LINES + 1, "Not PTX");
        check_since(own.root(), &since).unwrap();

        own.commit("c.ptx", LINES + 1, "Too many\n\nOf PTX: no line begins so.\nPTX: ");
        let commit = own.git(&["rev-parse", "--short", "HEAD"]);
        let error = check_since(own.root(), &since).unwrap_err().to_string();
        let expected = format!("{} changes 20001 lines of PTX: ", commit.trim());
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.contains("`PTX: reason`"), "{error}");

        let why = "Too many\n\nPTX: all kernels have a new header";
        own.git(&["commit", "--quiet", "--amend", "-m", why]);
        check_since(own.root(), &since).unwrap();
    }

    /// What is wrong after `change`, in a repository with a file of few and one of many lines.
    fn wrong_after(change: impl Fn(&Repository)) -> Option<String> {
        let own = Repository::new();
        own.commit("few.ptx", 10, "Few");
        own.commit("many.ptx", LINES + 1, "Many");
        let since = own.head();
        change(&own);
        check_since(own.root(), &since).err().map(|error| error.to_string())
    }

    /// Two branches with a commit each. Stays on the first one.
    fn branch_off(own: &Repository, on_the_side: impl Fn(&Repository)) {
        own.git(&["checkout", "--quiet", "-b", "side"]);
        on_the_side(own);
        own.git(&["checkout", "--quiet", "-"]);
        own.commit("main.ptx", 3, "Of main");
    }

    #[test]
    fn lines_count_however_they_are_brought() {
        let moved = wrong_after(|own| {
            own.git(&["mv", "gpu/ptx/many.ptx", "gpu/ptx/moved.ptx"]);
            own.git(&["commit", "--quiet", "-m", "Moved"]);
        });
        let cancelled = wrong_after(|own| {
            branch_off(own, |own| {
                own.commit("new.ptx", LINES + 1, "Added");
                own.git(&["rm", "--quiet", "gpu/ptx/new.ptx"]);
                own.git(&["commit", "--quiet", "-m", "Removed\n\nPTX: they were for nothing"]);
            });
            own.git(&["merge", "--quiet", "side", "-m", "Merge"]);
        });
        let merge = wrong_after(|own| {
            branch_off(own, |own| own.commit("side.ptx", 3, "Of the side"));
            own.git(&["merge", "--quiet", "--no-commit", "side"]);
            own.commit("merge.ptx", LINES + 1, "In the merge itself");
        });
        for (wrong, lines) in [(moved, 2 * (LINES + 1)), (cancelled, LINES + 1), (merge, LINES + 1)]
        {
            let wrong = wrong.unwrap_or_default();
            assert!(wrong.contains(&format!(" changes {lines} lines of PTX: ")), "{wrong:?}");
        }
        let binary = wrong_after(|own| {
            fs::write(own.root().join(".gitattributes"), "*.ptx -diff\n").unwrap();
            own.commit("new.ptx", 1, "Binary");
        });
        let binary = binary.unwrap_or_default();
        assert!(binary.contains("changes PTX that is binary for git"), "{binary:?}");
        // What a merge brings in was another commit's, which says why.
        let merged = wrong_after(|own| {
            branch_off(own, |own| own.commit("much.ptx", LINES + 1, "Much\n\nPTX: a new family"));
            own.git(&["merge", "--quiet", "side", "-m", "Merge"]);
        });
        assert_eq!(merged, None);
    }

    #[test]
    fn names_are_in_whatever_letters() {
        let log = [
            "commit a",
            "\n3\t4\tgpu/ptx/größer\"\t.ptx",
            "5\t0\tgpu/ptx/b.tsv",
            "commit b",
            "\n-\t-\tgpu/ptx/c.ptx",
            "1\t1\tgpu/ptx/d.ptx",
            "",
        ];
        let [a, b] = ["a", "b"].map(str::to_owned);
        let expected = [Change { commit: a, lines: Some(7) }, Change { commit: b, lines: None }];
        assert_eq!(changes(&log.join("\0")), expected);
    }

    #[test]
    fn a_part_of_a_history_is_checked_as_far_as_it_goes() {
        let own = Repository::new();
        own.commit("a.ptx", LINES + 1, "The oldest of the part, with all files");
        own.commit("b.ptx", 10, "A little");
        let since_unknown = |depth: &str| {
            let part = tempfile::tempdir().unwrap();
            let from = format!("file://{}", own.root().display());
            own.git(&["clone", "--quiet", "--depth", depth, &from, part.path().to_str().unwrap()]);
            check_since(part.path(), "1111111111111111111111111111111111111111")
        };
        since_unknown("2").unwrap();
        own.commit("c.ptx", LINES + 1, "Too many");
        assert!(since_unknown("2").is_err());
        // A whole history without that commit is another one: nothing can be told.
        check_since(own.root(), "1111111111111111111111111111111111111111").unwrap();
    }
}
