//! `--plan`: what would run.

use serde_json::json;

use crate::{
    common::{fails, has, host, object, objects, prints, shows},
    with,
};

#[test]
fn a_plan_needs_no_device() {
    let args = with(&["--plan", "--device", "cuda:3", "--kernel", "tiled16"]);
    let stdout = prints(host(&args));
    for part in [
        "cuda:3 (not looked at: ",
        "tiled16",
        "asked for by name",
        "5 x 7 blocks",
        "16 x 16 x 1 threads",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let tall = ["--m", "6000000", "--n", "7", "--k", "5", "--plan", "--json"];
    let object = &object(host(&tall));
    assert_eq!(object["grids"].as_array().unwrap().len(), 2, "{object}");
    assert_eq!(object["operand_bytes"], 4 * (6_000_000 * 5 + 5 * 7 + 6_000_000 * 7));
    assert!(object["reason"].as_str().unwrap().starts_with("predicted to take "), "{object}");
    let candidates = object["candidates"].as_array().unwrap();
    let of = |name: &str| candidates.iter().find(|one| one["kernel"] == name).unwrap();
    assert!(of("gemm_f32_128x128x8")["predicted_us"].as_f64().unwrap() > 0.0, "{object}");
    assert!(of("basic")["predicted_us"].is_null() && of("basic")["ineligible"].is_null());
    shows(host(&["--m", "0", "--n", "7", "--k", "5", "--plan"]), &["none: C is empty"]);
    let plan = |sizes: [&str; 3], more: &[&str]| {
        let [m, n, k] = sizes;
        let args = [&["--m", m, "--n", n, "--k", k, "--plan"], more].concat();
        prints(host(&args))
    };
    // For an H200, unless another GPU is named.
    let a100 = plan(["512"; 3], &["--on", "a100"]);
    assert!(
        a100.contains("\nplanned   for an A100 (80 GB, SXM), 108 SMs (estimated: no card"),
        "{a100}"
    );
    assert!(a100.contains("\nkernel    gemm_f32_"), "no TMA: {a100}");
    fails(host(&["-m1", "-n1", "-k1", "--on", "a100"]), 2, &["--plan"]);
    let contrary = ["-m1", "-n1", "-k1", "--plan", "--on", "a30", "--device", "cpu"];
    fails(host(&contrary), 2, &["--on = a30: is a GPU, and --device cpu is none"]);
    let on_cpu = plan(["512"; 3], &["--device", "cpu"]);
    assert!(!on_cpu.contains("--on"), "{on_cpu}");
    let on_cpu = plan(["512"; 3], &["--device", "cpu", "--json"]);
    assert_eq!(objects(&on_cpu)[0]["planned_for"], "cpu");
    let cube = plan(["512"; 3], &[]);
    assert!(cube.contains("\nkernel    tma_f32_64x64x64_nn: "), "{cube}");
    let planned = "\nplanned   for an H200, 132 SMs (--on names another GPU)\n";
    assert!(cube.contains(planned), "{cube}");
    let launch = "1 of 8 x 8 x 2 blocks in clusters of 2 that split k, each of 128 x 1 x 1 threads and \
                  118784 bytes of dynamic shared memory\n";
    assert!(cube.contains(launch), "{cube}");
    let object = &objects(&plan(["512"; 3], &["--json"]))[0];
    has(object, json!({"grids": [[8, 8, 2]], "cluster": [1, 1, 2], "split_k": 2}));
    assert_eq!(object["dynamic_shared_bytes"], 118784);
    let nothing = plan(["30", "30", "0"], &["--kernel", "tma_f32_64x64x64_nn"]);
    assert!(nothing.contains("of gemm_f32_32x32x8: nothing is multiplied"), "{nothing}");
    // f32 is rounded on request only, and other types never.
    let tf32 = ["--compute", "tf32"];
    let rounded = plan(["1024"; 3], &tf32);
    assert!(rounded.contains("\nkernel    wgmma_tf32_128x64x32_nn: "), "{rounded}");
    let of_bf16 = [&["--m", "8", "--n", "8", "--k", "8", "--type", "bf16"], &tf32[..]].concat();
    fails(host(&of_bf16), 2, &["--compute", "tf32", "must be fp32"]);
    // Types with fewer and smaller kernels.
    let types = plan(["100", "70", "51"], &["--type", "bf16", "--out-type", "f32"]);
    assert!(types.contains("C 100x70   bf16, C f32, row-major\n"), "{types}");
    let bytes = 2 * (100 * 51 + 51 * 70) + 4 * 100 * 70;
    assert!(types.contains(&format!("memory    {bytes} bytes for A, B and C")), "{types}");
}

/// Over several devices, which nobody opens: what travels, and what other numbers would take.
#[test]
fn a_plan_over_several_devices() {
    let args = ["--m", "8192", "--n", "8192", "--k", "8192", "--plan", "--devices", "4"];
    let stdout = prints(host(&args));
    for part in [
        "planned for 4 times an H200, 132 SMs",
        "over 4 places: all-gather + product",
        "A: rows 0..2048, 2048..4096, 4096..6144, 6144..8192",
        "B: columns 0..2048,",
        "place 3: ",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let table = stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows = table.filter(|words| words.len() == 5 && words[2].ends_with('%'));
    let counts = rows.map(|words| words[0].parse::<u32>().unwrap()).collect::<Vec<_>>();
    assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64], "{stdout}");
    // A kernel of another order than an invariant product's is refused there, too.
    let sizes =
        ["--m", "16", "--n", "512", "--k", "8192", "--type", "bf16", "--plan", "--devices", "4"];
    let named = host(&[&sizes[..], &["--invariant", "--kernel", "gemm_bf16_64x64x16"]].concat());
    fails(named, 2, &["kernel = gemm_bf16_64x64x16: does not have the order of sums"]);
    fails(host(&with(&["--plan", "--devices", "0"])), 2, &["--devices", "1..=64"]);
    fails(host(&with(&["--devices", "2"])), 2, &["--plan"]);
}

#[test]
fn an_invariant_product_is_split_the_same_for_every_m() {
    let plan = |m: &str, more: &[&str]| {
        let sizes = ["--n", "512", "--k", "8192", "--type", "bf16", "--plan", "--invariant"];
        host(&[&["--m", m], &sizes[..], more].concat())
    };
    for m in ["1", "16", "5000"] {
        let stdout = prints(plan(m, &[]));
        let order =
            "\ninvariant one sum along k, by wgmma; blocks that split k: 4, partial products: 1, ";
        assert!(stdout.contains(order) && stdout.contains("without --invariant "), "{stdout}");
        let object = &object(plan(m, &["--json"]));
        assert_eq!((&object["split_k"], &object["partials"]), (&4.into(), &1.into()));
        assert_eq!(object["invariant"]["order"], "one sum along k, by wgmma");
        assert!(object["invariant"]["auto_us"].is_number(), "{object}");
    }
    let named = plan("16", &["--kernel", "gemm_bf16_64x64x16"]);
    fails(named, 2, &["kernel = gemm_bf16_64x64x16: does not have the order of sums"]);
}
