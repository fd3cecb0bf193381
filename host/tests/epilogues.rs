//! `bench` of products with an epilogue, with the stand-ins for the driver and for cuBLAS.

#[allow(dead_code, reason = "not every file of tests needs all of it")]
mod common;
#[path = "common/cublas.rs"]
mod cublas;
#[path = "common/bench_rows.rs"]
mod rows;

use std::fs;

use self::{
    common::{finish, host, objects, on, succeeds},
    cublas::with_cublas,
    rows::{cpu, cuda, folder, is_complete, is_measured, number, table, text},
};

/// The plain product comes first. Every candidate is compared with its own operation, and every row
/// of an epilogue has its cost over the plain product. cublasLt is told the epilogues that it has;
/// for the others its row says what was timed.
#[test]
fn epilogues_are_measured_beside_cublaslts() {
    let line = [
        ("7x5x9", "nt", "f32", "f32"),
        ("3*4x6x5", "nn", "f32", "f32"),
        ("20", "tn", "bf16", "bf16"),
        ("20", "nn", "f16", "f32"),
    ];
    for (sizes, trans, of, out_type) in line {
        let args = ["--vs", "cublas", "--sizes", sizes, "--trans", trans, "--type", of, "--json"];
        let more =
            ["--out-type", out_type, "--bias", "--activation", "none,relu,gelu_tanh,gelu,silu"];
        let stdout = succeeds(with_cublas("fp32", &cuda(&[&args[..], &more].concat())));
        let rows = objects(&stdout);
        let seen = rows.iter().map(|row| {
            is_measured(row);
            let words = ["epilogue", "role", "kernel", "instead", "baseline_instead"];
            let words = words.map(|key| row[key].as_str().unwrap_or("-"));
            let kernel = if words[1] == "auto" { "auto" } else { words[2] };
            format!("{}: {kernel}, {}, {}", words[0], words[3], words[4])
        });
        let copied = "A B bias, then a copy of C";
        let expected = [
            "-: auto, -, -".to_owned(),
            "-: cublas, -, -".to_owned(),
            "-: cublasLt, -, -".to_owned(),
            "bias: auto, -, -".to_owned(),
            "bias: cublasLt, -, -".to_owned(),
            "bias relu: auto, -, -".to_owned(),
            "bias relu: cublasLt, -, -".to_owned(),
            "bias gelu_tanh: auto, -, -".to_owned(),
            "bias gelu_tanh: cublasLt, -, -".to_owned(),
            format!("bias gelu: auto, -, {copied}"),
            format!("bias gelu: cublasLt, {copied}, {copied}"),
            format!("bias silu: auto, -, {copied}"),
            format!("bias silu: cublasLt, {copied}, {copied}"),
        ];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
        let plain = number(&rows[0], "time_us");
        for row in &rows {
            if row["epilogue"].is_null() {
                assert!(row["plain_time_us"].is_null() && row["over_plain"].is_null(), "{row}");
                continue;
            }
            assert_eq!(number(row, "plain_time_us"), plain, "{row}");
            let [low, median, high] =
                ["over_plain_low", "over_plain", "over_plain_high"].map(|key| number(row, key));
            assert!(0.0 < low && low <= median && median <= high, "{row}");
            assert!(row["baseline"] == "cublasLt" && number(row, "err") < 5e-3, "{row}");
        }
    }
}

/// alpha and beta are cuBLAS's own. C has the old elements before each comparison.
#[test]
fn factors_are_told_to_both_libraries() {
    let args = ["--vs", "cublas", "--sizes", "20,2*6x7x9", "--alpha", "0.7", "--beta", "-1.5"];
    let args = cuda(&[&args[..], &["--json"]].concat());
    let stdout = succeeds(with_cublas("fp32", &args));
    let rows = objects(&stdout);
    assert_eq!(rows.len(), 2 * 6, "{stdout}");
    for rows in rows.chunks(6) {
        let names = [&rows[4]["kernel"], &rows[5]["kernel"]];
        assert_eq!(names, ["cublas", "cublasLt"]);
        for row in &rows[3..] {
            is_complete(row);
            assert_eq!(row["epilogue"], "alpha=0.7 beta=-1.5");
        }
    }
}

/// Where cublasLt has no algorithm with an epilogue, it computes less, and says so.
#[test]
fn what_cublaslt_lacks_is_said_in_the_table() {
    let args = cuda(&["--vs", "cublas", "--sizes", "20", "--bias", "--activation", "relu"]);
    let mut command = with_cublas("fp32", &args);
    command.env("FAKE_CUBLAS_NO_BIAS", "1");
    let stdout = succeeds(command);
    let line = |words: &str| stdout.lines().find(|line| line.contains(words)).unwrap_or_default();
    let own = line("20x20x20 bias relu ");
    assert!(
        own.contains(" over plain ") && own.contains(" us  cublasLt (A B, then a copy of C): ")
    );
    assert!(line("computes A B, then a copy of C").contains(" cublasLt "), "{stdout}");
    assert!(line("with an epilogue: ").contains("over plain"), "{stdout}");
    // The CPU's libraries have none.
    let args = cpu(&["--vs", "cpu", "--sizes", "8", "--activation", "gelu", "--json"]);
    let stdout = succeeds(host(&args));
    let rows = objects(&stdout);
    assert_eq!((rows.len(), &rows[3]["epilogue"]), (4, &"gelu".into()), "{stdout}");
    assert!(rows[3]["verified"] == true && rows[3]["baseline"].is_null(), "{stdout}");
}

/// A record has the epilogue. One from before it reads as plain. A run is compared with the same
/// epilogue alone.
#[test]
fn epilogues_are_recorded_and_compared() {
    let folder = folder("epilogues");
    let out = folder.join("made");
    let args = cpu(&["--sizes", "8,12", "--kernels", "gemm_f32_32x32x8", "--bias", "--beta", "1"]);
    let args = [&args[..], &["--out", text(&out), "--commit", "abc"]].concat();
    let table_of = succeeds(host(&args));
    let rows = objects(&fs::read_to_string(out.join("results.jsonl")).unwrap());
    let epilogues = rows.iter().map(|row| row["epilogue"].as_str().unwrap_or("-"));
    assert_eq!(epilogues.collect::<Vec<_>>(), ["-", "beta=1 bias", "-", "beta=1 bias"]);
    for (line, row) in table(&out.join("results.csv")).iter().zip(&rows) {
        assert_eq!(line["epilogue"], row["epilogue"].as_str().unwrap_or(""));
    }
    let (code, again, _) = finish(host(&["bench", "--from", text(&out)]));
    assert_eq!((code, &again), (0, &table_of));
    // The pictures of speeds are of plain products.
    for (name, of_plain) in [("speed", true), ("roofline", true), ("ratio", false)] {
        let svg = fs::read_to_string(out.join(name).with_extension("svg")).unwrap();
        assert_eq!(svg.matches("<circle").count() == 2, of_plain, "{name}.svg");
    }
    // Without the columns that are new.
    let old = folder.join("old.jsonl");
    let plain = rows.iter().filter(|row| row["epilogue"].is_null()).map(|row| {
        let mut row = row.clone();
        for key in ["epilogue", "instead", "baseline_instead", "plain_time_us", "over_plain"] {
            row.as_object_mut().unwrap().remove(key);
        }
        format!("{row}\n")
    });
    fs::write(&old, plain.collect::<String>()).unwrap();
    let compared = succeeds(host(&["bench", "--from", text(&out), "--compare", text(&old)]));
    assert!(compared.contains(" of 2 kernels at sizes of both runs"), "{compared}");
}

/// A kernel that leaves out an epilogue is wrong.
#[test]
fn a_wrong_epilogue_is_shown_as_failed() {
    let args = cuda(&["--vs", "cublas", "--sizes", "20", "--bias", "--beta", "2", "--alpha", "3"]);
    let (code, stdout, stderr) = finish(on("kernels=1", &args));
    assert_eq!((code, stdout.matches("WRONG, not timed").count()), (1, 2), "{stdout}");
    let words = "bench --sizes '1*20x20x20' --trans nn --bias --alpha 3 --beta 2 --device cuda:0";
    assert!(stderr.contains(words), "{stderr}");
}
