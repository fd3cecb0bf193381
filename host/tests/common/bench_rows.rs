//! Runs of `bench`, and the checks of their rows.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::common::has_no_noise;

/// Arguments of a short `bench` on the CPU device, and more.
pub fn cpu<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["bench", "--device", "cpu", "--seconds", "0.001"], more].concat()
}

/// Arguments of a short `bench` on the stand-in's GPU, and more.
pub fn cuda<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["bench", "--device", "cuda", "--seconds", "0.001"], more].concat()
}

/// An empty folder for this test.
pub fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME")).join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"))
}

/// Checks the columns that every row of a comparison has, and that they fit together.
#[track_caller]
pub fn is_complete(row: &Value) {
    let words = [("dtype", "f32"), ("out_dtype", "f32"), ("compute", "fp32")];
    for (key, value) in words {
        assert_eq!(row[key], value, "{row}");
    }
    is_measured(row);
    assert!(number(row, "err") < 3e-5 && number(row, "baseline_err") < 3e-5, "{row}");
    assert_eq!(row["baseline_is_fp32"], true, "{row}");
}

/// The same checks for a row of any types.
#[track_caller]
pub fn is_measured(row: &Value) {
    for key in ["m", "n", "k", "batch"] {
        assert!(row[key].as_u64().is_some_and(|size| size > 0), "{key}: {row}");
    }
    for key in ["kernel", "baseline", "device", "description", "verify", "trans", "role"] {
        assert!(row[key].as_str().is_some_and(|words| !words.is_empty()), "{key}: {row}");
    }
    let time = number(row, "time_us");
    assert!(number(row, "min_us") <= time && number(row, "spread") >= 0.0, "{row}");
    let flop = 2.0 * ["m", "n", "k", "batch"].map(|key| number(row, key)).iter().product::<f64>();
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-4 * b;
    assert!(near(number(row, "tflops"), flop / time * 1e-6), "{row}");
    let baseline = number(row, "baseline_time_us");
    assert!(near(number(row, "baseline_tflops"), flop / baseline * 1e-6), "{row}");
    assert_eq!(row["verified"], true, "{row}");
    assert!(number(row, "max_err_over_bound") <= 1.0 && number(row, "max_abs_err") >= 0.0, "{row}");
    let [low, ratio, high] = ["ratio_low", "ratio", "ratio_high"].map(|key| number(row, key));
    assert!(0.0 < low && low <= ratio && ratio <= high, "{row}");
    for key in ["rounds", "launches_per_round", "operand_sets"] {
        assert!(row[key].as_u64().is_some_and(|count| count > 0), "{key}: {row}");
    }
    for key in ["first_launch_us", "upload_us", "download_us"] {
        assert!(number(row, key) >= 0.0, "{key}: {row}");
    }
    has_no_noise(row);
}

/// The rows of results.csv: fields by their columns' names.
pub fn table(path: &Path) -> Vec<std::collections::BTreeMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let fields = |line: &str| {
        let (mut fields, mut quoted) = (vec![String::new()], false);
        for letter in line.chars() {
            match letter {
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                letter => fields.last_mut().unwrap().push(letter),
            }
        }
        fields
    };
    let mut lines = text.lines();
    let columns = fields(lines.next().unwrap());
    let rows = lines.map(|line| {
        let fields = fields(line);
        assert_eq!(fields.len(), columns.len(), "{line}");
        columns.iter().cloned().zip(fields).collect()
    });
    rows.collect()
}
