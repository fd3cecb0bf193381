//! Tables of what `host` counts on the CPU.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{kernels, measured::Measured, program::Programs};

/// m, n and k of the rungs on CUDA cores: several blocks, all of them counted, and every row starts
/// at a sector.
const SIZE: u64 = 256;
/// Those of the rungs on tensor cores: a stage, and at least one block of the largest tile.
const TENSOR_SIZE: [u64; 3] = [256, 256, 64];
/// The GPU for the occupancy: the same on every machine.
const GPU: &str = "sm_90";

/// The counts of all kernels.
pub struct Counts {
    /// From `host kernels --json`, in the order of the registry.
    kernels: Vec<Value>,
    /// From `host profile --json`, in the same order.
    profiles: Vec<Value>,
}

impl Counts {
    /// Runs `host`. `kernels`: its list of kernels.
    pub(super) fn take(programs: &Programs, kernels: Vec<Value>) -> Result<Counts> {
        let profiles = profiles(programs, "all", [SIZE; 3])?;
        Ok(Counts { kernels, profiles })
    }

    /// The lines of a kernel, and the figures derived from them.
    pub(super) fn of(&self, programs: &Programs, kernel: &str) -> Result<String> {
        let find =
            |lines: &'_ [Value], key: &str| lines.iter().find(|line| line[key] == kernel).cloned();
        let listed = find(&self.kernels, "name");
        let listed = listed.with_context(|| format!("there is no kernel `{kernel}`"))?;
        let (profile, size) = match find(&self.profiles, "kernel") {
            Some(profile) => (profile, format!("m = n = k = {SIZE}")),
            // The rungs on tensor cores are not among all kernels of f32.
            None => {
                let [m, n, k] = TENSOR_SIZE;
                let mut own = profiles(programs, kernel, TENSOR_SIZE)?;
                let own = own.pop().with_context(|| format!("`{kernel}` is not counted"))?;
                (own, format!("m = {m}, n = {n}, k = {k}"))
            }
        };
        let mut table =
            format!("| `{kernel}`, {size} | operation | requests | a request | at best |\n");
        table += "|---|---|--:|--:|--:|\n";
        let lines = array(&profile["lines"]);
        for (line, before) in lines.iter().zip([&Value::Null].into_iter().chain(lines)) {
            table += &row(line, before["source"] == line["source"]);
        }
        table += &format!("\n{}", summary(&profile, &listed));
        Ok(table)
    }

    /// A row for each rung.
    pub fn ladder(&self, measured: &Measured) -> String {
        let mut table = "| kernel | its idea | FLOP a byte, on paper | counted | sectors a load | \
                         wavefronts a read of shared memory | H200, 4096³ |\n"
            .to_owned();
        table += "|---|---|--:|--:|--:|--:|--:|\n";
        for kernel in &self.kernels {
            let Some(idea) = kernel["idea"].as_str() else { continue };
            let name = kernel["name"].as_str().unwrap_or_default();
            let Some(profile) = self.profiles.iter().find(|line| line["kernel"] == name) else {
                continue;
            };
            let each = |operation| match per_request(profile, operation) {
                Some(units) => format!("{units:.2}"),
                None => "-".to_owned(),
            };
            table += &format!(
                "| `{name}` | {idea} | {} | {} | {} | {} | {} |\n",
                ratio(kernel["flop_per_byte"].as_f64()),
                ratio(flop_per_byte(profile)),
                each("global-load"),
                each("shared-load"),
                measured.speed(name).map_or("-".to_owned(), |speed| format!("{speed:.1} TFLOP/s")),
            );
        }
        table
    }
}

/// What `host` counts of these kernels at that size.
fn profiles(programs: &Programs, kernels: &str, size: [u64; 3]) -> Result<Vec<Value>> {
    let [m, n, k] = size.map(|size| size.to_string());
    let profile = ["profile", "--kernel", kernels, "--m", &m, "--n", &n, "--k", &k];
    let rest = ["--every", "1", "--on", GPU, "--json"];
    kernels::lines(programs, &[&profile[..], &rest].concat())
}

/// A line of the profile. `again`: of the same line of the source as the one before.
fn row(line: &Value, again: bool) -> String {
    let text = |key: &str| line[key].as_str().unwrap_or_default().trim();
    let number = |key: &str| line[key].as_f64().unwrap_or_default();
    let requests = number("requests");
    // A pipe would end the cell.
    let code =
        if again { String::new() } else { format!(" `{}`", text("source").replace('|', "\\|")) };
    let width = number("bytes");
    let operation = match width {
        // Barriers and multiply-adds move no bytes.
        0.0 => {
            let bytes = match text("unit") {
                "boxes" => format!(", {} bytes", number("units")),
                _ => String::new(),
            };
            return format!(
                "|{code} | {} | {requests} {}{bytes} | | |\n",
                text("operation"),
                text("unit")
            );
        }
        _ => text("operation"),
    };
    let wide = if width > 4.0 { format!(" ({} bits)", 8.0 * width) } else { String::new() };
    format!(
        "|{code} | {operation}{wide} | {requests} | {:.2} {} | {:.2} |\n",
        number("units_per_request"),
        text("unit"),
        number("ideal_per_request"),
    )
}

fn summary(profile: &Value, kernel: &Value) -> String {
    let occupancy = &profile["occupancy"];
    let number = |key: &str| match occupancy[key].as_f64() {
        Some(value) => value.to_string(),
        None => "?".to_owned(),
    };
    let mut text =
        format!("{} FLOP for each byte that threads load", ratio(flop_per_byte(profile)));
    if let Some(paper) = kernel["flop_per_byte"].as_f64() {
        text += &format!(" ({} on paper)", ratio(Some(paper)));
    }
    let blocks = match number("blocks").as_str() {
        "1" => "1 block".to_owned(),
        blocks => format!("{blocks} blocks"),
    };
    text += &format!(
        "; {} registers a thread and {} bytes of shared memory a block, so {blocks} on an SM of compute capability 9.0 ({} % \
         of its warps), limited by {}.",
        number("registers"),
        number("shared_bytes"),
        number("percent"),
        occupancy["limited_by"].as_str().unwrap_or("what is not known"),
    );
    text
}

/// FLOP of the product per byte that threads load from global memory.
fn flop_per_byte(profile: &Value) -> Option<f64> {
    let number = |line: &Value, key: &str| line[key].as_f64().unwrap_or_default();
    let loads = array(&profile["lines"]).iter().filter(|line| line["operation"] == "global-load");
    let bytes: f64 = loads
        .map(|l| number(l, "requests") * number(l, "lanes_per_request") * number(l, "bytes"))
        .sum();
    // TMA's bytes are counted as such.
    let copies = array(&profile["lines"]).iter().filter(|line| line["operation"] == "tma-load");
    let bytes = bytes + copies.map(|line| number(line, "units")).sum::<f64>();
    Some(profile["flop"].as_f64()? / bytes).filter(|ratio| ratio.is_finite())
}

/// Sectors or wavefronts of an access of that kind.
fn per_request(profile: &Value, operation: &str) -> Option<f64> {
    let sum = |key: &str| -> f64 {
        let lines = array(&profile["lines"]).iter().filter(|line| line["operation"] == operation);
        lines.filter_map(|line| line[key].as_f64()).sum()
    };
    Some(sum("units") / sum("requests")).filter(|units| units.is_finite())
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn ratio(value: Option<f64>) -> String {
    match value {
        // Two decimals, and none for whole numbers.
        Some(value) => {
            let text = format!("{value:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Nothing is run.
    fn programs() -> Programs {
        Programs { root: "nowhere".into(), are_of_tests: true }
    }

    fn counts() -> Counts {
        let line = |operation: &str, requests: u64, units: u64, bytes: u64| {
            json!({
                "source": "a[i] || b", "operation": operation, "bytes": bytes, "unit": "sectors",
                "requests": requests, "units": units, "lanes_per_request": 32.0,
                "units_per_request": units as f64 / requests as f64, "ideal_per_request": 4.0,
            })
        };
        let occupancy = json!({
            "registers": 32, "shared_bytes": 2048, "blocks": 8, "percent": 100.0,
            "limited_by": "warps",
        });
        Counts {
            kernels: vec![
                json!({ "name": "k", "idea": "the idea", "flop_per_byte": 0.25 }),
                json!({ "name": "no rung", "idea": null, "flop_per_byte": null }),
            ],
            profiles: vec![
                json!({
                    "kernel": "k", "flop": 3200.0, "occupancy": occupancy,
                    "lines": [
                        line("global-load", 10, 160, 4),
                        line("global-load", 90, 360, 16),
                        line("fma", 1600, 1600, 0),
                    ],
                }),
                json!({ "kernel": "no rung", "flop": 1.0, "lines": [] }),
            ],
        }
    }

    #[test]
    fn bytes_of_tma_are_loaded_bytes() {
        let copy = json!({
            "source": "load_box()", "operation": "tma-load", "bytes": 0, "unit": "boxes", "requests": 2, "units": 800,
        });
        assert_eq!(row(&copy, false), "| `load_box()` | tma-load | 2 boxes, 800 bytes | | |\n");
        assert_eq!(flop_per_byte(&json!({ "flop": 3200.0, "lines": [copy] })), Some(4.0));
    }

    #[test]
    fn a_kernels_lines_and_what_follows_from_them() {
        let text = counts().of(&programs(), "k").unwrap();
        for part in [
            "| `a[i] \\|\\| b` | global-load | 10 | 16.00 sectors | 4.00 |",
            "\n| | global-load (128 bits) | 90 | 4.00 sectors |",
            "| fma | 1600 sectors | | |",
            // 32 lanes of 10 requests of 4 bytes and 90 of 16 bytes.
            "\n0.07 FLOP for each byte that threads load (0.25 on paper); 32 registers",
            "8 blocks",
            "100 % of its warps), limited by warps.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let error = counts().of(&programs(), "l").unwrap_err().to_string();
        assert_eq!(error, "there is no kernel `l`");
    }

    #[test]
    fn the_ladder_has_a_row_for_each_rung() {
        let table = counts().ladder(&Measured::default());
        let rows = table.lines().skip(2).collect::<Vec<_>>();
        assert_eq!(rows, ["| `k` | the idea | 0.25 | 0.07 | 5.20 | - | - |"]);
    }
}
