//! Finds a device compiler, and calls it.
//!
//! Three ways to the same tools, tried in this order:
//!
//! 1. **rustup**: a nightly with `rust-src`, `llvm-tools` and `llvm-bitcode-linker`. Missing
//!    components are added, unless `--offline` or `RUSTUP_AUTO_INSTALL=0` forbid it.
//! 2. **Debian's packages**, if they are installed: `rustc-web`, `rust-web-src`, `llvm-22`.
//! 3. **Debian's packages in a folder**: downloaded and unpacked in `device-toolchain` in the
//!    target folder, on any Debian machine, as any user. The system is not changed.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Error, Result, anyhow};

use crate::{
    debian::{self, Tree},
    download,
    environment::{cargo, clean, note, prepend, shown, target_folder},
    linker, rustup,
    version::Version,
};

/// The folder of toolchains for the workspace in `root`.
fn folder(root: &Path) -> PathBuf {
    target_folder(root).join("device-toolchain")
}

/// A device compiler that is ready to be called.
#[derive(Clone, Debug)]
pub struct Toolchain {
    kind: Kind,
    version: Version,
}

#[derive(Clone, Debug)]
enum Kind {
    Rustup { name: String },
    Debian { tree: Tree, linker: PathBuf },
}

/// There is no device compiler. Of all errors only this one says nothing about the kernels.
#[derive(Debug)]
pub struct ToolchainAbsent {
    /// For each way, its name, and why it fails.
    reasons: Vec<(String, Error)>,
}

impl std::error::Error for ToolchainAbsent {}

impl fmt::Display for ToolchainAbsent {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "no compiler for NVIDIA GPUs:")?;
        for (way, reason) in &self.reasons {
            let reason = format!("{reason:#}");
            let mut lines = reason.lines();
            writeln!(f, "  {way}: {}", lines.next().unwrap_or_default())?;
            for line in lines {
                writeln!(f, "    {line}")?;
            }
        }
        write!(
            f,
            "With rustup, on any system:\n  rustup toolchain install nightly --component {}\n\
             On Debian (bookworm-security or later):\n  apt-get install {}\n\
             The kernels' PTX is in the repository: without such a compiler everything works but \
             changing kernels.",
            rustup::COMPONENTS.join(" --component "),
            debian::PACKAGES.join(" ")
        )
    }
}

/// Finds a device compiler, or downloads one into `device-toolchain` in the target folder
/// (`$CARGO_TARGET_DIR`, or `target` of the workspace in `root`). Standard error names the
/// compiler, and announces a download before it starts.
///
/// # Errors
/// [`ToolchainAbsent`], with what is missing for each way.
pub fn find(root: &Path, offline: bool) -> Result<Toolchain> {
    let folder = folder(root);
    // One at a time: the next build finds what this one downloads.
    let _lock = download::lock(&folder.join("lock"))?;
    let mut reasons = Vec::new();
    // In the order in which they are tried.
    let private = format!("Debian's packages in {}", shown(&folder, root));
    let ways: [(&str, &dyn Fn() -> Result<Toolchain>); 3] = [
        ("rustup", &|| Ok(Toolchain::from_rustup(rustup::find(offline)?))),
        ("Debian's installed packages", &|| {
            Toolchain::from_tree(debian::installed()?, &folder, offline)
        }),
        (&private, &|| Toolchain::from_tree(debian::private(&folder, offline)?, &folder, offline)),
    ];
    for (way, find) in ways {
        match find() {
            Ok(toolchain) => {
                note(&format!("device compiler: {} ({way})\n", toolchain.compiler()));
                return Ok(toolchain);
            }
            Err(reason) => reasons.push((way.to_owned(), reason)),
        }
    }
    Err(ToolchainAbsent { reasons }.into())
}

/// The installed parts of a device compiler.
pub(crate) struct Parts {
    /// As in [`Toolchain::compiler`].
    pub(crate) compiler: String,
    /// What [`find`] would have to download first, and the command for it. `None` if everything is
    /// there.
    pub(crate) missing: Option<(String, String)>,
}

/// The installed parts for each way to a compiler, under a short name. Downloads and changes
/// nothing.
pub(crate) fn survey(root: &Path) -> [(&'static str, Result<Parts>); 3] {
    let folder = folder(root);
    let of_tree = |tree: Result<Tree>| -> Result<Parts> {
        let version = tree?.version()?;
        let missing = (!linker::is_built(&version, &folder)).then(|| {
            (linker::NAME.to_string(), "`cargo xtask build-ptx` builds it, in 15 s".into())
        });
        Ok(Parts { compiler: version.text, missing })
    };
    let unpacked = debian::unpacked(&folder).unwrap_or_else(|| {
        Err(match debian::can_unpack() {
            true => anyhow!("not there; `cargo xtask build-ptx` downloads it (156 MB)"),
            false => anyhow!("not there, and this is not a Debian machine"),
        })
    });
    [
        ("compiler by rustup", nightly_parts()),
        ("compiler by Debian", of_tree(debian::installed())),
        ("compiler in target", of_tree(unpacked)),
    ]
}

fn nightly_parts() -> Result<Parts> {
    let nightly = rustup::Nightly::installed()?;
    let missing = nightly.missing();
    let get = || format!("`rustup {}`", nightly.addition().join(" "));
    let missing = (!missing.is_empty()).then(|| (missing.join(", "), get()));
    Ok(Parts { compiler: nightly.version.text, missing })
}

impl Toolchain {
    fn from_rustup(nightly: rustup::Nightly) -> Toolchain {
        let rustup::Nightly { name, version, .. } = nightly;
        Toolchain { kind: Kind::Rustup { name }, version }
    }

    fn from_tree(tree: Tree, folder: &Path, offline: bool) -> Result<Toolchain> {
        let version = tree.version()?;
        let linker = linker::ensure(&tree, &version, folder, offline)?;
        Ok(Toolchain { kind: Kind::Debian { tree, linker }, version })
    }

    /// The compiler as in the header of a PTX file.
    pub fn compiler(&self) -> &str {
        &self.version.text
    }

    /// The folder in which the compiler was unpacked, if it was.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Rustup { .. } => None,
            Kind::Debian { tree, .. } => Some(tree.root()),
        }
    }

    /// A cargo that compiles for the device. Its environment is set, its arguments are not.
    pub(crate) fn cargo(&self) -> Result<Command> {
        match &self.kind {
            Kind::Rustup { name } => {
                let mut command = Command::new("rustup");
                clean(&mut command).args(["run", name, "cargo"]);
                Ok(command)
            }
            Kind::Debian { tree, linker } => {
                let mut command = Command::new(cargo());
                tree.prepare(clean(&mut command))?;
                // The linker calls `llvm-link`, `opt` and `llc` by these names.
                command.env("PATH", prepend("PATH", &[linker.clone(), tree.llvm(&self.version)])?);
                // Debian's compiler is a stable release.
                command.env("RUSTC_BOOTSTRAP", "1");
                Ok(command)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_absence_says_what_is_missing_and_what_to_install() {
        let reasons = [("rustup", anyhow!("lacks rust-src")), ("Debian", anyhow!("no"))];
        let reasons = reasons.map(|(way, reason)| (way.to_owned(), reason)).into();
        let text = ToolchainAbsent { reasons }.to_string();
        for part in
            ["rustup: lacks rust-src", "--component llvm-tools", "apt-get install rustc-web"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
