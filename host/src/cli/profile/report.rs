//! The report on a profiled kernel.

use host::simt::check::Line;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::{
    findings::{FindingLine, PlaceLine},
    list::{in_six_digits, six_digits},
};

/// The report on a kernel, also the object of `--json`. Counts are over all blocks.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    pub(super) kernel: &'static str,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) dtype: &'static str,
    pub(super) seed: u64,
    /// The grid of each launch: blocks along x and y.
    pub(super) grids: Vec<[u32; 2]>,
    pub(super) block: [u32; 3],
    /// Blocks of all launches, and how many of them were counted.
    pub(super) blocks: u64,
    pub(super) sampled: u64,
    pub(super) lines: Vec<LineReport<'a>>,
    pub(super) totals: Map<String, Value>,
    /// Totals that change if reads of shared memory are merged to 128 bits.
    pub(super) totals_merged: Map<String, Value>,
    /// 2 m n k, whatever the kernel computes besides.
    pub(super) flop: f64,
    /// `null` if no byte is moved.
    pub(super) flop_per_global_byte_loaded: Option<f64>,
    pub(super) flop_per_global_byte_stored: Option<f64>,
    #[serde(serialize_with = "in_six_digits")]
    pub(super) divergent_share: f64,
    pub(super) occupancy: Option<Value>,
    /// Whether there are no findings. `null` if nothing was launched.
    pub(super) clean: Option<bool>,
    pub(super) findings: Vec<FindingLine<'a>>,
    #[serde(serialize_with = "in_six_digits")]
    pub(super) seconds: f64,
}

/// The counts of a source line.
#[derive(Serialize)]
pub(super) struct LineReport<'a> {
    #[serde(flatten)]
    pub(super) place: PlaceLine<'a>,
    pub(super) operation: &'static str,
    /// For each lane. 0 if it is no access.
    pub(super) bytes: u32,
    /// Counted for each warp. Multiply-adds are counted for each thread.
    pub(super) requests: u64,
    /// The unit of `units`: sectors or wavefronts. For what is no access, that of `requests`.
    pub(super) unit: &'static str,
    pub(super) units: u64,
    pub(super) ideal_units: u64,
    pub(super) merged_requests: u64,
    pub(super) merged_units: u64,
    #[serde(serialize_with = "in_six_digits")]
    pub(super) lanes_per_request: f64,
    #[serde(serialize_with = "in_six_digits")]
    pub(super) units_per_request: f64,
    #[serde(serialize_with = "in_six_digits")]
    pub(super) ideal_per_request: f64,
    /// The ratio to the ideal, if it is far above.
    pub(super) over_ideal: Option<f64>,
    /// Whether it is the line with the largest loss.
    pub(super) worst: bool,
}

impl<'a> LineReport<'a> {
    pub(super) fn new(line: &'a Line, scale: f64, worst: Option<&Line>) -> Self {
        let all = |count: u64| (count as f64 * scale).round() as u64;
        let each = |count: u64| count as f64 / line.requests.max(1) as f64;
        // A line that moves no bytes has no units.
        let is_bare = line.width == 0 && line.units == 0;
        LineReport {
            place: PlaceLine::new(&line.place),
            operation: line.operation.name(),
            bytes: line.width,
            requests: all(line.requests),
            unit: line.operation.unit(),
            units: all(if is_bare { line.requests } else { line.units }),
            ideal_units: all(if is_bare { line.requests } else { line.ideal }),
            merged_requests: all(line.merged_requests),
            merged_units: all(line.merged_units),
            lanes_per_request: each(line.lanes),
            units_per_request: each(if is_bare { line.requests } else { line.units }),
            ideal_per_request: each(if is_bare { line.requests } else { line.ideal }),
            over_ideal: line.over_ideal().map(six_digits),
            worst: worst.is_some_and(|worst| std::ptr::eq(worst, line)),
        }
    }
}
