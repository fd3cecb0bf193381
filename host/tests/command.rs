//! The command as it is built: what it prints, and how it ends.
//!
//! | exit code | tests |
//! |---|---|
//! | 0 | `a_product_*`, `kernels_*`, `devices_*`, `an_empty_*`, `a_closed_pipe_*` |
//! | 2 | `usage_*` |
//! | 3 | `environment_*` |
//! | 4 | `memory_*`, `a_device_fault_*` |
//! | 130 | `ctrl_c_*` |
//!
//! Exit code 1, a wrong C, cannot be had from the kernels there are; the crate `tests` shows that the
//! checker behind it rejects wrong results.

#[allow(
    dead_code,
    unused_macros,
    unused_imports,
    reason = "the rest serves tests within a process"
)]
#[path = "../cuda-dyn/tests/fake/mod.rs"]
mod fake;

use std::{
    io::Read,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

/// The command on a machine without a driver, whatever this one has.
fn host(args: &[&str]) -> Command {
    on("no driver", args)
}

/// The command on a machine with that driver (`cuda-dyn/tests/fake`).
fn on(driver: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_host"));
    command.args(args).env("LD_LIBRARY_PATH", fake::library_folder(driver));
    command.env("FAKE_CUDA", driver).env_remove("FAKE_CUDA_LOG");
    command
}

fn finish(mut command: Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().expect("ended by itself"), text(stdout), text(stderr))
}

/// A failure: that exit code, nothing on standard output, and one line on standard error with all of
/// `words`.
#[track_caller]
fn fails(command: Command, code: i32, words: &[&str]) {
    let (actual, stdout, stderr) = finish(command);
    assert_eq!(actual, code, "{stderr}");
    assert_eq!(stdout, "");
    assert!(!stderr.contains("panicked"), "{stderr}");
    let line = stderr.lines().find(|line| line.starts_with("error: "));
    let line = line.unwrap_or_else(|| panic!("no line starts with `error: `: {stderr}"));
    for word in words {
        assert!(line.contains(word), "`{word}` is missing: {line}");
    }
}

fn objects(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const SIZES: [&str; 6] = ["--m", "100", "--n", "70", "--k", "51"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SIZES.iter().chain(more).copied().collect()
}

#[test]
fn a_product_is_one_clear_result() {
    let (code, stdout, stderr) = finish(host(&SIZES));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("A 100x51 · B 51x70 = C 100x70"), "{stdout}");
    assert!(stdout.contains("\nverified  max |error|"), "{stdout}");
    assert!(stdout.contains("exact on integers"), "{stdout}");
    assert!(
        stderr.contains("no NVIDIA driver") && stderr.contains("running on the CPU"),
        "{stderr}"
    );
}

#[test]
fn a_product_in_json_is_one_object_with_the_agreed_keys() {
    let (code, stdout, _) = finish(host(&with(&["--json", "--kernel", "tiled16", "--seed", "7"])));
    let [object] = &objects(&stdout)[..] else { panic!("{stdout}") };
    assert_eq!(code, 0);
    for (key, value) in [("m", 100), ("n", 70), ("k", 51), ("seed", 7), ("iters", 1)] {
        assert_eq!(object[key], value, "{key}");
    }
    for (key, value) in [("device", "cpu"), ("kernel", "tiled16"), ("dtype", "f32")] {
        assert_eq!(object[key], value, "{key}");
    }
    for key in ["time_us", "gflops", "max_abs_err", "max_err_over_bound"] {
        assert!(object[key].as_f64().unwrap() > 0.0, "{key}: {stdout}");
    }
    assert!(object["max_err_over_bound"].as_f64().unwrap() <= 1.0, "{stdout}");
    assert_eq!((&object["verified"], &object["compared"]), (&true.into(), &7000.into()));
}

#[test]
fn a_product_is_the_same_for_the_same_seed() {
    let error = |seed| {
        let (_, stdout, _) = finish(host(&with(&["--json", "--seed", seed])));
        objects(&stdout)[0]["max_abs_err"].clone()
    };
    assert_eq!(error("3"), error("3"));
    assert_ne!(error("3"), error("4"));
}

#[test]
fn a_product_runs_with_every_kernel_listed() {
    let (_, stdout, _) = finish(host(&["kernels", "--json"]));
    let kernels = objects(&stdout);
    assert!(kernels.len() >= 4, "{stdout}");
    for kernel in kernels {
        let name = kernel["name"].as_str().unwrap();
        let (code, stdout, stderr) = finish(host(&with(&["--kernel", name])));
        assert!(code == 0 && stdout.contains("verified"), "{name}: {stdout}{stderr}");
    }
}

#[test]
fn an_empty_inner_size_gives_zeros_and_an_empty_c_nothing() {
    let (code, stdout, _) = finish(host(&["--m", "3", "--n", "5", "--k", "0"]));
    assert!(code == 0 && stdout.contains("verified"), "{stdout}");
    for [m, n, k] in [["0", "5", "3"], ["5", "0", "3"], ["0", "0", "0"]] {
        let (code, stdout, _) = finish(host(&["--m", m, "--n", n, "--k", k]));
        assert_eq!(code, 0, "{m} {n} {k}");
        assert!(stdout.contains("C is empty") && !stdout.contains("verified"), "{stdout}");
    }
}

#[test]
fn kernels_are_listed_for_people() {
    let (code, stdout, _) = finish(host(&["kernels"]));
    assert_eq!(code, 0);
    assert!(stdout.contains("tiled16") && stdout.contains("shared memory"), "{stdout}");
}

#[test]
fn devices_are_listed_and_a_missing_gpu_is_explained() {
    let names = |stdout: &str| {
        objects(stdout)
            .iter()
            .map(|device| device["name"].to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (code, stdout, stderr) = finish(host(&["devices", "--json"]));
    assert_eq!((code, &*names(&stdout)), (0, r#""cpu""#));
    assert!(stderr.contains("no NVIDIA driver"), "{stderr}");

    let (code, stdout, stderr) = finish(on("devices=2", &["devices", "--json"]));
    assert_eq!((code, &*names(&stdout)), (0, r#""cuda:0" "cuda:1" "cpu""#));
    assert_eq!(stderr, "");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut command = host(&["kernels"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), &*stderr), (Some(0), ""));
}

#[test]
fn usage_errors_name_the_argument_its_value_and_the_limit() {
    for (flag, value, limit) in [
        ("--m", "-1", "0 to 4294967295"),
        ("--n", "4294967296", "0 to 4294967295"),
        ("--k", "1e3", "0 to 4294967295"),
        ("--k", "many", "0 to 4294967295"),
        ("--m", "", "0 to 4294967295"),
        ("--n", "99999999999999999999999", "0 to 4294967295"),
        ("--iters", "0", "1 to 4294967295"),
        ("--iters", "-3", "1 to 4294967295"),
        ("--kernel", "tiled17", "tiled16"),
        ("--device", "gpu", "auto, cpu, cuda"),
        ("--device", "cuda:", "auto, cpu, cuda"),
        ("--device", "cuda:x", "auto, cpu, cuda"),
        ("--device", "cuda:-1", "auto, cpu, cuda"),
    ] {
        let mut args = SIZES.to_vec();
        match args.iter().position(|&arg| arg == flag) {
            Some(place) => args[place + 1] = value,
            None => args.extend([flag, value]),
        }
        fails(host(&args), 2, &[flag, &format!("'{value}'"), limit]);
    }
    fails(host(&with(&["--seed", "-1"])), 2, &["--seed", "-1"]);
    fails(host(&with(&["--colour"])), 2, &["--colour"]);
    fails(host(&["kernels", "--m", "5"]), 2, &["--m"]);
    fails(host(&["multiply"]), 2, &["multiply"]);
}

#[test]
fn usage_needs_all_three_sizes() {
    let (code, stdout, stderr) = finish(host(&["--m", "5", "--n", "5"]));
    assert_eq!((code, &*stdout), (2, ""));
    assert!(stderr.contains("required") && stderr.contains("--k"), "{stderr}");
}

#[test]
fn usage_refuses_matrices_that_cannot_be_addressed() {
    let sizes = ["--m", "4294967295", "--n", "1", "--k", "4294967295"];
    fails(host(&sizes), 2, &["m * k = 18446744065119617025", "at most"]);
}

#[test]
fn environment_without_a_driver() {
    fails(host(&with(&["--device", "cuda"])), 3, &["no NVIDIA driver", "libcuda.so.1", "install"]);
}

#[test]
fn environment_with_fewer_devices() {
    fails(on("devices=2", &with(&["--device", "cuda:2"])), 3, &["cuda:2", "2 CUDA device(s)"]);
    fails(on("devices=0", &with(&["--device", "cuda"])), 3, &["cuda:0", "0 CUDA device(s)"]);
}

#[test]
fn environment_with_a_driver_that_does_not_start() {
    fails(on("cuInit=803", &with(&["--device", "cuda"])), 3, &["no NVIDIA driver", "803"]);
}

#[test]
fn environment_with_a_driver_too_old_for_the_ptx() {
    let driver = "cuModuleLoadDataEx=222 version=11080";
    fails(on(driver, &with(&["--device", "cuda"])), 3, &["gpu.sm_90a.ptx", "CUDA 11.8"]);
}

#[test]
fn environment_with_an_architecture_too_old() {
    let driver = "major=7 minor=5";
    fails(on(driver, &with(&["--device", "cuda"])), 3, &["7.5 is below 8.0"]);
    // Left to itself the command takes the CPU, and says why.
    let (code, stdout, stderr) = finish(on(driver, &SIZES));
    assert!(code == 0 && stdout.contains("verified"), "{stdout}{stderr}");
    assert!(stderr.contains("7.5 is below 8.0"), "{stderr}");
}

#[test]
fn memory_of_the_cpu_is_not_overdrawn() {
    let sizes = ["--m", "4000000", "--n", "4000000", "--k", "4"];
    fails(host(&sizes), 4, &["out of memory on cpu", "bytes needed", "free"]);
}

#[test]
fn memory_of_a_gpu_is_not_overdrawn() {
    // The driver of the tests has one GiB.
    let sizes = ["--m", "20000", "--n", "20000", "--k", "4", "--device", "cuda"];
    fails(
        on("", &sizes),
        4,
        &["out of memory on cuda:0", "1600640000 bytes needed", "1073741824 free"],
    );
}

#[test]
fn a_device_fault_is_reported_with_its_code() {
    fails(
        on("cuCtxSynchronize=700", &with(&["--device", "cuda"])),
        4,
        &["cuCtxSynchronize", "700"],
    );
}

#[test]
fn ctrl_c_ends_a_run_with_its_fibers_in_the_middle_of_a_kernel() {
    // Many seconds of work, all of it in one launch.
    let sizes = ["--m", "3000", "--n", "3000", "--k", "3000", "--kernel", "tiled16"];
    let mut command = host(&sizes);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id().to_string();
    std::thread::sleep(Duration::from_millis(2500));
    let start = Instant::now();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert!(stderr.ends_with("error: interrupted\n") && stdout.is_empty(), "{stderr}");
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}
