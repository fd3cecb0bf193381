//! `bench --random`: random shapes, with the stand-ins for the driver and for cuBLAS. These shapes
//! are small. Unit tests check the shapes for a GPU.

#[allow(dead_code, reason = "not every file of tests needs all of it")]
mod common;
#[path = "common/cublas.rs"]
mod cublas;
#[allow(dead_code, reason = "not every file of tests needs all of it")]
#[path = "common/bench_rows.rs"]
mod rows;

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use self::{
    common::{fails, finish, host, objects, on, shows, succeeds},
    cublas::with_cublas,
    rows::{folder, text},
};

/// Small random shapes, timed briefly.
fn random<'a>(count: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let start = ["bench", "--vs", "cublas", "--device", "cuda", "--seconds", "0.001", "--small"];
    [&start[..], &["--random", count], more].concat()
}

/// An Ampere GPU: the stand-in multiplies with no kernel that has tensor maps.
const AMPERE: &str = "kernels=2 major=8";

fn on_fake(args: &[&str]) -> Command {
    let mut command = with_cublas("fp32", args);
    command.env("FAKE_CUDA", AMPERE);
    command
}

/// The shapes of the rows by number: sizes and class.
fn shapes(rows: &[Value]) -> BTreeSet<String> {
    let own = rows.iter().filter(|row| row["role"] == "auto");
    own.map(|row| {
        let keys = ["drawn", "drawn_of", "group", "aligned", "batch", "m", "n", "k", "trans"];
        keys.map(|key| row[key].to_string()).join(" ")
    })
    .collect()
}

#[test]
fn shapes_are_verified_timed_and_summed_up() {
    let folder = folder("all").join("made");
    let args = random("14", &["--seed", "0x2a6cf1a0", "--out", text(&folder), "--commit", "abc"]);
    let stdout = succeeds(on_fake(&args));
    for class in ["square", "skinny", "long-k", "tall", "batched", "transformer", "convolution"] {
        let line = format!("\nf32, {class} ");
        assert!(stdout.contains(&line), "{class}: {stdout}");
    }
    // Four of the fourteen are numbers 3, 6, 9 and 12.
    for (line, count) in [("plain", "10 "), ("with an epilogue", "4 ")] {
        let line = stdout.split(&format!("\nf32, {line} ")).nth(1).unwrap_or_default();
        assert!(line.trim_start().starts_with(count), "{stdout}");
    }
    for line in ["\nf32, aligned ", "\nf32, not aligned "] {
        let line = stdout.split(line).nth(1).unwrap_or_default().trim_start();
        assert!(line.starts_with("7 "), "{stdout}");
    }
    assert!(stdout.ends_with("f32: 14 of 14 shapes of seed 711782816 (0x2a6cf1a0)\n"), "{stdout}");

    let rows = objects(&fs::read_to_string(folder.join("results.jsonl")).unwrap());
    // cuBLAS itself has no bias and no activations.
    let with = rows.iter().filter(|row| row["epilogue"].is_string() && row["kernel"] == "cublas");
    let lacks = 4 - with.count();
    assert_eq!((rows.len(), shapes(&rows).len()), (14 * 3 - lacks, 14));
    for row in &rows {
        assert_eq!(row["epilogue"].is_string(), row["drawn"].as_u64().unwrap() % 3 == 0, "{row}");
        assert_eq!((&row["verified"], &row["verify"]), (&true.into(), &"sample".into()), "{row}");
        assert!(row["time_us"].as_f64().unwrap() > 0.0 && row["ratio_low"].is_number(), "{row}");
        assert_eq!(row["drawn_of"], 14);
        let exact = if row["role"] == "auto" { true.into() } else { Value::Null };
        assert_eq!(row["exact_on_integers"], exact, "{row}");
    }
    // The shapes of a kernel follow each other.
    let mut kernels = rows.iter().filter(|row| row["role"] == "auto").collect::<Vec<_>>();
    kernels.dedup_by_key(|row| row["kernel"].as_str().unwrap());
    let names = kernels.iter().map(|row| row["kernel"].as_str().unwrap());
    assert_eq!(names.clone().collect::<BTreeSet<_>>().len(), names.count());

    let table = fs::read_to_string(folder.join("results.csv")).unwrap();
    let (columns, lines) = table.split_once('\n').unwrap();
    assert!(columns.contains(",group,aligned,drawn,drawn_of,"), "{columns}");
    assert_eq!(lines.lines().count(), rows.len());
    let svg = fs::read_to_string(folder.join("random.svg")).unwrap();
    let document = roxmltree::Document::parse(&svg).expect("well-formed");
    let dots = document.descendants().filter(|node| node.has_tag_name("circle"));
    assert_eq!(dots.count(), 14);
    assert!(svg.contains("ratio_low") && svg.contains("operations"));
    assert!(folder.join("random.png").exists() && !folder.join("ratio.svg").exists());

    // The record is summarised and drawn again.
    let again = folder.with_file_name("again");
    let from = ["bench", "--from", text(&folder), "--out", text(&again)];
    let shown = succeeds(host(&from));
    let summary = |stdout: &str| stdout.split_once("\nratio_low, ").map(|(_, end)| end.to_owned());
    assert!(summary(&stdout).is_some());
    assert_eq!(summary(&shown), summary(&stdout));
    assert_eq!(fs::read(again.join("random.svg")).unwrap(), svg.into_bytes());
}

#[test]
fn parts_are_joined() {
    let folder = folder("parts");
    let [all, one, two] = ["all", "one", "two"].map(|name| folder.join(name));
    let run = |count: &str, part: &[&str], out: &Path| {
        let args = random(count, &[&["--json", "--seed", "3", "--out", text(out)], part].concat());
        let (code, stdout, stderr) = finish(on_fake(&args));
        assert_eq!(code, 0, "{stderr}");
        (objects(&stdout), stderr)
    };
    let (rows, _) = run("9", &[], &all);
    let (first, stderr) = run("9", &["--part", "1/2"], &one);
    assert!(stderr.contains("f32: INCOMPLETE, 4 of 9 shapes of seed 3"), "{stderr}");
    let (second, _) = run("9", &["--part", "2/2"], &two);
    let joined = [&first[..], &second].concat();
    assert_eq!(shapes(&joined), shapes(&rows));
    // The first shapes are the same for every count.
    let fewer = run("4", &[], &folder.join("fewer")).0;
    let number = |rows: &[Value]| {
        shapes(rows)
            .iter()
            .map(|row| row.split_once(' ').unwrap().1.split_once(' ').unwrap().1.to_owned())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(number(&fewer), number(&first));

    let stdout = succeeds(host(&["bench", "--from", text(&one), text(&two)]));
    assert!(stdout.contains("f32: 9 of 9 shapes of seed 3"), "{stdout}");
    assert!(!stdout.contains("INCOMPLETE"), "{stdout}");
    let twice = ["bench", "--from", text(&one), text(&all)];
    fails(host(&twice), 2, &["--from", "of seed 3, is there twice: not one run"]);
}

#[test]
fn types_have_shapes_of_their_own_alignment() {
    for (of, granule) in [("bf16", 8), ("f16", 8), ("f32", 4)] {
        let args = random("7", &["--json", "--type", of, "--out-type", "f32"]);
        let stdout = succeeds(on_fake(&args));
        for row in objects(&stdout) {
            assert_eq!(row["verified"], true, "{row}");
            let whole = ["m", "n", "k"].iter().all(|key| row[key].as_u64().unwrap() % granule == 0);
            assert!(whole || row["aligned"] == false, "{row}");
        }
    }
}

#[test]
fn invariant_products_are_timed_beside_auto() {
    let args = random("7", &["--invariant", "--type", "bf16"]);
    let stdout = shows(on_fake(&args), &["+invariant"]);
    assert!(stdout.contains(": 7 invariant products take "), "{stdout}");
    assert!(stdout.contains(", m <= 16: "), "{stdout}");
}

#[test]
fn what_is_wrong_is_not_timed_and_fails_the_run() {
    // The stand-in's kernels do nothing: C stays NaN.
    let mut command = on_fake(&random("7", &[]));
    command.env("FAKE_CUDA", "kernels=1 major=8");
    let (code, stdout, stderr) = finish(command);
    assert_eq!((code, stdout.matches("WRONG, not timed").count()), (1, 14), "{stdout}");
    assert!(stderr.contains("reproduce: cargo run -p host -- bench --sizes "), "{stderr}");
    assert!(stdout.contains("f32: 7 of 7 shapes"), "{stdout}");
    assert!(stdout.contains("; 7 without a ratio, which do not count above"), "{stdout}");
    // Without a library there is no ratio.
    let (code, stdout, stderr) = finish(on(AMPERE, &random("7", &[])));
    assert!(code == 0 && stderr.contains("there is nothing to compare with"), "{stderr}");
    assert!(stdout.contains("; 7 without a ratio"), "{stdout}");
    // cublasLt may compute what cuBLAS refuses.
    let mut command = on_fake(&random("3", &["--json"]));
    command.env("FAKE_CUBLAS", "refused");
    let (code, stdout, stderr) = finish(command);
    assert_eq!((code, objects(&stdout).len()), (0, 6), "{stderr}");
    let words = "without cublas: cublasSgemm_v2 failed: CUBLAS_STATUS_NOT_SUPPORTED (15)";
    assert!(stderr.contains(words), "{stderr}");
    for row in objects(&stdout) {
        assert!(row["baseline"] == "cublasLt" && row["ratio_low"].is_number(), "{row}");
    }
    // Without a comparison there is no verdict.
    let (code, stdout, _) = finish(on_fake(&random("3", &["--json", "--verify", "none"])));
    assert_eq!(code, 0);
    for row in objects(&stdout) {
        assert_eq!((&row["verified"], &row["verify"]), (&Value::Null, &"none".into()), "{row}");
    }
}

/// Standard output and error of a run that gets SIGINT when its third shape or size starts.
#[track_caller]
fn cut_short(mut command: Command, third: &str) -> (String, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut stderr = String::new();
    while !stderr.contains(third) {
        assert_ne!(lines.read_line(&mut stderr).unwrap(), 0, "the third never begins: {stderr}");
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    lines.read_to_string(&mut stderr).unwrap();
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(130), "{stderr}");
    (String::from_utf8(stdout).unwrap(), stderr)
}

#[test]
fn a_run_that_is_cut_short_writes_what_it_has_and_says_so() {
    let folder = folder("cut").join("made");
    let args = random("50", &["--out", text(&folder), "--commit", "abc"]);
    let (stdout, stderr) = cut_short(on_fake(&args), " (3 of 50): ");
    assert!(stderr.ends_with("error: interrupted\n"), "{stderr}");

    let rows = objects(&fs::read_to_string(folder.join("results.jsonl")).unwrap());
    let ran = rows.len() / 3;
    assert!((2..50).contains(&ran) && shapes(&rows).len() == ran, "{ran}: {stderr}");
    let words = format!("{ran} of 50 shapes ran; interrupted");
    assert!(stderr.contains(&format!("error: cut short: {words}\n")), "{stderr}");
    assert!(stdout.ends_with(&format!("CUT SHORT: {words}\n")), "{stdout}");
    assert!(stdout.contains(&format!("f32: INCOMPLETE, {ran} of 50 shapes")), "{stdout}");
    let machine = fs::read_to_string(folder.join("machine.json")).unwrap();
    let machine: Value = serde_json::from_str(&machine).unwrap();
    assert_eq!(machine["cut_short"], format!("cut short: {words}"));
    // The record also says so.
    let (code, shown, _) = finish(host(&["bench", "--from", text(&folder)]));
    assert!(code == 0 && shown.ends_with(&format!("CUT SHORT: {words}\n")), "{shown}");
}

#[test]
fn a_run_of_sizes_that_is_cut_short_writes_what_it_has() {
    let folder = folder("cut-sizes").join("made");
    let sizes = (64..104).map(|size| size.to_string()).collect::<Vec<_>>().join(",");
    let more = ["--sizes", &sizes, "--kernels", "tiled16", "--out", text(&folder)];
    let command = host(&[&["bench", "--device", "cpu", "--seconds", "0.1"], &more[..]].concat());
    let (stdout, stderr) = cut_short(command, " (3 of 40): ");
    let rows = objects(&fs::read_to_string(folder.join("results.jsonl")).unwrap());
    let words = format!("{} of 40 sizes ran; interrupted", rows.len());
    assert!((2..40).contains(&rows.len()), "{rows:?}");
    assert!(stderr.contains(&format!("error: cut short: {words}\n")), "{stderr}");
    assert!(stdout.ends_with(&format!("CUT SHORT: {words}\n")), "{stdout}");
    let (code, shown, _) = finish(host(&["bench", "--from", text(&folder)]));
    assert!(code == 0 && shown.ends_with(&format!("CUT SHORT: {words}\n")), "{shown}");
}

#[test]
fn a_driver_that_fails_at_the_first_shape_leaves_nothing() {
    let folder = folder("fault").join("made");
    let mut command = on_fake(&random("7", &["--out", text(&folder), "--commit", "abc"]));
    command.env("FAKE_CUDA", "kernels=2 major=8 cuEventRecord=700");
    let (code, _, stderr) = finish(command);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("error: cut short: 0 of 7 shapes ran; "), "{stderr}");
    assert!(!folder.exists());
}

#[test]
fn what_contradicts_itself_is_refused() {
    let random = |more: &[&'static str]| {
        host(&[&["bench", "--device", "cpu", "--random", "7"], more].concat())
    };
    fails(random(&[]), 2, &["--vs"]);
    for (flag, value) in
        [("--sizes", "5"), ("--kernels", "auto"), ("--trans", "nt"), ("--sustained", "1")]
    {
        fails(random(&["--vs", "cublas", flag, value]), 2, &["--random", flag, "cannot be used"]);
    }
    let vs = |more: &[&'static str]| random(&[&["--vs", "cublas"], more].concat());
    fails(vs(&["--verify", "full"]), 2, &["--verify = full: must be sample or none with --random"]);
    fails(vs(&["--part", "1/8"]), 2, &["--part = 1/8: must be of at most 7 parts"]);
    fails(vs(&["--part", "3/2"]), 2, &["--part", "part I, from 1 to P, of P parts"]);
    fails(vs(&["--seed", "0xg"]), 2, &["--seed", "or 0x and its hexadecimal digits"]);
    for bad in ["0", "-1", "3001", "x"] {
        let args = ["bench", "--vs", "cublas", "--random", bad];
        fails(host(&args), 2, &["--random", "from 1 to 3000"]);
    }
    for flags in [&["--part", "1/2"][..], &["--small"]] {
        fails(host(&[&["bench"], flags].concat()), 2, &["--random"]);
    }
}
