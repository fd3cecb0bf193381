//! Speeds on a GPU, from a recorded file.

use std::{fs, io::ErrorKind, path::Path};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The output of `host ladder --json` on that GPU.
const RECORD: &str = "docs/results/ladder-h200.json";

/// m, n and k of the record.
const SIZE: u64 = 4096;

/// The record. Empty if there is no file yet.
#[derive(Debug, Default)]
pub struct Measured {
    /// In the order of the ladder.
    rungs: Vec<Rung>,
}

#[derive(Debug)]
struct Rung {
    kernel: String,
    tflops: f64,
    /// The speed relative to the rung before, in the same rounds. The first has none.
    gain: Option<f64>,
    /// The speed relative to cuBLAS in the same run.
    share: Option<f64>,
}

impl Measured {
    /// Reads the record.
    pub fn read(root: &Path) -> Result<Measured> {
        match fs::read_to_string(root.join(RECORD)) {
            Ok(text) => Measured::parse(&text).with_context(|| RECORD.to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Measured::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {RECORD}")),
        }
    }

    fn parse(text: &str) -> Result<Measured> {
        let mut rungs = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let value: Value =
                serde_json::from_str(line).with_context(|| format!("line {number}: no JSON"))?;
            // A summary has no kernel.
            let Some(kernel) = value["kernel"].as_str() else { continue };
            for size in ["m", "n", "k"] {
                let found = &value[size];
                ensure!(*found == SIZE, "line {number}: {size} = {found}: must be {SIZE}");
            }
            let gflops = value["gflops"].as_f64();
            let gflops = gflops.with_context(|| format!("line {number} has no `gflops`"))?;
            rungs.push(Rung {
                kernel: kernel.to_owned(),
                tflops: gflops / 1000.0,
                gain: value["gain"].as_f64(),
                share: value["share_of_cublas"].as_f64(),
            });
        }
        ensure!(!rungs.is_empty(), "no line has a `kernel`");
        Ok(Measured { rungs })
    }

    /// The TFLOP/s of a kernel.
    pub fn speed(&self, kernel: &str) -> Option<f64> {
        self.find(kernel).map(|(_, rung)| rung.tflops)
    }

    /// A rung, and its index in the record.
    fn find(&self, kernel: &str) -> Option<(usize, &Rung)> {
        self.rungs.iter().enumerate().find(|(_, rung)| rung.kernel == kernel)
    }

    /// A sentence about a kernel, and about its gain over the rung before.
    pub fn of(&self, kernel: &str) -> Result<String> {
        if self.rungs.is_empty() {
            return Ok(format!("*Measured on an H200 at 4096³: not recorded yet ({RECORD}).*"));
        }
        let Some((place, rung)) = self.find(kernel) else {
            return Ok(format!(
                "*Measured on an H200 at 4096³: `{kernel}` is not in {RECORD} yet.*"
            ));
        };
        let before = place.checked_sub(1).map(|before| &self.rungs[before].kernel);
        let gain = before.zip(rung.gain).map(|(name, gain)| format!(", {gain:.2} times `{name}`"));
        let share = rung.share.map(|share| format!(", {:.0} % of cuBLAS", 100.0 * share));
        let (gain, share) = (gain.unwrap_or_default(), share.unwrap_or_default());
        Ok(format!("*Measured on an H200 at 4096³: {:.2} TFLOP/s{gain}{share}.*", rung.tflops))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_speed_and_its_gain_over_the_rung_before() {
        let line = |kernel: &str, gflops: u32, gain: Option<f64>, share: Option<f64>| {
            json!({
                "kernel": kernel, "gflops": gflops, "m": 4096, "n": 4096, "k": 4096,
                "gain": gain, "share_of_cublas": share,
            })
        };
        let lines = [
            line("basic", 5000, None, None),
            line("tiled16", 8120, Some(1.62), Some(0.164)),
            json!({ "summary": true }),
        ];
        let record = lines.map(|line| format!("{line}\n")).concat();
        let measured = Measured::parse(&record).unwrap();
        assert_eq!((measured.speed("basic"), measured.speed("tiled32")), (Some(5.0), None));
        let of = |kernel| measured.of(kernel).unwrap();
        assert_eq!(of("basic"), "*Measured on an H200 at 4096³: 5.00 TFLOP/s.*");
        assert_eq!(
            of("tiled16"),
            "*Measured on an H200 at 4096³: 8.12 TFLOP/s, 1.62 times `basic`, 16 % of cuBLAS.*"
        );
        assert!(of("tiled32").contains("not in docs/results/ladder-h200.json yet"));
        assert!(Measured::default().of("basic").unwrap().contains("not recorded yet"));
    }

    #[test]
    fn a_record_that_is_none_is_refused() {
        for (text, words) in [
            ("", "no line has a `kernel`"),
            ("{}\nspeed\n", "line 2: no JSON"),
            ("{\"kernel\":\"basic\",\"m\":4096,\"n\":4096,\"k\":4096}", "line 1 has no `gflops`"),
            ("{\"kernel\":\"basic\",\"m\":512}", "line 1: m = 512: must be 4096"),
        ] {
            let error = Measured::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
