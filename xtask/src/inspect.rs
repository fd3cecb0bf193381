//! `cargo xtask inspect`: a kernel's registers, occupancy, instructions and main loop.
//!
//! It reads the committed PTX, so it needs no device compiler. With NVIDIA's assembler and
//! disassembler it also sees the machine code. Of a kernel with constants it inspects one
//! specialisation.

#[path = "../../host/lib/src/names/hint.rs"]
mod hint;
mod machine;
mod options;
mod report;
mod variant;
mod view;

use std::{fmt, fs, path::Path};

use anyhow::{Context, Result, bail};

pub use self::{
    hint::hint,
    options::Options,
    variant::{BadConstant, constants},
};
use self::{
    machine::Machine,
    report::Report,
    variant::{chosen, of_variant, split},
    view::View,
};
use crate::{
    Target, build_ptx,
    builder::ptx_files,
    declaration::{Declaration, MARK},
    environment::say,
    ptx::Module,
    resources,
};

/// A kernel that the file does not have. This is the caller's mistake, unlike every other error
/// here.
#[derive(Debug)]
pub struct UnknownKernel {
    name: String,
    file: String,
    known: Vec<String>,
}

impl std::error::Error for UnknownKernel {}

impl fmt::Display for UnknownKernel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let UnknownKernel { name, file, known } = self;
        let known = known.iter().map(String::as_str).collect::<Vec<_>>();
        write!(f, "{file} has no kernel `{name}`: ")?;
        match hint(name, &known) {
            Some(hint) => write!(f, "{hint} There are {}", known.join(", ")),
            None => write!(f, "there are {}", known.join(", ")),
        }
    }
}

/// The target with that name.
///
/// # Errors
/// With all names.
pub fn target(name: &str) -> Result<Target> {
    let found = build_ptx::TARGETS.into_iter().find(|target| target.cpu() == name);
    found.with_context(|| {
        let names = build_ptx::TARGETS.map(|target| target.cpu());
        format!("--target is one of {}", names.join(", "))
    })
}

/// Inspects a kernel of the workspace in `root`.
///
/// # Errors
/// [`UnknownKernel`]; [`BadConstant`]; a committed file or a tool's output that cannot be read.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let Found { file, kernel: name, constants: of_name } = file(root, options)?;
    let text =
        fs::read_to_string(root.join(&file)).with_context(|| format!("cannot read {file}"))?;
    let module = Module::parse(&text).with_context(|| format!("cannot read {file}"))?;
    let kernel = module.function(&name).context("its file is without it")?;
    let constants = match of_name {
        None => chosen(kernel, &options.kernel, &options.constants)?,
        // Further constants may be given.
        Some(of_name) => chosen(kernel, &name, &[of_name, options.constants.clone()].concat())?,
    };
    let text = specialise::specialise(&text, &constants);
    let module = Module::parse(&text).with_context(|| format!("cannot read {file}"))?;
    let kernel = module.function(&name).context("its file is without it")?;
    let ptx =
        View::of_ptx(&text, kernel).with_context(|| format!("{file}: kernel `{}`", kernel.name))?;
    let mut machine = Machine::of(root, &text, kernel, options)?;
    if machine.usage.is_none() {
        let file = format!("{}/{}", build_ptx::FOLDER, resources::FILE);
        let table = fs::read_to_string(root.join(file)).unwrap_or_default();
        let name = specialise::name(&kernel.name, &constants);
        machine.recorded = resources::recorded(&table, options.target, &name);
    }
    if options.sass && machine.sass.is_none() {
        bail!("--sass: {}", machine.missing.unwrap_or_default());
    }
    let report = Report { file: &file, module: &module, kernel, constants, ptx, machine, options };
    say(&match options.json {
        true => format!("{}\n", report.json()),
        false => report.text(),
    })
}

/// The place of a kernel.
struct Found {
    file: String,
    /// Its name in the PTX, without values of constants.
    kernel: String,
    /// The constants in a name of `host kernels`. The PTX does not have such names.
    constants: Option<Vec<(String, String)>>,
}

/// The file of a kernel for a target, or else for an older target.
fn file(root: &Path, options: &Options) -> Result<Found> {
    let older = build_ptx::TARGETS.into_iter().rev();
    let older = older.skip_while(|target| *target != options.target);
    let mut known = Vec::new();
    for target in older {
        let folder = root.join(build_ptx::FOLDER).join(target.cpu());
        // A workspace may have kernels for one target alone.
        if !folder.is_dir() {
            continue;
        }
        for path in ptx_files(&folder)? {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let name = format!("{}/{}", build_ptx::FOLDER, build_ptx::file_name(target, &stem));
            let asked = &options.kernel;
            for kernel in declared(&fs::read_to_string(&path)?)? {
                let constants = of_variant(asked, &kernel);
                if constants.is_some() || split(asked, &kernel.name).is_some() {
                    return Ok(Found { file: name, kernel: kernel.name, constants });
                }
                known.push(kernel.name);
            }
        }
    }
    known.sort();
    let file = format!("{}/{}", build_ptx::FOLDER, options.target.cpu());
    Err(UnknownKernel { name: options.kernel.clone(), file, known }.into())
}

/// What the kernels of a file declare. The file is not parsed, which takes longer.
fn declared(text: &str) -> Result<Vec<Declaration>> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("//"));
    lines.filter_map(|line| line.trim().strip_prefix(MARK)).map(str::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_target_is_told_what_there_is() {
        assert_eq!(target("sm_80").unwrap(), Target::SM_80);
        assert!(target("sm_70").unwrap_err().to_string().contains("sm_80, sm_90a"));
    }
}
