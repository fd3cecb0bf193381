//! The output of the workspace's programs.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use crate::environment::{cargo, keep_target};

/// The output of a package's program, if it ends with one of these exit codes.
pub(super) fn of_package(
    root: &Path,
    package: &str,
    arguments: &[&str],
    codes: &[i32],
) -> Result<String> {
    of_program(root, &["--package", package], arguments, codes)
}

/// The output of a program, if it ends with one of these exit codes.
pub(super) fn of_program(
    root: &Path,
    program: &[&str],
    arguments: &[&str],
    codes: &[i32],
) -> Result<String> {
    let mut command = Command::new(cargo());
    keep_target(&mut command, root).args(["run", "--quiet"]).args(program).arg("--");
    let shown = format!("cargo run {} -- {}", program.join(" "), arguments.join(" "));
    let output = command
        .args(arguments)
        .current_dir(root)
        .output()
        .with_context(|| format!("`{shown}` cannot be run"))?;
    ensure!(
        output.status.code().is_some_and(|code| codes.contains(&code)),
        "`{shown}` failed ({}):\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` prints no text"))
}
