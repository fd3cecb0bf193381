//! No circle of files: a crate's files use each other in one direction only.
//!
//! An **edge** goes from a file to the file that defines what a path in it names. These paths
//! count, in a `use` or anywhere else, also in macros and in the file's own tests:
//!
//! * a path that starts with `crate`, `self` or `super`;
//! * a path that starts with a child module, or with a module that the file has imported: of
//!   `use super::fiber;` and `fiber::Event` only the second makes an edge.
//!
//! A path is followed through imports and re-exports to the definition. So a parent that only
//! declares and re-exports its children (`mod.rs`) defines nothing, and no edge leads to it.
//!
//! These make no edge: `mod x;`; a re-export of a child's item (`pub use x::Item;`); a path with
//! `$crate` in a macro, which belongs to the file that uses the macro; and a call of a method,
//! whose file no path names.
//!
//! A **circle** is a set of files, each of which reaches every other one along edges.

mod modules;
mod tokens;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    path::Path,
};

use anyhow::{Result, ensure};

use self::modules::Crate;
use crate::environment::{known_files, say};

/// Checks that there are no circles.
///
/// # Errors
/// The circles, each with a shortest path.
pub fn check(root: &Path) -> Result<()> {
    let files = known_files(root, &["*.rs"])?.into_iter().collect::<BTreeMap<_, _>>();
    let roots = files.keys().filter(|file| is_root(file));
    let mut found = Vec::new();
    for file in roots {
        found.extend(circles(&Crate::read(file, &files)?));
    }
    found.sort();
    found.dedup();
    let found = found.iter().map(ToString::to_string).collect::<Vec<_>>();
    ensure!(
        found.is_empty(),
        "files that use each other in a circle. Move what both need into a file of its own, below both.\n{}",
        found.join("\n")
    );
    say("ci: circles of files: none\n")?;
    Ok(())
}

/// Whether it is a crate's root file, from which modules are found.
fn is_root(file: &str) -> bool {
    ["lib.rs", "main.rs"].iter().any(|name| file.rsplit('/').next() == Some(name))
}

/// Files that reach each other.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Circle {
    files: Vec<String>,
    /// A shortest path from the first file back to it.
    way: Vec<String>,
}

/// A shortest path, and all files.
impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Circle { files, way } = self;
        write!(f, "  {}\n  of {}: {files:?}", way.join("\n  -> "), files.len())
    }
}

/// The circles of a crate.
fn circles(krate: &Crate) -> Vec<Circle> {
    let edges = krate.edges();
    let reach = edges.keys().map(|&file| (file, way(&edges, file, None).0));
    let reach = reach.collect::<BTreeMap<_, _>>();
    let mut circles = Vec::new();
    let mut done = BTreeSet::new();
    for (&file, reached) in &reach {
        if !reached.contains(file) || !done.insert(file) {
            continue;
        }
        let together = |other: &&&str| reach.get(**other).is_some_and(|of| of.contains(file));
        let files = reached.iter().filter(together).map(|&other| other.to_owned());
        let files = files.collect::<Vec<_>>();
        done.extend(reached.iter().filter(together));
        let way = way(&edges, file, Some(file)).1;
        circles.push(Circle { files, way });
    }
    circles
}

/// All files that are reachable from one, and a shortest path to `to`.
fn way<'a>(
    edges: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    from: &'a str,
    to: Option<&str>,
) -> (BTreeSet<&'a str>, Vec<String>) {
    let mut before = BTreeMap::<&str, &str>::new();
    let mut next = VecDeque::from([from]);
    while let Some(file) = next.pop_front() {
        for &other in edges.get(file).into_iter().flatten() {
            if !before.contains_key(other) {
                before.insert(other, file);
                next.push_back(other);
            }
        }
    }
    let mut way = to.map(str::to_owned).into_iter().collect::<Vec<_>>();
    while let Some(&file) = way.last().and_then(|last| before.get(last.as_str())) {
        way.push(file.to_owned());
        if file == from {
            break;
        }
    }
    way.reverse();
    (before.into_keys().collect(), way)
}

#[cfg(test)]
mod tests;
