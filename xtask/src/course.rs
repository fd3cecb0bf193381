//! `cargo xtask course`: generates the text between the markers of `README.md` and the pages in
//! `docs`, or checks it.
//!
//! A marker is a comment on a line of its own. The text after it, up to `<!-- end -->`, is
//! generated:
//!
//! | marker | generated text |
//! |---|---|
//! | `source: FILE` | that file, without the comment at its head |
//! | `source: FILE fn NAME` | that function, with its comments and attributes |
//! | `counts: KERNEL` | the counts of `host profile`, line by line |
//! | `ladder` | a row for each rung: its idea, its ratios, its reads |
//! | `measured: KERNEL` | its speed on a GPU, from the file that recorded it |
//! | `bench: FOLDER` | a row for each size, compared with cuBLAS, from the folder that recorded them |
//! | `families` | the operations, and the number of kernels for each |
//! | `exercises` | the list of all exercises, by rung |
//! | `words` | the words of `simt`, by the files that define them |
//! | `output: PACKAGE ARGUMENTS` | the output of `cargo run -p PACKAGE -- ARGUMENTS` |
//! | `example: PACKAGE NAME [LINES]` | the output of `cargo run -p PACKAGE --example NAME`, or its first lines |
//!
//! | module | its one idea |
//! |---|---|
//! | `marker` | a document taken apart at its markers, and put together again |
//! | `source` | a function's text out of a file |
//! | `counts` | tables of what `host` counts |
//! | `kernels` | the families of kernels out of the registry |
//! | `measured` | speeds out of the recorded file |
//! | `bench` | speeds beside cuBLAS out of the recorded folder |
//! | `program` | what programs of the workspace print |
//! | `words` | the words of `simt` out of its source |

mod bench;
mod counts;
mod kernels;
mod marker;
mod measured;
mod program;
mod source;
mod words;

use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

pub(crate) use self::source::{body, function};
use self::{counts::Counts, marker::Marker, measured::Measured, program::Programs};
use crate::environment::say;

/// The options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Compare instead of writing.
    pub check: bool,
    /// Take the programs that `cargo test --workspace` has left in the target folder. Built alone
    /// the library has other features, and is compiled again.
    pub of_tests: bool,
}

/// Writes the text between the markers, or checks it.
///
/// # Errors
/// A marker that cannot be filled. In a check, text that is out of date.
pub fn run(root: &Path, options: Options) -> Result<()> {
    let mut writer = Writer::new(root, options.of_tests);
    for (document, text) in documents(root)? {
        let filled = marker::fill(&text, |marker| writer.write(marker).map(Some))
            .with_context(|| document.clone())?;
        let all = filled.markers;
        match options.check {
            _ if all == 0 => {}
            true => {
                up_to_date(&document, &filled.stale)?;
                say(&format!("{document}: {all} markers, all up to date\n"))?;
            }
            false => {
                let path = root.join(&document);
                if filled.text != text {
                    fs::write(&path, &filled.text)
                        .with_context(|| format!("cannot write {}", path.display()))?;
                }
                say(&format!("{document}: {all} markers, {} written anew\n", filled.stale.len()))?;
            }
        }
    }
    Ok(())
}

/// Checks only the excerpts of sources, for which nothing must be built. Returns their number.
///
/// # Errors
/// As [`run`].
pub fn check_sources(root: &Path) -> Result<usize> {
    let mut excerpts = 0;
    for (document, text) in documents(root)? {
        let filled = marker::fill(&text, |marker| match marker.kind {
            "source" => {
                excerpts += 1;
                source::excerpt(root, marker.arguments).map(Some)
            }
            _ => Ok(None),
        })
        .with_context(|| document.clone())?;
        up_to_date(&document, &filled.stale)?;
    }
    Ok(excerpts)
}

/// README and the pages in `docs`: paths below the root, and texts.
pub(crate) fn documents(root: &Path) -> Result<Vec<(String, String)>> {
    let mut names = vec!["README.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder));
        for entry in entries.with_context(|| format!("cannot read {folder}"))? {
            let entry = entry?;
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                folders.push(name);
            } else if name.ends_with(".md") {
                names.push(name);
            }
        }
    }
    names[1..].sort();
    let text = |name: String| {
        let text = fs::read_to_string(root.join(&name));
        let text = text.with_context(|| format!("cannot read {name}"))?;
        Ok((name, text))
    };
    names.into_iter().map(text).collect()
}

fn up_to_date(document: &str, stale: &[String]) -> Result<()> {
    ensure!(
        stale.is_empty(),
        "{document} is out of date: `cargo xtask course` writes it anew. What differs:\n  {}",
        stale.join("\n  ")
    );
    Ok(())
}

/// Fills markers. It asks `host` for lists and counts once.
struct Writer {
    programs: Programs,
    /// The output of `host kernels --json`.
    kernels: Option<Vec<Value>>,
    counts: Option<Counts>,
    measured: Option<Measured>,
}

impl Writer {
    fn new(root: &Path, are_of_tests: bool) -> Writer {
        let programs = Programs { root: root.to_path_buf(), are_of_tests };
        Writer { programs, kernels: None, counts: None, measured: None }
    }

    /// The text after a marker.
    fn write(&mut self, marker: &Marker) -> Result<String> {
        let Marker { kind, arguments, .. } = *marker;
        let programs = &self.programs;
        if matches!(kind, "families" | "counts" | "ladder") && self.kernels.is_none() {
            self.kernels = Some(kernels::take(programs)?);
        }
        if matches!(kind, "counts" | "ladder") && self.counts.is_none() {
            let kernels = self.kernels.clone().unwrap_or_default();
            self.counts = Some(Counts::take(programs, kernels)?);
        }
        if matches!(kind, "measured" | "ladder") && self.measured.is_none() {
            self.measured = Some(Measured::read(&programs.root)?);
        }
        if let ("families", Some(all)) = (kind, &self.kernels) {
            return Ok(kernels::families(all));
        }
        match (kind, &self.counts, &self.measured) {
            ("source", ..) => source::excerpt(&programs.root, arguments),
            ("exercises", ..) => programs.output("exercises", &["list", "--markdown"], &[0]),
            ("output", ..) => {
                let mut words = arguments.split_whitespace();
                let package = words.next().context("of which package?")?;
                let printed = programs.output(package, &words.collect::<Vec<_>>(), &[0, 1])?;
                Ok(format!("```text\n{}\n```", printed.trim_end()))
            }
            ("example", ..) => {
                let mut words = arguments.split(' ');
                let (package, name) =
                    words.next().zip(words.next()).context("must be `PACKAGE NAME [LINES]`")?;
                let most = words.next().map_or(Ok(usize::MAX), str::parse)?;
                let printed = programs.output_of_example(package, name, &[0, 1])?;
                let mut lines = printed.trim_end().lines().collect::<Vec<_>>();
                if lines.len() > most {
                    lines.truncate(most);
                    lines.push("...");
                }
                Ok(format!("```text\n{}\n```", lines.join("\n")))
            }
            ("words", ..) => words::table(&programs.root),
            ("bench", ..) => bench::section(&programs.root, arguments),
            ("counts", Some(counts), _) => counts.of(programs, arguments),
            ("measured", _, Some(measured)) => measured.of(arguments),
            ("ladder", Some(counts), Some(measured)) => Ok(counts.ladder(measured)),
            _ => bail!("nobody writes what belongs behind `{kind}`"),
        }
    }
}
