//! The built command's `ladder` and `explain`. No test can know speeds. These test that each rung
//! is there, verified, counted and drawn.

#[allow(dead_code, reason = "not every file of tests needs all of it")]
mod common;
#[allow(dead_code, reason = "not every file of tests needs all of it")]
#[path = "common/bench_rows.rs"]
mod rows;

use std::fs;

use serde_json::{Value, json};

use self::common::{
    fails, finish, has, has_no_noise, host, is_interrupted, objects, on, prints, shows, succeeds,
};
use self::rows::{folder, text};

/// `ladder` of a small product, with more arguments.
fn args<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["ladder", "--size", "32", "--seconds", "0.001"], more].concat()
}

fn rungs() -> Vec<&'static str> {
    gpu::registry::ladder().map(|(entry, _)| entry.name()).collect()
}

fn near(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() <= 1e-3 * expected)
}

#[test]
fn every_rung_is_there_verified_and_counted_as_on_paper() {
    let stdout = succeeds(host(&args(&["--json"])));
    let lines = objects(&stdout);
    let names = lines.iter().map(|line| line["kernel"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(names, rungs(), "one line for each rung, in their order");
    for (number, line) in (1..).zip(&lines) {
        let name = &line["kernel"];
        assert_eq!((&line["rung"], &line["verified"]), (&number.into(), &true.into()), "{name}");
        assert_eq!(line["exact_on_integers"], true, "{name}");
        assert!(line["max_err_over_bound"].as_f64().is_some_and(|err| err <= 1.0), "{name}");
        for key in ["median_us", "gflops", "flop_per_byte_derived"] {
            assert!(line[key].as_f64().is_some_and(|value| value > 0.0), "{name}: {key}");
        }
        assert_eq!(line["gain"].is_null(), number == 1, "{name}: gain over the one before");
        assert_eq!(line["share_of_roof"], Value::Null, "the CPU device has no roof");
        has_no_noise(line);
        let counted = &line["counted"];
        assert_eq!(counted["clean"], true, "{name}");
        for key in
            ["fma_per_warp", "global_loads_per_warp", "global_stores_per_warp", "flop_per_byte"]
        {
            assert!(counted[key].as_f64().is_some_and(|count| count > 0.0), "{name}: {key}");
        }
        let fit = &line["fit"];
        assert!(fit["registers"].as_u64().is_some_and(|count| count > 0), "{name}: {fit}");
        assert!(fit["occupancy_percent"].as_f64().is_some_and(|percent| percent > 0.0), "{name}");
    }
    let line = |kernel: &str| lines.iter().find(|line| line["kernel"] == kernel).unwrap();
    // A thread has k multiply-adds, each of two floats: a quarter FLOP per byte. A warp reads two
    // elements of A, in two sectors that are k apart, and two rows of sixteen elements of B, in
    // four sectors.
    let basic = line("basic");
    let counted = &basic["counted"];
    assert!(near(&basic["flop_per_byte_derived"], 0.25), "{basic}");
    assert!(near(&counted["flop_per_byte"], 0.25), "{basic}");
    has(counted, json!({"m": 256, "n": 256, "k": 64}));
    assert!(near(&counted["fma_per_warp"], 64.0), "{basic}");
    assert!(near(&counted["sectors_per_request"], 2.0), "{basic}");
    assert_eq!(counted["wavefronts_per_request"], Value::Null);
    // For each tile of sixteen, a thread loads one element of A and one of B, and waits twice.
    let tiled = line("tiled16");
    let counted = &tiled["counted"];
    assert!(near(&tiled["flop_per_byte_derived"], 4.0), "{tiled}");
    assert!(near(&counted["flop_per_byte"], 4.0), "{tiled}");
    assert!(near(&counted["flop_per_sector_byte"], 4.0), "{tiled}");
    for (key, expected) in [
        ("fma_per_warp", 64.0),
        ("global_loads_per_warp", 2.0 * 4.0),
        ("shared_loads_per_warp", 2.0 * 64.0),
        ("shared_stores_per_warp", 2.0 * 4.0),
        ("global_stores_per_warp", 1.0),
        ("barriers_per_warp", 2.0 * 4.0),
        ("sectors_per_request", 4.0),
        ("wavefronts_per_request", 1.0),
    ] {
        assert!(near(&counted[key], expected), "{key}: {tiled}");
    }
}

#[test]
fn the_table_has_a_row_and_a_reason_for_each_rung() {
    let (code, stdout, stderr) = finish(host(&args(&["--m", "20", "--n", "30", "--k", "40"])));
    assert_eq!((code, &*stdout), (2, ""), "--size and --m exclude each other: {stderr}");
    let sizes = ["ladder", "--m", "20", "--n", "30", "--k", "40", "--seconds", "0.001"];
    let stdout = succeeds(host(&sizes));
    assert!(stdout.starts_with("A 20x40 · B 40x30 = C 20x30   f32, on cpu: "), "{stdout}");
    for (entry, rung) in gpu::registry::ladder() {
        let rows = stdout.lines().filter(|line| {
            line.split_whitespace().nth(1) == Some(entry.name()) && !line.starts_with("#")
        });
        assert_eq!(rows.count(), 3, "{}: {stdout}", entry.name());
        assert!(stdout.contains(rung.idea), "{stdout}");
    }
    let longest = stdout.lines().map(|line| line.chars().count()).max();
    assert!(longest.is_some_and(|longest| longest <= 130), "{longest:?}: {stdout}");
    assert!(stdout.contains("counted on the CPU at m = 256, n = 256, k = 64"), "{stdout}");
    assert!(!stdout.contains('\u{1b}'), "no colours: {stdout}");
}

/// The CPU device would show another order of the rungs.
#[test]
fn without_a_gpu_the_recorded_figures_of_one_are_shown() {
    let stdout = prints(host(&["ladder"]));
    assert!(
        stdout.starts_with("A 4096x4096 · B 4096x4096 = C 4096x4096   f32, on cuda:0: NVIDIA H200")
    );
    assert!(
        stdout.contains(
            "\nrecorded there, in docs/results/ladder-h200.json: this machine has no GPU"
        )
    );
    let (code, stdout, stderr) = finish(host(&["ladder", "--json"]));
    assert!(code == 0 && stderr.starts_with("note: recorded on an NVIDIA H200"), "{stderr}");
    let lines = objects(&stdout);
    assert_eq!(lines.len(), rungs().len() + 1, "and cuBLAS");
    assert!(lines.iter().all(|line| line["recorded"] == "docs/results/ladder-h200.json"));
    // On request the CPU is measured.
    let (_, stdout, _) = finish(host(&args(&["--device", "cpu", "--json"])));
    assert!(
        objects(&stdout).iter().all(|line| line["device"] == "cpu" && line["recorded"].is_null())
    );
}

#[test]
fn pictures_are_written_and_hold_what_they_show() {
    let folder = folder("pictures");
    let [json, bars, roof] = ["run.json", "bars.svg", "roof.svg"].map(|name| folder.join(name));
    let drawn = ["--json", "--plot", text(&bars), "--roofline", text(&roof)];
    let stdout = succeeds(host(&args(&drawn)));
    for picture in [&bars, &roof] {
        let svg = fs::read_to_string(picture).unwrap();
        let document = roxmltree::Document::parse(&svg).expect("well-formed");
        let first = document.root_element().first_element_child().unwrap();
        let style = first.text().unwrap_or_default();
        assert!(style.contains("prefers-color-scheme: dark"), "{style}");
        let words = document.descendants().filter_map(|node| node.text()).collect::<String>();
        for name in rungs() {
            assert!(words.contains(name), "{name} is not in {}", picture.display());
        }
        assert!(words.contains("GFLOP/s") && words.contains("m = 32, n = 32, k = 32"), "{words}");
        assert!(!words.contains("TFLOP/s"), "one unit: {words}");
    }
    // The same from the record, as PNG: drawn, and not blank.
    fs::write(&json, &stdout).unwrap();
    let [bars, roof] = ["bars.png", "roof.PNG"].map(|name| folder.join(name));
    let again = ["ladder", "--from", text(&json), "--plot", text(&bars), "--roofline", text(&roof)];
    let table = succeeds(host(&again));
    assert!(rungs().iter().all(|name| table.contains(name)), "{table}");
    for picture in [bars, roof] {
        let file = std::io::BufReader::new(fs::File::open(&picture).unwrap());
        let mut reader = png::Decoder::new(file).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!(info.color_type, png::ColorType::Rgb, "opaque");
        assert!(info.width >= 900 && info.height >= 200, "{} x {}", info.width, info.height);
        let other = pixels.chunks(3).filter(|pixel| *pixel != &pixels[..3]).count();
        // The letters alone have thousands of pixels.
        assert!(other > 5000, "{}: {other} pixels of another colour", picture.display());
    }
    // The record is written again without changes.
    let (_, again, _) = finish(host(&["ladder", "--json", "--from", text(&json)]));
    assert_eq!(objects(&again), objects(&stdout));
}

#[test]
fn bad_arguments_are_refused_and_nothing_is_written() {
    let folder = folder("refused");
    let file = |name: &str| text(&folder.join(name)).to_owned();
    let refused = |more: &[&str], words: &[&str]| {
        fails(host(&args(more)), 2, words);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{more:?}");
    };
    refused(&["--plot", &file("a.pdf")], &["--plot", "a.pdf", ".svg or .png"]);
    refused(&["--plot", &file("none/a.svg")], &["--plot", "none/a.svg", "there is no folder"]);
    refused(&["--plot", &file("a.svg"), "--roofline", &file("b")], &["--roofline", ".svg or .png"]);
    refused(&["--plot", &file("a.svg"), "--verify", "none"], &["--verify", "'none'"]);
    refused(&["--plot", &file("a.svg"), "--device", "gpu"], &["--device", "auto, cpu, cuda"]);
    let from = |name: &str| ["ladder", "--from", name, "--plot", &file("a.svg")].map(str::to_owned);
    let fails_from = |name: &str, words: &[&str]| {
        fails(host(&from(name).iter().map(|arg| &**arg).collect::<Vec<_>>()), 2, words);
    };
    fails_from(&file("none.json"), &["--from", "none.json", "cannot be read"]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    fs::write(folder.join("bad.json"), "\n{\"kernel\": 5}\n").unwrap();
    fails_from(&file("bad.json"), &["--from", "bad.json", "line 2 is not what"]);
    let record = include_str!("../../docs/results/ladder-h200.json").lines().next().unwrap();
    for (field, value, words) in [
        ("roof_gflops", serde_json::json!(0.0), "roof_gflops = 0"),
        ("gflops", serde_json::json!(1e308), "gflops = 1e308: must be above 1e-12 and below 1e12"),
        ("gflops", serde_json::json!(7.0), "gflops = 7e0, and flop / median_us = "),
        ("gflops", Value::Null, "median_us without gflops"),
        ("median_us", Value::Null, "without median_us"),
        ("verified", serde_json::json!(false), "verified = false, and median_us = "),
        ("kernel", serde_json::json!("a\u{1}"), "without control characters"),
    ] {
        let mut line: Value = serde_json::from_str(record).unwrap();
        line[field] = value;
        fs::write(folder.join("bad.json"), line.to_string()).unwrap();
        fails_from(&file("bad.json"), &["--from", "bad.json", words]);
    }
    fs::write(folder.join("bad.json"), format!("{record}\n").repeat(101)).unwrap();
    fails_from(&file("bad.json"), &["--from", "101 lines: must have at most 100"]);
    fs::write(folder.join("bad.json"), "").unwrap();
    fails_from(&file("bad.json"), &["--from", "a line for each rung"]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "the record alone");
    for value in ["0", "-1", "4294967296", "x"] {
        let limit = "1 to 4294967295";
        fails(host(&["ladder", "--size", value]), 2, &["--size", value, limit]);
    }
    fails(host(&["ladder", "--seconds", "0"]), 2, &["--seconds", "0.001 to 3600"]);
    fails(host(&["ladder", "--m", "5"]), 2, &["required", "--n", "--k"]);
    let taken = ["ladder", "--from", "x", "--size", "5"];
    fails(host(&taken), 2, &["--from", "cannot be used with"]);
}

/// The stand-in's kernels do nothing: C stays NaN.
#[test]
fn a_wrong_rung_is_shown_as_failed_and_not_timed() {
    let (code, stdout, stderr) = finish(on("kernels=1", &args(&["--json"])));
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("note: no cuBLAS: "), "{stderr}");
    assert!(stderr.contains("reproduce: cargo run -p host -- --m 32"), "{stderr}");
    let lines = objects(&stdout);
    assert_eq!(lines.len(), rungs().len());
    for line in &lines {
        assert_eq!((&line["verified"], &line["median_us"]), (&false.into(), &Value::Null));
        assert_eq!(line["device"], "cuda:0");
    }
    let (code, stdout, _) = finish(on("kernels=1", &args(&[])));
    assert_eq!((code, stdout.matches("WRONG, not timed").count()), (1, rungs().len()), "{stdout}");
}

/// The stand-in multiplies.
#[test]
fn on_a_gpu_speeds_are_held_against_its_roof() {
    let stdout = succeeds(on("kernels=2", &args(&["--json"])));
    for line in objects(&stdout) {
        assert_eq!((&line["verified"], &line["device"]), (&true.into(), &"cuda:0".into()));
        assert_eq!(line["fit"]["source"], "the driver");
        let [roof, share, speed] =
            ["roof_gflops", "share_of_roof", "gflops"].map(|key| line[key].as_f64());
        if let (Some(roof), Some(share), Some(speed)) = (roof, share, speed) {
            assert!((share - speed / roof).abs() <= 1e-4 * share, "{line}");
        } else {
            assert_eq!((roof, share), (None, None), "a driver that tells no clock");
        }
    }
}

/// The ladder on tensor cores: TMA's bytes and the instructions of tensor cores are counted, too.
#[test]
fn the_ladder_of_bf16_is_verified_and_counted() {
    let more = ["--type", "bf16", "--device", "cpu", "--json"];
    let stdout = succeeds(host(&args(&more)));
    let lines = objects(&stdout);
    let rungs = gpu::registry::ladder_of(gpu::registry::Type::BF16).collect::<Vec<_>>();
    assert_eq!((lines.len(), rungs.len()), (10, 10), "{stdout}");
    for (line, (entry, rung)) in lines.iter().zip(rungs) {
        let name = entry.name();
        has(line, json!({"kernel": name, "dtype": "bf16"}));
        has(line, json!({"verified": true, "exact_on_integers": true}));
        let counted = &line["counted"];
        assert!(near(&counted["flop_per_byte"], rung.flop_per_byte), "{line}");
        assert!(
            counted["tensor_ops_per_warp"].as_f64().is_some_and(|count| count >= 2.0),
            "{line}"
        );
        let access = entry.product.as_ref().unwrap().variant.access;
        let by_tma = access == gpu::registry::Access::Tma;
        assert_eq!(counted["tma_load_bytes"].is_number(), by_tma, "{line}");
    }
    shows(host(&args(&more[..4])), &["   bf16, on cpu", "TMA KiB"]);
    let stdout = prints(host(&["explain", "tensor_cluster"]));
    for part in ["\nrung      9 of 10: ", "\non paper  128.00 FLOP a byte\ncounted   128.000 FLOP"]
    {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    assert!(stdout.contains("; TMA copies 65536 bytes in and 0 out in all\n"), "{stdout}");
    // One of them, as it copies and multiplies.
    let trace = ["explain", "tensor_tma", "--trace", "--m", "64", "--n", "256", "--k", "64"];
    let stdout = prints(host(&trace));
    for part in ["TMA A[0..64,0..64], TMA B[0..64,0..64]", "4 instructions of tensor cores"] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}

#[test]
fn ctrl_c_ends_the_ladder_in_order() {
    let step = format!("basic (1 of {}): once, to be verified", rungs().len());
    let stderr =
        is_interrupted(host(&["ladder", "--device", "cpu", "--size", "4000", "-v"]), &step);
    // 128 GFLOP, at half a GFLOP/s per core.
    assert!(stderr.contains("note: on the CPU a run of 4000x4000x4000 takes"), "{stderr}");
}

#[test]
fn a_kernel_is_explained_in_words_figures_and_source() {
    let stdout = prints(host(&["explain", "tiled16"]));
    for part in [
        "kernel    tiled16: 16 x 16 tiles",
        "\nrung      ",
        // The file's module comment.
        "\n# Boundary checks\n",
        "\non paper  4.00 FLOP a byte\n",
        "\ncounted   4.000 FLOP for each byte asked for, 4.000 for each moved in sectors",
        "\na warp    64 multiply-adds, 8 barriers; global memory: 8 loads, 1 store; shared memory: 128 loads, 8 stores\n",
        // A source line and its effect.
        "64 fma",
        "sum = fma(tile_a[(ty, i)], tile_b[(i, tx)], sum);",
        "pub fn tiled16(",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    for name in rungs() {
        let (code, stdout, stderr) = finish(host(&["explain", name]));
        assert!(code == 0 && stdout.contains(&format!("fn {name}(")), "{stderr}{stdout}");
    }
}

/// A family's file is a table of kernels, which says nothing of one.
#[test]
fn a_kernel_of_the_library_is_explained_by_its_family() {
    let stdout = prints(host(&["explain", "gemm_f32_64x64x16"]));
    for part in [
        "\nThe general product on CUDA cores: ",
        "\ngpu/src/kernels/gemm/table.rs: its row of the table. ",
        " | ",
        " gemm_f32_64x64x16: f32 -> f32, 64 x 64",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    for none in ["The kernels, one row each", "gemm_f32_64x32x16"] {
        assert!(!stdout.contains(none), "{none}: {stdout}");
    }
}

/// The course's table: 2 x 2 blocks on matrices of 4 x 4.
#[test]
fn the_toy_example_is_printed_by_running_it() {
    let stdout = prints(host(&["explain", "tiled2", "--trace"]));
    for line in [
        "phase 0",
        "  (0,1)  A[0,1] -> tile_a[0,1], B[0,1] -> tile_b[0,1]  \
         sum += tile_a[0,0] tile_b[0,1] + tile_a[0,1] tile_b[1,1]",
        "phase 1",
        "  (1,0)  A[1,2] -> tile_a[1,0], B[3,0] -> tile_b[1,0]  \
         sum += tile_a[1,0] tile_b[0,0] + tile_a[1,1] tile_b[1,0]  -> C[1,0]",
    ] {
        assert!(stdout.lines().any(|own| own == line), "{line}: {stdout}");
    }
    assert!(stdout.contains("\n2 phases, 4 barriers; "), "{stdout}");
    // Copies of several stages begin between two barriers. The page of this kernel has four phases.
    let (_, stdout, _) = finish(host(&["explain", "async_copy", "--trace", "--k", "32"]));
    assert!(
        stdout.contains("\n3 intervals, 4 barriers; an interval begins where "),
        "{stdout:.300}"
    );
    assert!(stdout.contains("\ninterval 2\n") && !stdout.contains("\nphase "), "{stdout:.300}");
    // Matrices of 3 x 3, the last block.
    let sizes = ["--m", "3", "--n", "3", "--k", "3", "--block", "1,1"];
    let (_, stdout, _) = finish(host(&[&["explain", "tiled2", "--trace"], &sizes[..]].concat()));
    assert!(stdout.contains("  (1,0)  0 -> tile_a[1,0], B[1,2] -> tile_b[1,0]"), "{stdout}");
    assert_eq!(stdout.matches("-> C[").count(), 1, "{stdout}");
    for (flag, value, limit) in [
        ("--block", "2", "must be X,Y"),
        ("--m", "0", "from 1 to 1024"),
        ("--k", "1025", "from 1 to 1024"),
    ] {
        fails(host(&["explain", "tiled2", "--trace", flag, value]), 2, &[flag, value, limit]);
    }
    let outside = ["explain", "tiled2", "--trace", "--block", "0,7"];
    fails(host(&outside), 2, &["--block = 0,7: the grid has 2 x 2 blocks"]);
    fails(host(&["explain", "tiled17"]), 2, &["'tiled17'", "tiled16", "or tiled2"]);
    for name in ["tma_f32_64x64x64_nn", "gemm_bf16_64x64x16", "mma_bf16_64x64x64"] {
        let stdout = prints(host(&["explain", name]));
        for part in
            [" registers a thread, ", "\noccupancy ", "\ncounted   not: ", "table.rs: its row"]
        {
            assert!(stdout.contains(part), "{part}: {stdout}");
        }
        let limit = "must be a lesson, or a kernel of f32 or f64 on CUDA cores and not one by TMA";
        fails(host(&["explain", name, "--trace"]), 2, &[name, limit, "not counted"]);
    }
    fails(host(&["explain", "tiled16", "--m", "5"]), 2, &["--trace"]);
}
