//! The output of the workspace's programs.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::environment::{cargo, keep_target, target_folder};

/// The workspace's programs.
pub(super) struct Programs {
    pub(super) root: PathBuf,
    /// Whether they are there, from `cargo test --workspace`.
    pub(super) are_of_tests: bool,
}

impl Programs {
    /// The output of a package's program, if it ends with one of these exit codes.
    pub(super) fn output(
        &self,
        package: &str,
        arguments: &[&str],
        codes: &[i32],
    ) -> Result<String> {
        let built = Path::new(package);
        self.output_of(&["--package", package], built, arguments, codes)
    }

    /// The output of a package's example, if it ends with one of these exit codes.
    pub(super) fn output_of_example(
        &self,
        package: &str,
        name: &str,
        codes: &[i32],
    ) -> Result<String> {
        let program = ["--package", package, "--example", name];
        self.output_of(&program, &Path::new("examples").join(name), &[], codes)
    }

    fn output_of(
        &self,
        program: &[&str],
        built: &Path,
        arguments: &[&str],
        codes: &[i32],
    ) -> Result<String> {
        let built = target_folder(&self.root).join("debug").join(built);
        let (mut command, program) = match self.are_of_tests {
            true => (Command::new(&built), built.display().to_string()),
            false => {
                let mut command = Command::new(cargo());
                keep_target(&mut command, &self.root)
                    .args(["run", "--quiet"])
                    .args(program)
                    .arg("--");
                (command, format!("cargo run {} --", program.join(" ")))
            }
        };
        let shown = format!("{program} {}", arguments.join(" "));
        let output = command
            .args(arguments)
            .current_dir(&self.root)
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
}
