//! The built command's `profile`: its output and its exit codes. The figures are tested in the
//! library.

mod common;

use serde_json::{Value, json};

use self::common::{
    fails, finish, has, has_no_noise, host, is_interrupted, object, objects, on, prints, shows,
    succeeds,
};

/// `profile` of a small aligned product, with more arguments.
fn args<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["profile", "--m", "64", "--n", "64", "--k", "32"], more].concat()
}

fn profile(more: &[&str]) -> (i32, String, String) {
    finish(host(&args(more)))
}

#[test]
fn a_table_by_source_line_and_totals_by_ncu_s_names() {
    let stdout = prints(host(&args(&["--kernel", "tiled16"])));
    for part in [
        "A 64x32 · B 32x64 = C 64x64   f32, row-major, seed 1\nkernel    tiled16: 16 x 16 tiles",
        "\nlaunch    4 x 4 blocks of 16 x 16 x 1 threads, 2048 bytes of shared memory; ",
        "\nfits on   sm_90 (no GPU is at hand; --on names another)\n          8 blocks, 64 of 64 warps",
        "(100 %), limited by warps\n",
        "\ncounted   16 of 16 blocks in ",
        // The source lines.
        "sum = fma(tile_a[(ty, i)], tile_b[(i, tx)], sum);\n",
        "  thread::sync_threads();\n",
        "\ndivergent: 0.0 % of",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let words = |start: &str| {
        let line = stdout.lines().find(|line| line.starts_with(start)).expect(start);
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let loads = "smsp__sass_inst_executed_op_shared_ld.sum";
    assert_eq!(words(loads), [loads, "8192", "5120"]);
    let fma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
    assert_eq!(words(fma), [fma, "131072"]);
    assert!(!stdout.contains("<--") && !stdout.contains("arithmetic by operators"), "{stdout}");
}

#[test]
fn what_is_far_from_ideal_is_marked_once_as_the_worst() {
    let (_, stdout, _) = profile(&["--kernel", "basic"]);
    assert_eq!(stdout.matches("<-- ").count(), 1, "{stdout}");
    assert!(stdout.contains("  <-- 2.00 x ideal, loses most\n"), "{stdout}");
    assert!(!stdout.contains('\u{1b}'), "no colours: {stdout}");
}

#[test]
fn a_kernel_of_f64_is_counted_in_f64() {
    let of_f64 = ["--json", "--every", "1", "--kernel", "gemm_f64_64x64x16"];
    let object = object(host(&args(&of_f64)));
    assert_eq!(object["dtype"], "f64");
    // A multiply-add for each product, also of the padding.
    let multiply_adds = &object["totals"]["smsp__sass_thread_inst_executed_op_dfma_pred_on.sum"];
    assert_eq!(multiply_adds.as_u64(), Some(64 * 64 * 32), "{object}");
    // Eight bytes an element: A and B, each in whole sectors.
    let sectors = &object["totals"]["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"];
    assert!(sectors.as_u64() >= Some(2 * 64 * 32 * 8 / 32), "{object}");
}

#[test]
fn arithmetic_by_operators_is_said_not_to_be_counted() {
    let (_, stdout, _) = profile(&["--kernel", "rust_cuda_tiled16"]);
    assert!(stdout.contains("\n    arithmetic by operators is not counted"), "{stdout}");
}

#[test]
fn json_is_one_object_with_everything() {
    let stdout = prints(host(&args(&["--json", "--kernel", "tiled16", "--seed", "9"])));
    let [object] = &objects(&stdout)[..] else { panic!("{stdout}") };
    has(object, json!({"m": 64, "n": 64, "k": 32, "seed": 9, "blocks": 16, "sampled": 16}));
    has(object, json!({"kernel": "tiled16", "clean": true, "grids": [[4, 4]]}));
    assert_eq!(object["flop"], 2.0 * 64.0 * 64.0 * 32.0);
    let sectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
    has(&object["totals"], json!({sectors: 2048, "barriers": 512}));
    let merged = object["totals_merged"].as_object().unwrap();
    assert_eq!(
        (merged.len(), &merged["smsp__sass_inst_executed_op_shared_ld.sum"]),
        (2, &5120.into())
    );
    let occupancy = &object["occupancy"];
    assert_eq!((&occupancy["limited_by"], &occupancy["blocks"]), (&"warps".into(), &8.into()));
    assert!(occupancy["source"].as_str().unwrap().starts_with("ptxas "), "{stdout}");
    let lines = object["lines"].as_array().unwrap();
    let store = lines.iter().find(|line| line["operation"] == "global-store").unwrap();
    assert_eq!(store["source"], "c[row * n + col] = sum;");
    assert_eq!((&store["units"], &store["units_per_request"]), (&512.into(), &4.0.into()));
    has_no_noise(object);
}

#[test]
fn all_kernels_or_a_sample() {
    let (code, stdout, _) = profile(&["--json", "--kernel", "all", "--every", "4"]);
    let kernels = succeeds(host(&["kernels", "--json"]));
    let is_product = |object: &&Value| object["contract"] == "C = A B";
    let products = objects(&kernels).iter().filter(is_product).count();
    assert_eq!((code, objects(&stdout).len()), (0, products));
    let sampled = |object: &Value| object["sampled"].as_u64() < object["blocks"].as_u64();
    assert!(objects(&stdout).iter().any(sampled), "{stdout}");
    let (_, stdout, _) = profile(&["--kernel", "tiled16", "--every", "4"]);
    assert!(
        stdout.contains(" of 16 blocks in ") && stdout.contains(", scaled to all\n"),
        "{stdout}"
    );
}

#[test]
fn occupancy_on_a_gpu_by_name_or_at_hand() {
    let fit =
        |text: &str| text.lines().find(|line| line.starts_with("fits on")).unwrap().to_owned();
    for (name, expected) in [
        ("sm_80", "sm_80"),
        ("A100", "sm_80"),
        ("h200", "sm_90"),
        ("sm_90", "sm_90"),
        ("rtx4090", "sm_89"),
    ] {
        let (code, stdout, _) = profile(&["--kernel", "tiled32", "--on", name]);
        assert_eq!((code, fit(&stdout)), (0, format!("fits on   {expected}")), "{stdout}");
    }
    // The stand-in reports 32 registers for every kernel.
    for more in [&[][..], &["--on", "cuda:0"]] {
        let stdout = prints(on("kernels=1", &[&args(&[])[..], more].concat()));
        assert_eq!(fit(&stdout), "fits on   cuda:0: Fake GPU, compute capability 9.0");
        assert!(stdout.contains(" registers a thread (the driver)\n"), "{stdout}");
    }
    let stdout = succeeds(on("kernels=1 major=8 minor=8", &args(&[])));
    assert!(
        stdout.contains("\nfits      not known on cuda:0: Fake GPU, compute capability 8.8 "),
        "{stdout}"
    );
    fails(host(&args(&["--on", "cuda"])), 3, &["no NVIDIA driver"]);
}

#[test]
fn an_empty_inner_size_is_profiled_and_an_empty_c_is_not() {
    let sizes = |m, k| ["profile", "--m", m, "--n", "5", "--k", k, "--kernel", "all"];
    let stdout = shows(host(&sizes("3", "0")), &["global-store"]);
    assert!(!stdout.contains("FLOP") && !stdout.contains("operators"), "{stdout}");
    shows(host(&sizes("0", "3")), &["\nC is empty: "]);
    let stdout = succeeds(host(&[&sizes("0", "3")[..], &["--json"]].concat()));
    let object = &objects(&stdout)[0];
    assert_eq!((&object["clean"], &object["occupancy"]), (&Value::Null, &Value::Null), "{stdout}");
}

#[test]
fn it_says_what_it_does_when_asked() {
    let (_, _, stderr) = profile(&["-v", "--kernel", "tiled16"]);
    assert!(stderr.starts_with("tiled16: profile, one block in 1 counted ...\n"), "{stderr}");
    let (code, stdout, _) = finish(host(&["profile", "--help"]));
    for part in ["Nsight Compute", "--every <N>", "--on <GPU>", "Exit codes: 0 counted"] {
        assert!(code == 0 && stdout.contains(part), "{part}: {stdout}");
    }
}

#[test]
fn usage_errors_name_the_argument_its_value_and_the_limit() {
    for (flag, value, limit) in [
        ("--kernel", "tiled17", "auto or all"),
        ("--kernel", "tma_f32_64x64x64_n", "did you mean tma_f32_64x64x64_nn?"),
        ("--every", "0", "1 to 4294967295"),
        ("--every", "-1", "1 to 4294967295"),
        ("--every", "4294967296", "1 to 4294967295"),
        ("--on", "v100", "sm_120, rtx3060, "),
        ("--on", "v100", ", or cuda, or cuda:N"),
        ("--on", "cpu", "must be one of sm_90, sm_90a, gh200, sm_80"),
        ("--seed", "x", "0 to 18446744073709551615"),
    ] {
        fails(host(&args(&[flag, value])), 2, &[flag, &format!("'{value}'"), limit]);
    }
    for name in ["tma_f32_64x64x64_nn", "gemm_bf16_64x64x16", "mma_tf32_64x64x32"] {
        let limit =
            format!("--kernel = {name}: must be a lesson, or a kernel of f32 or f64 on CUDA cores");
        let watches = format!("are not counted; `check --kernel {name}` watches them");
        fails(host(&args(&["--kernel", name])), 2, &[&limit, &watches]);
    }
    // The next kernel in the order of predicted times that can be profiled.
    let auto = ["profile", "--m", "512", "--n", "512", "--k", "512", "--every", "64", "--json"];
    let (_, stdout, stderr) = finish(host(&auto));
    assert!(stderr.contains("note: an H200 would run tma_f32_64x64x64_nn, whose "), "{stderr}");
    assert!(!objects(&stdout)[0]["kernel"].as_str().unwrap().contains("tma"), "{stdout}");
    fails(host(&["profile", "--m", "5", "--n", "5"]), 2, &["required", "--k"]);
}

#[test]
fn memory_is_not_overdrawn() {
    for sizes in [["2000000", "1800000", "1"], ["1", "1", "4294967295"]] {
        let [m, n, k] = sizes;
        let args = ["profile", "--m", m, "--n", n, "--k", k, "--kernel", "basic"];
        let (code, _, stderr) = finish(host(&args));
        assert!(code == 4 && stderr.contains("out of memory on cpu"), "{stderr}");
    }
}

#[test]
fn ctrl_c_ends_a_profile_in_the_middle_of_a_kernel() {
    // Minutes of work.
    let sizes = ["profile", "--m", "2000", "--n", "2000", "--k", "2000", "--json", "-v"];
    let all = ["--kernel", "tiled16", "--every", "1"];
    let step = "tiled16: profile, one block in 1 counted";
    is_interrupted(host(&[&sizes[..], &all].concat()), step);
}
