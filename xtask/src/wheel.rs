//! The Python package of `host/python`: built for `cargo xtask wheel`; and for CI built, installed
//! into a fresh environment, and tested there.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    environment::{self, say, shown, succeed, target_folder},
    licences::{self, FOLDER},
};

/// What builds the wheel, and what its tests need (`host/python/pyproject.toml` names them).
const TOOLS: [&str; 9] = [
    "maturin>=1.12,<2",
    "ziglang",
    "dask[array]==2026.8.0",
    "distributed==2026.8.0",
    "hypothesis",
    "ml_dtypes",
    "mypy==1.19.1",
    "numpy>=2",
    "pytest",
];

/// The place of the environment and of the wheel.
fn folder(root: &Path) -> PathBuf {
    target_folder(root).join("python")
}

fn python(root: &Path) -> PathBuf {
    folder(root).join("venv/bin/python")
}

/// A cargo in the workspace of a folder that is none of the main one: this package's, or that of
/// `host/mpi` or `host/capi`, which need the same packages, and have them compiled in the same way.
pub(crate) fn cargo(root: &Path, folder: &str, args: &str) -> Command {
    let mut command = Command::new(environment::cargo());
    command.args(args.split(' ')).current_dir(root.join(folder));
    compiling(&mut command, root);
    command
}

/// Lets a command compile without the paths of this machine, which errors at run time would show: a
/// wheel is for others. The flags are not those of the main workspace, and neither is the target
/// folder: cargo would compile the packages of crates.io anew at each change.
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

/// `cargo xtask wheel`: builds the wheel that the guide installs, in the release profile.
///
/// # Errors
/// No Python with `venv`; a package that cannot be fetched; what maturin refuses.
pub fn run(root: &Path) -> Result<()> {
    let tools = target_folder(root).join("wheel-tools");
    let python = tools.join("bin/python");
    if !tools.join("bin/maturin").exists() {
        environment_with(&tools, &TOOLS[..2])?;
    }
    let wheels = target_folder(root).join("wheels");
    build(root, &python, &["--release"], &wheels)?;
    let built = newest(&wheels)?;
    say(&format!("wheel: {}; `pip install` it\n", shown(&built, root)))
}

/// Makes an environment of Python with these packages.
fn environment_with(folder: &Path, packages: &[&str]) -> Result<()> {
    let made = Command::new("python3").args(["-m", "venv"]).arg(folder).status();
    match made {
        Ok(status) if status.success() => {}
        _ => bail!(
            "`python3 -m venv` fails: Python 3.9 or later with venv is needed (Debian: python3-venv)"
        ),
    }
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
    succeed(&mut pip)
}

/// Builds the wheel into that folder.
fn build(root: &Path, python: &Path, profile: &[&str], wheels: &Path) -> Result<()> {
    let mut build = Command::new(python);
    // With the toolchain and the flags of the other parts.
    build.args(["-m", "maturin", "build", "--quiet", "--locked"]).args(profile);
    build.args(["--zig", "--compatibility", "manylinux2014"]);
    build.arg("--interpreter").arg(python).arg("--out").arg(wheels);
    build.current_dir(root.join(FOLDER));
    // Zig is a package of this Python.
    let programs = python.parent().context("python is in a folder")?.to_owned();
    build.env("PATH", environment::prepend("PATH", &[programs])?);
    compiling(&mut build, root);
    succeed(&mut build)
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
    environment_with(&folder.join("venv"), &TOOLS)
}

/// Builds the wheel as the guide does, but in the dev profile, which compiles the kernels fast, and
/// installs it.
///
/// # Errors
/// Those of the two.
pub(crate) fn install(root: &Path) -> Result<()> {
    build(root, &python(root), &["--profile", "dev"], &folder(root).join("wheels"))?;
    let mut pip = Command::new(python(root));
    // Nothing but the wheel: it has no dependencies.
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]).arg(wheel(root)?);
    succeed(&mut pip)
}

/// The wheel that was built.
fn wheel(root: &Path) -> Result<PathBuf> {
    newest(&folder(root).join("wheels"))
}

/// The wheel that was written last into that folder.
fn newest(wheels: &Path) -> Result<PathBuf> {
    let of_folder = fs::read_dir(wheels).with_context(|| format!("no {}", wheels.display()))?;
    let written = |path: &PathBuf| path.metadata().and_then(|file| file.modified()).ok();
    of_folder.flatten().map(|entry| entry.path()).max_by_key(written).context("no wheel")
}

/// Refuses a wheel with a path of this machine in one of its files, or without the licences of what
/// it is made of.
///
/// # Errors
/// The path; the licence that is missing.
pub(crate) fn check_files(root: &Path) -> Result<()> {
    licences::run(root, licences::Options { check: true })?;
    let unpacked = folder(root).join("unpacked");
    let mut unpack = Command::new(python(root));
    unpack.args(["-m", "zipfile", "-e"]).arg(wheel(root)?).arg(&unpacked);
    succeed(&mut unpack)?;
    let (mut files, mut folders_left) = (Vec::new(), vec![unpacked.clone()]);
    while let Some(next) = folders_left.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("no {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() { folders_left.push(path) } else { files.push(path) }
        }
    }
    let paths = folders(root).into_iter().filter_map(|(_, path)| path).collect::<Vec<_>>();
    for file in &files {
        let bytes = fs::read(file).with_context(|| format!("no {}", file.display()))?;
        for path in &paths {
            if let Some(found) = first_with(&bytes, &format!("{}/", path.display())) {
                let file = file.strip_prefix(&unpacked).unwrap_or(file).display();
                bail!("{file} in the wheel has the path {found}: compile with --remap-path-prefix");
            }
        }
    }
    for name in licences::names() {
        let is_it = |file: &PathBuf| file.ends_with(Path::new("licenses").join(name));
        ensure!(files.iter().any(is_it), "the wheel lacks {name}");
    }
    Ok(())
}

/// Compares the stubs with the installed module.
///
/// # Errors
/// What differs.
pub(crate) fn check_stubs(root: &Path) -> Result<()> {
    let mut stubtest = Command::new(python(root));
    // It writes a cache into its folder.
    stubtest.args(["-m", "mypy.stubtest", "gpu_gemm"]).current_dir(folder(root));
    stubtest.arg("--mypy-config-file").arg(root.join(FOLDER).join("pyproject.toml"));
    succeed(&mut stubtest)
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
