//! The Python package of `host/python`: built, installed into a fresh environment, and tested there.

use std::{
    env, fs,
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

/// A cargo in the package's workspace.
pub(crate) fn cargo(root: &Path, args: &str) -> Command {
    let mut command = Command::new(environment::cargo());
    command.args(args.split(' ')).current_dir(root.join(FOLDER));
    compiling(&mut command, root);
    command
}

/// Lets a command compile without the paths of this machine, which errors at run time would show: a wheel is for others. The flags are not
/// those of the main workspace, and neither is the target folder: cargo would compile the packages of crates.io anew at each change.
fn compiling(command: &mut Command, root: &Path) {
    let old = env::var("RUSTFLAGS").unwrap_or_default();
    let old = old.split_whitespace().map(str::to_owned);
    // Of two that fit, the last one counts.
    let remapped = folders(root).map(|(name, path)| {
        path.map(|path| format!("--remap-path-prefix={}={name}", path.display()))
    });
    let flags = old.chain(remapped.into_iter().flatten()).collect::<Vec<_>>();
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    command.env("CARGO_TARGET_DIR", target_folder(root).join("wheel"));
}

/// Folders of this machine whose paths no wheel has, and what stands in their place.
fn folders(root: &Path) -> [(&'static str, Option<PathBuf>); 3] {
    let of = |name| {
        let path = env::var_os(name).map(|path| plain(Path::new(&path)));
        path.filter(|path| path.parent().is_some())
    };
    [("~", of("HOME")), ("cargo", of("CARGO_HOME")), ("gpu-gemm", Some(plain(root)))]
}

/// A path as the compiler writes it: without a slash at the end, and with one between two names.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
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
    build.current_dir(root.join(FOLDER));
    compiling(&mut build, root);
    succeed(&mut build)?;
    let of_folder = fs::read_dir(&wheels).with_context(|| format!("no {}", wheels.display()))?;
    let wheel = of_folder.flatten().map(|entry| entry.path()).next().context("no wheel")?;
    let mut pip = Command::new(python(root));
    // Nothing but the wheel: it has no dependencies.
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]).arg(wheel);
    succeed(&mut pip)
}

/// Refuses an installed library with a path of this machine in it.
///
/// # Errors
/// The path.
pub(crate) fn check_paths(root: &Path) -> Result<()> {
    let ask = "import gpu_gemm._native as it; print(it.__file__)";
    let library = environment::output(Command::new(python(root)).args(["-c", ask]))?;
    let bytes = fs::read(library.trim()).with_context(|| format!("no {}", library.trim()))?;
    for path in folders(root).into_iter().filter_map(|(_, path)| path) {
        if let Some(found) = first_with(&bytes, &format!("{}/", path.display())) {
            bail!("{} has the path {found}: compile with --remap-path-prefix", library.trim());
        }
    }
    Ok(())
}

/// The text that begins with `start` in these bytes, as far as it is a path.
fn first_with(bytes: &[u8], start: &str) -> Option<String> {
    let at = bytes.windows(start.len()).position(|window| window == start.as_bytes())?;
    let is_of_path = |byte: &&u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    let path = bytes[at..].iter().take_while(is_of_path).copied().collect::<Vec<_>>();
    Some(String::from_utf8_lossy(&path).into_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_library_is_found() {
        let bytes = b"\x7fELF\0called at /home/me/lib/src/a.rs:3\0~/lib/src/b.rs";
        assert_eq!(first_with(bytes, "/home/me/").unwrap(), "/home/me/lib/src/a.rs");
        assert_eq!(first_with(bytes, "/home/you/"), None);
    }

    #[test]
    fn a_folder_is_found_however_it_is_written() {
        let bytes = b"\x7fELF\0called at /home/me/cargo/src/a.rs:3\0";
        for folder in ["/home/me/cargo", "/home/me/cargo/", "/home//me/./cargo//"] {
            let start = format!("{}/", plain(Path::new(folder)).display());
            assert_eq!(first_with(bytes, &start).unwrap(), "/home/me/cargo/src/a.rs", "{folder}");
        }
    }
}
