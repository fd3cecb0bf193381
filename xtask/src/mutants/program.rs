//! The program that holds the mutants: one crate, a module for each.
//!
//! One crate for all, because the compiler's start and the kernels' dependencies cost more than the mutants.
//! Those that do not compile are found in the compiler's messages and left out of the next attempt.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{
    entries,
    mutant::Mutant,
    source::{Kernel, KernelFile, KernelModule, Params},
};
use crate::environment::{cargo, clean};

/// What the program runs a mutant with.
const DRIVER: [(&str, &str); 4] = [
    ("main.rs", include_str!("driver.rs")),
    ("general.rs", include_str!("general.rs")),
    ("tensor.rs", include_str!("tensor.rs")),
    ("sliced.rs", include_str!("sliced.rs")),
];

/// A kernel module, with those of its kernels and mutants that a program is to hold.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub module: &'a KernelModule,
    pub kernels: &'a [Kernel],
    pub mutants: &'a [Mutant],
}

impl Subject<'_> {
    /// The module that a mutant is compiled as, and the name of its folder.
    pub fn module(&self, mutant: usize) -> String {
        format!("{}_{mutant}", self.module.name)
    }

    /// The kernels that a mutant is run with, each with what it is one of.
    fn entries(&self, mutant: &Mutant) -> impl Iterator<Item = (&Kernel, &String)> {
        let file = &self.module.files[mutant.file].name;
        let function = mutant.function;
        let kernels = self.kernels.iter().filter(move |k| k.functions.contains(&function));
        kernels.flat_map(move |kernel| {
            entries(kernel, file, function).iter().map(move |entry| (kernel, entry))
        })
    }

    /// The vocabularies that its mutants are compiled with.
    fn ways(&self) -> &'static [(&'static str, &'static str)] {
        let are_checked = self.kernels.iter().all(|kernel| kernel.params.are_general());
        match self.module.takes_device_from_above() {
            // All their launches are.
            true if are_checked => &WAYS[1..],
            true => &WAYS,
            // A file that names the library itself is the same both times.
            false => &WAYS[..1],
        }
    }
}

/// Kernel files import `super::device`, which is one vocabulary or the other.
const WAYS: [(&str, &str); 2] = [("plain", "device"), ("checked", "checked as device")];

/// The module's name for kernels as they are.
pub const ORIGINAL: &str = "original";

/// The program, and what did not get into it.
pub struct Program {
    pub path: PathBuf,
    /// Modules of the mutants that do not compile, and what the compiler says first.
    pub broken: BTreeMap<String, String>,
}

impl Program {
    /// Writes the crate in a folder, and compiles it.
    pub fn build(root: &Path, folder: &Path, subjects: &[Subject]) -> Result<Program> {
        // Mutants are included by their whole path: a relative one would be relative to the module's.
        let folder = std::path::absolute(folder)?;
        write_crate(root, &folder, subjects)?;
        let modules = subjects
            .iter()
            .flat_map(|subject| (0..subject.mutants.len()).map(|number| subject.module(number)))
            .collect::<BTreeSet<_>>();
        let mut broken = BTreeMap::new();
        loop {
            write_if_changed(
                &folder.join("src/table.rs"),
                &table(root, &folder, subjects, &broken),
            )?;
            match compile(root, &folder)? {
                Ok(path) => return Ok(Program { path, broken }),
                Err(errors) => {
                    let before = broken.len();
                    for (file, message) in &errors {
                        if modules.contains(file) {
                            broken.entry(file.clone()).or_insert(message.clone());
                        }
                    }
                    if broken.len() == before {
                        let messages = errors.iter().map(|(_, message)| message.as_str());
                        bail!("the mutants' program:\n{}", messages.collect::<Vec<_>>().join("\n"));
                    }
                }
            }
        }
    }
}

fn write_crate(root: &Path, folder: &Path, subjects: &[Subject]) -> Result<()> {
    let manifest = format!(
        "[package]\nname = \"mutants\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\n\
         cuda_std = {{ package = \"simt\", path = {:?} }}\n\
         gpu = {{ path = {:?} }}\n\
         libm = \"0.2\"\n\n\
         # Most time goes into compiling.\n\
         # The arithmetic is that of the workspace's profile for kernels.\n\
         [profile.dev]\n\
         debug = false\ndebug-assertions = false\noverflow-checks = false\nincremental = false\n\n\
         [profile.dev.package.\"*\"]\nopt-level = 1\n",
        root.join("gpu/simt"),
        root.join("gpu"),
    );
    write_if_changed(&folder.join("Cargo.toml"), &manifest)?;
    // The workspace's versions, so that nothing is fetched.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))
        .context("cannot copy Cargo.lock")?;
    for (name, text) in DRIVER {
        write_if_changed(&folder.join("src").join(name), text)?;
    }
    for subject in subjects {
        for (number, mutant) in subject.mutants.iter().enumerate() {
            let folder = folder.join("src").join(subject.module(number));
            let run = |name: &str| subject.entries(mutant).any(|(_, entry)| entry == name);
            for (which, file) in subject.module.files.iter().enumerate() {
                // Kernels that are not run would be compiled all the same.
                let text = match which == mutant.file {
                    true => match KernelFile::new(file.name.clone(), mutant.text.clone()) {
                        Ok(mutated) => mutated.with_kernels(run),
                        Err(_) => mutant.text.clone(),
                    },
                    false => file.with_kernels(run),
                };
                write_if_changed(&folder.join(&file.name), &text)?;
            }
        }
    }
    Ok(())
}

/// Cargo compiles again what has been written again.
fn write_if_changed(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("no folder")?)
        .and_then(|()| fs::write(path, text))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The modules of the kernels as they are and of the mutants, and a function that finds one by its name.
fn table(
    root: &Path,
    folder: &Path,
    subjects: &[Subject],
    broken: &BTreeMap<String, String>,
) -> String {
    let kernels = root.join("gpu/src/kernels/mod.rs");
    let mut modules = String::new();
    let mut arms = String::new();
    for (way, device) in WAYS {
        modules += &format!(
            "mod {ORIGINAL}_{way} {{ use simt::{device}; #[path = {kernels:?}] pub mod kernels; }}\n"
        );
    }
    for subject in subjects {
        let KernelModule { name, files } = subject.module;
        for kernel in subject.kernels {
            for entry in &kernel.entries {
                arms += &arm(subject, kernel, entry, ORIGINAL, &format!("kernels::{name}"));
            }
        }
        for (number, mutant) in subject.mutants.iter().enumerate() {
            let module = subject.module(number);
            if broken.contains_key(&module) {
                continue;
            }
            let path = folder.join("src").join(&module).join(&files[0].name);
            for (way, device) in subject.ways() {
                modules += &format!(
                    "mod {module}_{way} {{ use simt::{device}; use super::{ORIGINAL}_{way}::kernels::*; \
                     #[path = {path:?}] pub mod kernel; }}\n"
                );
            }
            for (kernel, entry) in subject.entries(mutant) {
                arms += &arm(subject, kernel, entry, &module, "kernel");
            }
        }
    }
    format!(
        "// Generated by `cargo xtask mutants`.\n\n{modules}\n\
         pub fn find(mutant: &str, kernel: &str) -> Option<crate::Runs> {{\n    \
         Some(match (mutant, kernel) {{\n{arms}        _ => return None,\n    }})\n}}\n"
    )
}

/// One mutant of a kernel, in all the ways that it is compiled.
fn arm(subject: &Subject, kernel: &Kernel, entry: &str, module: &str, place: &str) -> String {
    let call = match kernel.params {
        Params::Views => "views",
        Params::Pointers => "pointers",
        Params::General => "general",
        Params::Tensor if subject.module.name == "gemm_sliced" => "sliced",
        Params::Tensor => "tensor",
    };
    let place = format!("{place}{}", subject.module.place(entry));
    let ways = subject.ways().iter();
    let paths = ways.map(|(way, _)| format!("self::{module}_{way}::{place}::{entry}"));
    let paths = paths.collect::<Vec<_>>().join(", ");
    format!("        ({module:?}, {entry:?}) => crate::{call}!({paths}),\n")
}

/// The program, or errors: the module each stands in, and what the compiler says.
fn compile(root: &Path, folder: &Path) -> Result<Result<PathBuf, Vec<(String, String)>>> {
    let mut command = Command::new(cargo());
    clean(&mut command).current_dir(root);
    // The same toolchain as runs us.
    if let Some(toolchain) = env::var_os("RUSTUP_TOOLCHAIN") {
        command.env("RUSTUP_TOOLCHAIN", toolchain);
    }
    command.args(["build", "--quiet", "--message-format", "json", "--manifest-path"]);
    command.arg(folder.join("Cargo.toml")).arg("--target-dir").arg(folder.join("target"));
    command.stderr(Stdio::piped());
    let output = command.output().context("cannot run cargo")?;
    let (mut program, mut errors) = (None, Vec::new());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        if let Some(path) = message["executable"].as_str() {
            program = Some(PathBuf::from(path));
        }
        if message["message"]["level"] == "error" {
            errors.push(error(&message["message"], folder));
        }
    }
    if output.status.success() {
        return Ok(Ok(program.context("cargo names no program")?));
    }
    ensure!(
        !errors.is_empty(),
        "cargo cannot build the mutants:\n{}",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(Err(errors))
}

/// The first module of this crate, a folder in its `src`, that an error points at, and the error's own words. An
/// error in what a macro expands to, or in an instance of a generic, points at it in a later place only.
fn error(message: &Value, folder: &Path) -> (String, String) {
    fn files(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("file_name").and_then(Value::as_str).map(Into::into));
                fields.values().for_each(|value| files(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| files(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    files(message, &mut found);
    let own = found.iter().find_map(|path| {
        let parent = Path::new(path).parent()?;
        (parent.parent()? == folder.join("src")).then(|| parent.file_name())?
    });
    let module = own.unwrap_or_default().to_string_lossy().into_owned();
    // The rendered text, of which the first lines say it, is for when no mutant is to blame.
    let text = match &*module {
        "" => message["rendered"].as_str(),
        _ => message["message"].as_str(),
    };
    (module, text.unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_is_the_mutants_that_it_points_at() {
        let folder = Path::new("/t/mutants");
        let module = |message: &Value| error(message, folder).0;
        let at = |file: &str| json!({ "file_name": file, "expansion": null });
        let message = |spans: &[Value], children: &[Value]| {
            json!({
                "message": "mismatched types", "rendered": "error: ..",
                "spans": spans, "children": children,
            })
        };
        let mutant = at("/t/mutants/src/tiled_7/tiled.rs");
        assert_eq!(module(&message(std::slice::from_ref(&mutant), &[])), "tiled_7");
        // In a macro, which the mutant calls; in a generic, of which it makes an instance.
        let expanded = json!({ "file_name": "/r/macros.rs", "expansion": { "span": mutant } });
        assert_eq!(module(&message(&[expanded], &[])), "tiled_7");
        let child = json!({ "message": "the above error", "spans": [mutant] });
        assert_eq!(module(&message(&[at("/r/shared.rs")], &[child])), "tiled_7");
        // In another file of the module than its own.
        assert_eq!(module(&message(&[at("/t/mutants/src/gemm_12/operand.rs")], &[])), "gemm_12");
        // The driver's own, and a kernel's as it is.
        for file in ["/t/mutants/src/main.rs", "/t/mutants/src/table.rs", "/r/kernels/tiled.rs"] {
            assert_eq!(error(&message(&[at(file)], &[]), folder), ("".into(), "error: ..".into()));
        }
    }
}
