//! The generated workspace: crate `gpu` with switches in its kernels, and the driver that runs
//! them.
//!
//! One program holds all mutants, so that it is compiled once. Mutants that do not compile are
//! found from the compiler's messages, and left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    ops::Range,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use proc_macro2::{TokenStream, TokenTree};
use serde_json::Value;
use syn::{Expr, Item};

use crate::{
    mutant::{Mutant, SWITCH, Woven, weave},
    source::{SourceFile, range},
};

/// A compiled driver, and the mutants that are not in it.
pub struct Program {
    pub path: PathBuf,
    /// Mutants that do not compile, and the compiler's messages.
    pub broken: BTreeMap<u32, String>,
}

/// The parts of a program.
pub struct Parts<'a> {
    /// The project's folder.
    pub root: &'a Path,
    /// The folder of the generated workspace.
    pub folder: &'a Path,
    pub files: &'a [SourceFile],
    /// The kernels that are run. Others are not compiled.
    pub kernels: &'a BTreeSet<String>,
}

impl Parts<'_> {
    /// Writes the workspace with these mutants and compiles the driver.
    ///
    /// # Errors
    /// The compiler's message, if no mutant is the cause.
    pub fn build(&self, mutants: &[Mutant]) -> Result<Program> {
        let left_out = self.write_frame()?;
        let mut broken = BTreeMap::new();
        // Types and borrows first, without code: most of what does not compile is found there.
        for (subcommand, package) in [("check", "gpu-gemm-kernels"), ("build", "mutants-driver")] {
            loop {
                let woven = self.write_kernels(mutants, &broken, &left_out)?;
                let errors = match self.cargo(subcommand, package)? {
                    Ok(Some(path)) => {
                        let names = mutants.iter().map(|one| (one.id, &one.name));
                        let note = (names.collect::<Vec<_>>(), &broken);
                        fs::write(self.note(), serde_json::to_string(&note)?)?;
                        return Ok(Program { path, broken });
                    }
                    Ok(None) => break,
                    Err(errors) => errors,
                };
                let before = broken.len();
                for reach in [Reach::Place, Reach::Line, Reach::Function] {
                    // Errors at no mutant may follow from errors at mutants.
                    if broken.len() > before {
                        continue;
                    }
                    for error in &errors {
                        for id in error.mutants(&woven, reach) {
                            broken.entry(id).or_insert_with(|| error.message.clone());
                        }
                    }
                }
                if broken.len() == before {
                    let texts = errors.into_iter().map(|error| error.rendered);
                    bail!("the mutants' program:\n{}", texts.collect::<String>());
                }
            }
        }
        bail!("cargo names no program")
    }

    /// The program that was built before from these mutants.
    pub fn built(&self, mutants: &[Mutant]) -> Result<Program> {
        let note = fs::read_to_string(self.note()).context("no program has been built")?;
        let path = self.folder.join("target/debug/mutants-driver");
        let (names, broken): (Vec<(u32, String)>, _) = serde_json::from_str(&note)?;
        let is_same = names.iter().map(|(id, name)| (*id, name));
        let is_same = is_same.eq(mutants.iter().map(|one| (one.id, &one.name)));
        ensure!(is_same, "the program was built of other mutants");
        Ok(Program { path, broken })
    }

    /// The file that records which mutants do not compile.
    fn note(&self) -> PathBuf {
        self.folder.join("broken.json")
    }

    /// Writes everything but the kernels. Returns the kernels that are left out.
    fn write_frame(&self) -> Result<BTreeSet<String>> {
        let Parts { root, folder, files, kernels } = self;
        let manifest = fs::read_to_string(root.join("Cargo.toml"))?.parse::<toml::Table>()?;
        write_if_changed(&folder.join("Cargo.toml"), &frame(manifest)?.to_string())?;
        // The workspace's versions, so that nothing is fetched.
        let lock = fs::read_to_string(root.join("Cargo.lock"))?;
        // Cargo removes from its lock file what this workspace does not need. So a copy of the
        // original is kept next to it.
        if !fs::read_to_string(folder.join("Cargo.lock.from")).is_ok_and(|old| old == lock) {
            write_if_changed(&folder.join("Cargo.lock"), &lock)?;
            write_if_changed(&folder.join("Cargo.lock.from"), &lock)?;
        }
        write_if_changed(
            &folder.join("gpu/Cargo.toml"),
            &fs::read_to_string(root.join("gpu/Cargo.toml"))?,
        )?;
        let links = [
            ("driver", "tests/mutants/driver"),
            ("gpu/simt", "gpu/simt"),
            ("gpu/occupancy", "gpu/occupancy"),
        ];
        for (link, to) in links {
            let link = folder.join(link);
            if fs::read_link(&link).ok() != Some(root.join(to)) {
                // The link may be from another checkout that builds in the same folder.
                let _ = fs::remove_file(&link);
                symlink(root.join(to), &link)
                    .with_context(|| format!("cannot link {}", link.display()))?;
            }
        }
        let sources = SourceFile::all(&root.join("gpu/src"))?;
        let all = sources.iter().flat_map(SourceFile::kernels).collect();
        let rows = sources.iter().flat_map(SourceFile::rows).map(str::to_owned);
        let mut left_out = rows.filter(|name| !kernels.contains(name)).collect::<BTreeSet<_>>();
        let registry = sources.iter().find(|file| file.path == "registry.rs");
        let (registry, others) = with_entries(registry.context("no registry")?, &all, kernels)?;
        left_out.extend(others);
        let own = files.iter().map(|file| &file.path).collect::<Vec<_>>();
        for file in sources.iter().filter(|file| !own.contains(&&file.path)) {
            let text = match &*file.path {
                "lib.rs" => {
                    format!(
                        "#![allow(warnings, arithmetic_overflow, unconditional_panic)]\n{}\npub mod mutation;\n",
                        file.text
                    )
                }
                "registry.rs" => registry.clone(),
                _ => file.with_kernels(|name| !left_out.contains(name)),
            };
            write_if_changed(&folder.join("gpu/src").join(&file.path), &text)?;
        }
        write_if_changed(&folder.join("gpu/src/mutation.rs"), SWITCH)?;
        Ok(left_out)
    }

    /// Writes the kernel files with the mutants that compile, as far as known.
    fn write_kernels(
        &self,
        mutants: &[Mutant],
        broken: &BTreeMap<u32, String>,
        left_out: &BTreeSet<String>,
    ) -> Result<BTreeMap<PathBuf, Woven>> {
        let mut all = BTreeMap::new();
        for (number, file) in self.files.iter().enumerate() {
            let those =
                mutants.iter().filter(|one| one.file == number && !broken.contains_key(&one.id));
            let text = file.with_kernels(|name| !left_out.contains(name));
            let woven = weave(&text, &those.collect::<Vec<_>>());
            let path = Path::new("gpu/src").join(&file.path);
            write_if_changed(&self.folder.join(&path), &woven.text)?;
            all.insert(path, woven);
        }
        Ok(all)
    }

    /// Runs cargo in the workspace. Returns the program, or errors.
    fn cargo(
        &self,
        subcommand: &str,
        package: &str,
    ) -> Result<Result<Option<PathBuf>, Vec<CompileError>>> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        for (name, _) in env::vars_os() {
            // Variables that an outer cargo has set for its own build would change this build.
            let name = name.to_string_lossy();
            if ["CARGO_MANIFEST", "CARGO_PKG", "CARGO_BIN", "CARGO_CRATE", "CARGO_TARGET", "RUSTC"]
                .iter()
                .any(|start| name.starts_with(start))
            {
                command.env_remove(&*name);
            }
        }
        command.args([subcommand, "--quiet", "--message-format", "json", "-p", package]);
        command.current_dir(self.folder).arg("--target-dir").arg(self.folder.join("target"));
        let output = command.stderr(Stdio::piped()).output().context("cannot run cargo")?;
        let (mut program, mut errors) = (None, Vec::new());
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
            if let Some(path) = message["executable"].as_str() {
                program = Some(PathBuf::from(path));
            }
            if message["message"]["level"] == "error" {
                errors.push(CompileError::new(&message["message"]));
            }
        }
        if output.status.success() {
            return Ok(Ok(program));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(!errors.is_empty(), "cargo cannot build the mutants:\n{}", said.trim_end());
        Ok(Err(errors))
    }
}

/// The manifest of the generated workspace: the project's profiles, lints and versions, and these
/// members.
fn frame(mut manifest: toml::Table) -> Result<toml::Table> {
    let workspace = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut);
    let workspace = workspace.context("the project's manifest is no workspace's")?;
    let members = ["gpu", "gpu/occupancy", "gpu/simt", "gpu/simt/macros", "driver"];
    workspace.insert("members".into(), members.to_vec().into());
    workspace.insert("exclude".into(), toml::Value::Array(Vec::new()));
    let dependencies =
        workspace.get_mut("dependencies").and_then(toml::Value::as_table_mut).context("none")?;
    dependencies.retain(|name, _| ["gpu", "occupancy", "simt", "simt-macros"].contains(&name));
    manifest.remove("patch");
    Ok(manifest)
}

/// The registry with the entries of some kernels only, and the kernels that are left out. An entry
/// is an element of a list of designs that names its kernel.
fn with_entries(
    registry: &SourceFile,
    all: &BTreeSet<String>,
    wanted: &BTreeSet<String>,
) -> Result<(String, BTreeSet<String>)> {
    let syntax = syn::parse_file(&registry.text)?;
    let lists = syntax.items.iter().filter_map(|item| match item {
        Item::Static(list) => match &*list.expr {
            Expr::Reference(of) => match &*of.expr {
                Expr::Array(array) => Some(array),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let elements = lists.flat_map(|list| &list.elems).collect::<Vec<_>>();
    ensure!(!elements.is_empty(), "the registry has no list of designs");
    let (mut text, mut left_out) = (registry.text.clone(), BTreeSet::new());
    for element in elements.into_iter().rev() {
        let place = range(element);
        let Ok(tokens) = text[place.clone()].parse() else { bail!("no tokens") };
        let mut named = words(tokens);
        // The driver names programs directly. They are few.
        let is_program = named.iter().any(|word| word == "program");
        named.retain(|word| all.contains(word));
        ensure!(!named.is_empty(), "an entry without a kernel: {}", &text[place]);
        if !is_program && !named.iter().any(|name| wanted.contains(name)) {
            let end = text[place.end..].find(',').map_or(place.end, |comma| place.end + comma + 1);
            text.replace_range(place.start..end, "");
            left_out.extend(named);
        }
    }
    Ok((text, left_out))
}

/// The identifiers among tokens.
fn words(tokens: TokenStream) -> Vec<String> {
    let of = |token| match token {
        TokenTree::Ident(word) => vec![word.to_string()],
        TokenTree::Group(group) => words(group.stream()),
        _ => Vec::new(),
    };
    tokens.into_iter().flat_map(of).collect()
}

/// Writes a file if its text differs: cargo compiles rewritten files again.
fn write_if_changed(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("no folder")?)
        .and_then(|()| fs::write(path, text))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// An error of the compiler, and its places.
struct CompileError {
    message: String,
    rendered: String,
    /// Files, and ranges in them in bytes.
    places: Vec<(PathBuf, usize, usize)>,
}

impl CompileError {
    fn new(message: &Value) -> Self {
        let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
        let mut places = Vec::new();
        // The primary places. Labels name what they were compared with.
        let spans = message["spans"].as_array().into_iter().flatten();
        for span in spans.clone().filter(|span| span["is_primary"] == true).chain(spans) {
            collect(span, &mut places);
        }
        message["children"].as_array().into_iter().flatten().for_each(|child| {
            collect(child, &mut places);
        });
        CompileError { message: text("message"), rendered: text("rendered"), places }
    }

    /// The mutants that may have caused it: those nearest to the first place that has any.
    fn mutants(&self, woven: &BTreeMap<PathBuf, Woven>, reach: Reach) -> Vec<u32> {
        let of = |(path, start, end): &(PathBuf, usize, usize)| {
            let file = woven.iter().find(|(file, _)| path.ends_with(file));
            let Some((_, Woven { text, places })) = file else { return Vec::new() };
            let around = match reach {
                Reach::Place => *start..*end,
                Reach::Line => {
                    text[..*start].rfind('\n').unwrap_or(0)
                        ..text[*start..].find('\n').map_or(text.len(), |length| start + length)
                }
                Reach::Function => match function_around(text, *start) {
                    Some(function) => function,
                    None => return Vec::new(),
                },
            };
            let is_it = |place: &Range<usize>| match reach {
                Reach::Place => place.start <= around.start && around.end <= place.end,
                Reach::Line => around.start <= place.start && place.end <= around.end,
                // A replaced name may have another type.
                Reach::Function => {
                    around.start <= place.start
                        && place.end <= around.end
                        && text[place.clone()].chars().all(|c| c.is_alphanumeric() || c == '_')
                }
            };
            places.iter().filter(|(place, _)| is_it(place)).map(|&(_, id)| id).collect()
        };
        self.places.iter().map(of).find(|ids| !ids.is_empty()).unwrap_or_default()
    }
}

/// How near to an error a mutant must be to be its cause. A mutant that changes a variable's type
/// causes errors elsewhere.
#[derive(Clone, Copy)]
enum Reach {
    Place,
    Line,
    Function,
}

/// The body of the function around a byte of a text.
fn function_around(text: &str, byte: usize) -> Option<Range<usize>> {
    let file = SourceFile::new(String::new(), text.into()).ok()?;
    let blocks = file.functions().into_iter().map(|function| range(function.block));
    blocks.filter(|block| block.contains(&byte)).min_by_key(Range::len)
}

/// The places that a span or a message names, with the macros that they come from.
fn collect(value: &Value, places: &mut Vec<(PathBuf, usize, usize)>) {
    match value {
        Value::Object(fields) => {
            let number = |key: &str| fields.get(key).and_then(Value::as_u64).map(|n| n as usize);
            if let (Some(file), Some(start), Some(end)) = (
                fields.get("file_name").and_then(Value::as_str),
                number("byte_start"),
                number("byte_end"),
            ) {
                places.push((file.into(), start, end));
            }
            fields.values().for_each(|value| collect(value, places));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, places)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mutant::mutants;

    #[test]
    fn an_error_is_the_mutants_that_it_points_at() {
        let text = "fn f() { a[i]; }";
        let file = SourceFile::new("walk/rows.rs".into(), text.into()).unwrap();
        let all = mutants(&[file], &BTreeSet::new());
        let woven = weave(text, &all.iter().collect::<Vec<_>>());
        let (place, id) = woven.places[1].clone();
        let path = PathBuf::from("gpu/src/kernels/walk/rows.rs");
        let woven = BTreeMap::from([(path, woven)]);
        let span = |primary: bool, start: usize, end: usize| {
            json!({ "file_name": "gpu/src/kernels/walk/rows.rs", "is_primary": primary,
                    "byte_start": start, "byte_end": end })
        };
        let of = |spans: &[Value], reach: Reach| {
            let message = json!({ "message": "mismatched types", "spans": spans, "children": [] });
            CompileError::new(&message).mutants(&woven, reach)
        };
        assert_eq!(of(&[span(true, place.start, place.end)], Reach::Place), [id]);
        // The label of the first branch names the expected type.
        assert_eq!(
            of(&[span(false, 9, 10), span(true, place.start, place.end - 1)], Reach::Place),
            [id]
        );
        let all = woven.values().flat_map(|woven| woven.places.iter().map(|&(_, id)| id));
        assert_eq!(
            of(&[span(true, 0, 4)], Reach::Line),
            all.collect::<Vec<_>>(),
            "those of the line"
        );
        let expanded = json!({ "file_name": "m.rs", "is_primary": true, "byte_start": 0, "byte_end": 1,
            "expansion": { "span": span(false, place.start, place.end) } });
        assert_eq!(of(&[expanded], Reach::Place), [id]);
    }

    #[test]
    fn the_registry_keeps_the_entries_of_some_kernels() {
        let text = "static A: &[Design] = &[\n    entry! { one: 1 },\n];\nstatic B: &[Design] = &[\n    Entry { k: m::two, },\n];";
        let registry = SourceFile::new("registry.rs".into(), text.into()).unwrap();
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let (kept, left_out) =
            with_entries(&registry, &names(&["one", "two"]), &names(&["two"])).unwrap();
        assert!(!kept.contains("one") && kept.contains("Entry { k: m::two, },"), "{kept}");
        assert_eq!(left_out, names(&["one"]));
        assert!(with_entries(&registry, &names(&["one"]), &names(&["one"])).is_err());
    }
}
