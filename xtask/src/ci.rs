//! `cargo xtask ci`: all of CI, in parts that can run alone and in parallel.

use std::{env, fs, path::Path, process::Command, thread, time::Instant};

use anyhow::{Context, Result, ensure};

use crate::{
    browser, budgets, build_ptx, circles, course,
    environment::{cargo, clean, keep_target, say, succeed, target_folder},
    licences, machine, new, site, tidy,
    times::{self, Compilation, Cost},
    units, unsafe_sites, wheel,
};

/// The parts in order, and what each is for.
pub const PARTS: [(&str, &str); 11] = [
    (FIRST, "the first command of the README, and what it costs in a fresh clone"),
    ("lint", "formatting, clippy, what may not grow, the documents and their links"),
    ("ptx", "the committed PTX is what the kernels compile to"),
    ("test", "cargo test; the course's figures, its pages in a browser, the lists of kernels"),
    (CHECK, "what `cargo test` leaves out: every kernel in every case"),
    ("packaging", "stable Rust, a program from the packed crates, Rust-CUDA's own crate"),
    ("python", "the wheel, in a fresh environment, with NumPy's own tests"),
    (MPI, "products over the ranks of MPI, and ScaLAPACK's own tests of them; the functions for C"),
    ("mutants", "a sample of mistakes in kernels, each found"),
    (SANITIZERS, "AddressSanitizer and valgrind"),
    (FUZZ, "ten million random products beside exact integers"),
];

/// The first part. In a fresh clone it compiles what `test` needs too.
const FIRST: &str = "first";

/// The part with what `cargo test` leaves out.
const CHECK: &str = "check";

/// The part of `host/mpi`. It needs Debian's packages of Open MPI, libclang and ScaLAPACK's tests.
const MPI: &str = "mpi";
const MPI_FOLDER: &str = "host/mpi";

/// The package with C's functions, whose dependencies are those of `host/mpi`, compiled alike.
const C_FOLDER: &str = "host/capi";

/// A part that runs only if it is named: it builds everything anew, and needs valgrind.
const SANITIZERS: &str = "sanitizers";

/// A part for every night, which takes hours. It too runs only if it is named.
const FUZZ: &str = "fuzz";

/// Runs these parts in the workspace in `root`, up to the first step that fails. If none is named,
/// all but the sanitizers and the random products.
pub fn run(root: &Path, parts: &[String]) -> Result<()> {
    let start = Instant::now();
    let mut ci = Ci { root, rows: String::new(), last: Cost::default(), slowness: None };
    let is_wanted = |name: &str| match parts {
        [] => ![SANITIZERS, FUZZ].contains(&name),
        parts => parts.iter().any(|part| part == name),
    };
    let done =
        PARTS.iter().filter(|(name, _)| is_wanted(name)).try_for_each(|(name, _)| ci.part(name));
    let target = target_folder(root);
    if done.is_ok() {
        fs::create_dir_all(&target)?;
        fs::write(target.join(times::STEPS), &ci.rows)?;
    }
    say(&ci.rows)?;
    done?;
    say(&format!("ci: all steps passed in {:.0} s\n", start.elapsed().as_secs_f64()))?;
    // The parts of a push. `check` alone takes as long.
    let is_push = PARTS.iter().all(|(name, _)| match *name {
        CHECK | SANITIZERS | FUZZ => !is_wanted(name),
        _ => is_wanted(name),
    });
    if is_push {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let is_ci = env::var_os("CI").is_some();
        budgets::of_ci(start.elapsed(), cores, is_ci, ci.slowness)?;
    }
    for (name, what) in PARTS {
        if !is_wanted(name) {
            say(&format!("ci: LEFT OUT: {name}: {what}: cargo xtask ci {name}\n"))?;
        }
    }
    Ok(())
}

/// What README has a newcomer type first.
const FIRST_COMMAND: &str = "run -p host -- --m 1000 --n 700 --k 513";

/// The target that AddressSanitizer and valgrind support.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// A fiber that is abandoned frees nothing, so leaks are not reported. Failed allocations are
/// errors, and tests provoke them. The check for used stack compares addresses of variables, so
/// these must be on the stack.
const ASAN_OPTIONS: &str =
    "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0";

const VALGRIND: &str = "valgrind --quiet --error-exitcode=9";

struct Ci<'a> {
    root: &'a Path,
    /// A table row for each step that has run.
    rows: String,
    /// What the last step took.
    last: Cost,
    /// How slow the machine is, if the first command has shown it.
    slowness: Option<f64>,
}

impl Ci<'_> {
    fn part(&mut self, name: &str) -> Result<()> {
        let root = self.root;
        match name {
            FIRST => self.first(),
            "lint" => {
                self.step("budgets of files", || budgets::of_files(root))?;
                self.step("comments of unsafe code", || unsafe_sites::check(root))?;
                self.step("circles of files", || circles::check(root))?;
                self.step("cargo xtask tidy", || tidy::run(root))?;
                self.cargo("fmt --all --check")?;
                self.cargo("clippy --workspace --all-targets -- -D warnings")?;
                // Covers what no other part does: the command as users build it, and tests that
                // only `packaging` runs.
                self.cargo("clippy --package gpu-gemm --package host --lib --bins -- -D warnings")?;
                // And the library for GPUs alone, without a kernel compiled for the CPU.
                self.cargo("clippy --package gpu-gemm --lib --no-default-features --features cuda -- -D warnings")?;
                self.cargo("clippy --workspace --test outside --test rust_cuda -- -D warnings")?;
                // A broken link is an error.
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
                })?;
                // The PTX that a new crate begins with is that of its kernel.
                self.step("cargo xtask build-ptx --crate xtask/template --check", || {
                    let krate = root.join(new::TEMPLATE);
                    let other = Some(build_ptx::Other { into: krate.join("ptx"), krate });
                    build_ptx::run(
                        root,
                        build_ptx::Options { other, check: true, ..Default::default() },
                    )
                })
            }
            "test" => self.test(),
            CHECK => {
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
                // As the README runs them: by themselves, with their own features.
                self.cargo("check --package gpu-simt --example race")?;
                self.cargo("check --package exercises")?;
                // One exercise alone, as its reader compiles it.
                let args = "check --package exercises";
                self.step(&format!("EXERCISE=guard_the_tail cargo {args}"), || {
                    succeed(cargo_of(root, args).env("EXERCISE", "guard_the_tail"))?;
                    forget_begun(root, "guard_the_tail")
                })?;
                self.cargo("test --workspace --test outside --test rust_cuda")?;
                // The rest of CI calls the driver through `cust`: here the library does by itself.
                self.cargo("test --package gpu-gemm --lib -- cuda::")
            }
            "python" => self.python(),
            MPI => self.mpi(),
            SANITIZERS => self.sanitizers(),
            // Built for speed. Another night has another seed, which it prints.
            FUZZ => self.cargo("run --release --package fuzz -- --count 10000000"),
            _ => self.cargo("run --quiet --package mutants -- --sample 1"),
        }
    }

    /// The tests of products, views, plans and files, with every access checked. (Not those of the
    /// CPU device: they overflow stacks.) Valgrind takes thirty times as long, so it runs only the
    /// product tests about the places of operands.
    fn sanitizers(&mut self) -> Result<()> {
        let root = self.root;
        let all = "--package tests --test gemm --test memories --test launch --test adapters";
        for args in [all, "--package gpu-gemm --lib"] {
            // With an explicit target the flags do not apply to build scripts and macros.
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

    /// The Python package.
    fn python(&mut self) -> Result<()> {
        let root = self.root;
        for args in ["fmt --check", "clippy --locked -- -D warnings"] {
            self.step(&format!("{}: cargo {args}", licences::FOLDER), || {
                succeed(&mut wheel::cargo(root, licences::FOLDER, args))
            })?;
        }
        self.step("features of the kernels in the wheel", || units::check_wheel(root))?;
        self.step("a fresh Python environment", || wheel::fresh(root))?;
        self.step("maturin build, pip install", || wheel::install(root))?;
        self.step("no path of this machine and all licences in the wheel", || {
            wheel::check_files(root)
        })?;
        self.step("mypy.stubtest gpu_gemm", || wheel::check_stubs(root))?;
        self.step("pytest host/python", || wheel::test(root))
    }

    /// The products over MPI, and those for C. Clippy finds the libraries of the wheel's clippy.
    /// Tests compile their own: a wheel's are for an explicit target.
    fn mpi(&mut self) -> Result<()> {
        let root = self.root;
        let all = ["fmt --check", "clippy --locked --all-targets -- -D warnings", "test --locked"];
        for (folder, args) in
            [MPI_FOLDER, C_FOLDER].into_iter().flat_map(|of| all.map(|args| (of, args)))
        {
            self.step(&format!("{folder}: cargo {args}"), || {
                succeed(&mut wheel::cargo(root, folder, args))
            })?;
        }
        Ok(())
    }

    /// The first command, and what it costs where nothing was compiled before but this program.
    fn first(&mut self) -> Result<()> {
        let command = target_folder(self.root).join("debug/host");
        let (cost, all) = self.compiling(FIRST_COMMAND, "gpu")?;
        let compiled = times::sums(&all);
        let has_compiled = compiled.contains_key("gpu");
        let slowness = machine::slowness(&compiled).filter(|_| has_compiled);
        // A fresh clone compiles all. Otherwise no limit of time would hold from now on.
        ensure!(
            slowness.is_some() || !has_compiled || env::var_os("CI").is_none(),
            "the first command has not compiled all packages of xtask/src/machine.rs: choose others that it compiles"
        );
        self.slowness = slowness;
        self.step("budgets of the first command", || {
            budgets::of_first_command(cost, slowness, &command)
        })
    }

    /// The tests, and what they cost.
    fn test(&mut self) -> Result<()> {
        let root = self.root;
        let (built, compiled) = self.compiling("test --workspace --no-run", "tests")?;
        self.cargo("test --workspace")?;
        let (all, slowness) = (built + self.last, self.slowness);
        let has_compiled = times::sums(&compiled).contains_key("tests");
        self.step("budgets of the tests", || budgets::of_tests(all, has_compiled, slowness))?;
        let args = "test --workspace --test fuzz";
        self.step(&format!("FUZZ_COUNT=100000 cargo {args}"), || {
            succeed(cargo_of(root, args).env("FUZZ_COUNT", "100000"))
        })?;
        // In this part, because it runs the command.
        self.step("cargo xtask course --check", || {
            course::run(root, course::Options { check: true, of_tests: true })
        })?;
        self.step("cargo xtask site --source", || {
            site::run(root, site::Options { source: true, of_tests: true })
        })?;
        self.step("cargo xtask browser", || {
            browser::run(root, browser::Options { of_tests: true, ..Default::default() })
        })
    }

    /// A step that calls cargo. The cost, and what it has compiled, with that library's time told.
    fn compiling(&mut self, args: &str, library: &str) -> Result<(Cost, Vec<Compilation>)> {
        let (root, target) = (self.root, target_folder(self.root));
        fs::create_dir_all(&target)?;
        let log = target.join(format!("compilations-{}.tsv", std::process::id()));
        self.step(&format!("cargo {args}"), || {
            succeed(times::recorded(&mut cargo_of(root, args), &log)?)
        })?;
        let all = times::compilations(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        if let Some(took) = times::sums(&all).get(library) {
            say(&format!("ci: compiling {library}: {:.1} CPU seconds\n", took.as_secs_f64()))?;
        }
        Ok((self.last, all))
    }

    fn cargo(&mut self, args: &str) -> Result<()> {
        let root = self.root;
        self.step(&format!("cargo {args}"), || succeed(&mut cargo_of(root, args)))
    }

    fn step(&mut self, name: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
        say(&format!("ci: {name}\n"))?;
        let (result, cost) = Cost::of(run);
        say(&format!("ci: {name}: {:.1} s\n", cost.wall.as_secs_f64()))?;
        self.rows += &times::row(&[&format!("`{name}`")], cost);
        self.last = cost;
        result.with_context(|| format!("ci step `{name}` failed"))
    }
}

/// Removes an exercise that a step has begun. It stays if somebody has worked on it.
fn forget_begun(root: &Path, name: &str) -> Result<()> {
    let [kernel, mine] = ["src/kernels", "mine"]
        .map(|folder| root.join(format!("tests/exercises/{folder}/{name}.rs")));
    if fs::read(&kernel)? == fs::read(&mine)? {
        fs::remove_file(mine)?;
    }
    Ok(())
}

/// A cargo in the workspace. Tests that have passed before run again.
fn cargo_of(root: &Path, args: &str) -> Command {
    let mut command = Command::new(cargo());
    command.args(args.split(' ')).env("CACHE", "0").current_dir(root);
    keep_target(&mut command, root);
    command
}

/// A cargo of the stable toolchain, whichever toolchain runs this program. Users must not need a
/// nightly. It has its own target folder, so that the two toolchains do not rebuild each other's
/// crates.
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
