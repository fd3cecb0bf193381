//! The modules of kernels and solutions where one exercise alone is compiled:
//! `EXERCISE=NAME cargo run -p exercises`.
//!
//! A kernel that does not compile stops the compiler, and all kernels are one crate. So that such a
//! kernel leaves the other exercises usable, the build script replaces both lists of modules, if
//! `EXERCISE` is set, by a list in which that exercise's files are the only ones. All others are
//! `NOT_COMPILED`.
//!
//! A target of its own for each kernel would be 74 programs to link, in every
//! `cargo test --workspace`. One takes a quarter of a CPU second (2026-11-28, two cores). This
//! takes nothing where `EXERCISE` is not set.

use std::{fs, io, path::Path};

/// The names of all exercises: those of the solutions' files.
pub fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder.join("src/solutions"))?.collect::<io::Result<Vec<_>>>()?;
    let files = entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok());
    let names = files.filter_map(|file| Some(file.strip_suffix(".rs")?.to_owned()));
    let mut names = names.filter(|name| name != "mod").collect::<Vec<_>>();
    names.sort_unstable();
    Ok(names)
}

/// The two modules, with the files of the exercise `one` and of no other. `folder`: the package's.
pub fn modules(folder: &Path, names: &[String], one: &str) -> String {
    let mut text = String::new();
    for side in ["kernels", "solutions"] {
        text += &format!(
            "/// The exercise that `EXERCISE` names.\npub mod {side} {{\n    use super::device;\n"
        );
        for name in names {
            let file = folder.join(format!("src/{side}/{name}.rs"));
            let module = match name == one {
                true => format!("    #[path = {file:?}]\n    pub mod {name};"),
                false => format!(
                    "    pub mod {name} {{ pub use crate::exercise::NOT_COMPILED as {name}; }}"
                ),
            };
            text += &format!("    #[allow(missing_docs)]\n{module}\n");
        }
        text += "}\n";
    }
    text
}
