//! The plan of a product of files, and its outcome.

use std::time::Duration;

use host::{
    Error, Layout, Shape,
    blocks::{BlockPlan, Job, Source},
    gemm::{
        Choice, DEFAULT_WORKSPACE_LIMIT, Request, SLICES_WORKSPACE_LIMIT, Scalar, Target, choose,
    },
    gpu::registry::Entry,
    npy::{Element, Reader},
};

use super::files::{Files, Sources};
use crate::cli::{
    args::{ComputeMode, Gemm, name_of},
    verification::Verification,
};

/// alpha and beta, rounded to the type of the computation.
#[derive(Clone, Copy)]
pub(super) struct Factors {
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

impl Factors {
    pub(super) fn of<T: Scalar + Element>(args: &Gemm) -> Result<Self, Error> {
        let rounded = |flag: &str, value: f64| {
            let rounded: f64 = T::from_f64(value).into();
            match rounded.is_finite() && (rounded != 0.0 || value == 0.0) {
                true => Ok(rounded),
                false => {
                    let limit =
                        format!("is {rounded} in {}, in which such files are computed", T::name());
                    Err(Error::argument(flag, format!("{value:e}"), limit))
                }
            }
        };
        let (alpha, beta) = (rounded("--alpha", args.alpha)?, rounded("--beta", args.beta())?);
        Ok(Factors { alpha, beta })
    }
}

/// The plan of a product.
pub(super) struct Planned {
    pub(super) choice: Choice,
    pub(super) workspace_limit: u64,
    pub(super) blocks: BlockPlan,
    pub(super) limit: u64,
    /// A block size of k with which less than half would be read, and the elements read then.
    pub(super) deeper: Option<(usize, [u64; 3])>,
}

/// The block size of k that is proposed if much is read repeatedly.
const PROPOSED_DEPTH: usize = 2048;

impl Planned {
    /// The kernel for the whole product, and the blocks of so many devices with that memory each.
    pub(super) fn new<T: Scalar + Element>(
        args: &Gemm,
        files: &Files,
        Factors { alpha, beta }: Factors,
        target: &Target,
        (devices, limit): (usize, u64),
    ) -> Result<Self, Error>
    where
        Reader: Source<T>,
    {
        let is_emulated = matches!(args.compute, ComputeMode::Fp32Bf16x6 | ComputeMode::Fp32F16x3);
        if devices > 1 && is_emulated {
            let limit = "must be fp32 or tf32 over several devices: bits of emulated sums depend on the part of C";
            return Err(Error::argument("--compute", name_of(&args.compute), limit));
        }
        let whole = files.shape;
        // With alpha = 0 neither A nor B is read.
        let k = if alpha == 0.0 { 0 } else { whole.k() };
        let shape = Shape::new(whole.m() as u64, whole.n() as u64, k as u64)?;
        let out = args.out_order.into();
        let [a, b] =
            files.with_sources(|Sources { a, b, .. }: Sources<T>| [a, b].map(Source::layout));
        let strides = |layout, rows, cols| match layout {
            Layout::RowMajor => [cols, 1],
            Layout::ColMajor => [1, rows],
        };
        let (m, n) = (shape.m(), shape.n());
        let strides = [strides(a, m, k), strides(b, k, n), strides(out, m, n)];
        let mut plain = alpha == 1.0 && beta == 0.0;
        let workspace_limit = args.workspace_limit.unwrap_or(match args.compute {
            ComputeMode::Fp32Bf16x6 | ComputeMode::Fp32F16x3 => SLICES_WORKSPACE_LIMIT,
            ComputeMode::Fp32 | ComputeMode::Tf32 => DEFAULT_WORKSPACE_LIMIT,
        });
        let name = Some(&*args.kernel).filter(|&name| name != "auto");
        loop {
            let mut request = Request::new(shape, strides);
            request.plain = plain;
            request.compute = args.compute.into();
            request.workspace_limit = workspace_limit;
            let named = |error| match error {
                Error::Argument { value, limit, .. } => Error::argument("--kernel", value, limit),
                error => error,
            };
            let choice = choose::<T>(&request, target, name).map_err(named)?;
            let mut job = Job::new(shape, size_of::<T>(), tile(choice.entry), limit);
            job.layouts = [a, b, out];
            job.reads_c = beta != 0.0;
            (job.depth, job.devices) = (args.block_k, devices);
            if args.device_memory_limit.is_none() {
                // The default limit is not the user's. If it is too small, `check_bytes` reports
                // that.
                job.device_limit = limit.max(job.least_limit());
            }
            let limit = job.device_limit;
            let blocks = BlockPlan::new(&job).map_err(|error| match error {
                Error::Argument { value, limit, .. } => {
                    Error::argument("--device-memory-limit", value, limit)
                }
                error => error,
            })?;
            // From the second block of k on, C is added to.
            if blocks.blocks()[2] > 1 && plain {
                plain = false;
                continue;
            }
            job.depth = Some(PROPOSED_DEPTH.min(k));
            let cut = BlockPlan::new(&job).ok().filter(|_| args.block_k.is_none());
            let read = |plan: &BlockPlan| plan.reads().iter().sum::<u64>();
            let deeper = cut.filter(|cut| 2 * read(cut) < read(&blocks));
            let deeper = deeper.map(|cut| (cut.block()[2], cut.reads()));
            return Ok(Planned { choice, workspace_limit, blocks, limit, deeper });
        }
    }
}

/// Rows and columns of C in a tile of a kernel.
fn tile(entry: &Entry) -> [usize; 2] {
    let tile = entry.product.as_ref().map_or([1, 1], |product| product.tile());
    tile.map(|size| size as usize)
}

/// The outcome of a run.
pub(super) struct Outcome {
    pub(super) time: Duration,
    /// Elements that a kernel for emulated fp32 recomputed.
    pub(super) recomputed: Option<u64>,
    pub(super) verification: Option<Verification>,
    /// Finite numbers that became infinite in the file.
    pub(super) overflows: u64,
}
