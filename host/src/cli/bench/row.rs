//! The results of one kernel at one size: a line of `--json`, of results.jsonl and of results.csv.

use host::{Compute, Roof, Type, gemm::Times, timing::telemetry::Telemetry, verify::NumberFormat};
use serde::{Deserialize, Serialize};

use super::case::{Case, name_of_product};
use crate::cli::{
    args::{Bench, Layouts},
    list::six_digits,
    types::words,
};

/// A kernel at a size, or a library to compare with. Also read back from a recorded run.
///
/// `null` is what was not measured: the times of a wrong kernel, errors if nothing was compared,
/// the baseline if there is none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) device: String,
    pub(super) description: String,
    /// The group of sizes, or the class of random shapes.
    pub(super) group: Option<String>,
    /// For a random shape: whether m, n, k and all leading dimensions are multiples of 16 bytes.
    pub(super) aligned: Option<bool>,
    /// The number among the seed's shapes, counted from 1, and how many were asked for.
    pub(super) drawn: Option<usize>,
    pub(super) drawn_of: Option<usize>,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    /// Products in one launch.
    pub(super) batch: usize,
    /// The layouts of A and B: `n` row-major, `t` column-major.
    pub(super) trans: String,
    /// The types of A and B, and of C. Older records have none for C.
    pub(super) dtype: String,
    #[serde(default = "f32_name")]
    pub(super) out_dtype: String,
    /// The arithmetic.
    pub(super) compute: String,
    /// What is done with the product: `alpha=0.5 beta=1 bias relu`. `null` and older records:
    /// nothing, C = A B.
    pub(super) epilogue: Option<String>,
    pub(super) kernel: String,
    pub(super) role: Role,
    pub(super) seed: u64,

    /// The median time of a launch, over the rounds.
    pub(super) time_us: Option<f64>,
    pub(super) tflops: Option<f64>,
    /// `|C - ref| / |ref|` in the Frobenius norm. The reference is in float64.
    pub(super) err: Option<f64>,
    /// For a library that lacks the epilogue: what was timed.
    pub(super) instead: Option<String>,

    /// For an epilogue: the time of this library's plain product of the first kernel, in the same
    /// rounds, and this time over it, round by round: the median, and its 95 % interval.
    pub(super) plain_time_us: Option<f64>,
    pub(super) over_plain: Option<f64>,
    pub(super) over_plain_low: Option<f64>,
    pub(super) over_plain_high: Option<f64>,

    /// The kernel to compare with: the fastest library, or without `--vs` the first kernel.
    pub(super) baseline: Option<String>,
    pub(super) baseline_instead: Option<String>,
    pub(super) baseline_time_us: Option<f64>,
    pub(super) baseline_tflops: Option<f64>,
    pub(super) baseline_err: Option<f64>,
    /// Whether the baseline's error shows float32 sums. False if tf32 was allowed. `null` if C is
    /// rounded to fewer bits.
    pub(super) baseline_is_fp32: Option<bool>,
    /// The baseline's time over this kernel's, round by round: the median, and its 95 % interval.
    pub(super) ratio: Option<f64>,
    pub(super) ratio_low: Option<f64>,
    pub(super) ratio_high: Option<f64>,

    /// `full`, `sample` or `none`.
    pub(super) verify: String,
    /// Whether everything is right, also on integers. `null` if nothing was compared.
    pub(super) verified: Option<bool>,
    pub(super) exact_on_integers: Option<bool>,
    pub(super) max_abs_err: Option<f64>,
    pub(super) max_err_over_bound: Option<f64>,

    pub(super) rounds: Option<usize>,
    pub(super) launches_per_round: Option<usize>,
    /// Seconds that each candidate runs alone (`--sustained`).
    #[serde(default)]
    pub(super) sustained_s: Option<f64>,
    pub(super) operand_sets: usize,
    pub(super) min_us: Option<f64>,
    /// The tenth to the ninetieth percentile, divided by the median.
    pub(super) spread: Option<f64>,
    /// The first launch: the driver's compilation of the kernel (once a process), and a cold cache.
    pub(super) first_launch_us: Option<f64>,
    /// Copies of one operand set to the device, and of C back.
    pub(super) upload_us: Option<f64>,
    pub(super) download_us: Option<f64>,
    /// For a library with several algorithms: the selected one.
    pub(super) algorithm: Option<String>,

    /// Medians while this size was timed, over all kernels, and the extremes.
    pub(super) sm_mhz: Option<u32>,
    pub(super) sm_mhz_low: Option<u32>,
    pub(super) power_w: Option<u32>,
    pub(super) power_w_high: Option<u32>,
    pub(super) temperature_c: Option<u32>,
    pub(super) limited_by: Option<String>,
    /// The device's peak, of f32, or of f64 or 16 bits by tensor cores, and its memory bandwidth.
    pub(super) roof_tflops: Option<f64>,
    pub(super) roof_memory_gb_per_s: Option<f64>,

    /// The predicted time, and its parts: of the host, and of the device.
    pub(super) predicted_us: Option<f64>,
    pub(super) predicted_host_us: Option<f64>,
    pub(super) predicted_copies_us: Option<f64>,
    pub(super) predicted_fixed_us: Option<f64>,
    pub(super) predicted_multiply_us: Option<f64>,
    pub(super) predicted_l2_us: Option<f64>,
    pub(super) predicted_epilogue_us: Option<f64>,
    pub(super) predicted_memory_us: Option<f64>,
    pub(super) predicted_sum_us: Option<f64>,
}

/// The role of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// The kernel that `auto` selects.
    #[default]
    Auto,
    /// A kernel asked for by name.
    Named,
    /// A library to compare with.
    Baseline,
}

/// The type of C in records that have none.
fn f32_name() -> String {
    Type::F32.name().to_owned()
}

/// The fields that all rows of a size share, for A and B, and C, of these types.
pub(super) fn row_of(
    [operands, c]: [Type; 2],
    case: &Case,
    device: &host::Device,
    args: &Bench,
) -> Row {
    let (shape, roof) = (case.product.shape, Roof::of(device));
    let peak = roof.and_then(|roof| match (operands.format(), args.types.compute()) {
        (NumberFormat::BF16 | NumberFormat::F16, _) => roof.half_gflops,
        (NumberFormat::F64, _) => roof.fp64_gflops,
        // Elements have twice as many bits, so half as many operations per second: on every GPU
        // with both.
        (_, Compute::Tf32) => roof.half_gflops.map(|gflops| gflops / 2.0),
        // Emulated fp32 takes six products.
        (_, Compute::Fp32Bf16x6) => roof.half_gflops.map(|gflops| gflops / 6.0),
        (_, Compute::Fp32F16x3) => roof.half_gflops.map(|gflops| gflops / 3.0),
        _ => Some(roof.fp32_gflops),
    });
    Row {
        device: device.name(),
        description: device.description(),
        group: case.group.clone(),
        aligned: case.draw.map(|draw| draw.aligned),
        drawn: case.draw.map(|draw| draw.number),
        drawn_of: case.draw.map(|draw| draw.of),
        m: shape.m(),
        n: shape.n(),
        k: shape.k(),
        batch: case.product.count,
        trans: Layouts(case.product.transposed).to_string(),
        dtype: operands.name().to_owned(),
        out_dtype: c.name().to_owned(),
        compute: args.types.compute_name(),
        sustained_s: args.sustained,
        seed: args.seed,
        roof_tflops: peak.map(|gflops| six_digits(gflops * 1e-3)),
        roof_memory_gb_per_s: roof.and_then(|roof| roof.memory_gb_per_s).map(six_digits),
        ..Row::default()
    }
}

impl Row {
    /// Its size for people: `4096x4096x4096`, `32*64x64x64 nt`.
    pub(super) fn size(&self) -> String {
        name_of_product(self.batch, [self.m, self.n, self.k], &self.trans)
    }

    /// Its size and epilogue for people: `4096x4096x4096 bias relu`.
    pub(super) fn work(&self) -> String {
        match &self.epilogue {
            None => self.size(),
            Some(epilogue) => format!("{} {epilogue}", self.size()),
        }
    }

    /// Floating-point operations.
    pub(super) fn flop(&self) -> f64 {
        2.0 * self.m as f64 * self.n as f64 * self.k as f64 * self.batch as f64
    }

    /// Operations per byte of A, B and C, each moved once. (Old C and bias are left out.)
    pub(super) fn flop_per_byte(&self) -> f64 {
        let [m, n, k] = [self.m, self.n, self.k].map(|size| size as f64);
        let bytes = |name: &str| Type::of_name(name).map_or(4, Type::bytes) as f64;
        2.0 * m * n * k / (bytes(&self.dtype) * (m * k + k * n) + bytes(&self.out_dtype) * m * n)
    }

    /// Whether it was compared and is wrong.
    pub(super) fn is_wrong(&self) -> bool {
        self.time_us.is_none()
    }

    /// Records a predicted time.
    pub(super) fn predicted(&mut self, times: Option<&Times>) {
        let of = |part: fn(&Times) -> f64| times.map(|times| six_digits(part(times)));
        self.predicted_us = of(Times::us);
        self.predicted_host_us = of(|times| times.host_us);
        self.predicted_copies_us = of(|times| times.copies_us);
        self.predicted_fixed_us = of(|times| times.fixed_us);
        self.predicted_multiply_us = of(|times| times.multiply_us);
        self.predicted_l2_us = of(|times| times.l2_us);
        self.predicted_epilogue_us = of(|times| times.epilogue_us);
        self.predicted_memory_us = of(|times| times.memory_us);
        self.predicted_sum_us = of(|times| times.sum_us);
    }

    pub(super) fn watched(&mut self, seen: &Telemetry) {
        self.sm_mhz = Some(seen.sm_mhz[1]);
        self.sm_mhz_low = Some(seen.sm_mhz[0]);
        self.power_w = Some(seen.power_w[1]);
        self.power_w_high = Some(seen.power_w[2]);
        self.temperature_c = Some(seen.temperature_c[1]);
        self.limited_by = Some(seen.throttled.join("+"));
    }

    /// Whether types and arithmetic are the same.
    pub(super) fn is_of_types(&self, other: &Row) -> bool {
        self.dtype == other.dtype
            && self.out_dtype == other.out_dtype
            && self.compute == other.compute
    }

    /// Its types for people: `bf16, C f32`, `f32 as tf32`.
    pub(super) fn types(&self) -> String {
        let types = words(&self.dtype, &self.out_dtype);
        match &*self.compute {
            "fp32" | "fp64" => types,
            how => format!("{types} as {how}"),
        }
    }

    /// Whether it is the same size, epilogue and kernel, in another run.
    pub(super) fn is_same(&self, other: &Row) -> bool {
        let of = |row: &Row| (row.m, row.n, row.k, row.batch);
        of(self) == of(other)
            && self.trans == other.trans
            && self.epilogue == other.epilogue
            && self.role == other.role
            && (self.kernel == other.kernel || self.role == Role::Auto)
            && self.is_of_types(other)
    }
}
