//! The rules by which a kernel is rejected.

use std::fmt;

use gpu::registry::{Entry, Scheme};

use super::{
    Request,
    layout::{Prepared, operand_plan, too_long},
};
use crate::gemm::{Compute, Target, scalar::Kernel};

/// Why a kernel cannot compute a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ineligible {
    /// It computes only `A B`: no scalars, bias or activation.
    Plain,
    /// It needs dense row-major matrices.
    Dense,
    /// It computes one product a launch.
    Batch,
    /// It needs a GPU of this compute capability, times ten: 90 is 9.0.
    Arch(u32),
    /// Its block needs more shared memory than the GPU has.
    Shared {
        /// Bytes that it needs.
        needed: u32,
        /// The limit in bytes.
        limit: u32,
    },
    /// It needs the operand (`A` or `B`) contiguous along that side (`k`, `m` or `n`).
    Along {
        /// The operand.
        operand: &'static str,
        /// The side.
        side: &'static str,
    },
    /// TMA's coordinates do not reach this size of A or B.
    TooLong(usize),
    /// It does not split k.
    Split,
    /// It rounds operands to tf32, which [`Compute::Tf32`] allows.
    Tf32,
    /// It splits operands into bf16 slices, which [`Compute::Fp32Bf16x6`] asks for.
    Sliced,
    /// It splits operands into scaled f16 slices, which [`Compute::Fp32F16x3`] asks for.
    SlicedF16,
    /// It has no scales.
    Scales,
    /// It adds in another order than an invariant product.
    Order,
    /// It needs more workspace than the request allows.
    Workspace {
        /// Bytes that it needs.
        needed: u64,
        /// The limit in bytes.
        limit: u64,
    },
}

impl fmt::Display for Ineligible {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Ineligible::Plain => {
                f.write_str("computes only A B: alpha = 1, beta = 0, no bias, no activation")
            }
            Ineligible::Dense => f.write_str("needs dense row-major matrices"),
            Ineligible::Batch => f.write_str("computes one product a launch"),
            Ineligible::Arch(arch) => {
                write!(f, "needs a GPU of compute capability {}.{}", arch / 10, arch % 10)
            }
            Ineligible::Shared { needed, limit } => {
                write!(f, "needs {needed} bytes of shared memory, and the GPU has {limit} for a block")
            }
            Ineligible::Along { operand, side } => {
                write!(f, "needs {operand} contiguous along {side}")
            }
            Ineligible::TooLong(size) => {
                write!(f, "allows sizes up to 2^31, and one of A or B is {size}")
            }
            Ineligible::Split => f.write_str("does not split k"),
            Ineligible::Tf32 => f.write_str("rounds A and B to tf32, which compute = tf32 allows"),
            Ineligible::SlicedF16 => {
                f.write_str("splits A and B into slices, which compute = fp32-f16x3 allows")
            }
            Ineligible::Sliced => {
                f.write_str("splits A and B into slices, which compute = fp32-bf16x6 allows")
            }
            Ineligible::Scales => f.write_str("has no such scales of A and B"),
            Ineligible::Order => f.write_str(
                "does not have the order of sums of an invariant product: it adds in another one, or in one that depends on other rows, or cannot split k as this n and k ask for",
            ),
            Ineligible::Workspace { needed, limit } => {
                write!(f, "needs {needed} bytes of workspace, and the limit is {limit}")
            }
        }
    }
}

/// Whether a device runs a kernel, whatever the product.
///
/// # Errors
/// [`Ineligible::Arch`], [`Ineligible::Shared`].
pub fn runs_on(entry: &Entry, target: &Target) -> Result<(), Ineligible> {
    let declaration = entry.declaration();
    // PTX for 9.0a runs on no other GPU.
    if let Some(arch) =
        declaration.arch.filter(|arch| target.cuda && target.capability != (arch / 10, arch % 10))
    {
        return Err(Ineligible::Arch(arch));
    }
    let (needed, limit) = (declaration.dynamic_shared.unwrap_or(0), target.shared);
    if needed > limit {
        return Err(Ineligible::Shared { needed, limit });
    }
    Ok(())
}

/// The operands of a product before a kernel, if it needs certain layouts.
///
/// # Errors
/// The rule that rejects the kernel.
pub(super) fn operands(
    kernel: &Kernel,
    request: &Request,
    target: &Target,
) -> Result<Option<Prepared>, Ineligible> {
    let Kernel { entry, product } = kernel;
    runs_on(entry, target)?;
    if !entry.takes_scales(request.scales) {
        return Err(Ineligible::Scales);
    }
    if request.order.is_some_and(|order| !order.is_of(product)) {
        return Err(Ineligible::Order);
    }
    let splits = request.split_k.is_some_and(|blocks| blocks > 1);
    let rejected = match (product.variant.scheme, request.compute) {
        _ if product.is_lesson() => match request {
            _ if !request.plain => Some(Ineligible::Plain),
            _ if request.batch > 1 => Some(Ineligible::Batch),
            _ if !request.is_dense() => Some(Ineligible::Dense),
            _ => splits.then_some(Ineligible::Split),
        },
        (Scheme::Native, _)
        | (Scheme::Tf32, Compute::Tf32)
        | (Scheme::F16x3, Compute::Fp32F16x3)
        | (Scheme::Bf16x6, Compute::Fp32Bf16x6) => None,
        (Scheme::Tf32, _) => Some(Ineligible::Tf32),
        (Scheme::F16x3, _) => Some(Ineligible::SlicedF16),
        (Scheme::Bf16x6, _) => Some(Ineligible::Sliced),
    };
    if let Some(why) = rejected {
        return Err(why);
    }
    if !product.requires_layouts() {
        return if splits { Err(Ineligible::Split) } else { Ok(None) };
    }
    let prepared = operand_plan(product, request);
    let prepared = prepared.map_err(|(operand, side)| Ineligible::Along { operand, side })?;
    if let Some(size) = too_long(request) {
        return Err(Ineligible::TooLong(size));
    }
    let (needed, limit) = (prepared.0.workspace_bytes(), request.most_workspace());
    if needed > limit {
        return Err(Ineligible::Workspace { needed, limit });
    }
    Ok(Some(prepared))
}
