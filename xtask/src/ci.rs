//! `cargo xtask ci`: everything that CI runs, in parts that can run alone and side by side.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, ensure};

use crate::{
    budgets, build_ptx, circles, course,
    environment::{cargo, clean, keep_target, target_folder},
    tidy,
    times::{self, Cost},
    unsafe_sites,
};

/// The parts in their order, and what each is for.
pub const PARTS: [(&str, &str); 7] = [
    ("lint", "formatting, clippy, what may not grow, the documents and their links"),
    ("ptx", "the committed PTX is what the kernels compile to"),
    ("test", "cargo test; the course's figures, the lists of kernels"),
    ("check", "what `cargo test` leaves out: every kernel in every case"),
    ("packaging", "stable Rust, a program from the packed crates, Rust-CUDA's own crate"),
    ("mutants", "a sample of mistakes in kernels, each found"),
    (SANITIZERS, "AddressSanitizer and valgrind"),
];

/// A part that runs where it is named alone: it builds everything anew, and needs valgrind.
const SANITIZERS: &str = "sanitizers";

/// Runs these parts in the workspace in `root`, all but the sanitizers where none is named, up to the first step that fails.
pub fn run(root: &Path, parts: &[String]) -> Result<()> {
    let start = Instant::now();
    let mut ci = Ci { root, rows: String::new() };
    let is_wanted = |name: &str| match parts {
        [] => name != SANITIZERS,
        parts => parts.iter().any(|part| part == name),
    };
    let done =
        PARTS.iter().filter(|(name, _)| is_wanted(name)).try_for_each(|(name, _)| ci.part(name));
    let target = target_folder(root);
    if done.is_ok() {
        fs::create_dir_all(&target)?;
        fs::write(target.join(times::STEPS), &ci.rows)?;
    }
    print!("{}", ci.rows);
    done?;
    println!("ci: all steps passed in {:.0} s", start.elapsed().as_secs_f64());
    for (name, what) in PARTS {
        if !is_wanted(name) {
            println!("ci: LEFT OUT: {name}: {what}: cargo xtask ci {name}");
        }
    }
    Ok(())
}

/// What AddressSanitizer and valgrind know.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// A fiber that is left in the middle of a thread gives nothing back that it had, so leaks are none of ours; memory that there is not
/// is an error, and tests ask for it; and whether a stack is used up is told from addresses of variables, which must lie on it.
const ASAN_OPTIONS: &str =
    "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0";

const VALGRIND: &str = "valgrind --quiet --error-exitcode=9";

struct Ci<'a> {
    root: &'a Path,
    /// A row for each step that has run.
    rows: String,
}

impl Ci<'_> {
    fn part(&mut self, name: &str) -> Result<()> {
        let root = self.root;
        match name {
            "lint" => {
                self.step("budgets of files", || budgets::of_files(root))?;
                self.step("table of unsafe code", || unsafe_sites::check(root))?;
                self.step("circles of files", || circles::check(root))?;
                self.step("cargo xtask tidy", || tidy::run(root))?;
                self.cargo("fmt --all --check")?;
                self.cargo("clippy --workspace --all-targets -- -D warnings")?;
                // What no other part of the list is: the command as users build it, and tests that only `packaging` runs.
                self.cargo("clippy --package gpu-gemm --package host --lib --bins -- -D warnings")?;
                self.cargo("clippy --workspace --test outside --test rust_cuda -- -D warnings")?;
                // A link that leads nowhere is a sentence without its object.
                self.step("cargo doc --workspace --no-deps", || {
                    let mut command = cargo_of(root, "doc --workspace --no-deps");
                    succeed(command.env("RUSTDOCFLAGS", "-D warnings"))
                })
            }
            "ptx" => {
                self.step("cargo xtask build-ptx --check --fetch-ptxas", || {
                    let options =
                        build_ptx::Options { check: true, fetch_ptxas: true, ..Default::default() };
                    build_ptx::run(root, options)
                })?;
                self.step("cargo xtask build-ptx --crate tests/specimens", || {
                    let (krate, into) = (root.join("tests/specimens"), root.join("target/ptx"));
                    let other = Some(build_ptx::Other { krate, into });
                    build_ptx::run(root, build_ptx::Options { other, ..Default::default() })
                })
            }
            "test" => self.test(),
            "check" => {
                // With the whole workspace's features, so that nothing is compiled again.
                let targets = ["check", "gemm"].map(|name| format!("--test {name}")).join(" ");
                let args = format!("test --workspace {targets}");
                self.step(&format!("FULL=1 cargo {args}"), || {
                    succeed(cargo_of(root, &args).env("FULL", "1"))
                })
            }
            "packaging" => {
                self.step("cargo +stable check -p gpu-gemm -p host", || {
                    let mut command = stable(root)?;
                    succeed(command.args(["check", "-p", "gpu-gemm", "-p", "host"]))
                })?;
                self.cargo("test --workspace --test outside --test rust_cuda")?;
                // The rest of CI calls the driver through `cust`: here the library does by itself.
                self.cargo("test --package gpu-gemm --lib -- cuda::")
            }
            SANITIZERS => self.sanitizers(),
            _ => self.cargo("run --quiet --package mutants -- --sample 1"),
        }
    }

    /// The tests of products, views, plans and files, with every access of theirs watched. (Not those of the CPU device: they overflow
    /// stacks.) Valgrind takes thirty times as long, so of the products it has those that are about where operands lie.
    fn sanitizers(&mut self) -> Result<()> {
        let root = self.root;
        let all = "--package tests --test gemm --test memories --test launch --test adapters";
        for args in [all, "--package gpu-gemm --lib"] {
            // Naming the target keeps the flags from build scripts and macros.
            let args = format!("test {args} --features simt/sanitizer --target {HOST}");
            self.step(&format!("AddressSanitizer: cargo {args}"), || {
                let mut command = cargo_of(root, &args);
                command.env("CARGO_TARGET_DIR", target_folder(root).join("sanitizers"));
                command.env("RUSTFLAGS", "-Zsanitizer=address").env("ASAN_OPTIONS", ASAN_OPTIONS);
                succeed(&mut command)
            })?;
        }
        for args in [
            "--package tests --test memories --test launch --test adapters",
            "--package tests --test gemm -- arguments batches empty memory overlap places::di places::le",
            "--package gpu-gemm --lib -- npy matrix blocks gemm",
        ] {
            let args = format!("test {args}");
            self.step(&format!("valgrind: cargo {args}"), || {
                let mut command = cargo_of(root, &args);
                let target = HOST.to_uppercase().replace('-', "_");
                command.env(format!("CARGO_TARGET_{target}_RUNNER"), VALGRIND);
                succeed(&mut command)
            })?;
        }
        Ok(())
    }

    /// The tests, and what their build has shown.
    fn test(&mut self) -> Result<()> {
        let (root, target) = (self.root, target_folder(self.root));
        fs::create_dir_all(&target)?;
        let log = target.join(format!("compilations-{}.tsv", std::process::id()));
        self.step("cargo test --workspace --no-run", || {
            succeed(times::recorded(&mut cargo_of(root, "test --workspace --no-run"), &log)?)
        })?;
        self.step("budgets of the build", || {
            let all = times::compilations(&log).unwrap_or_default();
            let _ = fs::remove_file(&log);
            budgets::of_build(times::sums(&all).get("gpu").copied(), &target.join("debug/host"))
        })?;
        self.cargo("test --workspace")?;
        // Here, since it runs the command.
        self.step("cargo xtask course --check", || {
            course::run(root, course::Options { check: true })
        })
    }

    fn cargo(&mut self, args: &str) -> Result<()> {
        let root = self.root;
        self.step(&format!("cargo {args}"), || succeed(&mut cargo_of(root, args)))
    }

    fn step(&mut self, name: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("ci: {name}");
        let (result, cost) = Cost::of(run);
        println!("ci: {name}: {:.1} s", cost.wall.as_secs_f64());
        self.rows += &times::row(&[&format!("`{name}`")], cost);
        result.with_context(|| format!("ci step `{name}` failed"))
    }
}

/// A cargo in the workspace. What has passed before is run again.
fn cargo_of(root: &Path, args: &str) -> Command {
    let mut command = Command::new(cargo());
    command.args(args.split(' ')).env("CACHE", "0").current_dir(root);
    keep_target(&mut command, root);
    command
}

/// A cargo of the stable toolchain, whatever runs us. What users build must not need a nightly. It builds in a folder of its own, so
/// that the two do not build everything in turn.
fn stable(root: &Path) -> Result<Command> {
    let there =
        clean(Command::new("rustup").args(["run", "stable", "cargo", "--version"])).output();
    ensure!(
        there.is_ok_and(|done| done.status.success()),
        "rustup has no stable toolchain: `rustup toolchain install stable --profile minimal`"
    );
    let mut command = Command::new("rustup");
    clean(&mut command).args(["run", "stable", "cargo"]).current_dir(root);
    command.env("CARGO_TARGET_DIR", target_folder(root).join("stable"));
    if let Some(value) = env::var_os("CARGO_INCREMENTAL") {
        command.env("CARGO_INCREMENTAL", value);
    }
    Ok(command)
}

fn succeed(command: &mut Command) -> Result<()> {
    let program = PathBuf::from(command.get_program());
    let status = command.status().with_context(|| format!("cannot run `{}`", program.display()))?;
    ensure!(status.success(), "{status}");
    Ok(())
}
