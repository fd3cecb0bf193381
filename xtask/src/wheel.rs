//! The Python package of `host/python`: built, installed into a fresh environment, and tested there.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::environment::{self, succeed, target_folder};

/// The folder of the package, a workspace of its own.
pub(crate) const FOLDER: &str = "host/python";

/// What builds the wheel, and what its tests need (`host/python/pyproject.toml` names them).
const TOOLS: [&str; 5] = ["maturin>=1.9,<2", "hypothesis", "ml_dtypes", "numpy>=2", "pytest"];

/// The place of the environment and of the wheel.
fn folder(root: &Path) -> PathBuf {
    target_folder(root).join("python")
}

fn python(root: &Path) -> PathBuf {
    folder(root).join("venv/bin/python")
}

/// A cargo in the package's workspace that compiles into the target folder of the workspace in `root`. Packages of crates.io are shared where
/// their features are the same. Cargo compiles those of the repository anew for each workspace.
pub(crate) fn cargo(root: &Path, args: &str) -> Command {
    let mut command = Command::new(environment::cargo());
    command.args(args.split(' ')).current_dir(root.join(FOLDER));
    command.env("CARGO_TARGET_DIR", target_folder(root));
    command
}

/// Makes a fresh environment with the tools.
///
/// # Errors
/// No Python with `venv`; a package that cannot be fetched.
pub(crate) fn fresh(root: &Path) -> Result<()> {
    let folder = folder(root);
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let made = Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")).status();
    match made {
        Ok(status) if status.success() => {}
        _ => bail!(
            "`python3 -m venv` fails: Python 3.9 or later with venv is needed (Debian: python3-venv)"
        ),
    }
    let mut pip = Command::new(python(root));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(TOOLS);
    succeed(&mut pip)
}

/// Builds the wheel in the dev profile, which compiles the kernels fast, and installs it.
///
/// # Errors
/// Those of the two.
pub(crate) fn install(root: &Path) -> Result<()> {
    let wheels = folder(root).join("wheels");
    let mut build = Command::new(python(root));
    // With the toolchain and the flags of the other parts.
    build.args(["-m", "maturin", "build", "--quiet", "--profile", "dev", "--locked"]);
    build.arg("--interpreter").arg(python(root)).arg("--out").arg(&wheels);
    build.current_dir(root.join(FOLDER)).env("CARGO_TARGET_DIR", target_folder(root));
    succeed(&mut build)?;
    let of_folder = fs::read_dir(&wheels).with_context(|| format!("no {}", wheels.display()))?;
    let wheel = of_folder.flatten().map(|entry| entry.path()).next().context("no wheel")?;
    let mut pip = Command::new(python(root));
    // Nothing but the wheel: it has no dependencies.
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]).arg(wheel);
    succeed(&mut pip)
}

/// Runs the tests against what is installed.
///
/// # Errors
/// A test that fails.
pub(crate) fn test(root: &Path) -> Result<()> {
    let mut tests = Command::new(python(root));
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).current_dir(root.join(FOLDER));
    succeed(&mut tests)
}
