//! The rules by which a kernel is rejected.

use std::fmt;

use gpu::registry::Scheme;

use super::{
    Request,
    layout::{operand_plan, too_long},
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
            Ineligible::Workspace { needed, limit } => {
                write!(f, "needs {needed} bytes of workspace, and the limit is {limit}")
            }
        }
    }
}

/// The rule that rejects a kernel for a product.
pub(super) fn ineligible(
    kernel: &Kernel,
    request: &Request,
    target: &Target,
) -> Option<Ineligible> {
    let Kernel { entry, product } = kernel;
    // PTX for 9.0a runs on no other GPU.
    let arch = entry.declaration().arch;
    let arch = arch.filter(|arch| target.cuda && target.capability != (arch / 10, arch % 10));
    if arch.is_some() {
        return arch.map(Ineligible::Arch);
    }
    let splits = request.split_k.is_some_and(|blocks| blocks > 1);
    if product.is_lesson() {
        let why = match request {
            _ if !request.plain => Some(Ineligible::Plain),
            _ if request.batch > 1 => Some(Ineligible::Batch),
            _ if !request.is_dense() => Some(Ineligible::Dense),
            _ => splits.then_some(Ineligible::Split),
        };
        if why.is_some() || !product.requires_layouts() {
            return why;
        }
    }
    let plan = match product.requires_layouts().then(|| operand_plan(product, request)).transpose()
    {
        Err((operand, side)) => return Some(Ineligible::Along { operand, side }),
        Ok(plan) => plan,
    };
    match (product.variant.scheme, request.compute) {
        (Scheme::Native, _)
        | (Scheme::Tf32, Compute::Tf32)
        | (Scheme::F16x3, Compute::Fp32F16x3)
        | (Scheme::Bf16x6, Compute::Fp32Bf16x6) => {}
        (Scheme::Tf32, _) => return Some(Ineligible::Tf32),
        (Scheme::F16x3, _) => return Some(Ineligible::SlicedF16),
        (Scheme::Bf16x6, _) => return Some(Ineligible::Sliced),
    }
    let Some(plan) = plan else { return splits.then_some(Ineligible::Split) };
    let (needed, limit) = (plan.workspace_bytes(), request.most_workspace());
    let too_long = too_long(request).map(Ineligible::TooLong);
    too_long.or((needed > limit).then_some(Ineligible::Workspace { needed, limit }))
}
