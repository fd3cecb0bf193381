//! Crates outside the workspace, for tests that build them.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A crate in a folder of its own, with the workspace's lock file, so that no other versions are
/// fetched.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// Makes `folder` anew, with these files.
    pub fn new(folder: PathBuf, files: &[(&str, &str)]) -> Self {
        // Remains of an earlier run are removed.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::copy(workspace().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Scratch { folder }
    }

    /// Runs cargo there: that of `toolchain`, or the one that runs this test.
    pub fn cargo(&self, toolchain: Option<&str>, target: &Path, arguments: &[&str]) -> Output {
        let mut command = self.command(toolchain, target, arguments);
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// The same, to be run.
    pub fn command(&self, toolchain: Option<&str>, target: &Path, arguments: &[&str]) -> Command {
        let mut command = match toolchain {
            Some(name) => rustup(&["run", name, "cargo"]),
            None => Command::new(env::var_os("CARGO").unwrap_or("cargo".into())),
        };
        for (name, _) in env::vars_os() {
            if of_the_outer_cargo(&name.to_string_lossy(), toolchain.is_some()) {
                command.env_remove(&name);
            }
        }
        command.current_dir(&self.folder).env("CARGO_TARGET_DIR", target).args(arguments);
        // A test changes no toolchain and downloads none.
        command.env("RUSTUP_AUTO_INSTALL", "0");
        command
    }
}

/// `rustup` with these arguments. It may not change a toolchain.
pub fn rustup(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.env("RUSTUP_AUTO_INSTALL", "0").args(arguments);
    command
}

/// Whether a variable is from the outer cargo, a person or a toolkit, and a crate elsewhere must
/// not see it. Settings of the network and of rustup stay, and `RUSTUP_TOOLCHAIN` unless another is
/// asked for.
fn of_the_outer_cargo(variable: &str, other_toolchain: bool) -> bool {
    let starts = |starts: &[&str]| starts.iter().any(|start| variable.starts_with(start));
    match variable {
        "CARGO_HOME" => false,
        "RUSTUP_TOOLCHAIN" => other_toolchain,
        _ if starts(&["CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTRIES_"]) => false,
        _ => starts(&["CARGO", "RUSTC", "RUSTDOC", "RUSTFLAGS", "CUDA"]),
    }
}

/// The workspace's root folder.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The output of a command, for a message.
pub fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{}\n{out}{err}", output.status)
}
