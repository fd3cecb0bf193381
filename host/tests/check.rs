//! The built command's `check`: its output for a clean kernel, and its exit codes.
//!
//! The registry has no wrong kernel. The output of findings is tested in `findings.rs`, and the
//! findings themselves in the crate `tests`.

mod common;

use serde_json::{Value, json};

use self::common::{
    fails, finish, has, has_no_noise, host, is_interrupted, object, objects, prints, shows,
    succeeds,
};

/// `check` of a small product, with more arguments.
fn check(more: &[&str]) -> std::process::Command {
    host(&[&["check", "--m", "40", "--n", "33", "--k", "17"], more].concat())
}

#[test]
fn a_clean_kernel_is_called_clean_and_verified() {
    let stdout = prints(check(&["tiled16"]));
    let lines = stdout.lines().collect::<Vec<_>>();
    assert_eq!(lines.len(), 5, "{stdout}");
    for (line, start) in lines.iter().zip([
        "A 40x17 · B 17x33 = C 40x33   f32, row-major, seed 1",
        "checked   every access, on the CPU, in 4 orders: forward, reverse, random:1, random:2",
        "kernel    tiled16: 16 x 16 tiles",
        "clean     nothing found in ",
        "verified  max |error| ",
    ]) {
        assert!(line.starts_with(start), "{start}: {line}");
    }
    assert!(lines[4].ends_with(" of the bound; exact on integers in each order"), "{stdout}");
}

#[test]
fn all_kernels_or_the_preferred_one() {
    let names = |args: &[&str]| {
        let stdout = succeeds(check(args));
        let kernels = objects(&stdout);
        kernels.iter().map(|object| object["kernel"].to_string()).collect::<Vec<_>>()
    };
    let stdout = succeeds(host(&["kernels", "--json"]));
    // Some TMA kernels need an MN-major A. This A is not.
    let products = objects(&stdout).into_iter().filter(|object| {
        let by_copies = object["contract"] == "C = A B in f32 by TMA";
        object["contract"] == "C = A B" || by_copies && object["layout"] == "nn"
    });
    let all = products.map(|object| object["name"].to_string()).collect::<Vec<_>>();
    assert_eq!(names(&["--json", "--kernel", "all", "--orders", "2"]), all);
    // The kernel that an H200 would run.
    assert_eq!(names(&["--json"]), ["\"tiled16\""]);
    let (_, stdout, _) = finish(check(&["--kernel", "all", "--orders", "2"]));
    assert_eq!(stdout.matches("\nclean ").count(), all.len(), "{stdout}");
    assert_eq!(stdout.matches("\nverified ").count(), all.len(), "{stdout}");
}

/// A kernel's name says the types of its matrices.
#[test]
fn kernels_of_two_byte_elements_are_checked_on_operands_of_these() {
    for (kernel, words) in [
        ("wgmma_bf16_128x128x64_nn", "bf16"),
        ("wgmma_bf16_f32_256x256x64_c2_nn", "bf16, C f32"),
        ("gemm_bf16_64x64x16", "bf16"),
        ("gemm_bf16_f32_64x64x16", "bf16, C f32"),
        ("wgmma_f16_128x256x64_nn", "f16"),
        ("wgmma_f16_f32_128x128x64_nn", "f16, C f32"),
        ("gemm_f16_64x64x16", "f16"),
        ("gemm_f16_f32_64x64x16", "f16, C f32"),
        ("mma_bf16_128x128x32", "bf16"),
        ("mma_bf16_f32_64x64x64", "bf16, C f32"),
        ("mma_f16_128x128x32", "f16"),
    ] {
        for k in ["17", "0"] {
            let sizes = ["check", "--m", "40", "--n", "33", "--k", k, "--kernel", kernel];
            let stdout = prints(host(&sizes));
            let first = format!("= C 40x33   {words}, row-major, seed 1\n");
            for part in [&*first, "\nclean ", "\nverified ", "; exact on integers in each order\n"]
            {
                assert!(stdout.contains(part), "{kernel}, {part}: {stdout}");
            }
        }
    }
    let object = object(check(&["--json", "--kernel", "wgmma_bf16_f32_128x256x64_nn"]));
    has(&object, json!({"dtype": "bf16", "out_dtype": "f32", "clean": true, "verified": true}));
}

/// And the layouts of A and B.
#[test]
fn operands_lie_as_the_kernel_reads_them() {
    for (kernel, trans, lie) in [
        ("tma_f32_64x64x64_tn", "tn", "f32, A column-major"),
        ("tma_f32_128x128x32_tn", "tn", "f32, A column-major"),
        ("wgmma_bf16_128x128x64_tn", "tn", "bf16, A column-major"),
        ("wgmma_bf16_f32_256x256x64_c2_nt", "nt", "bf16, C f32, B column-major"),
        ("wgmma_f16_128x256x64_tt", "tt", "f16, A and B column-major"),
    ] {
        for k in ["17", "0"] {
            let sizes = ["check", "--m", "40", "--n", "33", "--k", k, "--kernel", kernel];
            let stdout = prints(host(&sizes));
            for part in [&*format!("= C 40x33   {lie}, seed 1\n"), "\nclean ", "\nverified "] {
                assert!(stdout.contains(part), "{kernel}, {part}: {stdout}");
            }
        }
        assert_eq!(object(check(&["--json", "--kernel", kernel]))["trans"], trans);
    }
}

/// Scales of 8-bit numbers, by kernels that have them.
#[test]
fn scales_are_checked() {
    for (kernel, scales) in [
        ("wgmma_e4m3_bf16_64x64x128_nt", "blocks"),
        ("wgmma_e5m2_f32_128x64x128_nt", "rows-cols"),
        ("wgmma_i8_f16_64x128x128_nt", "rows-cols"),
        ("mma_i8_f32_64x64x64_nt", "rows-cols"),
        ("mma_i8_bf16_128x128x64_nt", "rows-cols"),
    ] {
        let sizes = ["check", "--m", "40", "--n", "133", "--k", "270", "--kernel", kernel];
        let more = ["--scales", scales, "--orders", "2"];
        let stdout = prints(host(&[&sizes[..], &more].concat()));
        let first = format!("B column-major, seed 1, scales {scales}\n");
        for part in [&*first, "\nclean ", "\nverified ", "; exact on integers in each order\n"] {
            assert!(stdout.contains(part), "{kernel}, {part}: {stdout}");
        }
    }
    // Without a name the kernel is one of f32.
    for (named, kernel, scales, types) in [
        (Some("basic"), "basic", "rows-cols", "e4m3 or e5m2, or of i8 with a C of"),
        (Some("wgmma_i8_f16_64x128x128_nt"), "wgmma_i8_f16_64x128x128_nt", "blocks", "e4m3 or e5"),
        (None, "tiled16", "blocks", "e4m3 or e5m2: `host kernels e4m3 tensor` lists some"),
    ] {
        let args = named.into_iter().chain(["--scales", scales]).collect::<Vec<_>>();
        let refused =
            format!("--scales = {scales}: {kernel} has no such scales; name a kernel of ");
        fails(check(&args), 2, &[&refused, types]);
    }
}

#[test]
fn json_is_one_object_with_the_agreed_keys() {
    let stdout = prints(check(&["--json", "--kernel", "basic", "--seed", "9"]));
    let [object] = &objects(&stdout)[..] else { panic!("{stdout}") };
    has(object, json!({"m": 40, "n": 33, "k": 17, "seed": 9}));
    has(object, json!({"kernel": "basic", "dtype": "f32", "out_dtype": "f32", "trans": "nn"}));
    has(object, json!({"clean": true, "verified": true, "exact_on_integers": true}));
    let orders = ["forward", "reverse", "random:9", "random:10"];
    has(object, json!({"findings": [], "orders": orders}));
    for key in ["max_abs_err", "max_err_over_bound", "seconds"] {
        assert!(object[key].as_f64().unwrap() > 0.0, "{key}: {stdout}");
    }
    has_no_noise(object);
}

#[test]
fn one_order_or_as_many_as_asked() {
    let orders = |args: &[&str]| {
        let stdout = succeeds(check(&[&["--json", "--kernel", "basic"], args].concat()));
        objects(&stdout)[0]["orders"].to_string()
    };
    for order in ["forward", "reverse", "random:7", "random:18446744073709551615"] {
        assert_eq!(orders(&["--order", order]), format!("[\"{order}\"]"));
    }
    assert_eq!(orders(&["--orders", "1"]), r#"["forward"]"#);
    assert_eq!(orders(&["--orders", "3"]), r#"["forward","reverse","random:1"]"#);
    assert_eq!(
        orders(&["--orders", "4", "--seed", "18446744073709551615"]),
        r#"["forward","reverse","random:18446744073709551615","random:0"]"#
    );
    let (_, stdout, _) = finish(check(&["--orders", "20", "--kernel", "basic"]));
    assert!(
        stdout.contains(" in 20 orders: forward, reverse, random:1, random:2 ... random:18\n"),
        "{stdout}"
    );
    let stdout = shows(check(&["--order", "random:7"]), &[" in 1 order: random:7\n"]);
    assert!(stdout.ends_with("; exact on integers\n"), "{stdout}");
}

#[test]
fn an_empty_inner_size_is_checked_and_an_empty_c_is_not() {
    let sizes = |m, k| ["check", "--m", m, "--n", "5", "--k", k, "--kernel", "all"];
    shows(host(&sizes("3", "0")), &["\nclean ", "\nverified "]);
    let stdout = shows(host(&sizes("0", "3")), &["\nC is empty: "]);
    assert!(!stdout.contains("clean") && !stdout.contains("verified"), "{stdout}");
    let (_, stdout, _) = finish(host(&[&sizes("0", "3")[..], &["--json"]].concat()));
    for key in ["clean", "verified", "exact_on_integers", "max_abs_err"] {
        assert_eq!(objects(&stdout)[0][key], Value::Null, "{stdout}");
    }
}

#[test]
fn a_kernel_of_f64_is_checked_and_compared_in_f64() {
    let object = object(check(&["--json", "--kernel", "gemm_f64_64x64x16"]));
    has(&object, json!({"dtype": "f64", "out_dtype": "f64", "clean": true, "verified": true}));
    // Far below what a sum in f32 could reach.
    let error = object["max_abs_err"].as_f64().unwrap();
    assert!(error <= 1e-13, "{object}");
}

#[test]
fn it_says_what_it_does_when_asked() {
    let (code, _, stderr) = finish(check(&["-v", "--kernel", "tiled16", "--orders", "2"]));
    let begun = stderr.lines().filter_map(|line| line.strip_suffix(" ...")).collect::<Vec<_>>();
    let steps = [
        "tiled16: uniform data, order forward",
        "tiled16: integers, order forward",
        "tiled16: integers, order reverse",
    ];
    assert_eq!((code, begun), (0, steps.to_vec()));
}

#[test]
fn help_says_what_is_found_and_what_the_exit_codes_mean() {
    let stdout = succeeds(host(&["check", "--help"]));
    for part in ["races", "barriers", "random:SEED", "1 something was found, or C is wrong"] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}

#[test]
fn usage_errors_name_the_argument_its_value_and_the_limit() {
    for (flag, value, limit) in [
        ("--kernel", "tiled17", "did you mean tiled16? It must be one of 3"),
        ("--kernel", "tiled17", " names (`kernels` lists them), or auto or all"),
        ("--order", "backward", "forward, reverse, or random:SEED"),
        ("--order", "random", "random:SEED"),
        ("--order", "random:-1", "0 to 2^64 - 1"),
        ("--order", "random:18446744073709551616", "0 to 2^64 - 1"),
        ("--orders", "0", "1 to 10000"),
        ("--orders", "-1", "1 to 10000"),
        ("--orders", "10001", "1 to 10000"),
        ("--seed", "x", "0 to 18446744073709551615"),
    ] {
        fails(check(&[flag, value]), 2, &[flag, &format!("'{value}'"), limit]);
    }
    fails(check(&["--order", "reverse", "--orders", "3"]), 2, &["--order", "cannot be used with"]);
    fails(check(&["basic", "--kernel", "tiled16"]), 2, &["'[NAME]'", "cannot be used with"]);
    fails(check(&["--device", "cuda"]), 2, &["--device"]);
    fails(host(&["check", "--m", "5", "--n", "5"]), 2, &["required", "--k"]);
    let sizes = ["check", "--m", "4294967295", "--n", "1", "--k", "4294967295"];
    fails(host(&sizes), 2, &["m * k = 18446744065119617025", "at most"]);
}

#[test]
fn memory_is_not_overdrawn() {
    // C takes 14.4 TB, its shadow 20.5 times as much, and C is copied for the comparison.
    let sizes = ["check", "--m", "2000000", "--n", "1800000", "--k", "1", "--json"];
    let (_, _, stderr) = finish(host(&sizes));
    fails(host(&sizes), 4, &["out of memory on cpu", "bytes needed", "free"]);
    let needed = stderr.split(' ').find_map(|word| word.parse::<f64>().ok()).unwrap();
    assert!((22.4..22.6).contains(&(needed / 14.4e12)), "{stderr}");
}

#[test]
fn ctrl_c_ends_a_check_in_the_middle_of_a_kernel() {
    // Minutes of work.
    let sizes = [
        "check", "--m", "2000", "--n", "2000", "--k", "2000", "--json", "-v", "--kernel", "tiled32",
    ];
    is_interrupted(host(&sizes), "tiled32: uniform data, order forward");
}
