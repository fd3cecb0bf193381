//! `cargo xtask ci`: everything that CI runs, in its order.

use std::{path::Path, process::Command, time::Instant};

use anyhow::{Context, Result, ensure};

use crate::{
    build_ptx, course,
    environment::{cargo, clean, keep_target},
};

/// Runs every step in the workspace in `root`, up to the first that fails.
pub fn run(root: &Path) -> Result<()> {
    let start = Instant::now();
    step("cargo fmt --all --check", || cargo_step(root, &["fmt", "--all", "--check"]))?;
    step("cargo clippy --workspace --all-targets -- -D warnings", || {
        cargo_step(root, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
    })?;
    step("cargo xtask build-ptx --check --fetch-ptxas", || {
        let options =
            build_ptx::Options { check: true, fetch_ptxas: true, ..build_ptx::Options::default() };
        build_ptx::run(root, options)
    })?;
    step("cargo xtask build-ptx --crate tests/specimens --into target/ptx", || {
        let other =
            build_ptx::Other { krate: root.join("tests/specimens"), into: root.join("target/ptx") };
        build_ptx::run(root, build_ptx::Options { other: Some(other), ..Default::default() })
    })?;
    step("cargo +stable build -p host", || stable(root, &["build", "-p", "host"]))?;
    step("cargo test --workspace", || cargo_step(root, &["test", "--workspace"]))?;
    step("cargo xtask course --check", || course::run(root, course::Options { check: true }))?;
    println!("ci: all steps passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn step(name: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("ci: {name}");
    let start = Instant::now();
    let result = run().with_context(|| format!("ci step `{name}` failed"));
    println!("ci: {name}: {:.1} s", start.elapsed().as_secs_f64());
    result
}

fn cargo_step(root: &Path, args: &[&str]) -> Result<()> {
    succeed(keep_target(&mut Command::new(cargo()), root).args(args).current_dir(root))
}

/// A cargo call with the stable toolchain, whatever runs us. What users build must not need a nightly.
fn stable(root: &Path, args: &[&str]) -> Result<()> {
    let there =
        clean(Command::new("rustup").args(["run", "stable", "cargo", "--version"])).output();
    ensure!(
        there.is_ok_and(|done| done.status.success()),
        "rustup has no stable toolchain: `rustup toolchain install stable --profile minimal`"
    );
    let mut command = Command::new("rustup");
    clean(&mut command).args(["run", "stable", "cargo"]).args(args).current_dir(root);
    succeed(keep_target(&mut command, root))
}

fn succeed(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot run `{program}`"))?;
    ensure!(status.success(), "{status}");
    Ok(())
}
