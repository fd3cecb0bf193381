//! `cargo xtask build-ptx`: the kernels' PTX, into the repository or compared with what is there; or
//! another kernel crate's, into a folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    builder::{BUILD_FOLDER, Ptx, PtxBuilder, Target, compiler_of},
    check,
    ptx::Module,
    ptxas::{Ptxas, Usage},
    resources, toolchain,
};

/// The crate with the kernels, and the folder for their PTX, below the workspace.
const CRATE: &str = "gpu";
pub(crate) const FOLDER: &str = "gpu/ptx";

/// What the kernels are built for: `host` picks one of these by the device's compute capability.
pub(crate) const TARGETS: [Target; 2] = [Target::SM_80, Target::SM_90A];

/// The file with the kernels for a target, in [`FOLDER`].
pub(crate) fn file_name(target: Target) -> String {
    name_for(CRATE, target)
}

fn name_for(krate: &str, target: Target) -> String {
    format!("{krate}.{}.ptx", target.cpu())
}

/// How to build.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder of another kernel crate, and the folder for its PTX.
    pub other: Option<Other>,
    /// Compare with the files in the repository instead of writing them.
    pub check: bool,
    /// Keep off the network.
    pub offline: bool,
    /// Download `ptxas` where there is none.
    pub fetch_ptxas: bool,
}

/// A kernel crate that is not the workspace's own `gpu`.
#[derive(Clone, Debug)]
pub struct Other {
    /// The crate's folder.
    pub krate: PathBuf,
    /// Where its PTX goes.
    pub into: PathBuf,
}

/// Builds the kernels of the workspace in `root`, or those of [`Options::other`], for every target.
pub fn run(root: &Path, options: Options) -> Result<()> {
    let (krate, into) = match &options.other {
        Some(Other { krate, into }) => (krate.clone(), into.clone()),
        None => (root.join(CRATE), root.join(FOLDER)),
    };
    let folder = krate.canonicalize().with_context(|| format!("no folder {}", krate.display()))?;
    let stem = folder.file_name().unwrap_or_default().to_string_lossy();
    let toolchain = toolchain::find(root, options.offline)?;
    let ptxas = match Ptxas::find(root) {
        None if options.fetch_ptxas && !options.offline => Some(Ptxas::fetch(root)?),
        found => found,
    };
    match &ptxas {
        Some(ptxas) => eprintln!("ptxas: {} ({})", ptxas.release(), ptxas.path().display()),
        None => eprintln!(
            "ptxas: there is none, so spills, registers and its warnings are NOT checked \
             (--fetch-ptxas downloads it; $PTXAS names one)"
        ),
    }
    let (mut finished, mut wrong) = (Vec::new(), Vec::new());
    let mut usages_of = Vec::new();
    let mut same_code = true;
    for target in TARGETS {
        let builder = PtxBuilder::new(&krate).target(target);
        let ptx = builder.toolchain(toolchain.clone()).offline(options.offline).build()?;
        let (usages, problems) = match &ptxas {
            Some(ptxas) => ptxas.check(&ptx, root)?,
            None => Default::default(),
        };
        let name = name_for(&stem, target);
        println!("{name}");
        print!("{}", table(ptx.module(), &usages));
        usages_of.push((target, usages));
        wrong.extend(problems.into_iter().map(|problem| format!("{name}: {problem}")));

        let committed = into.join(&name);
        if !options.check {
            finished.push((committed, ptx));
            continue;
        }
        let built = root.join(BUILD_FOLDER).join(&name);
        fs::write(&built, ptx.text())
            .with_context(|| format!("cannot write {}", built.display()))?;
        let text = fs::read_to_string(&committed).unwrap_or_default();
        match compare(&text, &ptx) {
            Ok(agreement) => {
                same_code &= text == ptx.text();
                println!("  {agreement}");
            }
            Err(difference) => wrong.push(format!(
                "{FOLDER}/{name} is not what the kernels give: {difference:#}\n    \
                 run `cargo xtask build-ptx` and commit {FOLDER}"
            )),
        }
    }
    // The host knows the registers of the workspace's own kernels alone.
    let table = match (&ptxas, &options.other) {
        (Some(ptxas), None) => Some(resources::table(ptxas.release(), &usages_of)),
        _ => None,
    };
    let resources_file = into.join(resources::FILE);
    if let (Some(built), true) = (&table, options.check) {
        let committed = fs::read_to_string(&resources_file).unwrap_or_default();
        println!("{}", resources::FILE);
        // Other code takes other registers.
        match same_code.then(|| resources::compare(&committed, built)) {
            None => println!("  not compared, as the code was not"),
            Some(Ok(agreement)) => println!("  {agreement}"),
            Some(Err(difference)) => wrong.push(format!(
                "{FOLDER}/{} is not what ptxas gives: {difference}\n    \
                 run `cargo xtask build-ptx` and commit {FOLDER}",
                resources::FILE
            )),
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n  "));
    if options.check {
        return Ok(());
    }
    // All or none: the files are of one source.
    for (path, ptx) in finished {
        write(&path, ptx.text())?;
    }
    match (table, &options.other) {
        (Some(table), _) => write(&resources_file, &table)?,
        (None, None) => println!(
            "{}: left as it is, for want of a ptxas: `cargo xtask build-ptx --fetch-ptxas` renews it",
            resources_file.display()
        ),
        (None, Some(_)) => {}
    }
    Ok(())
}

/// Writes a file, if it is another one than before, and says which.
fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        println!("{}: unchanged", path.display());
        return Ok(());
    }
    println!("{}: written", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path))
        .and_then(|()| fs::write(path, text))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Compares a committed file with one that was just built: how they agree, or where they do not.
fn compare(committed: &str, built: &Ptx) -> Result<&'static str> {
    ensure!(!committed.is_empty(), "it is not there");
    let (old, new) = (compiler_of(committed), compiler_of(built.text()));
    if old == new {
        if let Some((line, (old, new))) = first_difference(committed, built.text()) {
            bail!("line {line}\n    committed: {old}\n    built:     {new}");
        }
        ensure!(committed == built.text(), "its line ends");
        return Ok("as committed, to the byte");
    }
    // Another compiler words the same kernels differently. What the host relies on must not differ.
    let module = Module::parse(committed).context("it cannot be read")?;
    for name in module.kernels().chain(built.module().kernels()).map(|kernel| &kernel.name) {
        let old = contract(committed, &module, name);
        let new = contract(built.text(), built.module(), name);
        ensure!(old == new, "kernel `{name}`\n    committed: {old}\n    built:     {new}");
    }
    Ok(
        "of another compiler than the committed file: kernels, declarations and parameters agree, the \
        code was not compared",
    )
}

/// What the host relies on: a kernel's directives, the number of its parameters, its declaration.
fn contract(text: &str, module: &Module, name: &str) -> String {
    let Some(kernel) = module.function(name) else { return "no such kernel".into() };
    let declared = |line: usize| text.lines().nth(line - 1).unwrap_or_default().trim();
    let declared: Vec<_> = kernel.declarations.iter().map(|(line, _)| declared(*line)).collect();
    format!("{} parameters {} {}", kernel.params, kernel.directives, declared.join(" "))
}

/// The number of the first line that differs, from 1, and the line in both.
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
        let usage = usages.iter().find(|usage| usage.kernel == kernel.name);
        let registers = usage.map_or("-".into(), |usage| usage.registers.to_string());
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

    #[test]
    fn with_the_same_compiler_every_byte_counts() {
        let ptx = built(RAW, "rustc 1");
        assert_eq!(compare(ptx.text(), &ptx).unwrap(), "as committed, to the byte");
        let other = built(&RAW.replace("bar.sync 0", "bar.sync 1"), "rustc 1");
        let error = compare(other.text(), &ptx).unwrap_err().to_string();
        assert!(error.contains("line 13") && error.contains("bar.sync 1"), "{error}");
        assert!(compare("", &ptx).unwrap_err().to_string().contains("not there"));
        assert!(compare(&ptx.text().replace('\n', "\r\n"), &ptx).is_err());
    }

    #[test]
    fn with_another_compiler_the_contract_counts() {
        let ptx = built(RAW, "rustc 2");
        let other = built(&RAW.replace("bar.sync 0", "barrier.sync 0"), "rustc 1");
        assert!(compare(other.text(), &ptx).unwrap().contains("another compiler"));
        let wider = built(&RAW.replace("block=32", "block=64"), "rustc 1");
        assert!(compare(wider.text(), &ptx).is_err());
        let renamed =
            built(&RAW.replace("entry k(", "entry l(").replace("name=k", "name=l"), "rustc 1");
        assert!(compare(renamed.text(), &ptx).is_err());
    }

    #[test]
    fn the_table_has_a_line_for_each_kernel() {
        let usage = Usage { kernel: "k".into(), registers: 40, ..Usage::default() };
        let text = table(built(RAW, "").module(), &[usage]);
        let line = text.lines().nth(1).unwrap();
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["k", "40", "0", "1", "2"]);
    }
}
