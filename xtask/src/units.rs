//! How often the kernels are compiled: cargo's units of compilation, as `--unit-graph` tells them.
//!
//! Cargo compiles a package again where it, or any package that it needs, has other features or
//! another profile. The features of a package are those that all packages of a command ask for. So
//! the kernels are compiled once only if nothing that they need has features that others extend.

use std::{collections::BTreeSet, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{
    environment::{cargo, clean, output},
    licences,
};

/// The libraries that take most of a build.
const KERNELS: [&str; 2] = ["simt", "gpu"];

/// A library and all that it needs: each package with its features and settings.
type Closure = BTreeSet<String>;

/// What cargo compiles of the kernels for a command: each closure with its library. Nothing is
/// compiled.
///
/// # Errors
/// What cargo says, of an unknown package for example.
fn compiled(folder: &Path, args: &str, has_profile: bool) -> Result<BTreeSet<(String, Closure)>> {
    // What `run` compiles; it has no graph.
    let build = args.strip_prefix("run").map(|args| format!("build{args}"));
    let mut command = Command::new(cargo());
    command.args(build.as_deref().unwrap_or(args).split(' ')).args([
        "--locked",
        "--unit-graph",
        "-Z",
        "unstable-options",
    ]);
    // So that a cargo of stable Rust takes the option.
    clean(command.current_dir(folder)).env("RUSTC_BOOTSTRAP", "1");
    let graph: Value = serde_json::from_str(&output(&mut command)?)
        .with_context(|| format!("cargo {args}: no graph"))?;
    let units = graph["units"].as_array().with_context(|| format!("cargo {args}: no units"))?;
    let mut all = BTreeSet::new();
    for (index, unit) in units.iter().enumerate() {
        let name = unit["target"]["name"].as_str().unwrap_or_default();
        if KERNELS.contains(&name) && unit["mode"] == "build" {
            all.insert((name.to_owned(), closure(units, index, has_profile)));
        }
    }
    Ok(all)
}

fn closure(units: &[Value], index: usize, has_profile: bool) -> Closure {
    let (mut seen, mut open) = (BTreeSet::from([index]), vec![index]);
    while let Some(index) = open.pop() {
        let needed = units[index]["dependencies"].as_array().into_iter().flatten();
        let needed = needed.filter_map(|needed| Some(needed["index"].as_u64()? as usize));
        open.extend(needed.filter(|needed| seen.insert(*needed)));
    }
    seen.into_iter().map(|index| described(&units[index], has_profile)).collect()
}

fn described(unit: &Value, has_profile: bool) -> String {
    let package = unit["pkg_id"].as_str().unwrap_or_default();
    let mut text = format!("{package} {} {} {}", unit["features"], unit["mode"], unit["platform"]);
    if has_profile && let Some(profile) = unit["profile"].as_object() {
        // `dev` and `test` are two names of the same settings.
        let settings = profile.iter().filter(|(name, _)| *name != "name");
        settings.for_each(|(name, value)| text += &format!(" {name}={value}"));
    }
    text
}

/// Refuses commands for which cargo compiles the kernels in more than one way.
fn ensure_one(all: &[(&str, BTreeSet<(String, Closure)>)]) -> Result<()> {
    for library in KERNELS {
        let of_library = all.iter().flat_map(|(command, compiled)| {
            let own = compiled.iter().filter(move |(name, _)| name == library);
            own.map(move |(_, closure)| (command, closure))
        });
        let of_library = of_library.collect::<Vec<_>>();
        let Some((first, expected)) = of_library.first() else {
            bail!("{library}: no command compiles it");
        };
        for (command, closure) in &of_library {
            let apart = closure.symmetric_difference(expected).map(String::as_str);
            let apart = apart.collect::<Vec<_>>().join("\n  ");
            ensure!(
                apart.is_empty(),
                "{library} is compiled again for `cargo {command}` after `cargo {first}`: give what it needs the \
                 same features and settings everywhere. Only one of the two has\n  {apart}"
            );
        }
    }
    Ok(())
}

/// Checks that the kernels in the wheel have the features of the kernels elsewhere. (Its profile is
/// its own.)
///
/// # Errors
/// The difference.
pub(crate) fn check_wheel(root: &Path) -> Result<()> {
    let of = |folder: &Path, args| compiled(folder, args, false);
    ensure_one(&[
        ("build -p gpu-gemm", of(root, "build -p gpu-gemm")?),
        ("build, of host/python", of(&root.join(licences::FOLDER), "build")?),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::known_files;

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
    }

    /// The commands of CI, and choices of packages and features that no document has.
    const COMMANDS: [&str; 17] = [
        "run -p host",
        "test --workspace --no-run",
        "build --workspace",
        "build --workspace --all-targets",
        "build -p gpu-gemm",
        "build -p gpu-gemm --no-default-features --features cpu",
        "build -p gpu-gemm --all-features",
        "build -p gpu-gemm --examples",
        "build -p gpu-simt",
        "build -p gpu-gemm-kernels",
        "build -p host --all-features",
        "build -p host --no-default-features",
        "build -p mutants-driver",
        "test -p gpu-gemm",
        "test -p host",
        "test -p tests",
        "test -p tests --no-default-features",
    ];

    /// The commands that the documents have a reader type in this workspace, without what a program
    /// gets.
    fn of_documents() -> BTreeSet<String> {
        let mut commands = BTreeSet::new();
        for (_, text) in known_files(root(), &["*.md"]).unwrap() {
            // A line of a code block, or a piece of prose in backticks.
            for piece in text.lines().flat_map(|line| line.split('`')) {
                let piece = piece.trim_start_matches(['$', ' ']);
                let Some(args) = piece.strip_prefix("cargo ") else { continue };
                let args = args.split_once(" -- ").map_or(args, |(args, _)| args);
                let args = args.split(['#', '|', '>']).next().unwrap_or_default();
                let args = args.split_whitespace().collect::<Vec<_>>().join(" ");
                if ["run", "test", "build", "bench"].iter().any(|task| args.starts_with(task)) {
                    commands.insert(args);
                }
            }
        }
        commands
    }

    /// Whether a command compiles the kernels otherwise on purpose, or is for another workspace.
    fn is_of_its_own(args: &str) -> bool {
        args.contains("sanitizer")
            || args.ends_with("--no-default-features --features cuda")
            || args == "run --example transpose --features gpu"
    }

    #[test]
    fn the_kernels_are_compiled_once_for_all_commands() {
        let documents = of_documents();
        assert!(documents.contains("run -p gpu-simt --example race"), "{documents:#?}");
        let all = COMMANDS.into_iter().chain(documents.iter().map(String::as_str));
        let all = all.filter(|args| !is_of_its_own(args)).map(|args| {
            let compiled = compiled(root(), args, true);
            (args, compiled.unwrap_or_else(|error| panic!("cargo {args}: {error:#}")))
        });
        let is_release = |args: &str| args.contains("--release") || args.starts_with("bench");
        let (release, dev): (Vec<_>, Vec<_>) = all.partition(|(args, _)| is_release(args));
        ensure_one(&dev).unwrap_or_else(|error| panic!("{error:#}"));
        ensure_one(&release).unwrap_or_else(|error| panic!("{error:#}"));
    }

    #[test]
    fn a_second_set_of_features_is_told_with_the_package_that_has_it() {
        let closure = |half: &str| Closure::from([half.to_owned(), "simt []".to_owned()]);
        let of = |half| {
            BTreeSet::from([("simt".to_owned(), closure(half)), ("gpu".into(), closure(half))])
        };
        assert!(ensure_one(&[("a", of("half [1]")), ("b", of("half [1]"))]).is_ok());
        let error = ensure_one(&[("a", of("half [1]")), ("b", of("half [2]"))]).unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with("simt is compiled again for `cargo b` after `cargo a`"), "{said}");
        assert!(said.contains("half [1]") && said.contains("half [2]"), "{said}");
        assert!(!said.contains("simt []"), "{said}");
        assert!(ensure_one(&[]).is_err());
    }
}
