//! The built command's `bench`. No test can know speeds. These test that every figure is there and
//! fits the others, that wrong kernels are not timed, and that libraries are called as documented.

#[allow(dead_code, reason = "not every file of tests needs all of it")]
mod common;
#[path = "common/cublas.rs"]
mod cublas;
#[path = "common/bench_rows.rs"]
mod rows;
#[path = "bench/whole.rs"]
mod whole;

use std::{fs, path::Path};

use serde_json::Value;

use self::{
    common::{fails, finish, host, objects, on, shows, succeeds},
    cublas::with_cublas,
    rows::{cpu, cuda, folder, is_complete, is_measured, number, table, text},
};

#[test]
fn every_column_is_there_beside_libraries_of_the_cpu() {
    let sizes = "8,20x30x10,5*6x7x9";
    let args = cpu(&["--vs", "cpu", "--sizes", sizes, "--trans", "nn,tt", "--json"]);
    let stdout = succeeds(host(&args));
    let rows = objects(&stdout);
    let seen = rows.iter().map(|row| {
        is_complete(row);
        format!(
            "{}*{}x{}x{} {} {}",
            row["batch"], row["m"], row["n"], row["k"], row["trans"], row["role"]
        )
    });
    let seen = seen.map(|row| row.replace('"', "")).collect::<Vec<_>>();
    let sizes = ["1*8x8x8", "1*20x30x10", "5*6x7x9"];
    let expected = sizes.iter().flat_map(|size| {
        ["nn", "tt"].into_iter().flat_map(move |trans| {
            ["auto", "baseline", "baseline"].map(|role| format!("{size} {trans} {role}"))
        })
    });
    assert_eq!(seen, expected.collect::<Vec<_>>());
    for rows in rows.chunks(3) {
        let names = [&rows[1]["kernel"], &rows[2]["kernel"]];
        assert_eq!(names, ["nalgebra", "gemm"]);
        // The faster one is the baseline of all three.
        let fastest = number(&rows[1], "time_us").min(number(&rows[2], "time_us"));
        for row in rows {
            assert!(names.contains(&&row["baseline"]), "{row}");
            assert_eq!(number(row, "baseline_time_us"), fastest, "{row}");
        }
    }
}

/// cuBLAS's and cublasLt's functions are called as documented: the stand-in, which follows the
/// documentation, computes C.
#[test]
fn nvidias_libraries_are_told_the_product() {
    let sizes = "20,7x5x9,3*4x6x5,2*8";
    let args = cuda(&["--vs", "cublas", "--sizes", sizes, "--trans", "nn,nt,tn,tt", "--json"]);
    let (code, stdout, stderr) = finish(with_cublas("fp32", &args));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("note: cublas is libcublas.so.13, 13.1.0"), "{stderr}");
    assert!(stderr.contains("note: cublasLt is libcublasLt.so.13, 13.1.0"), "{stderr}");
    let rows = objects(&stdout);
    assert_eq!(rows.len(), 4 * 4 * 3, "{stdout}");
    for rows in rows.chunks(3) {
        rows.iter().for_each(is_complete);
        let [own, cublas, lt] = rows else { panic!("{rows:?}") };
        assert_eq!((&own["role"], &own["device"]), (&"auto".into(), &"cuda:0".into()));
        assert_eq!((&cublas["kernel"], &cublas["algorithm"]), (&"cublas".into(), &Value::Null));
        assert_eq!(lt["kernel"], "cublasLt");
        // Of ten algorithms one is refused by the heuristics, and another when it runs.
        let algorithm = lt["algorithm"].as_str().unwrap();
        assert!(algorithm.ends_with(" of 9"), "{algorithm}");
    }
}

/// Products of bf16 and f16. C has the same type, and its error shows the rounding; or C has f32.
#[test]
fn nvidias_libraries_are_told_the_types() {
    // (The stand-in has no tensor maps, so no row is a multiple of sixteen bytes.)
    let sizes = "7x5x9,3*4x6x5";
    for (of, out_type, errors) in [
        ("bf16", "bf16", 5e-4..5e-3),
        ("bf16", "f32", 0.0..1e-6),
        ("f16", "f16", 5e-5..5e-4),
        ("f16", "f32", 0.0..1e-6),
    ] {
        let args = cuda(&["--vs", "cublas", "--sizes", sizes, "--trans", "nn,nt,tn,tt", "--json"]);
        let args = [&args[..], &["--type", of, "--out-type", out_type]].concat();
        let stdout = succeeds(with_cublas("fp32", &args));
        let rows = objects(&stdout);
        assert_eq!(rows.len(), 2 * 4 * 3, "{stdout}");
        for rows in rows.chunks(3) {
            let names = [&rows[1]["kernel"], &rows[2]["kernel"]];
            assert_eq!(names, ["cublas", "cublasLt"]);
            for row in rows {
                is_measured(row);
                let types = ["dtype", "out_dtype", "compute"].map(|key| &row[key]);
                assert_eq!(types, [of, out_type, "fp32"]);
                assert!(errors.contains(&number(row, "err")), "{row}");
                assert!(errors.contains(&number(row, "baseline_err")), "{row}");
                let shows = if out_type == "f32" { true.into() } else { Value::Null };
                assert_eq!(row["baseline_is_fp32"], shows, "{row}");
            }
        }
    }
    // If no library has this type, a note says so. Types that cannot be combined are refused.
    let args = cpu(&["--vs", "cpu", "--sizes", "9", "--type", "bf16"]);
    let (code, stdout, stderr) = finish(host(&args));
    assert!(code == 0 && stdout.contains("gemm_bf16_4x64x1"), "{stdout}");
    assert!(stderr.contains("there is nothing to compare with"), "{stderr}");
    let args = cpu(&["--sizes", "9", "--out-type", "bf16"]);
    fails(host(&args), 2, &["--out-type = bf16: must be f32 with --type f32"]);
    let args = cpu(&["--sizes", "9", "--type", "bf16", "--kernels", "gemm_f32_64x64x16"]);
    let words = "--kernel = gemm_f32_64x64x16: is for A and B of f32: `--type f32` asks for it";
    fails(host(&args), 2, &[words, "For bf16 there are others"]);
}

#[test]
fn a_library_that_is_not_there_is_left_out_with_a_note() {
    let args = cuda(&["--vs", "cublas", "--sizes", "20", "--json"]);
    let (code, stdout, stderr) = finish(on("kernels=2", &args));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stderr.matches("note: no cuBLAS: ").count(), 2, "{stderr}");
    assert!(stderr.contains("there is nothing to compare with"), "{stderr}");
    let rows = objects(&stdout);
    assert_eq!(rows.len(), 1, "{stdout}");
    assert!(number(&rows[0], "time_us") > 0.0);
    for key in ["baseline", "baseline_time_us", "baseline_err", "ratio", "ratio_low"] {
        assert_eq!(rows[0][key], Value::Null, "{key}");
    }
    let args = cpu(&["--vs", "cublas", "--sizes", "9"]);
    let (code, stdout, stderr) = finish(host(&args));
    assert!(code == 0 && stdout.contains("nalgebra"), "{stdout}");
    assert!(stderr.contains("cuBLAS runs on a GPU alone"), "{stderr}");
    fails(
        on("kernels=2", &cuda(&["--vs", "cpu", "--sizes", "9"])),
        2,
        &["--vs = cpu", "--vs cublas"],
    );
}

#[test]
fn a_library_in_tf32_is_told_by_its_error() {
    let args = cuda(&["--vs", "cublas", "--sizes", "20"]);
    shows(with_cublas("tf32", &args), &["NOT fp32"]);
    let json = [&args[..], &["--json"]].concat();
    let mut command = with_cublas("tf32", &json);
    command.env("NVIDIA_TF32_OVERRIDE", "1");
    let (_, stdout, stderr) = finish(command);
    assert!(stderr.contains("NVIDIA_TF32_OVERRIDE is set"), "{stderr}");
    for row in objects(&stdout) {
        assert_eq!(row["baseline_is_fp32"], false);
        assert!((1e-4..1e-3).contains(&number(&row, "baseline_err")), "{row}");
    }
    // A library that computes nothing is no baseline.
    let (code, stdout, stderr) = finish(with_cublas("nothing", &json));
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("cublas computes another product, and is not timed"), "{stderr}");
    for row in objects(&stdout) {
        assert_eq!((&row["baseline"], &row["ratio"]), (&Value::Null, &Value::Null), "{row}");
        assert_eq!(row["time_us"].is_null(), row["role"] == "baseline", "{row}");
    }
}

/// The stand-in's kernels do nothing: C stays NaN.
#[test]
fn a_wrong_kernel_is_shown_as_failed_and_not_timed() {
    let args = cuda(&["--vs", "cublas", "--sizes", "20", "--kernels", "auto,tiled32"]);
    let (code, stdout, stderr) = finish(on("kernels=1", &args));
    assert_eq!((code, stdout.matches("WRONG, not timed").count()), (1, 2), "{stdout}");
    assert!(stderr.contains("reproduce: cargo run -p host -- --m 20 --n 20 --k 20"), "{stderr}");
    let (code, stdout, _) = finish(on("kernels=1", &[&args[..], &["--json"]].concat()));
    assert_eq!(code, 1);
    for row in objects(&stdout) {
        assert_eq!((&row["verified"], &row["exact_on_integers"]), (&false.into(), &false.into()));
        for key in ["time_us", "tflops", "min_us", "rounds", "ratio", "err"] {
            assert_eq!(row[key], Value::Null, "{key}: {row}");
        }
    }
}

#[test]
fn results_are_written_with_their_machine_and_pictures_and_read_back() {
    let folder = folder("out").join("made/here");
    let out = ["--out", text(&folder), "--commit", "abc123", "--json"];
    let args = cpu(&["--vs", "cpu", "--sizes", "8,16,4x8x12", "--kernels", "auto,tiled16"]);
    let stdout = succeeds(host(&[&args[..], &out].concat()));
    let mut files = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect::<Vec<_>>();
    files.sort();
    let expected = "machine.json ratio.png ratio.svg results.csv results.jsonl roofline.png roofline.svg \
                    speed.png speed.svg";
    assert_eq!(files.join(" "), expected);

    let rows = objects(&stdout);
    assert_eq!(objects(&fs::read_to_string(folder.join("results.jsonl")).unwrap()), rows);
    for (line, row) in table(&folder.join("results.csv")).iter().zip(&rows) {
        assert_eq!(line.len(), row.as_object().unwrap().len());
        for (column, field) in line {
            let value = match &row[column] {
                Value::Null => String::new(),
                Value::String(words) => words.clone(),
                other => other.to_string(),
            };
            assert_eq!(*field, value, "{column}");
        }
    }
    let machine = fs::read_to_string(folder.join("machine.json")).unwrap();
    let machine: Value = serde_json::from_str(&machine).unwrap();
    assert_eq!((&machine["commit"], &machine["device"]), (&"abc123".into(), &"cpu".into()));
    assert!(machine["command"].as_str().unwrap().contains("-p host -- bench --device cpu"));
    assert_eq!(machine["date"].as_str().unwrap().len(), "2026-11-21".len());
    assert!(machine["cores"].as_u64().is_some_and(|cores| cores > 0));
    assert!(machine["libraries"]["nalgebra"].is_string(), "{machine}");

    for (name, words) in [
        ("speed", ["GFLOP/s", "the chosen kernel", "nalgebra", "gemm", "m = n = k"]),
        ("ratio", ["8x8x8", "16x16x16", "4x8x12", "tiled16", "95 %"]),
        ("roofline", ["GFLOP/s", "FLOP for each byte", "8x8x8", "4x8x12", "no roof"]),
    ] {
        let svg = fs::read_to_string(folder.join(name).with_extension("svg")).unwrap();
        let document = roxmltree::Document::parse(&svg).expect("well-formed");
        let shown = document.descendants().filter_map(|node| node.text()).collect::<String>();
        for words in words {
            assert!(shown.contains(words), "{words}: {name}.svg");
        }
        let file = fs::File::open(folder.join(name).with_extension("png")).unwrap();
        let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert!(info.width >= 900 && info.height >= 200, "{name}.png");
        let other = pixels.chunks(3).filter(|pixel| *pixel != &pixels[..3]).count();
        assert!(other > 5000, "{name}.png: {other} pixels of another colour");
    }

    // Written again from the record, byte by byte, and from the lines alone, which have no machine.
    let again = folder.join("again");
    let table = succeeds(host(&["bench", "--from", text(&folder), "--out", text(&again)]));
    assert!(table.contains("95 % interval") && table.contains("4x8x12"), "{table}");
    for file in files {
        assert_eq!(
            fs::read(again.join(&file)).unwrap(),
            fs::read(folder.join(&file)).unwrap(),
            "{file}"
        );
    }
    let lines = folder.join("results.jsonl");
    let (code, again, _) = finish(host(&["bench", "--json", "--from", text(&lines)]));
    assert_eq!((code, objects(&again)), (0, rows));
}

#[test]
fn what_changed_beyond_the_noise_is_shown() {
    let folder = folder("compare");
    let [old, new] = ["old.jsonl", "new.jsonl"].map(|name| folder.join(name));
    let args = cpu(&["--vs", "cpu", "--sizes", "8,10,12", "--json"]);
    let (_, stdout, stderr) = finish(host(&args));
    let rows = objects(&stdout);
    assert_eq!(rows.len(), 9, "{stderr}");
    let write = |path: &Path, factor: &dyn Fn(&Value) -> f64| {
        let lines = rows.iter().map(|row| {
            let mut row = row.clone();
            let [low, ratio, high] = [0.99, 1.0, 1.01].map(|near| near * factor(&row));
            (row["ratio_low"], row["ratio"], row["ratio_high"]) =
                (low.into(), ratio.into(), high.into());
            // The times of a row agree with its ratio.
            let [time, tflops] = ["time_us", "tflops"].map(|field| row[field].as_f64().unwrap());
            row["baseline_time_us"] = (time * ratio).into();
            row["baseline_tflops"] = (tflops / ratio).into();
            format!("{row}\n")
        });
        fs::write(path, lines.collect::<String>()).unwrap();
    };
    write(&old, &|_| 0.5);
    write(&new, &|row| match row["m"].as_u64() {
        Some(8) => 0.6,
        Some(10) => 0.505,
        _ => 0.4,
    });
    let (code, stdout, _) = finish(host(&["bench", "--from", text(&new), "--compare", text(&old)]));
    assert_eq!(code, 0);
    let change = |size: &str| {
        let line = stdout.lines().find(|line| line.starts_with(size) && line.contains("->"));
        line.map(|line| line.split_once("->").unwrap().1.trim().to_owned())
    };
    assert_eq!(change("8x8x8").as_deref(), Some("0.600 (0.594 to 0.606)  faster, +20.0 %"));
    assert_eq!(change("12x12x12").as_deref(), Some("0.400 (0.396 to 0.404)  SLOWER, -20.0 %"));
    assert_eq!(change("10x10x10"), None);
    assert!(
        stdout.ends_with(
            "2 of 3 kernels at sizes of both runs changed beyond the noise, 1 did not\n"
        )
    );
}

#[test]
fn bad_arguments_are_refused_before_anything_runs() {
    let folder = folder("refused");
    let [none, bad, file] = ["none.jsonl", "bad.jsonl", "file"].map(|name| folder.join(name));
    let read = |path: &Path| ["bench", "--from", text(path)].map(str::to_owned);
    let refused = |path: &Path, words: &[&str]| {
        let args = read(path);
        fails(host(&args.each_ref().map(|arg| &**arg)), 2, words);
    };
    refused(&none, &["--from", "none.jsonl", "cannot be read"]);
    fs::write(&bad, "\n{\"kernel\": 5}\n").unwrap();
    refused(&bad, &["--from", "line 2 is not what `bench --json` prints"]);
    fs::write(&bad, "").unwrap();
    refused(&bad, &["--from", "a line for each kernel"]);
    let args = cpu(&["--sizes", "8", "--kernels", "tiled16", "--workspace-limit", "0", "--json"]);
    let row = objects(&finish(host(&args)).1).remove(0);
    for (field, value, words) in [
        ("tflops", serde_json::json!(1e308), "must be above 1e-12 and below 1e12"),
        ("ratio", serde_json::json!(1e308), "ratio = 1e308: must be above"),
        ("ratio", serde_json::json!(0.0), "ratio = 0"),
        ("m", serde_json::json!(0), "at least 1"),
        ("kernel", serde_json::json!("a\u{1}"), "without control characters"),
    ] {
        let mut row = row.clone();
        row[field] = value;
        fs::write(&bad, row.to_string()).unwrap();
        refused(&bad, &["--from", words]);
    }
    fs::write(&file, "").unwrap();
    fails(host(&cpu(&["--sizes", "8", "--out", text(&file)])), 2, &["--out", "and no folder"]);
    fails(host(&cpu(&["--compare", text(&none)])), 2, &["--compare", "cannot be read"]);
    for (flag, value, limit) in [
        ("--trans", "nn,xy", "nn, nt, tn or tt"),
        ("--workspace-limit", "1X", "bytes, at least 0"),
        ("--sizes", "sqare", "square, ragged, skinny"),
        ("--sizes", "0*5", "empty product"),
        ("--sizes", "x*5", "COUNT*"),
        ("--vs", "mkl", "cublas"),
        ("--activation", "tanh", "must be one of none, relu, gelu, gelu_tanh, silu"),
        ("--alpha", "0", "must be a finite number of f32, and not 0"),
        ("--beta", "nan", "must be a finite number of f32"),
    ] {
        fails(host(&["bench", flag, value]), 2, &[flag, limit]);
    }
    fails(
        host(&["bench", "--from", text(&bad), "--sizes", "5"]),
        2,
        &["--from", "cannot be used with"],
    );
    fails(host(&["bench", "--commit", "x"]), 2, &["--out"]);
    fails(host(&["bench", "--sustained", "0"]), 2, &["--sustained", "from 0.001 to 3600"]);
    fails(
        host(&["bench", "--sustained", "--seconds", "1"]),
        2,
        &["--sustained", "cannot be used with"],
    );
}

#[test]
fn what_is_sustained_is_told() {
    let asked =
        ["bench", "--device", "cpu", "--sizes", "8", "--kernels", "basic", "--sustained", "0.002"];
    let (code, stdout, _) = finish(host(&asked));
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.contains("sustained for 0.002 s"), "{stdout}");
    let (code, stdout, _) = finish(host(&[&asked[..], &["--json"]].concat()));
    let row: Value = serde_json::from_str(stdout.trim()).unwrap();
    assert_eq!((code, &row["sustained_s"], &row["rounds"]), (0, &0.002.into(), &7.into()));
}

#[test]
fn sizes_come_in_groups() {
    // Memory is checked before anything runs, so the sizes for a GPU can be tried here.
    let stdout = succeeds(host(&cpu(&[
        "--sizes",
        "odd,batched,100x70x51,odd",
        "--kernels",
        "gemm_f32_32x32x8",
        "--json",
    ])));
    let seen = objects(&stdout)
        .iter()
        .map(|row| format!("{} {}", row["group"], row["m"]))
        .collect::<Vec<_>>();
    assert_eq!(seen, ["\"odd\" 100", "\"batched\" 8", "\"batched\" 16"], "each once");
    // Kernels that cannot compute the product are reported.
    let (code, stdout, stderr) =
        finish(host(&cpu(&["--sizes", "2*9", "--kernels", "tiled16,gemm_f32_32x32x8"])));
    assert!(
        code == 0 && stdout.contains("gemm_f32_32x32x8") && !stdout.contains("tiled16"),
        "{stdout}"
    );
    assert!(stderr.contains("2*9x9x9: without tiled16: computes one product"), "{stderr}");
    let (code, _, stderr) = finish(host(&cpu(&["--sizes", "2*9", "--kernels", "tiled16"])));
    assert!(code == 0 && stderr.contains("none of the kernels takes"), "{stderr}");
}
