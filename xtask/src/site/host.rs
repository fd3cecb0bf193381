//! The built command of the workspace.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::environment::{cargo, keep_target, output, target_folder};

/// The command.
pub(crate) struct Host {
    program: PathBuf,
}

impl Host {
    /// Builds it, unless `cargo test --workspace` has left it.
    pub(crate) fn build(root: &Path, is_of_tests: bool) -> Result<Host> {
        let program = target_folder(root).join("debug/host");
        if is_of_tests {
            return Ok(Host { program });
        }
        let mut command = Command::new(cargo());
        keep_target(&mut command, root).current_dir(root);
        let status = command.args(["build", "--quiet", "--package", "host"]).status();
        ensure!(status.context("cannot run cargo")?.success(), "the command cannot be built");
        Ok(Host { program })
    }

    /// What it prints.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        output(Command::new(&self.program).args(arguments))
    }

    /// The kernels that it lists, in the order of the registry.
    pub(super) fn kernels(&self) -> Result<Vec<Value>> {
        let listed = self.run(&["kernels", "--json"])?;
        listed.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// The names of all rungs of the course.
    pub(crate) fn rungs(&self) -> Result<Vec<String>> {
        let kernels = self.kernels()?;
        let rungs = kernels.iter().filter(|kernel| kernel["idea"].is_string());
        Ok(rungs.filter_map(|kernel| kernel["name"].as_str()).map(str::to_owned).collect())
    }
}
