//! `cargo xtask site`: the course and the other pages of `docs` as a static site.
//!
//! mdBook makes the site; it is a program of its own, and no dependency. The page of a rung of the course gets what a
//! file of Markdown cannot have: the picture of a traced block, which `host explain --html` writes, and the rung's
//! source beside the last rung's.
//!
//! | module | its one idea |
//! |---|---|
//! | `book` | the pages and the table of contents |
//! | `rung` | what the page of a rung gets |
//! | `beside` | two sources side by side, with the difference marked |
//! | `exercises` | the exercises of a rung, from their list |

mod beside;
mod book;
mod exercises;
mod rung;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::environment::{cargo, keep_target, output, say, shown, target_folder};

/// The options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Write the pages for mdBook, and do not call it.
    pub source: bool,
}

/// How to get mdBook.
const INSTALL: &str = "`cargo install mdbook --version ^0.5` installs it; the variable MDBOOK names another place. \
                       `cargo xtask site --source` does without it";

/// Writes the site to `target/site/book`.
///
/// # Errors
/// No mdBook, or one that fails; a page that cannot be made.
pub fn run(root: &Path, options: Options) -> Result<()> {
    // A missing program is an error before anything is traced.
    let mdbook = match options.source {
        true => None,
        false => Some(find_mdbook()?),
    };
    let folder = target_folder(root).join("site");
    let host = Host::build(root)?;
    let pages = book::write(root, &folder, &host)?;
    say(&format!("site: {pages} pages in {}\n", shown(&folder.join("source"), root)))?;
    let Some(mdbook) = mdbook else { return Ok(()) };
    let book = folder.join("book");
    if book.exists() {
        fs::remove_dir_all(&book).with_context(|| format!("cannot empty {}", book.display()))?;
    }
    output(Command::new(&mdbook).arg("build").arg(&folder))?;
    say(&format!("site: {}\n", shown(&book.join("index.html"), root)))
}

/// mdBook: the program that the variable `MDBOOK` names, or the first on `PATH`.
fn find_mdbook() -> Result<PathBuf> {
    if let Some(named) = env::var_os("MDBOOK").map(PathBuf::from) {
        ensure!(named.is_file(), "MDBOOK is {}, which is no file: {INSTALL}", named.display());
        return Ok(named);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).map(|folder| folder.join("mdbook"));
    match places.find(|place| place.is_file()) {
        Some(place) => Ok(place),
        None => bail!("there is no mdbook on PATH, and it makes the site: {INSTALL}"),
    }
}

/// The built command of the workspace.
pub(crate) struct Host {
    program: PathBuf,
}

impl Host {
    /// Builds it.
    pub(crate) fn build(root: &Path) -> Result<Host> {
        let mut command = Command::new(cargo());
        keep_target(&mut command, root).current_dir(root);
        let status = command.args(["build", "--quiet", "--package", "host"]).status();
        ensure!(status.context("cannot run cargo")?.success(), "the command cannot be built");
        Ok(Host { program: target_folder(root).join("debug/host") })
    }

    /// What it prints.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        output(Command::new(&self.program).args(arguments))
    }

    /// The kernels that it lists, in the order of the registry.
    fn kernels(&self) -> Result<Vec<Value>> {
        let listed = self.run(&["kernels", "--json"])?;
        listed.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// The names of all rungs of the course.
    pub(crate) fn rungs(&self) -> Result<Vec<String>> {
        let kernels = self.kernels()?;
        let rungs = kernels.iter().filter(|kernel| kernel["idea"].is_string());
        Ok(rungs.filter_map(|kernel| kernel["name"].as_str()).map(str::to_owned).collect())
    }
}
