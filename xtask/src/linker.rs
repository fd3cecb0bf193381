//! `llvm-bitcode-linker`: rustc's linker for this target. rustup has it as a component. Debian
//! packages only its source, so it is built here.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    debian::Tree,
    download,
    environment::{cargo, clean, note, output},
    version::Version,
};

pub(crate) const NAME: &str = "llvm-bitcode-linker";

/// The folder with the linker of this compiler's version. It is built if necessary.
pub(crate) fn ensure(
    tree: &Tree,
    version: &Version,
    folder: &Path,
    offline: bool,
) -> Result<PathBuf> {
    let done = place(version, folder);
    let there = || is_built(version, folder).then(|| done.clone());
    download::once(&done, there, |partial| {
        build(tree, partial, offline)
            .with_context(|| format!("cannot build {NAME} from {}", tree.source().display()))
    })
}

/// Whether the linker of this compiler's version exists.
pub(crate) fn is_built(version: &Version, folder: &Path) -> bool {
    place(version, folder).join(NAME).exists()
}

fn place(version: &Version, folder: &Path) -> PathBuf {
    folder.join(format!("{NAME}-{}", version.release))
}

/// Builds the linker in a folder. Returns the folder that has only the linker.
fn build(tree: &Tree, folder: &Path, offline: bool) -> Result<PathBuf> {
    note(&format!("building {NAME} (once, about 15 s)\n"));
    copy(&tree.source().join("src/tools").join(NAME), folder)?;
    // Built separately, with the dependency versions that its authors test with.
    let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
    fs::write(folder.join("Cargo.toml"), manifest + "\n[workspace]\n")?;
    fs::copy(tree.source().join("Cargo.lock"), folder.join("Cargo.lock"))?;

    let mut command = Command::new(cargo());
    tree.prepare(clean(&mut command))?;
    command.args(["build", "--release", "--quiet", "--target-dir", "target"]).current_dir(folder);
    if offline {
        command.arg("--offline");
    }
    output(&mut command)?;

    let result = folder.join("done");
    fs::create_dir_all(&result)?;
    fs::rename(folder.join("target/release").join(NAME), result.join(NAME))?;
    Ok(result)
}

/// Copies a folder of files and folders.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let entries = fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in entries {
        let (source, target) = {
            let entry = entry?;
            (entry.path(), to.join(entry.file_name()))
        };
        match source.is_dir() {
            true => copy(&source, &target)?,
            false => {
                fs::copy(&source, &target)
                    .with_context(|| format!("cannot copy {}", source.display()))?;
            }
        }
    }
    Ok(())
}
