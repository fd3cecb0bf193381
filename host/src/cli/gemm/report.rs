//! The report on a product of files: its plan, and its outcome.

use std::{
    io::{self, Write},
    time::Instant,
};

use host::{
    Compute,
    blocks::{BlockPlan, Stays, Why},
    gemm::Scalar,
    gpu::registry::{self, Entry},
    npy::{self, Element},
};
use serde::Serialize;

use super::{
    files::Files,
    planned::{Factors, Outcome, Planned},
};
use crate::cli::{
    args::{Gemm, name_of},
    duration::duration,
    list::optional_in_six_digits,
    run::recomputed,
    types::as_it_is,
    verification::{Verification, off},
};

/// The report on a product of files, also the object of `--json`. For `--plan` the outcome is null.
#[derive(Serialize)]
pub(super) struct Report {
    /// As asked for, if it is not opened. Of several the names, with commas.
    device: String,
    #[serde(skip)]
    devices: Vec<String>,
    /// The GPU that is planned for, as `--on` names it, or `cpu`. `null` if a device is opened.
    pub(super) planned_for: Option<&'static str>,
    kernel: &'static str,
    reason: String,
    a: String,
    b: String,
    c: Option<String>,
    out: String,
    m: usize,
    n: usize,
    k: usize,
    /// The factors, as rounded for the computation.
    alpha: f64,
    beta: f64,
    trans_a: bool,
    trans_b: bool,
    /// The type of the computation.
    dtype: &'static str,
    /// The type of the output file.
    out_type: String,
    /// Whether that has fewer bits than the computation.
    #[serde(skip)]
    rounded: bool,
    /// The arithmetic.
    #[serde(skip)]
    compute: Compute,
    out_order: String,
    device_memory_limit: u64,
    workspace_limit: u64,
    /// The kernel's workspace.
    workspace_bytes: u64,
    blocks: BlockPlan,
    /// From A's, B's and C's file. Repeated reads count each time.
    read_bytes: u64,
    write_bytes: u64,
    /// The bytes read with k in blocks of this size, if less than half.
    #[serde(skip)]
    cut: Option<(usize, u64)>,
    /// The total time: reading, copies, products, writing.
    #[serde(serialize_with = "optional_in_six_digits")]
    time_us: Option<f64>,
    #[serde(serialize_with = "optional_in_six_digits")]
    gflops: Option<f64>,
    /// Elements that a kernel for emulated fp32 recomputed by fused multiply-adds, in each block of
    /// k. `null` for other kernels.
    recomputed: Option<u64>,
    /// `full`, `sample` or `none`.
    verify: Option<&'static str>,
    /// Over the compared elements, against the product in float64. `null` for NaN, and if none was
    /// compared.
    max_abs_err: Option<f64>,
    max_err_over_bound: Option<f64>,
    compared: Option<u64>,
    /// Among them, elements that must be NaN, and others that are not finite because they are too
    /// large.
    compared_nan: Option<u64>,
    compared_overflowing: Option<u64>,
    projections: Option<usize>,
    /// Finite elements that are infinite in the file, because its type is too small.
    overflows: Option<u64>,
    /// Whether everything compared is right. `null` if nothing was compared.
    verified: Option<bool>,
}

impl Report {
    pub(super) fn new<T: Scalar + Element>(
        args: &Gemm,
        files: &Files,
        Factors { alpha, beta }: Factors,
        Planned { choice, workspace_limit, blocks, limit, deeper }: &Planned,
        devices: Vec<String>,
    ) -> Self {
        let path = |path: &std::path::Path| path.display().to_string();
        let dtype = args.out_dtype(T::TYPE);
        let bytes = |reads: [u64; 3]| -> u64 {
            let read = reads.into_iter().zip(files.element_bytes());
            read.map(|(elements, bytes)| elements * bytes as u64).sum()
        };
        Report {
            device: devices.join(", "),
            devices,
            planned_for: None,
            kernel: choice.entry.name(),
            reason: choice.reason.to_string(),
            a: path(&args.a),
            b: path(&args.b),
            c: args.c.as_deref().map(path),
            out: path(&args.out),
            m: files.shape.m(),
            n: files.shape.n(),
            k: files.shape.k(),
            alpha,
            beta,
            trans_a: args.trans_a,
            trans_b: args.trans_b,
            dtype: T::NAME,
            out_type: npy::name(dtype).to_owned(),
            rounded: dtype.bytes() < T::TYPE.bytes(),
            compute: args.compute.into(),
            out_order: name_of(&args.out_order),
            device_memory_limit: *limit,
            workspace_limit: *workspace_limit,
            workspace_bytes: choice.workspace_bytes,
            blocks: *blocks,
            read_bytes: bytes(blocks.reads()),
            cut: deeper.map(|(steps, reads)| (steps, bytes(reads))),
            write_bytes: files.shape.c_len() as u64 * dtype.bytes() as u64,
            time_us: None,
            gflops: None,
            recomputed: None,
            verify: None,
            max_abs_err: None,
            max_err_over_bound: None,
            compared: None,
            compared_nan: None,
            compared_overflowing: None,
            projections: None,
            overflows: None,
            verified: None,
        }
    }

    /// With the outcome.
    pub(super) fn with(self, files: &Files, outcome: &Outcome) -> Self {
        let Outcome { time, recomputed, verification, overflows } = outcome;
        let checked = verification.as_ref();
        let elements = checked.map(Verification::elements);
        let seconds = time.as_secs_f64();
        Report {
            time_us: Some(seconds * 1e6),
            gflops: Some(if seconds > 0.0 { files.shape.flop() / seconds * 1e-9 } else { 0.0 }),
            recomputed: *recomputed,
            verify: Some(checked.map_or("none", Verification::name)),
            max_abs_err: elements.map(|elements| elements.max_abs_err),
            max_err_over_bound: elements.map(|elements| elements.max_err_over_bound),
            compared: Some(elements.map_or(0, |elements| elements.elements)),
            compared_nan: Some(elements.map_or(0, |elements| elements.nan)),
            compared_overflowing: Some(elements.map_or(0, |elements| elements.overflowing)),
            projections: Some(checked.map_or(0, Verification::projections)),
            overflows: Some(*overflows),
            verified: checked
                .filter(|verification| verification.elements().elements > 0)
                .map(Verification::passed),
            ..self
        }
    }

    pub(super) fn print_plan(&self, out: &mut impl Write, device: &str) -> io::Result<()> {
        self.print_operands(out)?;
        writeln!(out, "device    {device}")?;
        let summary = registry::find(self.kernel).map_or("", |entry| entry.summary);
        writeln!(out, "kernel    {}: {summary} ({})", self.kernel, self.reason)?;
        self.print_compute(out)?;
        self.print_blocks(out)
    }

    pub(super) fn print(
        &self,
        out: &mut impl Write,
        device: &str,
        entry: &Entry,
    ) -> io::Result<()> {
        self.print_operands(out)?;
        writeln!(out, "device    {device}")?;
        writeln!(out, "kernel    {}: {}", entry.name(), entry.summary)?;
        self.print_compute(out)?;
        if !self.blocks.is_one_piece() {
            self.print_blocks(out)?;
        }
        if self.m == 0 || self.n == 0 {
            writeln!(out, "C is empty: nothing was launched, there is nothing to verify")?;
            return writeln!(out, "out       {}", self.out);
        }
        let time = duration(self.time_us.unwrap_or_default());
        let gflops = self.gflops.unwrap_or_default();
        writeln!(out, "time      {time} with files and copies, {gflops:.2} GFLOP/s")?;
        if let Some(line) = recomputed(self.recomputed, (self.m, self.n)) {
            writeln!(out, "{line}")?;
        }
        match (self.max_abs_err, self.max_err_over_bound, self.verified) {
            (Some(abs), Some(over), Some(right)) => {
                let word = if right { "verified " } else { "WRONG    " };
                let count = |count: Option<u64>| count.unwrap_or_default();
                let compared = count(self.compared);
                let sampled = match self.verify {
                    Some("sample") => {
                        let projections = self.projections.unwrap_or_default();
                        format!(
                            "in a sample ({compared} elements, {projections} random projections): "
                        )
                    }
                    _ => String::new(),
                };
                let rounded = self.rounded.then_some(&*self.out_type);
                write!(out, "{word} {sampled}{}", off(abs, over, rounded))?;
                for (count, what) in [
                    (count(self.compared_nan), "must be NaN"),
                    (count(self.compared_overflowing), "are too large"),
                ] {
                    if count > 0 {
                        write!(out, "; {count} of {compared} elements {what}")?;
                    }
                }
                writeln!(out)?;
            }
            _ => writeln!(out, "C was not compared with anything (--verify none)")?,
        }
        match self.verified {
            Some(false) => Ok(()),
            _ => writeln!(out, "out       {}", self.out),
        }
    }

    fn print_compute(&self, out: &mut impl Write) -> io::Result<()> {
        let line = registry::find(self.kernel).and_then(|entry| as_it_is(self.compute, entry));
        line.map_or(Ok(()), |line| writeln!(out, "{line}"))
    }

    fn print_operands(&self, out: &mut impl Write) -> io::Result<()> {
        let Report { m, n, k, alpha, beta, dtype, out_type, rounded, out_order, .. } = self;
        let op = |name: &str, transposed| format!("{name}{}", if transposed { "^T" } else { "" });
        let (a, b) = (op("A", self.trans_a), op("B", self.trans_b));
        let times = |factor: f64| if factor == 1.0 { String::new() } else { format!("{factor} ") };
        let plus = match *beta {
            0.0 => String::new(),
            beta => format!(" + {}C", times(beta)),
        };
        let product = format!("{}{a} {b}{plus}", times(*alpha));
        let rounded = match rounded {
            true => format!(", rounded to {out_type}"),
            false => String::new(),
        };
        let order = if out_order == "c" { "" } else { ", in Fortran order" };
        writeln!(out, "C = {product}: {m} x {n}, k {k}   computed in {dtype}{rounded}{order}")
    }

    fn print_blocks(&self, out: &mut impl Write) -> io::Result<()> {
        let blocks = &self.blocks;
        let [rows, cols, depth] = blocks.block();
        let [row_blocks, col_blocks, depth_blocks] = blocks.blocks();
        let why = blocks.why();
        match why {
            Why::Fits => writeln!(out, "blocks    one: {why}")?,
            _ => {
                let all = row_blocks * col_blocks * depth_blocks.max(1);
                writeln!(
                    out,
                    "blocks    {all} of {rows} x {cols} x {depth} (m x n x k): {row_blocks} x {col_blocks} x \
                     {depth_blocks}"
                )?;
                let which = match blocks.stays() {
                    Stays::A => "A's panels stay, B's go by: ",
                    Stays::B => "B's panels stay, A's go by: ",
                    _ => "",
                };
                writeln!(out, "          {which}{why}")?;
            }
        }
        if self.devices.len() > 1 {
            let part = |(number, name): (usize, &String)| {
                let share = blocks.share(number);
                match share.is_empty() {
                    true => format!("{name}: nothing"),
                    false => format!("{name}: blocks {} to {} of C", share.start, share.end - 1),
                }
            };
            let parts = self.devices.iter().enumerate().map(part).collect::<Vec<_>>();
            writeln!(out, "          {}", parts.join(", "))?;
        }
        let limit = self.device_memory_limit;
        let (device_bytes, host_bytes) = (blocks.device_bytes(), blocks.host_bytes());
        writeln!(
            out,
            "memory    {device_bytes} of {limit} bytes on {each} device, {host_bytes} on their way",
            each = if self.devices.len() > 1 { "each" } else { "the" },
        )?;
        writeln!(out, "files     {} bytes read, {} written", self.read_bytes, self.write_bytes)?;
        match self.cut {
            None => Ok(()),
            Some((steps, bytes)) => writeln!(
                out,
                "          with --block-k {steps} {bytes} bytes would be read, and C rounded more often"
            ),
        }
    }
}

/// How much of the product is done, and the estimated time left.
pub(super) fn how_far(begin: Instant) -> String {
    let Some(done) = host::work().filter(|&done| done > 0.0) else { return String::new() };
    let elapsed = begin.elapsed().as_secs_f64();
    let left = elapsed * (1.0 - done) / done;
    let left = match left {
        // Too early for an estimate.
        _ if elapsed < 2.0 => String::new(),
        left if left < 90.0 => format!(", {left:.0} s left"),
        left if left < 5400.0 => format!(", {:.0} min left", left / 60.0),
        left => format!(", {:.1} h left", left / 3600.0),
    };
    format!("{:.0} %{left}", 100.0 * done)
}
