//! The modules of exercises that the build script writes.
//!
//! `solutions` has a file for each exercise: its kernel, changed as `src/solutions/NAME.diff` says.
//! `mine` has what the reader has begun: `EXERCISE=NAME cargo run -p exercises` copies the kernel
//! into the folder `mine`, where it is edited.
//!
//! A kernel that does not compile stops the compiler, and all kernels are one crate. So that such a
//! kernel leaves the other exercises usable, that exercise's files are the only ones that are
//! compiled if `EXERCISE` is set. All others are `NOT_COMPILED`, in `kernels` too.
//!
//! A target of its own for each kernel would be 74 programs to link, in every
//! `cargo test --workspace`. One takes a quarter of a CPU second (2026-11-28, two cores). This
//! takes nothing where `EXERCISE` is not set.

use std::{fs, io, path::Path};

/// The names of all exercises: those of the kernels' files.
pub fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder.join("src/kernels"))?.collect::<io::Result<Vec<_>>>()?;
    let files = entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok());
    let names = files.filter_map(|file| Some(file.strip_suffix(".rs")?.to_owned()));
    let mut names = names.filter(|name| name != "mod").collect::<Vec<_>>();
    names.sort_unstable();
    Ok(names)
}

/// A kernel, changed by a diff without line numbers. What stands before a change is in the kernel
/// once.
///
/// # Errors
/// The first change that does not fit.
pub fn changed(kernel: &str, diff: &str) -> Result<String, String> {
    let kernel = format!("\n{kernel}");
    let (mut text, mut end) = (String::new(), 0);
    for change in diff.split("@@\n").skip(1) {
        let side = |other: char| {
            let lines = change.lines().filter(|line| !line.starts_with(other));
            lines.fold("\n".to_owned(), |all, line| all + line.get(1..).unwrap_or("") + "\n")
        };
        let (before, after) = (side('+'), side('-'));
        let mut places = kernel.match_indices(&before).map(|(at, _)| at);
        match (places.next(), places.next()) {
            // The line's end before it may be that of the last change.
            (Some(at), None) if at + 1 >= end => {
                text += kernel.get(end..at).unwrap_or("");
                text += after.trim_end_matches('\n');
                end = at + before.trim_end_matches('\n').len();
            }
            _ => return Err(format!("this is not in the kernel once, in this order:{before}")),
        }
    }
    text += &kernel[end..];
    Ok(text[1..].to_owned())
}

/// The modules `solutions` and `mine`. With an exercise `one`, `kernels` too, and the files of that
/// one and of no other. `folder`: the package's. `out`: where `solutions/NAME.rs` are.
pub fn modules(folder: &Path, out: &Path, names: &[String], one: Option<&str>) -> String {
    let (kernels, mine) = (folder.join("src/kernels"), folder.join("mine"));
    let solutions = out.join("solutions");
    let is_compiled = |name: &str| one.is_none_or(|one| one == name);
    let mut text = module("solutions", "A solution to each exercise.", names, |name| {
        is_compiled(name).then(|| solutions.join(format!("{name}.rs")))
    });
    if one.is_some() {
        text += &module("kernels", "The exercise that `EXERCISE` names.", names, |name| {
            is_compiled(name).then(|| kernels.join(format!("{name}.rs")))
        });
    }
    let file = |name: &str| mine.join(format!("{name}.rs"));
    let begun = names.iter().filter(|name| is_compiled(name) && file(name).is_file());
    let begun = begun.cloned().collect::<Vec<_>>();
    text += &module("mine", "What the reader has begun.", &begun, |name| Some(file(name)));
    text += "/// What the reader has begun, by name.\npub static MINE: &[(&str, exercise::Side)] = &[\n";
    for name in begun {
        let file = file(&name);
        text += &format!(
            "    ({name:?}, exercise::Side {{ folder: exercise::MINE, kernel: &mine::{name}::{name}, source: include_str!({file:?}) }}),\n"
        );
    }
    text + "];\n"
}

/// A module with a module for each name: its file, or where there is none `NOT_COMPILED`.
fn module(
    module: &str,
    says: &str,
    names: &[String],
    file: impl Fn(&str) -> Option<std::path::PathBuf>,
) -> String {
    let mut text =
        format!("/// {says}\npub mod {module} {{\n    #[allow(unused)]\n    use super::device;\n");
    for name in names {
        let module = match file(name) {
            Some(file) => format!("    #[path = {file:?}]\n    pub mod {name};"),
            None => {
                format!("    pub mod {name} {{ pub use crate::exercise::NOT_COMPILED as {name}; }}")
            }
        };
        text += &format!("    #[allow(missing_docs)]\n{module}\n");
    }
    text + "}\n"
}
