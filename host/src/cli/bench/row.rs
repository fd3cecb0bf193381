//! What is said of one kernel at one size: a line of `--json`, of results.jsonl and results.csv.

use host::{Bf16, Compute, F16, Roof, timing::telemetry::Telemetry, verify::Format};
use serde::{Deserialize, Serialize};

use super::case::{Case, name_of_product};
use crate::cli::{
    args::{Bench, Layouts},
    list::six_digits,
    types::{Value, words},
};

/// A kernel at a size, or a library that kernels are held against. Read back from a recorded run, too.
///
/// `null` is what was not measured: all times of a kernel that is wrong, errors where nothing was compared, the
/// baseline where there is none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) device: String,
    pub(super) description: String,
    /// Of which group of sizes, or class of random shapes.
    pub(super) group: Option<String>,
    /// Of a random shape: are m, n, k and all leading dimensions multiples of 16 bytes?
    pub(super) aligned: Option<bool>,
    /// Which of the seed's shapes it is, counted from 1, and how many were asked for.
    pub(super) drawn: Option<usize>,
    pub(super) drawn_of: Option<usize>,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    /// Products by one launch.
    pub(super) batch: usize,
    /// How A and B lie: `n` row by row, `t` transposed.
    pub(super) trans: String,
    /// Of A and B, and of C, which older records do not say.
    pub(super) dtype: String,
    #[serde(default = "f32_name")]
    pub(super) out_dtype: String,
    /// What it computes in.
    pub(super) compute: String,
    pub(super) kernel: String,
    pub(super) role: Role,
    pub(super) seed: u64,

    /// Median of one launch, over the rounds.
    pub(super) time_us: Option<f64>,
    pub(super) tflops: Option<f64>,
    /// `|C - ref| / |ref|` in the Frobenius norm, against float64.
    pub(super) err: Option<f64>,

    /// What it is held against: the fastest library, or without `--vs` the first kernel.
    pub(super) baseline: Option<String>,
    pub(super) baseline_time_us: Option<f64>,
    pub(super) baseline_tflops: Option<f64>,
    pub(super) baseline_err: Option<f64>,
    /// Does the baseline's error show float32? Not where TF32 was let in; `null` where C is rounded to less.
    pub(super) baseline_is_fp32: Option<bool>,
    /// The baseline's time over its own, round by round: the median, and its 95 % interval.
    pub(super) ratio: Option<f64>,
    pub(super) ratio_low: Option<f64>,
    pub(super) ratio_high: Option<f64>,

    /// `full`, `sample` or `none`.
    pub(super) verify: String,
    /// Is everything right, on integers too? `null` where nothing was compared.
    pub(super) verified: Option<bool>,
    pub(super) exact_on_integers: Option<bool>,
    pub(super) max_abs_err: Option<f64>,
    pub(super) max_err_over_bound: Option<f64>,

    pub(super) rounds: Option<usize>,
    pub(super) launches_per_round: Option<usize>,
    /// Seconds that it ran alone at a time, where that was asked for.
    #[serde(default)]
    pub(super) sustained_s: Option<f64>,
    pub(super) operand_sets: usize,
    pub(super) min_us: Option<f64>,
    /// From the tenth to the ninetieth percentile, over the median.
    pub(super) spread: Option<f64>,
    /// The first launch: the driver's compilation of the kernel (once a process) and a cold cache.
    pub(super) first_launch_us: Option<f64>,
    /// Copies of one set of operands to the device, and of C back.
    pub(super) upload_us: Option<f64>,
    pub(super) download_us: Option<f64>,
    /// Of a library that has several: which algorithm was taken.
    pub(super) algorithm: Option<String>,

    /// While this size was timed, all kernels in turn: medians, and what is furthest from them.
    pub(super) sm_mhz: Option<u32>,
    pub(super) sm_mhz_low: Option<u32>,
    pub(super) power_w: Option<u32>,
    pub(super) power_w_high: Option<u32>,
    pub(super) temperature_c: Option<u32>,
    pub(super) limited_by: Option<String>,
    /// The device's peak, of float32 or of sixteen bits by tensor cores, and what its memory delivers.
    pub(super) roof_tflops: Option<f64>,
    pub(super) roof_memory_gb_per_s: Option<f64>,
}

/// Why a row is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// It is what a program gets.
    #[default]
    Auto,
    /// It was asked for by name.
    Named,
    /// Others are held against it.
    Baseline,
}

/// What C is of in records that do not say.
fn f32_name() -> String {
    f32::TYPE.to_owned()
}

/// What each row of a size says alike, of products of A and B of `T` with C of `O`.
pub(super) fn row_of<T: Value, O: Value>(case: &Case, device: &host::Device, args: &Bench) -> Row {
    let (shape, roof) = (case.product.shape, Roof::of(device));
    let peak = roof.and_then(|roof| match (T::FORMAT, args.types.compute()) {
        (Format::Bf16 | Format::F16, _) => roof.half_gflops,
        // Twice as many bits, half as many products: on every GPU that has both.
        (_, Compute::Tf32) => roof.half_gflops.map(|gflops| gflops / 2.0),
        // Emulated fp32: six products each.
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
        dtype: T::TYPE.to_owned(),
        out_dtype: O::TYPE.to_owned(),
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

    /// Operations.
    pub(super) fn flop(&self) -> f64 {
        2.0 * self.m as f64 * self.n as f64 * self.k as f64 * self.batch as f64
    }

    /// Operations for each byte of A, B and C, moved once.
    pub(super) fn flop_per_byte(&self) -> f64 {
        let [m, n, k] = [self.m, self.n, self.k].map(|size| size as f64);
        let bytes = |name: &str| if [Bf16::TYPE, F16::TYPE].contains(&name) { 2.0 } else { 4.0 };
        2.0 * m * n * k / (bytes(&self.dtype) * (m * k + k * n) + bytes(&self.out_dtype) * m * n)
    }

    /// Was it compared, and found wrong?
    pub(super) fn is_wrong(&self) -> bool {
        self.time_us.is_none()
    }

    pub(super) fn watched(&mut self, seen: &Telemetry) {
        self.sm_mhz = Some(seen.sm_mhz[1]);
        self.sm_mhz_low = Some(seen.sm_mhz[0]);
        self.power_w = Some(seen.power_w[1]);
        self.power_w_high = Some(seen.power_w[2]);
        self.temperature_c = Some(seen.temperature_c[1]);
        self.limited_by = Some(seen.throttled.join("+"));
    }

    /// The same random shape of the same types.
    pub(super) fn is_drawn_as(&self, other: &Row) -> bool {
        let of = |row: &Row| (row.drawn, row.drawn_of, row.seed);
        of(self) == of(other) && self.is_of_types(other)
    }

    /// The same types, computed in the same way.
    pub(super) fn is_of_types(&self, other: &Row) -> bool {
        self.dtype == other.dtype
            && self.out_dtype == other.out_dtype
            && self.compute == other.compute
    }

    /// Its types for people: `bf16, C f32`, `f32 as tf32`.
    pub(super) fn types(&self) -> String {
        let types = words(&self.dtype, &self.out_dtype);
        match &*self.compute {
            "fp32" => types,
            how => format!("{types} as {how}"),
        }
    }

    /// The same size and kernel of another run.
    pub(super) fn is_same(&self, other: &Row) -> bool {
        let of = |row: &Row| (row.m, row.n, row.k, row.batch);
        of(self) == of(other)
            && self.trans == other.trans
            && self.role == other.role
            && (self.kernel == other.kernel || self.role == Role::Auto)
            && self.is_of_types(other)
    }
}
