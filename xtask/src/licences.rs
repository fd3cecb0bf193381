//! The licences of what the Python package's library is linked from, which go into its wheel.
//!
//! They are files in the package's folder, as PEP 639 wants them: copies of the project's own
//! licences, and one file with those of the crates of crates.io and of Rust's standard library. A
//! wheel is built from a checkout without this program, so the files are committed.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::environment::{cargo, clean, output};

/// The folder of the package, a workspace of its own.
pub(crate) const FOLDER: &str = "host/python";

/// The project's own licences.
const OWN: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Those of others.
const OTHERS: &str = "LICENSES-OF-OTHERS.txt";

/// The target of the wheel.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The heading of what a toolchain says, which changes with the toolchain.
const OF_STD: &str = "\n# Rust's standard library\n";

/// The crates of other authors that the standard library has on Linux.
const IN_STD: &str = "\
    addr2line adler2 cfg-if foldhash gimli hashbrown libc memchr miniz_oxide object rustc-demangle";

/// How `cargo xtask licences` runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Compare instead of writing.
    pub check: bool,
}

/// Writes the files, or compares them with what they must be. Of the standard library's part only
/// the heading is compared: its text is of the toolchain that wrote it.
///
/// # Errors
/// A file that differs; a crate without a licence's text.
pub fn run(root: &Path, options: Options) -> Result<()> {
    let folder = root.join(FOLDER);
    let mut files = BTreeMap::new();
    for name in OWN {
        let text = fs::read_to_string(root.join(name)).with_context(|| format!("no {name}"))?;
        files.insert(folder.join(name), text);
    }
    let of_crates = of_crates(&folder)?;
    if options.check {
        let path = folder.join(OTHERS);
        let old = fs::read_to_string(&path).unwrap_or_default();
        let (start, of_std) = old.split_once(OF_STD).unwrap_or((&old, ""));
        ensure!(
            start == of_crates && of_std.contains("hashbrown"),
            "{} is not what {FOLDER}/Cargo.lock asks for: run `cargo xtask licences`",
            path.display()
        );
    } else {
        files.insert(folder.join(OTHERS), of_crates + &of_std()?);
    }
    for (path, text) in files {
        if !options.check {
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        } else if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            bail!("{} is no copy of the project's: run `cargo xtask licences`", path.display());
        }
    }
    Ok(())
}

/// The names of the files in the wheel.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    OWN.into_iter().chain([OTHERS])
}

/// The part of the crates of crates.io.
fn of_crates(folder: &Path) -> Result<String> {
    let cargo = |args: &[&str]| {
        let mut command = Command::new(cargo());
        command.args(args).args(["--locked"]).current_dir(folder);
        output(clean(&mut command))
    };
    // Without macros and build scripts, of which the library has no code of theirs.
    let edges = "normal,no-proc-macro";
    let tree = ["tree", "--edges", edges, "--target", TARGET, "--prefix", "none"];
    let tree = cargo(&[&tree[..], &["--format", "{p}"]].concat())?;
    let metadata = ["metadata", "--format-version", "1", "--filter-platform", TARGET];
    let metadata: Value = serde_json::from_str(&cargo(&metadata)?)?;
    let mut text =
        "Licences of the software of others that gpu_gemm's native library contains.\n".to_owned();
    let mut found = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let of = |key: &str| package[key].as_str().unwrap_or_default();
        // As cargo's tree has it. The project's own have a path, too.
        let name = format!("{} v{}", of("name"), of("version"));
        if tree.lines().any(|line| line == name) {
            let manifest = Path::new(of("manifest_path"));
            let file = licence_in(manifest.parent().context("a manifest has no folder")?)
                .with_context(|| format!("{name} has no text of its licence"))?;
            found.insert(name, (of("license").to_owned(), fs::read_to_string(file)?));
        }
    }
    ensure!(!found.is_empty(), "cargo tree names no crate of crates.io:\n{tree}");
    for (name, (licence, words)) in found {
        write!(text, "\n# {name}: {licence}\n\n{}\n", plain(&words))?;
    }
    Ok(text)
}

/// The file with a crate's licence. Of several, the MIT licence is the shortest, and each crate
/// that has several lets its user choose.
fn licence_in(folder: &Path) -> Option<PathBuf> {
    let names = [
        "LICENSE-MIT",
        "LICENSE-MIT.txt",
        "LICENSE-MIT.md",
        "LICENSE",
        "LICENSE.txt",
        "LICENSE.md",
    ];
    names.into_iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// A text without spaces at the ends of lines, and without empty lines at its ends.
fn plain(text: &str) -> String {
    let lines = text.lines().map(str::trim_end).collect::<Vec<_>>();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// The part of the standard library, which the toolchain has as a page.
fn of_std() -> Result<String> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let page = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    let page = fs::read_to_string(&page)
        .with_context(|| format!("the toolchain has no {}", page.display()))?;
    let mut text = format!(
        "{OF_STD}\nThe Rust Project Developers (see https://thanks.rust-lang.org): MIT OR Apache-2.0. The texts of both are those of \
         this package.\nParts of it are tables of Unicode (Unicode-3.0), Copyright (c) 1991-2024 Unicode, Inc.\n"
    );
    for section in page.split("<h3>").skip(1) {
        let title = section.split("</h3>").next().unwrap_or_default();
        let title = title.trim_start_matches(|first: char| !first.is_ascii_alphanumeric());
        let name = title.rsplit_once('-').map_or(title, |(name, _)| name);
        if !IN_STD.split(' ').any(|known| known == name) {
            continue;
        }
        let notices = section.split("<details>").skip(1).collect::<Vec<_>>();
        let of = |wanted: &str| notices.iter().find(|notice| notice.contains(wanted)).copied();
        let notice = of("<code>LICENSE-MIT</code>").or(of("<code>LICENSE</code>"));
        let words = notice.and_then(|notice| between(notice, "<pre>", "</pre>"));
        let licence = between(section, "<b>License:</b>", "</p>").unwrap_or_default();
        let words = words.with_context(|| format!("the page has no licence of {title}"))?;
        write!(text, "\n# {title}: {}\n\n{}\n", licence.trim(), plain(&unescaped(words)))?;
    }
    Ok(text)
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    text.split_once(start)?.1.split_once(end).map(|(found, _)| found)
}

/// The characters that HTML writes by numbers and names.
fn unescaped(text: &str) -> String {
    let pairs = [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];
    pairs.into_iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_s_text() {
        let notice = "<code>LICENSE</code><pre>\n\n&#34;Software&#34; &#60;a&#62;  \nb\n\n</pre>";
        assert_eq!(
            plain(&unescaped(between(notice, "<pre>", "</pre>").unwrap())),
            "\"Software\" <a>\nb"
        );
    }
}
