//! The library's speed compared with cuBLAS's on a GPU, from a recorded folder.

use std::{fs, io::ErrorKind, path::Path};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The sentences and the table for the marker, from a folder that `host bench --vs cublas --out`
/// wrote on that GPU. If the folder does not exist, a sentence that says so.
pub fn section(root: &Path, record: &str) -> Result<String> {
    let read = |name: &str| -> Result<Option<String>> {
        match fs::read_to_string(root.join(record).join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {record}/{name}")),
        }
    };
    let (Some(rows), Some(machine)) = (read("results.jsonl")?, read("machine.json")?) else {
        return Ok(format!("*Not recorded yet (`{record}`).*"));
    };
    let rows = rows.lines().zip(1..).map(|(line, number)| {
        let row = serde_json::from_str::<Value>(line);
        row.with_context(|| format!("{record}/results.jsonl, line {number}: no JSON"))
    });
    let rows = rows.collect::<Result<Vec<_>>>()?;
    let machine = serde_json::from_str(&machine)
        .with_context(|| format!("{record}/machine.json is no JSON"))?;
    write(record, &rows, &machine)
}

fn write(record: &str, rows: &[Value], machine: &Value) -> Result<String> {
    // The kernels that `auto` selects. The record also has named kernels and the libraries.
    let own = rows.iter().filter(|row| row["role"] == "auto").collect::<Vec<_>>();
    ensure!(!own.is_empty(), "{record}/results.jsonl has no row of `auto`");
    let number = |row: &Value, key: &str| row[key].as_f64();
    let compared = own.iter().filter(|row| row["ratio"].is_number()).count();
    let ahead = own.iter().filter(|row| number(row, "ratio_low").is_some_and(|low| low > 1.0));
    let behind = own.iter().filter(|row| number(row, "ratio_high").is_some_and(|high| high < 1.0));
    let (ahead, behind) = (ahead.count(), behind.count());
    let words = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let libraries = machine["libraries"].as_object().into_iter().flatten();
    let libraries = libraries.map(|(name, version)| format!("{name} {}", words(version)));
    let commit = machine["commit"].as_str().map_or(String::new(), |commit| {
        let short = commit.get(..12).unwrap_or(commit);
        let dirty = if commit.ends_with("-dirty") { " with changes" } else { "" };
        format!(", commit {short}{dirty}")
    });
    let mut text = format!(
        "Measured {} on {}, driver {}, {}{commit}:\n\n```console\n$ {}\n```\n\n",
        words(&machine["date"]),
        words(&machine["description"]),
        words(&machine["card"]["driver"]),
        libraries.collect::<Vec<_>>().join(", "),
        words(&machine["command"]),
    );
    text += &format!(
        "Compared with the faster of cuBLAS and cublasLt at {compared} sizes: faster at {ahead}, slower at {behind}, no \
         difference within the interval at {}.\n\n",
        compared - ahead - behind
    );
    // In a record with epilogues the plain product is among them.
    let has_epilogues = own.iter().any(|row| row["epilogue"].is_string());
    let [names, rules] = match has_epilogues {
        true => [" over plain |", "--:|"],
        false => ["", ""],
    };
    text += &format!(
        "| size | kernel | time | TFLOP/s | error | fastest of cuBLAS | its time | error | ratio (95 %) |{names}\n"
    );
    text += &format!("|---|---|--:|--:|--:|---|--:|--:|--:|{rules}\n");
    for row in own {
        let over = if has_epilogues { over_plain(row) } else { String::new() };
        text += &format!("{}{over}\n", line(row)?);
    }
    Ok(text)
}

/// The field of what an epilogue takes beyond the plain product, in the same rounds.
fn over_plain(row: &Value) -> String {
    match (row["over_plain"].as_f64(), row["plain_time_us"].as_f64(), row["time_us"].as_f64()) {
        (Some(times), Some(plain), Some(us)) => {
            format!(" {:+.1} %, {:+.2} us |", 100.0 * (times - 1.0), us - plain)
        }
        _ => " |".to_owned(),
    }
}

/// A row of the table. Slow kernels are shown as they are, wrong ones as wrong.
fn line(row: &Value) -> Result<String> {
    let size =
        |key: &str| row[key].as_u64().with_context(|| format!("a row has no `{key}`: {row}"));
    let (m, n, k, batch) = (size("m")?, size("n")?, size("k")?, size("batch")?);
    let batch = if batch == 1 { String::new() } else { format!("{batch} of ") };
    let trans = row["trans"].as_str().filter(|trans| *trans != "nn");
    let trans = trans.map_or(String::new(), |trans| format!(" {trans}"));
    let kernel = row["kernel"].as_str().with_context(|| format!("a row has no `kernel`: {row}"))?;
    let epilogue = row["epilogue"].as_str().map_or(String::new(), |words| format!(", {words}"));
    let sizes = if [n, k] == [m, m] { format!("{m}³") } else { format!("{m}x{n}x{k}") };
    let start = format!("| {batch}{sizes}{trans}{epilogue} | `{kernel}` |");
    let figure =
        |key: &str, show: fn(f64) -> String| row[key].as_f64().map_or("-".to_owned(), show);
    if row["time_us"].is_null() {
        return Ok(format!("{start} **wrong** | | {} | | | | |", figure("err", err)));
    }
    let baseline = row["baseline"].as_str().unwrap_or("-");
    // What a library computes that lacks the epilogue.
    let instead = row["baseline_instead"].as_str();
    let instead = instead.map_or(String::new(), |words| format!(" ({words})"));
    let not = if row["baseline_is_fp32"] == false { ", not float32" } else { "" };
    let ratio = match ["ratio", "ratio_low", "ratio_high"].map(|key| row[key].as_f64()) {
        [Some(ratio), Some(low), Some(high)] => {
            match [ratio, low, high].map(|it| format!("{it:.2}")) {
                // The interval is narrower than the last digit.
                [ratio, low, high] if low == high => ratio,
                [ratio, low, high] => format!("{ratio} ({low} to {high})"),
            }
        }
        _ => "-".to_owned(),
    };
    Ok(format!(
        "{start} {} | {} | {} | {baseline}{instead}{not} | {} | {} | {ratio} |",
        figure("time_us", time),
        figure("tflops", tflops),
        figure("err", err),
        figure("baseline_time_us", time),
        figure("baseline_err", err),
    ))
}

fn time(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us:.1} us"),
        us if us < 1e6 => format!("{:.2} ms", us * 1e-3),
        us => format!("{:.2} s", us * 1e-6),
    }
}

fn tflops(tflops: f64) -> String {
    if tflops < 1.0 { format!("{tflops:.2}") } else { format!("{tflops:.1}") }
}

fn err(err: f64) -> String {
    format!("{err:.1e}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(size: u64, ratio: f64) -> Value {
        json!({
            "m": size, "n": size, "k": size, "batch": 1, "trans": "nn", "kernel": "gemm_f32_128x128x8", "role": "auto",
            "time_us": 2000.0, "tflops": 40.25, "err": 4.0e-7, "baseline": "cublasLt",
            "baseline_time_us": 1600.0, "baseline_err": 5.0e-7,
            "baseline_is_fp32": true, "ratio": ratio, "ratio_low": ratio - 0.01, "ratio_high": ratio + 0.01,
        })
    }

    fn machine() -> Value {
        json!({
            "date": "2026-11-21", "description": "NVIDIA H200", "card": { "driver": "580.1" },
            "libraries": { "cublas": "13.1.0" }, "commit": "0123456789abcdef",
            "command": "cargo run -p host -- bench --vs cublas",
        })
    }

    #[test]
    fn where_it_loses_is_shown_too() {
        let mut lost = row(2048, 0.8);
        lost["batch"] = 7.into();
        lost["trans"] = "nt".into();
        let mut wrong = row(9, 1.0);
        wrong["time_us"] = Value::Null;
        wrong["ratio"] = Value::Null;
        (wrong["ratio_low"], wrong["ratio_high"]) = (Value::Null, Value::Null);
        let mut named = row(4, 1.0);
        named["role"] = "named".into();
        let rows = [row(1024, 1.2), lost, row(512, 1.0), wrong, named];
        let text = write("docs/results/x", &rows, &machine()).unwrap();
        for part in [
            "Measured 2026-11-21 on NVIDIA H200, driver 580.1, cublas 13.1.0, commit 0123456789ab:",
            "$ cargo run -p host -- bench --vs cublas\n",
            "Compared with the faster of cuBLAS and cublasLt at 3 sizes: faster at 1, slower at 1, no difference within the \
             interval at 1.",
            "| 1024³ | `gemm_f32_128x128x8` | 2.00 ms | 40.2 | 4.0e-7 | cublasLt | 1.60 ms | 5.0e-7 \
             | 1.20 (1.19 to 1.21) |",
            "| 7 of 2048³ nt | `gemm_f32_128x128x8` | 2.00 ms |",
            "| 0.80 (0.79 to 0.81) |",
            "| 9³ | `gemm_f32_128x128x8` | **wrong** |",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("| 4³ |"), "{text}");
        // Each row has as many fields as the head.
        let fields = |line: &str| line.matches('|').count();
        let mut lines = text.lines().filter(|line| line.starts_with('|'));
        let head = lines.next().map(fields);
        assert!(lines.all(|line| Some(fields(line)) == head), "{text}");
        assert!(write("docs/results/x", &[], &machine()).is_err());
    }

    /// A line of an epilogue says what it takes beyond the plain product, and what the library
    /// computed.
    #[test]
    fn epilogues_are_shown_with_their_cost() {
        let mut gelu = row(512, 1.1);
        gelu["epilogue"] = "bias gelu".into();
        gelu["baseline_instead"] = "A B bias, then a copy of C".into();
        (gelu["plain_time_us"], gelu["over_plain"]) = (1980.0.into(), 1.0101.into());
        let text = write("docs/results/x", &[row(512, 1.2), gelu], &machine()).unwrap();
        for part in [
            "| ratio (95 %) | over plain |\n",
            "| 512³ | `gemm_f32_128x128x8` | 2.00 ms |",
            "| 1.20 (1.19 to 1.21) | |\n",
            "| 512³, bias gelu | `gemm_f32_128x128x8` | 2.00 ms |",
            "| cublasLt (A B bias, then a copy of C) | 1.60 ms |",
            "| 1.10 (1.09 to 1.11) | +1.0 %, +20.00 us |\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let fields = |line: &str| line.matches('|').count();
        let mut lines = text.lines().filter(|line| line.starts_with('|'));
        let head = lines.next().map(fields);
        assert!(lines.all(|line| Some(fields(line)) == head), "{text}");
    }

    #[test]
    fn without_a_record_it_says_so() {
        let text = section(Path::new("/nowhere"), "docs/results/x").unwrap();
        assert_eq!(text, "*Not recorded yet (`docs/results/x`).*");
    }
}
