//! `cargo xtask build-ptx`: compiles the kernels to PTX, and writes it to the repository or
//! compares it with the committed files. It can also compile another kernel crate into a folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    thread,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    architectures,
    builder::{Ptx, PtxBuilder, compiler_of, ptx_files},
    check,
    environment::{note, package_name, say},
    ptx::Module,
    ptxas::{Ptxas, Usage},
    resources,
    target::Target,
    toolchain::{self, Toolchain},
};

/// The crate with the kernels, and the folder of their PTX, relative to the workspace.
const CRATE: &str = "gpu";
pub(crate) const FOLDER: &str = "gpu/ptx";

/// The targets. A device uses a kernel of the last target that has the kernel and that the device
/// can run.
pub(crate) const TARGETS: [Target; 2] = [Target::SM_80, Target::SM_90A];

/// The file name of a kernel for a target, in [`FOLDER`].
pub(crate) fn file_name(target: Target, kernel: &str) -> String {
    format!("{}/{kernel}.ptx", target.cpu())
}

/// The options of a build.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder of another kernel crate, and the folder for its PTX.
    pub other: Option<Other>,
    /// Compare with the committed files instead of writing them.
    pub check: bool,
    /// Do not use the network.
    pub offline: bool,
    /// Download `ptxas` if there is none.
    pub fetch_ptxas: bool,
}

/// A kernel crate that is not the workspace's own `gpu`.
#[derive(Clone, Debug)]
pub struct Other {
    /// The crate's folder.
    pub krate: PathBuf,
    /// The folder for its PTX.
    pub into: PathBuf,
}

/// Builds the kernels of the workspace in `root`, or those of [`Options::other`], for every target.
pub fn run(root: &Path, options: Options) -> Result<()> {
    let (krate, into) = match &options.other {
        Some(Other { krate, into }) => (krate.clone(), into.clone()),
        None => (root.join(CRATE), root.join(FOLDER)),
    };
    let folder = krate.canonicalize().with_context(|| format!("no folder {}", krate.display()))?;
    let package = package_name(&folder)?;
    let toolchain = toolchain::find(root, options.offline)?;
    let ptxas = match Ptxas::find(root) {
        None if options.fetch_ptxas && !options.offline => Some(Ptxas::fetch(root)?),
        found => found,
    };
    match &ptxas {
        Some(ptxas) => note(&format!("ptxas: {} ({})\n", ptxas.release(), ptxas.path().display())),
        None => note(
            "ptxas: there is none, so spills, registers and its warnings are NOT checked \
             (--fetch-ptxas downloads it; $PTXAS names one)\n",
        ),
    }
    let mut all = build(&krate, &toolchain, options.offline)?;
    let is_own = options.other.is_none();
    if is_own {
        all = each_once(all)?;
    }
    let mut texts = Vec::new();
    for (number, ptx) in all.iter().enumerate() {
        // On a newer device, the PTX of an older target uses other registers.
        for older in all.iter().take(if is_own { number } else { 0 }) {
            let own = |kernel: &str| ptx.module().function(kernel).is_some();
            texts.push((older.without(own)?, ptx.target()));
        }
        texts.push((ptx.clone(), ptx.target()));
    }
    let texts = texts.iter().map(|(ptx, on)| (ptx, *on)).collect::<Vec<_>>();
    let checked = match &ptxas {
        Some(ptxas) => ptxas.check_all(&texts, root)?,
        None => Vec::new(),
    };
    let (mut built, mut wrong, mut usages_of) = (BTreeMap::new(), Vec::new(), Vec::new());
    for ptx in &all {
        let target = ptx.target();
        let mut usages = Vec::new();
        for (_, (found, problems)) in
            texts.iter().zip(&checked).filter(|((_, on), _)| *on == target)
        {
            usages.extend(found.iter().cloned());
            wrong.extend(problems.iter().map(|problem| format!("{}: {problem}", target.cpu())));
        }
        say(&format!("{}\n", target.cpu()))?;
        say(&table(ptx.module(), &usages).to_string())?;
        usages_of.push((target, usages));
        match &options.other {
            Some(_) => {
                built.insert(format!("{package}.{}.ptx", target.cpu()), ptx.text().to_owned());
            }
            None => {
                let named = |(name, text): (String, _)| (file_name(target, &name), text);
                built.extend(ptx.files().into_iter().map(named));
            }
        }
    }
    // All other GPUs run the workspace's kernels for the oldest target. What another compiler
    // makes of them is not what they run.
    let read = |name| fs::read_to_string(into.join(name)).unwrap_or_default();
    let is_theirs = |ptx: &Ptx| -> Result<bool> {
        let committed = if options.check { committed(&into)? } else { BTreeMap::new() };
        let mut compilers = committed.values().map(|text| compiler_of(text));
        Ok(compilers.all(|compiler| compiler == compiler_of(ptx.text())))
    };
    let others = match (&ptxas, all.first().filter(|_| is_own)) {
        (Some(ptxas), Some(oldest)) if is_theirs(oldest)? => {
            let [table, resources] = [architectures::FILE, resources::FILE].map(read);
            let found = architectures::check(ptxas, oldest, [&table, &resources], root)?;
            say(&format!("{}: {} kernels assembled\n", architectures::FILE, found.kernels))?;
            wrong.extend(found.wrong.iter().cloned());
            usages_of.push(found.recorded.clone());
            Some(found)
        }
        _ => None,
    };
    let mut same_code = true;
    let shown = if is_own { FOLDER.to_owned() } else { into.display().to_string() };
    if options.check {
        let committed = match &options.other {
            None => committed(&into)?,
            Some(_) => written_for(&into, built.keys())?,
        };
        for name in committed.keys().chain(built.keys()).collect::<BTreeSet<_>>() {
            let text = |of: &BTreeMap<String, String>| of.get(name).cloned().unwrap_or_default();
            let (old, new) = (text(&committed), text(&built));
            same_code &= old == new;
            if let Err(difference) = compare(&old, &new) {
                let command = match &options.other {
                    None => "cargo xtask build-ptx".to_owned(),
                    Some(Other { krate, into }) => format!(
                        "cargo xtask build-ptx --crate {} --into {}",
                        krate.display(),
                        into.display()
                    ),
                };
                wrong.push(format!(
                    "{shown}/{name} is not what the kernels give: {difference:#}\n    \
                     run `{command}` and commit {shown}"
                ));
            }
        }
        say(&format!("{shown}: {} files compared\n", built.len()))?;
    }
    // Only the kernels of the workspace have tables.
    let tables = match (&ptxas, others) {
        (Some(ptxas), Some(others)) => vec![
            (resources::FILE, resources::table(ptxas.release(), &usages_of)),
            (architectures::FILE, others.table),
        ],
        _ => Vec::new(),
    };
    for (name, built) in tables.iter().filter(|_| options.check) {
        say(&format!("{name}\n"))?;
        // Different code has different registers.
        match same_code.then(|| resources::compare(&read(name), built)) {
            None => say("  not compared, as the code was not\n")?,
            Some(Ok(agreement)) => say(&format!("  {agreement}\n"))?,
            Some(Err(difference)) => wrong.push(format!(
                "{FOLDER}/{name} is not what ptxas gives: {difference}\n    \
                 run `cargo xtask build-ptx` and commit {FOLDER}"
            )),
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n  "));
    if options.check {
        return Ok(());
    }
    // All files or none: they are of one source.
    let mut written = 0;
    for (name, text) in &built {
        written += usize::from(write(&into.join(name), text)?);
    }
    say(&format!("{}: {written} of {} files written\n", into.display(), built.len()))?;
    if options.other.is_none() {
        for name in committed(&into)?.keys().filter(|name| !built.contains_key(*name)) {
            let path = into.join(name);
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            say(&format!("{}: removed\n", path.display()))?;
        }
    }
    for (name, table) in &tables {
        write(&into.join(name), table)?;
    }
    if is_own && ptxas.is_none() {
        say(&format!(
            "{}: left as it is, for want of a ptxas: `cargo xtask build-ptx --fetch-ptxas` renews it\n",
            into.join(resources::FILE).display()
        ))?;
    }
    Ok(())
}

/// The crate's PTX for every target. The compiler uses one core for most of its time, so the
/// targets are built in parallel.
fn build(krate: &Path, toolchain: &Toolchain, offline: bool) -> Result<Vec<Ptx>> {
    let builder = PtxBuilder::new(krate).toolchain(toolchain.clone()).offline(offline);
    let build = |target| builder.clone().target(target).build();
    thread::scope(|scope| {
        let build = &build;
        let builds = TARGETS.map(|target| scope.spawn(move || build(target))).into_iter();
        let built = builds.map(|build| match build.join() {
            Ok(built) => built,
            Err(_) => bail!("a thread that runs the compiler has panicked"),
        });
        built.collect()
    })
}

/// The PTX without kernels that an older target has, too. Every newer device can run those, and the
/// driver compiles them to the same code; unless they multiply by other instructions, which the
/// older target does not have, or begin before earlier kernels have ended.
fn each_once(all: Vec<Ptx>) -> Result<Vec<Ptx>> {
    let mut kept = Vec::<Ptx>::new();
    for ptx in all {
        let is_there = |kernel: &str| {
            let own = particular(&ptx, kernel);
            kept.iter().any(|older| {
                older.module().function(kernel).is_some() && particular(older, kernel) == own
            })
        };
        kept.push(if kept.is_empty() { ptx } else { ptx.without(is_there)? });
    }
    Ok(kept)
}

/// The names of the instructions of a kernel that differ between targets: those of tensor cores,
/// and those of programmatic dependent launch.
fn particular<'t>(ptx: &'t Ptx, kernel: &str) -> BTreeSet<&'t str> {
    let text = ptx.module().function(kernel).map(|function| &ptx.text()[function.text.clone()]);
    let differs = |word: &&str| word.starts_with("mma.") || word.starts_with("griddepcontrol.");
    text.unwrap_or_default().split_whitespace().filter(differs).collect()
}

/// The committed files of kernels: paths below the folder, and texts.
pub(crate) fn committed(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for target in TARGETS {
        let folder = folder.join(target.cpu());
        // A build makes the folder of a new target.
        let paths = if folder.is_dir() { ptx_files(&folder)? } else { Vec::new() };
        for path in paths {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            files.insert(file_name(target, &name), text);
        }
    }
    Ok(files)
}

/// The files of another crate that are there, of those with these names.
fn written_for<'a>(
    folder: &Path,
    names: impl Iterator<Item = &'a String>,
) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for name in names {
        let path = folder.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => drop(files.insert(name.clone(), text)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        }
    }
    Ok(files)
}

/// Writes a file if its text differs. Returns whether it did.
fn write(path: &Path, text: &str) -> Result<bool> {
    if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(false);
    }
    fs::create_dir_all(path.parent().unwrap_or(path))
        .and_then(|()| fs::write(path, text))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}

/// Compares a committed file with a new one. The error says where they differ.
fn compare(committed: &str, built: &str) -> Result<()> {
    ensure!(!committed.is_empty(), "it is not there");
    ensure!(!built.is_empty(), "there is no such kernel");
    ensure!(compiler_of(committed).is_some(), "its first line does not name a compiler");
    if compiler_of(committed) == compiler_of(built) {
        if let Some((line, (old, new))) = first_difference(committed, built) {
            bail!("line {line}\n    committed: {old}\n    built:     {new}");
        }
        ensure!(committed == built, "its line ends");
        return Ok(());
    }
    // Another compiler may write the same kernels differently. What the host relies on must be the
    // same.
    let module = Module::parse(committed).context("it cannot be read")?;
    let other = Module::parse(built).context("what was built cannot be read")?;
    for name in module.kernels().chain(other.kernels()).map(|kernel| &kernel.name) {
        let (old, new) = (contract(committed, &module, name), contract(built, &other, name));
        ensure!(old == new, "kernel `{name}`\n    committed: {old}\n    built:     {new}");
    }
    Ok(())
}

/// What the host relies on: a kernel's directives, the number of its parameters, its declaration.
fn contract(text: &str, module: &Module, name: &str) -> String {
    let Some(kernel) = module.function(name) else { return "no such kernel".into() };
    let declared = |line: usize| text.lines().nth(line - 1).unwrap_or_default().trim();
    let declared: Vec<_> = kernel.declarations.iter().map(|(line, _)| declared(*line)).collect();
    format!("{} parameters {} {}", kernel.params, kernel.directives, declared.join(" "))
}

/// The first line that differs: its number, from 1, and its text in both.
fn first_difference<'a>(old: &'a str, new: &'a str) -> Option<(usize, (&'a str, &'a str))> {
    const END: &str = "(end of file)";
    let (mut old, mut new) = (old.lines(), new.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (old.next(), new.next()) {
            (None, None) => return None,
            (old, new) if old == new => {}
            (old, new) => return Some((number, (old.unwrap_or(END), new.unwrap_or(END)))),
        }
    }
}

/// One line for each kernel.
fn table(module: &Module, usages: &[Usage]) -> String {
    let width = module.kernels().map(|kernel| kernel.name.len()).max().unwrap_or(0).max(6);
    let mut text =
        format!("  {:width$}  registers  shared  barriers  PTX instructions\n", "kernel");
    for kernel in module.kernels() {
        // The most among the specialisations.
        let is_of = |usage: &&Usage| {
            usage
                .kernel
                .strip_prefix(&kernel.name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("__"))
        };
        let registers = usages.iter().filter(is_of).map(|usage| usage.registers).max();
        let registers = registers.map_or("-".into(), |registers| registers.to_string());
        let arrays = check::shared_arrays(module, kernel);
        let shared: u64 = arrays.iter().filter_map(|array| array.bytes).sum();
        let dynamic = if arrays.iter().any(|array| array.bytes.is_none()) { "+dyn" } else { "" };
        text += &format!(
            "  {:width$}  {registers:>9}  {:>6}  {:>8}  {:>16}\n",
            kernel.name,
            format!("{shared}{dynamic}"),
            check::barriers(module, kernel),
            kernel.instructions().count(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: &str = "\
.version 7.1
.target sm_80
.address_size 64
.visible .entry k(
	.param .u32 k_param_0
)
{
	// simt.kernel name=k block=32,1,1 barriers=1 params=u32
	bar.sync 0;
	ret;
}
";

    fn built(raw: &str, compiler: &str) -> Ptx {
        Ptx::finish(raw, Target::SM_80, compiler).unwrap()
    }

    fn text(raw: &str, compiler: &str) -> String {
        built(raw, compiler).text().to_owned()
    }

    #[test]
    fn with_the_same_compiler_every_byte_counts() {
        let ptx = text(RAW, "rustc 1");
        assert!(compare(&ptx, &ptx).is_ok());
        let other = text(&RAW.replace("bar.sync 0", "bar.sync 1"), "rustc 1");
        let error = compare(&other, &ptx).unwrap_err().to_string();
        assert!(error.contains("line 11") && error.contains("bar.sync 1"), "{error}");
        let without = ptx.split_once('\n').unwrap().1;
        assert!(compare(without, &ptx).unwrap_err().to_string().contains("name a compiler"));
        assert!(compare("", &ptx).unwrap_err().to_string().contains("not there"));
        assert!(compare(&ptx, "").unwrap_err().to_string().contains("no such kernel"));
        assert!(compare(&ptx.replace('\n', "\r\n"), &ptx).is_err());
    }

    #[test]
    fn with_another_compiler_the_contract_counts() {
        let ptx = text(RAW, "rustc 2");
        let other = text(&RAW.replace("bar.sync 0", "barrier.sync 0"), "rustc 1");
        assert!(compare(&other, &ptx).is_ok());
        let wider = text(&RAW.replace("block=32", "block=64"), "rustc 1");
        assert!(compare(&wider, &ptx).is_err());
        let renamed =
            text(&RAW.replace("entry k(", "entry l(").replace("name=k", "name=l"), "rustc 1");
        assert!(compare(&renamed, &ptx).is_err());
    }

    #[test]
    fn the_table_has_a_line_for_each_kernel() {
        let usage = Usage { kernel: "k".into(), registers: 40, ..Usage::default() };
        let text = table(built(RAW, "").module(), &[usage]);
        let line = text.lines().nth(1).unwrap();
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["k", "40", "0", "1", "2"]);
    }
}
