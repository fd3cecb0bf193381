//! Mutation tests of the kernels: are mistakes found?
//!
//! Every function of the kernel files gets one mistake at a time, at every possible place: a
//! barrier left out, a comparison off by one, an index transposed. Such a *mutant* runs under the
//! checker, which knows no expected result. Its result is also compared with the unchanged
//! kernel's.
//!
//! All mutants are one program: each mistake is an expression that a number switches on at run
//! time. First the unchanged kernels run, and record which expressions each trial reaches. Then
//! each mutant runs only the trials that reach it.
//!
//! | module | its one idea |
//! |---|---|
//! | `source` | kernel files, their functions and kernels |
//! | `operators` | the places where each kind of mistake can be made |
//! | `mutant` | the name of a mutant, and the text with the switches |
//! | `equivalent` | mutants that make no difference, with reasons |
//! | `workspace` | the generated crate, and the mutants that do not compile |
//! | `trial` | one mutant, in a process of its own |
//! | `report` | what found which mutants, the rates, and the table in `tests/mutants/record.txt` |

#![warn(clippy::print_stderr, clippy::print_stdout)] // they panic: `said` does not

mod equivalent;
mod mutant;
mod operators;
mod report;
pub mod said;
mod source;
mod trial;
mod workspace;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::json;
use syn::{Expr, Item, Lit};

use self::{
    equivalent::Equivalents,
    mutant::{Mutant, changed_functions, content},
    report::{End, Outcome, Record},
    said::{note, say},
    source::SourceFile,
    trial::Findings,
};

/// Which mutants to run, and how to show them.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only files with this in their path.
    pub file: Option<String>,
    /// Only mutants with this in their name.
    pub only: Option<String>,
    /// Only functions that differ from this revision.
    pub changed: Option<String>,
    /// Only files that have changed since they were last run.
    pub stale: bool,
    /// This many for each file, drawn by its content. Four times as many if it has changed since it
    /// was last run.
    pub sample: Option<usize>,
    /// Print names only. Nothing is run.
    pub list: bool,
    /// Print a JSON object on a line.
    pub json: bool,
    /// How many run at the same time. `None`: as many as there are cores.
    pub jobs: Option<usize>,
    /// Build the program, and run nothing.
    pub build: bool,
    /// Run the program that was built for the same options, perhaps on another machine.
    pub built: bool,
    /// Run nothing, and use the output of such a run with `json`.
    pub from: Option<PathBuf>,
    /// Write the results of whole files to `tests/mutants/record.txt`.
    pub write: bool,
}

/// A line of output from another run.
#[derive(Deserialize)]
struct Printed {
    mutant: String,
    content: String,
    compiles: bool,
    reached: bool,
    check: Option<Vec<String>>,
    result: Option<String>,
}

/// The kernel files, their representatives, and their mutants.
struct Project {
    root: PathBuf,
    files: Vec<SourceFile>,
    /// For each file, a hash of what its mutants depend on.
    contents: Vec<u64>,
    /// The kernels with which the mutants of a module, or of a file, are run.
    representatives: BTreeMap<String, Vec<String>>,
    mutants: Vec<Mutant>,
    equivalents: Equivalents,
    record: Record,
}

const RECORD: &str = "tests/mutants/record.txt";

/// Runs mutants of the project in `root` and reports on them.
///
/// # Errors
/// An unchanged kernel that fails; a wrong entry of a list; a mistake that nothing finds and that
/// the table does not have; too few found in a run of all.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let project = Project::read(root)?;
    project.lists_are_right()?;
    let chosen = project.chosen(options)?;
    if options.list {
        for Mutant { name, file, range, to, .. } in &chosen {
            let SourceFile { path, text, .. } = &project.files[*file];
            let line = text[..range.start].matches('\n').count() + 1;
            match options.json {
                true => say(&format!(
                    "{}\n",
                    json!({ "mutant": name, "file": path, "line": line, "to": to })
                ))?,
                false => say(&format!("{path}:{line}  {name}\n"))?,
            }
        }
        return Ok(());
    }
    if chosen.is_empty() {
        return say("no mutants to run\n");
    }
    let outcomes = project.outcomes(&chosen, options)?;
    if options.build {
        return Ok(());
    }
    let summary = report::summary(&outcomes);
    match options.json {
        true => note(&summary),
        false => say(&summary)?,
    }
    let wrong = report::wrongly_listed(&outcomes);
    ensure!(wrong.is_empty(), "caught, but listed as making no difference: {wrong:#?}");
    let written = match options.write {
        true => project.write(&outcomes)?,
        false => BTreeSet::new(),
    };
    let unknown = outcomes.iter().filter(|one| {
        one.missed() && !project.record.knows(one) && !written.contains(&one.mutant.file)
    });
    let (changed, unchanged) =
        unknown.partition::<Vec<_>, _>(|one| !project.is_current(one.mutant.file));
    for outcome in &unchanged {
        note(&format!("note: missed in a file that has not changed: {}\n", outcome.mutant.name));
    }
    let names = changed.iter().map(|outcome| &outcome.mutant.name).collect::<Vec<_>>();
    ensure!(
        names.is_empty(),
        "missed: {names:#?}\nA test for it, a line in the kernels' mutants.toml that says why it makes no difference, or \
         `cargo xtask mutants --file .. --write` to record it"
    );
    let least = match chosen.len() == project.mutants.len() {
        true => report::OF_ALL,
        // A sample may be unlucky. But a checker that finds nothing shows in any sample.
        false if chosen.len() >= 40 => report::OF_SOME,
        false => return Ok(()),
    };
    match report::too_few(&outcomes, least) {
        Some(why) => bail!("too few are found: {why}"),
        None => Ok(()),
    }
}

impl Project {
    fn read(root: &Path) -> Result<Self> {
        let root = std::path::absolute(root)?;
        let src = root.join("gpu/src");
        let representatives = representatives(&src.join("registry/representatives.rs"))?;
        let mut files = SourceFile::of_kernels(&src)?;
        let all = representatives.values().flatten().cloned().collect();
        // A file without a representative kernel has no mutants.
        files.retain(|file| of_file(&representatives, file).is_some());
        let contents = files.iter().map(content).collect();
        let mutants = mutant::mutants(&files, &all);
        let equivalents = Equivalents::read(&src)?;
        let record = Record::parse(&fs::read_to_string(root.join(RECORD)).unwrap_or_default());
        Ok(Project { root, files, contents, representatives, mutants, equivalents, record })
    }

    /// The kernels with which a file's mutants are run.
    fn kernels_of(&self, file: &SourceFile) -> &[String] {
        of_file(&self.representatives, file).map_or(&[], Vec::as_slice)
    }

    /// Checks that lists of equivalent mutants name existing mutants, and few of all.
    fn lists_are_right(&self) -> Result<()> {
        let names = self.mutants.iter().map(|mutant| &*mutant.name).collect::<Vec<_>>();
        let stale = self.equivalents.stale(&names);
        ensure!(
            stale.is_empty(),
            "listed in a mutants.toml, and no mutants (any more): {stale:#?}"
        );
        let kernels = self.files.iter().flat_map(SourceFile::kernels).collect::<BTreeSet<_>>();
        let unknown = self.representatives.values().flatten();
        let unknown = unknown.filter(|name| !kernels.contains(*name)).collect::<Vec<_>>();
        ensure!(unknown.is_empty(), "representatives that are no kernels: {unknown:?}");
        Ok(())
    }

    /// Whether a file's current content was run.
    fn is_current(&self, file: usize) -> bool {
        self.record.is_current(&self.files[file].path, self.contents[file])
    }

    /// The mutants that the options select, in files with representatives.
    fn chosen(&self, options: &Options) -> Result<Vec<Mutant>> {
        if let Some(revision) = &options.changed {
            let mut git = Command::new("git");
            git.current_dir(&self.root).args(["rev-parse", "--quiet", "--verify", revision]);
            ensure!(git.output()?.status.success(), "git knows no revision `{revision}`");
        }
        let mut chosen = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            let is_current = self.is_current(number);
            let is_wanted = options.file.as_ref().is_none_or(|part| file.path.contains(part))
                && !(options.stale && is_current);
            if !is_wanted {
                continue;
            }
            let functions = match &options.changed {
                None => None,
                Some(revision) => Some(self.changed(file, revision)?),
            };
            let is_chosen = |mutant: &&Mutant| {
                let function = mutant.name.split('/').nth(1).unwrap_or_default();
                mutant.file == number
                    && options.only.as_ref().is_none_or(|part| mutant.name.contains(part))
                    && functions.as_ref().is_none_or(|changed| changed.contains(function))
            };
            let mut those = self.mutants.iter().filter(is_chosen).cloned().collect();
            if let Some(count) = options.sample {
                let count = if is_current { count } else { 4 * count };
                those = mutant::drawn(those, self.contents[number], count);
            }
            chosen.extend(those);
        }
        Ok(chosen)
    }

    /// The functions of a file that differ from a revision.
    fn changed(&self, file: &SourceFile, revision: &str) -> Result<HashSet<String>> {
        let name = format!("{revision}:gpu/src/{}", file.path);
        let old = Command::new("git").current_dir(&self.root).args(["show", &name]).output()?;
        let old = old.status.success().then(|| String::from_utf8_lossy(&old.stdout).into_owned());
        let old = old.map(|text| SourceFile::new(file.path.clone(), text)).transpose()?;
        Ok(changed_functions(file, old.as_ref()))
    }

    fn outcomes(&self, chosen: &[Mutant], options: &Options) -> Result<Vec<Outcome>> {
        if let Some(path) = &options.from {
            return self.outcomes_of(path, chosen);
        }
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        let jobs = options.jobs.unwrap_or_else(cores);
        let files = chosen.iter().map(|mutant| mutant.file).collect::<BTreeSet<_>>();
        let kernels = files.iter().flat_map(|&file| self.kernels_of(&self.files[file]).to_vec());
        let kernels = kernels.collect::<BTreeSet<_>>();
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or(self.root.join("target"), PathBuf::from);
        let parts = workspace::Parts {
            root: &self.root,
            folder: &target.join("mutants"),
            files: &self.files,
            kernels: &kernels,
        };
        note(&format!("{} mutants, {} kernels\n", chosen.len(), kernels.len()));
        let program = match options.built {
            true => parts.built(chosen)?,
            false => parts.build(chosen)?,
        };
        if options.build {
            return Ok(Vec::new());
        }
        let trials = trial::trials(&program.path, &kernels, jobs)?;
        // The parsed files stay in this thread.
        let work = chosen.iter().map(|mutant| {
            (mutant, self.outcome(mutant), self.kernels_of(&self.files[mutant.file]))
        });
        let json = options.json;
        trial::in_parallel(&work.collect::<Vec<_>>(), jobs, |(mutant, outcome, kernels)| {
            let end = match program.broken.get(&mutant.id) {
                Some(message) => End::DoesNotCompile(message.clone()),
                None => End::Ran(trial::mutant(&program.path, &trials, kernels, mutant)?),
            };
            let outcome = Outcome { end, ..outcome.clone() };
            match json {
                true => say(&format!("{}\n", outcome.json()))?,
                false => say(&outcome.text())?,
            }
            Ok(outcome)
        })
    }

    /// A mutant's outcome before it is run.
    fn outcome(&self, mutant: &Mutant) -> Outcome {
        Outcome {
            mutant: mutant.clone(),
            file: self.files[mutant.file].path.clone(),
            content: self.contents[mutant.file],
            end: End::Ran(Findings::default()),
            equivalent: self.equivalents.reason(&mutant.name).map(str::to_owned),
        }
    }

    /// The outcomes in the output of another run.
    fn outcomes_of(&self, path: &Path, chosen: &[Mutant]) -> Result<Vec<Outcome>> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let printed = text.lines().map(serde_json::from_str::<Printed>);
        let all = printed.collect::<Result<Vec<_>, _>>()?;
        let mut printed = BTreeMap::new();
        for one in all {
            if let Some(other) = printed.insert(one.mutant.clone(), one) {
                bail!("{}: {} is there twice: not one run", path.display(), other.mutant);
            }
        }
        chosen
            .iter()
            .map(|mutant| {
                let one = printed.remove(&mutant.name);
                let one = one.with_context(|| format!("{} was not run", mutant.name))?;
                let outcome = self.outcome(mutant);
                ensure!(
                    one.content == format!("{:016x}", outcome.content),
                    "{} is not as it was when {} was written",
                    outcome.file,
                    path.display()
                );
                let (check, result) = (one.check.unwrap_or_default(), one.result);
                let end = match one.compiles {
                    true => End::Ran(Findings { check, result, reached: one.reached }),
                    false => End::DoesNotCompile(String::new()),
                };
                Ok(Outcome { end, ..outcome })
            })
            .collect()
    }

    /// Writes the rows of files all of whose mutants were run, and returns these files.
    fn write(&self, outcomes: &[Outcome]) -> Result<BTreeSet<usize>> {
        let path = self.root.join(RECORD);
        let before = fs::read_to_string(&path).with_context(|| format!("cannot read {RECORD}"))?;
        let mut record = Record::parse(&before);
        let mut head = Command::new("git");
        head.current_dir(&self.root).args(["rev-parse", "--short", "HEAD"]);
        let head = head.output()?;
        let commit = String::from_utf8_lossy(&head.stdout).trim().to_owned();
        let mut written = BTreeSet::new();
        for (number, file) in self.files.iter().enumerate() {
            let all = self.mutants.iter().filter(|mutant| mutant.file == number).count();
            let of_file = outcomes.iter().filter(|one| one.mutant.file == number);
            let of_file = of_file.collect::<Vec<_>>();
            if all > 0 && of_file.len() == all {
                record.renew(&file.path, self.contents[number], &commit, &of_file);
                written.insert(number);
            }
        }
        record.retain(&self.files.iter().map(|file| &*file.path).collect());
        fs::write(&path, record.document(&before)?)
            .with_context(|| format!("cannot write {RECORD}"))?;
        Ok(written)
    }
}

fn of_file<'a>(
    representatives: &'a BTreeMap<String, Vec<String>>,
    file: &SourceFile,
) -> Option<&'a Vec<String>> {
    representatives.get(&file.path).or_else(|| representatives.get(file.family()))
}

/// The registry's table of the kernels that represent a module or a file.
fn representatives(path: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let syntax = syn::parse_file(&text)?;
    let list = syntax.items.iter().find_map(|item| match item {
        Item::Const(list) if list.ident == "REPRESENTATIVES" => array(&list.expr),
        _ => None,
    });
    let rows = list.context("no list `REPRESENTATIVES`")?.into_iter().map(|row| {
        let Expr::Tuple(row) = row else { return None };
        let kernels = array(row.elems.get(1)?)?.into_iter().map(string).collect::<Option<_>>()?;
        Some((string(row.elems.first()?)?, kernels))
    });
    rows.collect::<Option<_>>()
        .context("a row of `REPRESENTATIVES` is not `(\"module\", &[\"kernel\", ..])`")
}

fn array(expr: &Expr) -> Option<Vec<&Expr>> {
    match expr {
        Expr::Reference(of) => array(&of.expr),
        Expr::Array(array) => Some(array.elems.iter().collect()),
        _ => None,
    }
}

fn string(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> Project {
        Project::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
    }

    /// Each entry of a list is an existing mutant, and few mutants are listed.
    #[test]
    fn lists_of_equivalents_are_right() {
        let project = ours();
        project.lists_are_right().unwrap();
        let names = project.mutants.iter().map(|mutant| &mutant.name);
        let listed = names.filter(|name| project.equivalents.reason(name).is_some()).count();
        let made = project.mutants.len();
        assert!(
            listed * 20 <= made,
            "{listed} of {made} are said to make no difference: more than 5 %"
        );
    }

    #[test]
    fn names_are_unique_and_every_operator_is_of_use() {
        let project = ours();
        let mut names = BTreeSet::new();
        for mutant in &project.mutants {
            assert!(names.insert(&mutant.name), "{} twice", mutant.name);
        }
        for (operator, name) in operators::Operator::ALL {
            assert!(project.mutants.iter().any(|mutant| mutant.operator == operator), "no {name}");
        }
    }

    #[test]
    fn representatives_are_of_all_files_but_programs() {
        let project = ours();
        let all = SourceFile::of_kernels(&project.root.join("gpu/src")).unwrap();
        let without = all.iter().filter(|file| of_file(&project.representatives, file).is_none());
        let without = without.map(|file| &*file.path).collect::<Vec<_>>();
        assert_eq!(without, WITHOUT, "files whose mutants nobody runs");
        for of in project.representatives.keys() {
            assert!(all.iter().any(|file| file.path == *of || file.family() == of), "no file {of}");
        }
    }

    /// Lists of modules, programs with tests of their own, and the kernel that is checked by eye.
    const WITHOUT: [&str; 10] = [
        "kernels/mod.rs",
        "lessons/blur.rs",
        "lessons/memories.rs",
        "lessons/mod.rs",
        "lessons/padded.rs",
        "lessons/pitched.rs",
        "lessons/tensor/mod.rs",
        "lessons/tiled_transposed.rs",
        "lessons/toy.rs",
        "lessons/vec_add.rs",
    ];
}
