//! `bench` of a few kernels on the CPU device.

use std::{fs, path::Path};

use ::host::gpu::registry::{self, Product};
use serde_json::json;

use crate::common::{fails, finish, has, has_no_noise, host, objects, on, shows, succeeds};

#[test]
fn a_benchmark_compares_kernels_at_sizes() {
    let args =
        ["bench", "--sizes", "40,30x20x10", "--kernels", "tiled16,basic", "--seconds", "0.02"];
    let stdout = succeeds(host(&[&args[..], &["--json", "--seed", "5"]].concat()));
    let lines = objects(&stdout);
    assert_eq!(lines.len(), 4, "{stdout}");
    for (line, (kernel, [m, n, k])) in lines
        .iter()
        .zip([[40, 40, 40], [30, 20, 10]].into_iter().flat_map(|s| [("tiled16", s), ("basic", s)]))
    {
        has(line, json!({"m": m, "n": n, "k": k, "kernel": kernel}));
        has(line, json!({"baseline": "tiled16", "verified": true}));
        assert!(line["rounds"].as_u64().unwrap() >= 7 && line["seed"] == 5, "{line}");
        has_no_noise(line);
        let number = |key: &str| line[key].as_f64().unwrap();
        assert!(number("min_us") <= number("time_us"), "{line}");
        assert!(number("ratio_low") <= number("ratio"), "{line}");
        assert!(number("ratio") <= number("ratio_high"), "{line}");
        assert!(number("max_err_over_bound") <= 1.0 && number("tflops") > 0.0, "{line}");
    }
    shows(host(&args), &["95 % interval", "tiled16"]);
}

#[test]
fn a_benchmark_says_how_far_it_is_where_there_is_no_terminal() {
    let args = ["bench", "--sizes", "8,4x3x2", "--kernels", "tiled16,basic", "--seconds", "0.01"];
    let args = [&args[..], &["--device", "cpu"]].concat();
    let (code, _, stderr) = finish(host(&args));
    let lines = "8x8x8 (1 of 2): 2 candidates to verify and time ...\n4x3x2 (2 of 2): 2 candidates to verify and time ...\n";
    assert_eq!((code, &*stderr), (0, lines));
    // With a line for each step, notes for each part are not needed.
    let (code, _, stderr) = finish(host(&[&args[..], &["-v"]].concat()));
    assert!(code == 0 && !stderr.contains("to verify and time"), "{stderr}");
    assert!(stderr.contains("8x8x8 (1 of 2): timing ...\n"), "{stderr}");
}

#[test]
fn a_benchmark_takes_lists_as_people_write_them() {
    let lists = ["--sizes", "8, 7X6x5, 4 x 3 x 2", "--kernels", "basic, tiled16"];
    let stdout = succeeds(host(&[&["bench", "--json", "--seconds", "0.01"], &lists[..]].concat()));
    let lines = objects(&stdout).into_iter().map(|line| {
        let text = |key: &str| line[key].to_string();
        format!("{} {}x{}x{}", line["kernel"].as_str().unwrap(), text("m"), text("n"), text("k"))
    });
    let expected = [8, 8, 8, 7, 6, 5, 4, 3, 2];
    let expected = expected.chunks(3).flat_map(|size| {
        ["basic", "tiled16"].map(|name| format!("{name} {}x{}x{}", size[0], size[1], size[2]))
    });
    assert_eq!(lines.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn a_benchmark_compares_as_much_as_asked() {
    for (verify, level, verified) in
        [("none", "none", None), ("sample", "sample", Some(true)), ("full", "full", Some(true))]
    {
        let args = ["bench", "--sizes", "20", "--kernels", "basic", "--seconds", "0.01", "--json"];
        let args = [&args[..], &["--device", "cpu", "--verify", verify]].concat();
        let (code, stdout, stderr) = finish(host(&args));
        let line = &objects(&stdout)[0];
        assert_eq!((code, &line["verify"]), (0, &level.into()), "{stdout}{stderr}");
        assert_eq!(line["verified"].as_bool(), verified, "{stdout}");
        assert_eq!(line["verified"].is_null(), verify == "none", "{stdout}");
    }
}

#[test]
fn a_benchmark_looks_at_all_sizes_before_it_begins() {
    let sizes = |last| ["bench", "--device", "cpu", "--json", "--sizes", last];
    fails(host(&sizes("16,4294967295x1x4294967295")), 2, &["m * k = "]);
    fails(host(&sizes("16,1x1100000x1100000")), 4, &["out of memory", "bytes needed"]);
}

#[test]
fn where_no_integers_are_exact_only_what_is_wrong_is_called_so() {
    let bench = ["bench", "--sizes", "1x1x16777216", "--kernels", "basic", "--seconds", "0.01"];
    let (code, stdout, stderr) = finish(host(&bench));
    assert!(code == 0 && stdout.contains("  unsettled\n"), "{stdout}{stderr}");
    assert!(!stderr.contains("reproduce"), "{stderr}");
    // Kernels that do nothing leave C wrong, also where integers cannot tell.
    let sizes = ["-m1", "-n1", "-k16777216", "--device", "cuda", "--iters", "1"];
    let (code, stdout, _) = finish(on("kernels=1", &sizes));
    assert!(code == 1 && stdout.contains("\nWRONG "), "{stdout}");
}

#[test]
fn pictures_say_their_types_and_have_one_unit() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures_of_bf16");
    let record = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/results/bench-h100-bf16");
    let folder = folder.to_str().unwrap();
    let stdout = succeeds(host(&["bench", "--from", record, "--out", folder]));
    assert!(stdout.contains("C is the bf16 nearest to a sum") && stdout.contains("   nearest  "));
    for (name, words) in [("speed", "the chosen kernel"), ("roofline", "16384x16384x16384")] {
        let svg = fs::read_to_string(Path::new(folder).join(name).with_extension("svg")).unwrap();
        let document = roxmltree::Document::parse(&svg).expect("well-formed");
        let shown = document.descendants().filter_map(|node| node.text()).collect::<String>();
        for words in [words, "C = A B, bf16, on cuda:0", "bf16 peak ", "TFLOP/s"] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(!shown.contains("GFLOP/s") && !shown.contains("float32"), "{shown}");
    }
}

/// The names and roles of the kernels that a run compares.
fn compared(flags: &[&str]) -> Vec<(String, String)> {
    let args =
        ["bench", "--device", "cpu", "--sizes", "9", "--seconds", "0.001", "--verify", "none"];
    let (code, stdout, stderr) = finish(host(&[&args[..], &["--json"], flags].concat()));
    assert_eq!(code, 0, "{stderr}");
    // What is left out cannot compute this product, and is not of another arithmetic.
    assert!(!flags.contains(&"tf32") || !stderr.contains("wgmma_bf16x6"), "{stderr}");
    let rows = objects(&stdout);
    let [names, roles] = ["kernel", "role"]
        .map(|key| rows.iter().map(move |row| row[key].as_str().unwrap().to_owned()));
    names.zip(roles).collect()
}

fn is_lesson(name: &str) -> bool {
    registry::find(name).unwrap().product.as_ref().is_some_and(Product::is_lesson)
}

/// Of f32 lessons and general products are compared. Of other types and arithmetics it is what a
/// program may get, and what it does get comes first.
#[test]
fn a_benchmark_without_names_compares_what_its_help_says() {
    shows(host(&["bench", "--help"]), &["then the library's kernels for them"]);
    let kernels = compared(&[]);
    assert_eq!(kernels[0], ("basic".into(), "named".into()));
    assert!(kernels.iter().any(|(name, _)| name == "gemm_f32_64x64x16"), "{kernels:?}");
    for (flags, families) in [
        (&["--type", "bf16"][..], &["gemm_bf16_", "mma_bf16_", "wgmma_bf16_"][..]),
        (&["--compute", "tf32"], &["mma_tf32_", "wgmma_tf32_"]),
    ] {
        let kernels = compared(flags);
        assert_eq!(kernels[0].1, "auto", "{kernels:?}");
        assert!(kernels[1..].iter().all(|(_, role)| role == "named"), "{kernels:?}");
        assert!(!kernels.iter().any(|(name, _)| is_lesson(name)), "{kernels:?}");
        for family in families {
            assert!(kernels.iter().any(|(name, _)| name.starts_with(family)), "{kernels:?}");
        }
    }
}
