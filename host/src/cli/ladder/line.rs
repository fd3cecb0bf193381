//! The results of a rung: a row of the table, a bar of the picture, a line of `--json`.

use host::{
    Roof, Shape,
    product::Launch,
    profile::{Counts, Fit},
    timing::Measurement,
};
use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use crate::cli::{list::six_digits, verification::Verification};

/// A rung, or the baseline. Also read back from a recorded run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Line {
    /// Its number, from 1. `null` for the baseline.
    pub(super) rung: Option<usize>,
    pub(super) kernel: String,
    /// The change from the rung before, and the reason.
    pub(super) idea: String,
    pub(super) device: String,
    pub(super) description: String,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) dtype: String,
    pub(super) seed: u64,

    /// `full` or `sample`.
    pub(super) verify: String,
    /// Whether everything is right, also on integers (unless k is too large for an exact run).
    pub(super) verified: bool,
    pub(super) exact_on_integers: Option<bool>,
    pub(super) max_abs_err: Option<f64>,
    /// At most 1 if everything is right. `null` for NaN.
    pub(super) max_err_over_bound: Option<f64>,

    /// The fields below are `null` for a wrong kernel, which is not timed.
    pub(super) rounds: Option<usize>,
    pub(super) median_us: Option<f64>,
    pub(super) min_us: Option<f64>,
    pub(super) spread: Option<f64>,
    pub(super) gflops: Option<f64>,
    /// The speed relative to the rung before, with its 95 % interval.
    pub(super) gain: Option<f64>,
    pub(super) gain_low: Option<f64>,
    pub(super) gain_high: Option<f64>,
    /// The speed relative to cuBLAS in the same rounds.
    pub(super) share_of_cublas: Option<f64>,
    /// The share of the device's peak at its highest clock: that of f32, or of its tensor cores.
    pub(super) share_of_roof: Option<f64>,
    pub(super) roof_gflops: Option<f64>,
    pub(super) roof_memory_gb_per_s: Option<f64>,

    /// FLOP per byte that the threads of a block load from global memory, derived on paper.
    pub(super) flop_per_byte_derived: Option<f64>,
    /// `null` for the baseline, which cannot be counted.
    pub(super) counted: Option<Counted>,
    pub(super) fit: Option<FitLine>,
    /// The file of a record of another machine, if it is shown instead of a measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) recorded: Option<String>,
}

/// The counts on the CPU, and their sizes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::cli) struct Counted {
    pub(in crate::cli) m: usize,
    pub(in crate::cli) n: usize,
    pub(in crate::cli) k: usize,
    #[serde(flatten)]
    pub(in crate::cli) counts: Counts,
    /// Whether the kernel has no findings.
    pub(in crate::cli) clean: bool,
}

/// How a kernel's blocks fit on an SM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::cli) struct FitLine {
    pub(in crate::cli) gpu: String,
    /// The source of the figures: a ptxas, or the driver.
    pub(in crate::cli) source: String,
    pub(in crate::cli) registers: Option<u32>,
    pub(in crate::cli) shared_bytes: Option<u32>,
    /// Resident warps in percent of an SM's limit.
    pub(in crate::cli) occupancy_percent: Option<f64>,
    pub(in crate::cli) limited_by: Option<String>,
}

impl FitLine {
    pub(super) fn new(fit: &Fit) -> Self {
        FitLine {
            gpu: fit.gpu.clone(),
            source: fit.source.clone(),
            registers: fit.resources.map(|resources| resources.registers),
            shared_bytes: fit.shared_bytes(),
            occupancy_percent: fit.occupancy.map(|occupancy| six_digits(occupancy.percent())),
            limited_by: fit.occupancy.map(|occupancy| occupancy.limited_by.to_string()),
        }
    }
}

/// The results of a candidate on real data, and on integers if k allows exact sums.
pub(super) struct Verdict {
    pub(super) real: Verification,
    pub(super) exact: Option<Verification>,
}

impl Verdict {
    /// Whether nothing is wrong. The exact run may be missing.
    pub(super) fn right(&self) -> bool {
        self.real.passed() && self.exact.as_ref().is_none_or(Verification::passed)
    }
}

impl Line {
    /// The line of a candidate before it is timed.
    pub(super) fn new(
        candidate: &Candidate,
        device: &host::Device,
        (shape, of): (Shape, &str),
        seed: u64,
        verdict: &Verdict,
    ) -> Self {
        let elements = verdict.real.elements();
        let roof = Roof::of(device);
        Line {
            rung: candidate.number,
            kernel: candidate.name().to_owned(),
            idea: candidate.rung.map_or(String::new(), |rung| rung.idea.to_owned()),
            device: device.name(),
            description: device.description(),
            m: shape.m(),
            n: shape.n(),
            k: shape.k(),
            dtype: of.to_owned(),
            seed,
            verify: verdict.real.name().to_owned(),
            verified: verdict.right(),
            exact_on_integers: verdict.exact.as_ref().map(Verification::nothing_wrong),
            max_abs_err: Some(elements.max_abs_err).filter(|err| err.is_finite()),
            max_err_over_bound: Some(elements.max_err_over_bound).filter(|err| err.is_finite()),
            rounds: None,
            median_us: None,
            min_us: None,
            spread: None,
            gflops: None,
            gain: None,
            gain_low: None,
            gain_high: None,
            share_of_cublas: None,
            share_of_roof: None,
            roof_gflops: roof.and_then(|roof| roof_of(&roof, of)).map(six_digits),
            roof_memory_gb_per_s: roof.and_then(|roof| roof.memory_gb_per_s).map(six_digits),
            flop_per_byte_derived: candidate.rung.map(|rung| six_digits(rung.flop_per_byte)),
            counted: None,
            fit: None,
            recorded: None,
        }
    }

    /// Adds the measurement. `before`: the rung before, if it was measured.
    pub(super) fn timed(
        &mut self,
        measurement: &Measurement,
        before: Option<&Measurement>,
        cublas: Option<&Measurement>,
    ) {
        let summary = measurement.summary();
        let flop = 2.0 * self.m as f64 * self.n as f64 * self.k as f64;
        let gflops = flop / summary.median * 1e-3;
        let finite = |value: f64| Some(value).filter(|value| value.is_finite()).map(six_digits);
        self.rounds = Some(measurement.times_us.len());
        self.median_us = finite(summary.median);
        self.min_us = finite(summary.min);
        self.spread = finite(summary.spread());
        self.gflops = finite(gflops);
        if let Some(gain) = before.map(|before| measurement.speed_over(before)) {
            self.gain = finite(gain.median);
            self.gain_low = finite(gain.low);
            self.gain_high = finite(gain.high);
        }
        self.share_of_cublas =
            cublas.and_then(|cublas| finite(measurement.speed_over(cublas).median));
        self.share_of_roof = self.roof_gflops.and_then(|roof| finite(gflops / roof));
    }
}

/// The device's peak for products of a type: that of f32, or of its tensor cores.
fn roof_of(roof: &Roof, of: &str) -> Option<f64> {
    if of == "f32" { Some(roof.fp32_gflops) } else { roof.half_gflops }
}

/// The counts with a meaningful number of digits.
pub(super) fn rounded(counts: Counts) -> Counts {
    let mut counts = counts;
    let each = |value: &mut Option<f64>| *value = value.map(six_digits);
    each(&mut counts.sectors_per_request);
    each(&mut counts.sectors_per_request_ideal);
    each(&mut counts.wavefronts_per_request);
    each(&mut counts.wavefronts_per_request_ideal);
    each(&mut counts.flop_per_byte);
    each(&mut counts.flop_per_sector_byte);
    each(&mut counts.tensor_ops_per_warp);
    for value in [
        &mut counts.barriers_per_warp,
        &mut counts.fma_per_warp,
        &mut counts.global_loads_per_warp,
        &mut counts.global_stores_per_warp,
        &mut counts.shared_loads_per_warp,
        &mut counts.shared_stores_per_warp,
        &mut counts.divergent_share,
    ] {
        *value = six_digits(*value);
    }
    counts
}

/// The first launch. All others but the last have the same blocks.
pub(super) fn first(launches: &[Launch]) -> host::Result<&Launch> {
    launches.first().ok_or_else(|| host::Error::argument("m, n", "0", "must both be at least 1"))
}
