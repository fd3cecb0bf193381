//! The device compiler from rustup: a nightly with three components.

use std::{
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    environment::{clean, note, output},
    version::Version,
};

/// Components that a nightly needs: core's source, LLVM's programs, and the linker that calls them.
pub(crate) const COMPONENTS: [&str; 3] = ["rust-src", "llvm-tools", "llvm-bitcode-linker"];

/// A nightly that can run.
pub(crate) struct Nightly {
    /// Its name for `rustup run`.
    pub(crate) name: String,
    pub(crate) version: Version,
    sysroot: PathBuf,
}

impl Nightly {
    /// The nightly of this folder, as it is installed.
    pub(crate) fn installed() -> Result<Nightly> {
        let name = nightly(env::var("RUSTUP_TOOLCHAIN").ok());
        if let Err(error) = rustup().arg("--version").output() {
            ensure!(error.kind() != ErrorKind::NotFound, "rustup is not installed");
            return Err(error).context("cannot run `rustup`");
        }
        let rustc = || {
            let mut command = rustup();
            command.args(["run", &name, "rustc"]);
            command
        };
        let version = Version::of(&mut rustc())?;
        let sysroot = output(rustc().args(["--print", "sysroot"]))?.trim_end().into();
        Ok(Nightly { name, version, sysroot })
    }

    /// The [`COMPONENTS`] that it lacks.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        missing_components(&self.sysroot, &self.version.host)
    }

    /// The arguments of `rustup` that add them.
    pub(crate) fn addition(&self) -> Vec<&str> {
        let mut arguments = vec!["component", "add", "--toolchain", &self.name];
        arguments.extend(self.missing());
        arguments
    }
}

/// The nightly of this folder with its components. Missing ones are added if allowed.
pub(crate) fn find(offline: bool) -> Result<Nightly> {
    let nightly = Nightly::installed()?;
    let name = &nightly.name;
    let addition = nightly.addition();
    if !nightly.missing().is_empty() {
        let command = format!("rustup {}", addition.join(" "));
        if offline || env::var_os("RUSTUP_AUTO_INSTALL").is_some_and(|value| value == "0") {
            let forbidden = if offline { "--offline" } else { "RUSTUP_AUTO_INSTALL=0" };
            bail!("{name} lacks {} ({forbidden}): `{command}`", nightly.missing().join(", "));
        }
        note(&format!("{command}\n"));
        output(rustup().args(&addition))?;
        let missing = nightly.missing();
        ensure!(missing.is_empty(), "{name} still lacks {}", missing.join(", "));
    }
    Ok(nightly)
}

fn rustup() -> Command {
    let mut command = Command::new("rustup");
    clean(&mut command);
    command
}

/// The nightly that runs this program, so that a dated one can be used. Otherwise the newest.
fn nightly(running: Option<String>) -> String {
    running.filter(|name| name.starts_with("nightly")).unwrap_or_else(|| "nightly".into())
}

/// The missing components, each tested by one file. (Asking rustup might make it look for updates.)
fn missing_components(sysroot: &Path, host: &str) -> Vec<&'static str> {
    let library = sysroot.join("lib/rustlib");
    let programs = library.join(host).join("bin");
    let files = [
        library.join("src/rust/library/core/Cargo.toml"),
        programs.join("llc"),
        programs.join("self-contained/llvm-bitcode-linker"),
    ];
    let found = files.iter().map(|file| fs::exists(file).unwrap_or(false));
    COMPONENTS.into_iter().zip(found).filter(|(_, found)| !found).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dated_nightly_is_kept_and_stable_is_not() {
        assert_eq!(nightly(Some("nightly-2026-05-20-x86_64".into())), "nightly-2026-05-20-x86_64");
        assert_eq!(nightly(Some("stable-x86_64".into())), "nightly");
        assert_eq!(nightly(None), "nightly");
    }

    #[test]
    fn components_are_known_by_their_files() {
        let folder = tempfile::tempdir().unwrap();
        let sysroot = folder.path();
        assert_eq!(missing_components(sysroot, "host"), COMPONENTS);
        for folder in ["src/rust/library/core", "host/bin/self-contained"] {
            fs::create_dir_all(sysroot.join("lib/rustlib").join(folder)).unwrap();
        }
        for file in ["src/rust/library/core/Cargo.toml", "host/bin/llc"] {
            fs::write(sysroot.join("lib/rustlib").join(file), "").unwrap();
        }
        assert_eq!(missing_components(sysroot, "host"), ["llvm-bitcode-linker"]);
    }
}
