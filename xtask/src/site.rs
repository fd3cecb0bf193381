//! `cargo xtask site`: the course and the other pages of `docs` as a static site.
//!
//! mdBook makes the site; it is a program of its own, and no dependency. The page of a rung of the
//! course gets what a file of Markdown cannot have: the picture of a traced block, which
//! `host explain --html` writes, and the rung's source beside the last rung's.
//!
//! | module | its one idea |
//! |---|---|
//! | `book` | the pages and the table of contents |
//! | `rung` | what the page of a rung gets |
//! | `beside` | two sources side by side, with the difference marked |
//! | `host` | the built command, which traces |

mod beside;
mod book;
mod host;
mod rung;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

pub(crate) use self::host::Host;
use crate::environment::{output, say, shown, target_folder};

/// The options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Write the pages for mdBook, and do not call it.
    pub source: bool,
    /// Take the command that `cargo test --workspace` has left in the target folder.
    pub of_tests: bool,
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
    let host = Host::build(root, options.of_tests)?;
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
