//! The modules of exercises that the build script writes.
//!
//! `solutions` has a file for each exercise: its kernel, changed as `src/solutions/NAME.diff` says.
//! A diff that begins with `of OTHER` is read backwards: the solution is that of OTHER with another
//! name and head, and the kernel, in `spoiled`, is that solution without the changes.
//!
//! `mine` has what the reader has begun: `EXERCISE=NAME cargo run -p exercises` copies the kernel
//! into the folder `mine`, where it is edited.
//!
//! A kernel that does not compile stops the compiler, and all kernels are one crate. So that such a
//! kernel leaves the other exercises usable, that exercise's files are the only ones that are
//! compiled if `EXERCISE` is set. All others are `NOT_COMPILED`, in `kernels` and `spoiled` too.
//!
//! A target of its own for each kernel would be 74 programs to link, in every
//! `cargo test --workspace`. One takes a quarter of a CPU second (2026-11-28, two cores). This
//! takes nothing where `EXERCISE` is not set.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The names of all exercises: those of the solutions' files.
pub fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder.join("src/solutions"))?.collect::<io::Result<Vec<_>>>()?;
    let files = entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok());
    let names = files.filter_map(|file| Some(file.strip_suffix(".diff")?.to_owned()));
    let mut names = names.collect::<Vec<_>>();
    names.sort_unstable();
    Ok(names)
}

/// The kernel and the solution of an exercise.
///
/// # Errors
/// The file that cannot be read, or the change that does not fit.
pub fn both(folder: &Path, name: &str) -> Result<[String; 2], String> {
    let read = |path: String| {
        fs::read_to_string(folder.join(&path)).map_err(|error| format!("{path}: {error}"))
    };
    let kernel = |name: &str| read(format!("src/kernels/{name}.rs"));
    let diff = |name: &str| read(format!("src/solutions/{name}.diff"));
    let in_diff = |what: String| format!("src/solutions/{name}.diff: {what}");
    let changes = diff(name)?;
    let Some(other) = changes.lines().next().and_then(|line| line.strip_prefix("of ")) else {
        let kernel = kernel(name)?;
        let solution = changed(&kernel, &changes).map_err(in_diff)?;
        return Ok([kernel, solution]);
    };
    let solution = changed(&kernel(other)?, &diff(other)?).map_err(in_diff)?;
    let solution = renamed(&solution, other, name, &changes).map_err(in_diff)?;
    let kernel = changed(&solution, &backwards(&changes)).map_err(in_diff)?;
    Ok([kernel, solution])
}

/// A solution of `other` as that of `name`, with the head that the first change of a diff gives it.
fn renamed(solution: &str, other: &str, name: &str, diff: &str) -> Result<String, String> {
    let first = diff.split("@@\n").nth(1).unwrap_or("");
    let head = first.lines().filter(|line| !line.starts_with('-'));
    let head = head.map(|line| line.get(1..).unwrap_or("").to_owned() + "\n").collect::<String>();
    let (from, to) = (format!("pub fn {other}("), format!("pub fn {name}("));
    if !head.lines().all(|line| line.starts_with("//!")) || !solution.contains(&from) {
        return Err(format!("the first change is not that of the head: {first}"));
    }
    let body = solution.lines().skip_while(|line| line.starts_with("//!"));
    let body = body.map(|line| line.to_owned() + "\n").collect::<String>();
    Ok(head + &body.replace(&from, &to))
}

/// A diff that takes the changes of another one back.
fn backwards(diff: &str) -> String {
    let lines = diff.lines().map(|line| match (line.strip_prefix('+'), line.strip_prefix('-')) {
        (Some(added), _) => format!("-{added}\n"),
        (_, Some(removed)) => format!("+{removed}\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
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

/// The modules `solutions`, `spoiled` and `mine`, and the kernels to begin with, as `starts`. With
/// an exercise `one`, `kernels` too, and the files of that one and of no other. `folder`: the
/// package's. `out`: where `solutions/NAME.rs` are, and `kernels/NAME.rs` of `spoiled`.
pub fn modules(folder: &Path, out: &Path, names: &[String], one: Option<&str>) -> String {
    let (kernels, mine) = (folder.join("src/kernels"), folder.join("mine"));
    let (spoiled, solutions) = (out.join("kernels"), out.join("solutions"));
    let is_compiled = |name: &str| one.is_none_or(|one| one == name);
    let in_folder = |folder: &Path, name: &str| folder.join(format!("{name}.rs"));
    let (written, made) =
        names.iter().cloned().partition::<Vec<_>, _>(|name| in_folder(&kernels, name).is_file());
    let mut text = module("solutions", "A solution to each exercise.", names, |name| {
        is_compiled(name).then(|| in_folder(&solutions, name))
    });
    text += &module("spoiled", "Kernels that are solutions without a change.", &made, |name| {
        is_compiled(name).then(|| in_folder(&spoiled, name))
    });
    if one.is_some() {
        text += &module("kernels", "The exercise that `EXERCISE` names.", &written, |name| {
            is_compiled(name).then(|| in_folder(&kernels, name))
        });
    }
    text += "#[allow(non_upper_case_globals)]\nmod starts {\n    use super::*;\n";
    for (module, folder, shown, names) in [
        ("kernels", &kernels, "tests/exercises/src/kernels", &written),
        ("spoiled", &spoiled, "kernels", &made),
    ] {
        for name in names {
            let side = side(&format!("{shown:?}"), module, name, &in_folder(folder, name));
            text += &format!("    pub const {name}: exercise::Side = {side};\n");
        }
    }
    text += "}\n";
    let file = |name: &str| in_folder(&mine, name);
    let begun = names.iter().filter(|name| is_compiled(name) && file(name).is_file());
    let begun = begun.cloned().collect::<Vec<_>>();
    text += &module("mine", "What the reader has begun.", &begun, |name| Some(file(name)));
    text += "/// What the reader has begun, by name.\npub static MINE: &[(&str, exercise::Side)] = &[\n";
    for name in begun {
        let side = side("exercise::MINE", "mine", &name, &file(&name));
        text += &format!("    ({name:?}, {side}),\n");
    }
    text + "];\n"
}

/// A side of the exercise `name`, whose kernel is in a module.
fn side(folder: &str, module: &str, name: &str, file: &Path) -> String {
    format!(
        "exercise::Side {{ folder: {folder}, kernel: &{module}::{name}::{name}, source: include_str!({file:?}) }}"
    )
}

/// A module with a module for each name: its file, or where there is none `NOT_COMPILED`.
fn module(
    module: &str,
    says: &str,
    names: &[String],
    file: impl Fn(&str) -> Option<PathBuf>,
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
