//! The environment of a nested cargo: what it must not inherit, and the place of the workspace.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf, absolute},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// Removes from a command's environment what an outer cargo, rustup or build script has set for
/// itself.
///
/// If inherited, these do silent harm. Every build script has an empty `CARGO_ENCODED_RUSTFLAGS`,
/// which overrides `RUSTFLAGS`, and then the PTX is for another GPU.
pub(crate) fn clean(command: &mut Command) -> &mut Command {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_of_an_outer_build) {
            command.env_remove(name);
        }
    }
    command
}

fn is_of_an_outer_build(name: &str) -> bool {
    // The user's settings for the network and the terminal. Without them a build behind a proxy, or
    // with a mirror of crates.io, would fail.
    const KEPT: [&str; 6] = [
        "CARGO_HOME",
        "CARGO_HTTP_",
        "CARGO_NET_",
        "CARGO_REGISTR", // CARGO_REGISTRY_ and CARGO_REGISTRIES_
        "CARGO_SOURCE_",
        "CARGO_TERM_",
    ];
    match name {
        "CARGO" | "RUSTFLAGS" | "RUSTUP_TOOLCHAIN" | "TARGET" | "HOST" => true,
        _ if KEPT.iter().any(|kept| name.starts_with(kept)) => false,
        _ => ["CARGO_", "RUSTC", "RUSTDOC"].iter().any(|prefix| name.starts_with(prefix)),
    }
}

/// The cargo that runs this program, or the one on `PATH`.
pub(crate) fn cargo() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// A variable with a list of folders, and more folders in front.
pub(crate) fn prepend(variable: &str, folders: &[PathBuf]) -> Result<OsString> {
    let old = env::var_os(variable).unwrap_or_default();
    let old = env::split_paths(&old).filter(|path| !path.as_os_str().is_empty());
    env::join_paths(folders.iter().cloned().chain(old))
        .with_context(|| format!("a folder to be put into {variable} has `:` in its name"))
}

/// The root folder of the workspace of the crate in `folder`.
pub fn workspace_root(folder: &Path) -> Result<PathBuf> {
    let mut command = Command::new(cargo());
    command.args(["locate-project", "--workspace", "--message-format", "plain"]);
    clean(command.current_dir(folder));
    let manifest = output(&mut command)
        .with_context(|| format!("no crate of a Cargo workspace in {}", folder.display()))?;
    match Path::new(manifest.trim_end()).parent() {
        Some(root) => Ok(root.to_path_buf()),
        None => bail!("cargo names `{manifest}` as the manifest of {}", folder.display()),
    }
}

/// The name of the package in that folder, from its manifest.
///
/// # Errors
/// A folder without a package.
pub(crate) fn package_name(folder: &Path) -> Result<String> {
    let manifest = folder.join("Cargo.toml");
    let mut command = Command::new(cargo());
    command.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]);
    clean(command.arg(&manifest).current_dir(folder));
    let said = output(&mut command).with_context(|| format!("no crate in {}", folder.display()))?;
    let said: Value = serde_json::from_str(&said).context("cargo metadata is no JSON")?;
    let mut packages = said["packages"].as_array().into_iter().flatten();
    let own = packages
        .find(|package| package["manifest_path"].as_str().map(Path::new) == Some(&manifest));
    let name = own.and_then(|package| package["name"].as_str());
    Ok(name.with_context(|| format!("no package in {}", manifest.display()))?.to_owned())
}

/// The target folder of the workspace in `root`, for builds and downloads.
pub(crate) fn target_folder(root: &Path) -> PathBuf {
    target_folder_by(env::var_os(TARGET), root)
}

const TARGET: &str = "CARGO_TARGET_DIR";

fn target_folder_by(variable: Option<OsString>, root: &Path) -> PathBuf {
    match variable.filter(|folder| !folder.is_empty()) {
        // For cargo a relative path is relative to the folder in which it was called.
        Some(folder) => absolute(&folder).unwrap_or_else(|_| folder.into()),
        None => root.join("target"),
    }
}

/// Makes a cargo that is called in another folder use the same target folder.
pub(crate) fn keep_target<'c>(command: &'c mut Command, root: &Path) -> &'c mut Command {
    if env::var_os(TARGET).is_some() {
        command.env(TARGET, target_folder(root));
    }
    command
}

/// Runs another program of the workspace in `root`. Returns its exit code.
pub fn run_package(root: &Path, package: &str, args: &[OsString]) -> Result<ExitCode> {
    let mut command = Command::new(cargo());
    // With its environment, which has rustup's choice of a toolchain.
    command.current_dir(root).args(["run", "--quiet", "--package", package, "--"]).args(args);
    let status = command.status().context("cannot run cargo")?;
    Ok(ExitCode::from(status.code().unwrap_or(1) as u8))
}

/// A path for a message: relative to the workspace, if inside.
pub(crate) fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// Runs a command. Returns its standard output, or an error with its standard error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run `{program}`"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
        bail!("`{program} {}` failed ({}):\n{}", args.join(" "), output.status, said.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Writes to standard output. A closed pipe is no error: somebody has read enough. (`println!`
/// panics then, and where a disk is full.)
///
/// # Errors
/// Of any other kind.
pub fn say(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("standard output cannot be written")
        }
        _ => Ok(()),
    }
}

/// Writes to standard error, as far as it can be written.
pub fn note(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Runs a command, which must succeed.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let program = PathBuf::from(command.get_program());
    let status = command.status().with_context(|| format!("cannot run `{}`", program.display()))?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// The files that git knows, and new ones, that match the patterns: paths below the root, and
/// texts.
pub(crate) fn known_files(root: &Path, patterns: &[&str]) -> Result<Vec<(String, String)>> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let names = output(git.args(patterns))?;
    // Without files that are deleted but not yet removed from git.
    let text = |name: &str| Some((name.to_owned(), fs::read_to_string(root.join(name)).ok()?));
    Ok(names.lines().filter_map(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_called_what_its_manifest_says() {
        // This package is in a folder of another name.
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/simt/macros");
        let folder = folder.canonicalize().unwrap();
        assert_eq!(package_name(&folder).unwrap(), "gpu-simt-macros");
        let error = package_name(&folder.join("src")).unwrap_err().to_string();
        assert!(error.starts_with("no crate in "), "{error}");
    }

    #[test]
    fn an_outer_build_is_forgotten_and_the_users_network_is_kept() {
        let of_builds = "CARGO CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET CARGO_TARGET_DIR RUSTC \
                         CARGO_PROFILE_RELEASE_LTO RUSTC_WRAPPER RUSTDOCFLAGS RUSTFLAGS \
                         RUSTUP_TOOLCHAIN TARGET";
        for name in of_builds.split(' ') {
            assert!(is_of_an_outer_build(name), "{name}");
        }
        let of_users = "CARGO_HOME CARGO_HTTP_CAINFO CARGO_NET_OFFLINE CARGO_TERM_COLOR PATH \
                        CARGO_REGISTRIES_MINE_INDEX RUSTUP_HOME RUST_BACKTRACE";
        for name in of_users.split(' ') {
            assert!(!is_of_an_outer_build(name), "{name}");
        }
    }

    #[test]
    fn the_target_folder_is_cargos() {
        let root = Path::new("/some/space");
        let folder = |variable: Option<&str>| target_folder_by(variable.map(Into::into), root);
        assert_eq!(folder(None), root.join("target"));
        assert_eq!(folder(Some("")), root.join("target"));
        assert_eq!(folder(Some("/big/disk")), Path::new("/big/disk"));
        assert_eq!(folder(Some("out")), env::current_dir().unwrap().join("out"));
        assert_eq!(shown(&root.join("target/ptxas"), root), "target/ptxas");
        assert_eq!(shown(Path::new("/big/disk/ptxas"), root), "/big/disk/ptxas");
    }

    #[test]
    fn a_failing_command_says_what_it_said() {
        let error = output(Command::new("sh").args(["-c", "echo it broke >&2; exit 3"]));
        let message = format!("{:#}", error.expect_err("exit 3"));
        assert!(message.contains("it broke") && message.contains("sh"), "{message}");
    }
}
