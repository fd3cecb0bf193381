//! The built command: its output and its exit codes.
//!
//! | exit code | tests |
//! |---|---|
//! | 0 | `a_product_*`, `a_plan_*`, `a_benchmark_*`, `kernels_*`, `devices_*`, `an_empty_*`, `help_*` ... |
//! | 1 | `a_wrong_c_*` |
//! | 2 | `usage_*` |
//! | 3 | `environment_*` |
//! | 4 | `memory_*`, `a_device_fault_*` |
//! | 130 | `ctrl_c_*` |
//!
//! The crate `tests` tests wrong results of every kind. Here only the exit code 1 is tested.

#[path = "command/benchmarks.rs"]
mod benchmarks;
mod common;
#[path = "command/errors.rs"]
mod errors;
#[path = "command/kernels.rs"]
mod kernels;
#[path = "command/plan.rs"]
mod plan;
#[path = "command/scarce.rs"]
mod scarce;
#[path = "common/shell.rs"]
mod shell;
#[path = "command/tuned.rs"]
mod tuned;
#[path = "command/types.rs"]
mod types;

use std::{io::Read, process::Stdio};

use serde_json::{Value, json};

use self::common::{
    fails, finish, has, has_no_noise, host, is_interrupted, object, objects, on, shows, succeeds,
};

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
    assert_eq!(stderr, "note: no NVIDIA driver; running on the CPU (`doctor` says more)\n");
}

#[test]
fn a_product_in_json_is_one_object_with_the_agreed_keys() {
    let object = &object(host(&with(&["--json", "--kernel", "tiled16", "--seed", "7"])));
    has(object, json!({"m": 100, "n": 70, "k": 51, "seed": 7, "iters": 1}));
    has(object, json!({"device": "cpu", "kernel": "tiled16", "dtype": "f32"}));
    has(object, json!({"verified": true, "compared": 7000}));
    for key in ["time_us", "gflops", "max_abs_err", "max_err_over_bound"] {
        assert!(object[key].as_f64().unwrap() > 0.0, "{key}: {object}");
    }
    assert!(object["max_err_over_bound"].as_f64().unwrap() <= 1.0, "{object}");
    has_no_noise(object);
}

#[test]
fn a_product_of_slices_says_what_was_computed_again() {
    let sliced = ["--compute", "fp32-bf16x6", "--kernel", "wgmma_bf16x6_64x128x64_nn"];
    let run = |more: &[&str]| {
        host(&[&SIZES[..], &sliced, &["--device", "cpu", "--iters", "3"], more].concat())
    };
    let of_nan = object(run(&["--init", "nan", "--json"]));
    // The count of each launch, also where most elements need no recomputation.
    let count = of_nan["recomputed"].as_u64().unwrap();
    assert!((of_nan["compared_nan"].as_u64().unwrap()..=7000).contains(&count), "{of_nan}");
    let line = format!("\nrecomputed  {count} of 7000 elements, by fused multiply-adds\n");
    assert!(succeeds(run(&["--init", "nan"])).contains(&line));
    assert_eq!(object(run(&["--json"]))["recomputed"], 0);
    assert!(!succeeds(run(&[])).contains("recomputed"));
    assert_eq!(object(host(&with(&["--json", "--device", "cpu"])))["recomputed"], Value::Null);
}

#[test]
fn a_product_is_the_same_for_the_same_seed() {
    let error = |seed| object(host(&with(&["--json", "--seed", seed])))["max_abs_err"].clone();
    assert_eq!(error("3"), error("3"));
    assert_ne!(error("3"), error("4"));
}

#[test]
fn a_product_of_every_kind_of_data_is_verified() {
    for init in ["uniform", "normal", "int", "nan"] {
        for verify in ["auto", "full", "sample"] {
            let object = &object(host(&with(&["--init", init, "--verify", verify, "--json"])));
            let level = if verify == "auto" { "full" } else { verify };
            has(object, json!({"init": init, "verify": level, "verified": true}));
            let (compared, projections) = if level == "full" { (7000, 0) } else { (4096, 16) };
            has(object, json!({"compared": compared, "projections": projections}));
            let error = object["max_abs_err"].as_f64().unwrap();
            assert_eq!(error == 0.0, init == "int", "{object}");
            // One row of A and one column of B have a NaN: one row and one column of C must be NaN.
            let nan = object["compared_nan"].as_u64().unwrap();
            match (init, level) {
                ("nan", "full") => assert_eq!(nan, 100 + 70 - 1, "{object}"),
                ("nan", _) => assert!(0 < nan && nan < 4096, "{object}"),
                _ => assert_eq!(nan, 0, "{object}"),
            }
        }
    }
    let (_, stdout, _) = finish(host(&with(&["--init", "nan"])));
    assert!(stdout.contains("; 169 of 7000 elements must be NaN; exact on integers"), "{stdout}");
    let (_, stdout, _) = finish(host(&with(&["--verify", "sample"])));
    assert!(stdout.contains("in a sample (4096 elements, 16 random projections)"), "{stdout}");
}

#[test]
fn a_product_that_is_not_compared_is_not_called_verified() {
    let (code, stdout, _) = finish(host(&with(&["--verify", "none"])));
    assert!(
        code == 0 && stdout.contains("not compared") && !stdout.contains("verified"),
        "{stdout}"
    );
    let object = &object(host(&with(&["--verify", "none", "--json"])));
    has(object, json!({"verified": null, "verify": "none", "compared": 0, "max_abs_err": null}));
}

#[test]
fn a_product_runs_as_often_as_asked() {
    let args = with(&["--iters", "3", "--warmup", "2", "--json"]);
    let object = &object(host(&args));
    assert_eq!((&object["iters"], &object["warmup"]), (&3.into(), &2.into()));
    let time = |key: &str| object[key].as_f64().unwrap();
    assert!(0.0 < time("min_time_us") && time("min_time_us") <= time("time_us"), "{object}");
    assert!(time("upload_us") > 0.0 && time("download_us") > 0.0, "{object}");
    assert!(time("first_launch_us") > 0.0, "{object}");
}

#[test]
fn a_product_says_what_it_does_when_asked() {
    let steps = |args: &[&str]| {
        let (code, stdout, stderr) = finish(host(&with(args)));
        assert!(code == 0 && !stdout.contains("operands"), "{stdout}");
        // Without times: each step is named before it starts and after it ends.
        let steps = stderr.lines().filter(|line| !line.starts_with("note: "));
        let (begun, ended) = steps.partition::<Vec<_>, _>(|line| line.ends_with(" ..."));
        let begun = begun.iter().map(|line| line.trim_end_matches(" ...").to_owned());
        let names = begun.collect::<Vec<_>>();
        assert_eq!(names.len(), ended.len(), "{stderr}");
        for (name, ended) in names.iter().zip(ended) {
            assert!(ended.starts_with(&format!("{name}: ")) && ended.ends_with('s'), "{stderr}");
        }
        names
    };
    let steps_of = |run: &str| {
        ["operands", "kernel tiled16", "verification"].map(|step| format!("{run}: {step}"))
    };
    for verbose in ["-v", "--verbose"] {
        let both = [steps_of("normal"), steps_of("integers")].concat();
        assert_eq!(steps(&[verbose, "--kernel", "tiled16", "--init", "normal"]), both);
    }
    assert_eq!(steps(&["-v", "--kernel", "tiled16", "--init", "int"]), steps_of("integers"));
    // No bar and no colour if standard error is no terminal.
    let (_, stdout, stderr) = finish(host(&SIZES));
    assert!(!stderr.contains('\u{1b}') && !stderr.contains("operands"), "{stderr}");
    assert!(!stdout.contains('\u{1b}'), "{stdout}");
}

#[test]
fn every_subcommand_takes_verbose() {
    let args = ["bench", "-v", "--sizes", "20,30x20x10", "--kernels", "basic", "--seconds", "0.01"];
    let (code, stdout, stderr) = finish(on("no driver", &args));
    assert_eq!(code, 0, "{stderr}");
    for step in [
        "20x20x20 (1 of 2): operands ...",
        "20x20x20 (1 of 2): basic once, on uniform data ...",
        "20x20x20 (1 of 2): basic once, on integers: ",
        "30x20x10 (2 of 2): timing: ",
    ] {
        assert!(stderr.contains(&format!("\n{step}")), "{step}: {stderr}");
        assert!(!stdout.contains(step), "{stdout}");
    }
    for command in ["kernels", "devices", "doctor"] {
        let (code, plain, _) = finish(host(&[command]));
        let (verbose_code, verbose, stderr) = finish(host(&[command, "--verbose"]));
        assert_eq!((code, verbose_code), (0, 0), "{command}: {stderr}");
        assert_eq!(plain.lines().count(), verbose.lines().count(), "{command}");
    }
}

#[test]
fn a_product_takes_short_flags_for_its_sizes() {
    assert_eq!(object(host(&["-m", "10", "-n", "7", "-k", "5", "--json"]))["k"], 5);
}

#[test]
fn help_says_which_dimension_is_which_and_what_the_exit_codes_mean() {
    let (code, stdout, _) = finish(host(&["--help"]));
    assert_eq!(code, 0);
    for part in [
        "A is m x k",
        "of the type `--type`",
        "--type <f32|f64|bf16|f16|e4m3|e5m2|i8>",
        "Columns of B and C",
        "the inner size",
        "2 usage",
        "130 interrupted",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        shows(host(&["completions", shell]), &["host", "kernel"]);
    }
    // Names, not files.
    let (_, stdout, _) = finish(host(&["completions", "bash"]));
    for (flag, words) in
        [("--kernel", "auto basic "), ("--kernels", "auto basic "), ("--device", "auto cuda cpu")]
    {
        let case = stdout.split(&format!(" {flag})\n")).nth(1).unwrap_or_default();
        let offered = case.lines().next().unwrap_or_default();
        assert!(offered.contains(&format!("-W \"{words}")), "{flag}: {offered}");
    }
}

#[test]
fn a_wrong_c_is_called_wrong() {
    // The stand-in's kernels do nothing, so C stays full of NaN.
    for (verify, what) in [("full", "7000 of 7000 elements"), ("sample", "100 rows of C wrong")] {
        let args = with(&["--device", "cuda", "--verify", verify]);
        let (code, stdout, stderr) = finish(on("kernels=1", &args));
        assert_eq!(code, 1, "{stdout}{stderr}");
        assert!(stdout.contains("WRONG") && !stdout.contains("verified"), "{stdout}");
        assert!(stderr.contains("error: on this data ") && stderr.contains(what), "{stderr}");
        assert!(
            stderr.contains("error: on integers ") && stderr.contains("reproduce: "),
            "{stderr}"
        );

        let (code, stdout, _) = finish(on("kernels=1", &[&args[..], &["--json"]].concat()));
        let object = &objects(&stdout)[0];
        assert_eq!(code, 1, "{stdout}");
        has(object, json!({"verified": false, "exact_on_integers": false, "max_abs_err": null}));
    }
    let bench = ["bench", "--sizes", "20", "--device", "cuda", "--seconds", "0.01"];
    let (code, stdout, stderr) = finish(on("kernels=1", &bench));
    assert!(
        code == 1 && stdout.contains("WRONG") && stderr.contains("400 of 400"),
        "{stdout}{stderr}"
    );
    let again =
        "reproduce: cargo run -p host -- --m 20 --n 20 --k 20 --device cuda:0 --kernel basic";
    assert!(stderr.contains(&format!("{again} --seed 1 --verify full\n")), "{stderr}");
}

#[test]
fn a_failure_says_how_to_see_it_again() {
    let args = with(&["--device", "cuda", "--kernel", "basic", "--seed", "9", "--init", "normal"]);
    let (code, _, stderr) = finish(on("cuCtxSynchronize=700", &args));
    let again = "reproduce: cargo run -p host -- --m 100 --n 70 --k 51 --device cuda:0 --kernel basic \
                 --init normal --seed 9 --verify auto";
    assert!(code == 4 && stderr.contains(again), "{stderr}");
}

#[test]
fn an_empty_inner_size_gives_zeros_and_an_empty_c_nothing() {
    shows(host(&["--m", "3", "--n", "5", "--k", "0"]), &["verified"]);
    for [m, n, k] in [["0", "5", "3"], ["5", "0", "3"], ["0", "0", "0"]] {
        let (code, stdout, _) = finish(host(&["--m", m, "--n", n, "--k", k]));
        assert_eq!(code, 0, "{m} {n} {k}");
        assert!(stdout.contains("C is empty") && !stdout.contains("verified"), "{stdout}");
        assert_eq!(
            object(host(&["--m", m, "--n", n, "--k", k, "--json"]))["verified"],
            Value::Null
        );
    }
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
        ("--kernel", "tiled17", "did you mean tiled16? It must be one of 3"),
        (
            "--kernel",
            "tiled",
            "did you mean tiled_uncoalesced, tiled_conflicts, tiled16, tiled32 or one of ",
        ),
        ("--device", "gpu", "auto, cpu, cuda"),
        ("--device", "cuda:", "auto, cpu, cuda"),
        ("--device", "cuda:x", "auto, cpu, cuda"),
        ("--device", "cuda:-1", "auto, cpu, cuda"),
        ("--warmup", "-1", "0 to 4294967295"),
        ("--init", "zeros", "uniform, normal, int, nan"),
        ("--verify", "some", "auto, full, sample, none"),
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
    for (flag, value, limit) in [
        ("--sizes", "0", "empty product"),
        ("--sizes", "3x4", "N or MxNxK"),
        ("--sizes", "12,x", "N or MxNxK"),
        ("--sizes", "4294967296", "N or MxNxK"),
        ("--kernels", "basic,tiled17", "tiled16"),
        ("--seconds", "0", "0.001 to 3600"),
        ("--seconds", "-1", "0.001 to 3600"),
        ("--seconds", "nan", "0.001 to 3600"),
    ] {
        let value_at_fault = value.rsplit(',').next().unwrap();
        fails(host(&["bench", flag, value]), 2, &[flag, &format!("'{value_at_fault}'"), limit]);
    }
    fails(host(&["completions", "csh"]), 2, &["csh"]);
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
    fails(on(driver, &with(&["--device", "cuda"])), 3, &["sm_80/tiled16.ptx", "CUDA 11.8"]);
}

#[test]
fn environment_with_an_architecture_too_old() {
    let driver = "major=7 minor=5";
    fails(on(driver, &with(&["--device", "cuda"])), 3, &["7.5 is below 8.0"]);
    // With `auto` the command uses the CPU, and says why.
    let (code, stdout, stderr) = finish(on(driver, &SIZES));
    assert!(code == 0 && stdout.contains("verified"), "{stdout}{stderr}");
    assert!(stderr.contains("7.5 is below 8.0"), "{stderr}");
}

#[test]
fn memory_of_the_cpu_is_not_overdrawn() {
    let sizes = ["--m", "4000000", "--n", "4000000", "--k", "4"];
    fails(host(&sizes), 4, &["out of memory on cpu", "bytes needed", "free"]);
    let (_, _, stderr) = finish(host(&sizes));
    assert!(stderr.contains("reproduce: cargo run -p host -- --m 4000000 "), "{stderr}");
}

#[test]
fn memory_of_a_gpu_is_not_overdrawn() {
    // The stand-in has one GiB.
    let sizes = ["--m", "20000", "--n", "20000", "--k", "4", "--device", "cuda"];
    fails(
        on("", &sizes),
        4,
        &[
            "out of memory on cuda:0",
            "1600640000 bytes needed (1.5 GiB)",
            "1073741824 free (1.0 GiB)",
        ],
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
    // Minutes of work, all in one launch.
    let sizes = ["--m", "5000", "--n", "5000", "--k", "5000", "--kernel", "tiled16", "-v"];
    is_interrupted(host(&sizes), "uniform: kernel tiled16");
}

#[test]
fn ctrl_c_ends_a_run_that_draws_its_operands() {
    let sizes = ["--m", "1", "--n", "1", "--k", "200000000", "--verify", "none", "-v"];
    is_interrupted(host(&sizes), "uniform: operands");
}
