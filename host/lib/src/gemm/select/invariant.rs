//! The same bits for a row, whatever is beside it ([`Gemm::invariant`](crate::Gemm::invariant)).
//!
//! The bits of an element follow from its row of A, its column of B and from the order in which
//! the products are added: that of a block, and how k is split. [`Order::of`] says both from the
//! types, the sizes that all rows share, n and k, and the generation of the GPU. Kernels of that
//! order alone are candidates. Among them the fastest is taken, as always: their bits are equal.
//!
//! A figure here decides bits and speeds. Each was taken from predicted times (docs/log/selection.md,
//! "The same bits for a row").

use gpu::registry::{Family, Product, Scheme, SumOrder, Type};

use super::Request;
use crate::{
    error::{Error, Result},
    gemm::{
        Compute, Output, Target,
        scalar::{self, Kernel, Scalar},
    },
};

/// The lines of C whose bits depend on nothing that is beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invariant {
    /// Rows: their bits depend on no other row of A.
    Rows,
    /// Columns: their bits depend on no other column of B. So it is of rows, once A and B have been
    /// swapped.
    Cols,
}

impl Invariant {
    /// The same lines of the transpose.
    pub(in crate::gemm) fn transposed(self) -> Self {
        match self {
            Invariant::Rows => Invariant::Cols,
            Invariant::Cols => Invariant::Rows,
        }
    }
}

/// The order in which the products of an element are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gemm) struct Order {
    /// By a block, of `k` products in all.
    sum: SumOrder,
    k: usize,
    /// Blocks of a cluster that split k.
    split_k: u32,
    /// Partial products.
    partials: u32,
}

/// What holds from a length of k on: the order of a block's sums (`None`: that of the kernels of
/// every GPU), the blocks of a cluster that split k, and the partial products.
type From = (usize, Option<SumOrder>, u32, u32);

/// The longest k first: of a C with rows shorter than [`WIDE`], and of another.
type Rules = [&'static [From]; 2];

/// Elements of a row from which a C of few rows has tiles enough for a GPU.
const WIDE: usize = 1024;

const WGMMA: Option<SumOrder> = Some(SumOrder::Wgmma);
const BY_WARPGROUPS: Option<SumOrder> = Some(SumOrder::Dealt { sums: 2, steps: 32 });
const BY_WARPS: Option<SumOrder> = Some(SumOrder::Dealt { sums: 4, steps: 16 });

/// No split: GPUs other than Hopper have no clusters, and do not add partial products. Nor does the
/// CPU device profit.
const WHOLE: Rules = [&[(0, None, 1, 1)]; 2];
/// Hopper, by types.
const HALF: Rules =
    [&[(16384, WGMMA, 8, 1), (4096, WGMMA, 4, 1), (0, WGMMA, 1, 1)], &[(0, WGMMA, 1, 1)]];
const TF32: Rules = [
    &[(16384, WGMMA, 1, 32), (4096, WGMMA, 1, 16), (1024, BY_WARPGROUPS, 1, 1), (0, WGMMA, 1, 1)],
    &[(0, WGMMA, 1, 1)],
];
const F32: Rules = [
    &[
        (16384, BY_WARPS, 1, 32),
        (4096, BY_WARPS, 1, 16),
        (1024, BY_WARPS, 4, 1),
        (0, BY_WARPS, 2, 1),
    ],
    &[(1024, BY_WARPS, 2, 1), (0, BY_WARPS, 1, 1)],
];
const F64: Rules = [
    &[(16384, None, 1, 32), (4096, None, 1, 16), (1024, None, 1, 8), (0, None, 1, 1)],
    &[(8192, None, 1, 8), (0, None, 1, 1)],
];

impl Order {
    /// The order of all rows of a request.
    pub(super) fn of<T: Scalar<O>, O: Output>(
        request: &Request,
        lines: Invariant,
        target: &Target,
    ) -> Result<Self> {
        let (shape, k) = (request.shape, request.shape.k());
        let n = if lines == Invariant::Rows { shape.n() } else { shape.m() };
        let is_tf32 = request.compute == Compute::Tf32;
        let ty = T::TYPE;
        let rules = match () {
            () if !target.cuda || target.capability != (9, 0) => WHOLE,
            () if ty == Type::F64 => F64,
            () if ty == Type::F32 && is_tf32 => TF32,
            () if ty == Type::F32 => F32,
            () if ty == Type::BF16 || ty == Type::F16 => HALF,
            () => WHOLE,
        };
        let mut rules = rules[usize::from(n >= WIDE)].iter();
        let &(_, sum, split_k, partials) =
            rules.find(|rule| rule.0 <= k).unwrap_or(&(0, None, 1, 1));
        let sum = match sum {
            Some(sum) => sum,
            None => {
                // Tensor cores of any GPU, if they may multiply these types.
                let is_allowed = |kernel: &Kernel| match kernel.product.variant.scheme {
                    Scheme::Native => true,
                    scheme => scheme == Scheme::Tf32 && is_tf32,
                };
                let is_it = |kernel: &Kernel| kernel.product.variant.family == Family::Mma;
                let on_cores = T::kernels().find(|kernel| is_it(kernel) && is_allowed(kernel));
                let kernel = match on_cores.filter(|_| target.cuda) {
                    Some(kernel) => kernel,
                    None => scalar::general::<T, O>()?,
                };
                kernel.product.sum_order(k)
            }
        };
        Ok(Order { sum, k, split_k, partials })
    }

    /// Whether a kernel can add in that order.
    pub(super) fn is_of(&self, product: &Product) -> bool {
        product.sum_order(self.k) == self.sum && self.split_k <= product.most_splits
    }
}

impl Request {
    /// The request with the order of its sums, and with the split of k that follows from that, if
    /// it [is invariant](Request::invariant).
    ///
    /// # Errors
    /// [`Error::Argument`] for a request of another split.
    pub(super) fn with_order<T: Scalar<O>, O: Output>(&self, target: &Target) -> Result<Self> {
        let Some(lines) = self.invariant else { return Ok(*self) };
        let target = self.ordered_as_on.as_ref().unwrap_or(target);
        let order = Order::of::<T, O>(self, lines, target)?;
        let Order { split_k, partials, .. } = order;
        let asked = [("split_k", self.split_k, split_k), ("partials", self.partials, partials)];
        for (name, asked, count) in asked {
            if let Some(asked) = asked.filter(|asked| *asked != count) {
                let limit = format!(
                    "must be {count}, or not set: an invariant product has the split of k that follows from n and k"
                );
                return Err(Error::argument(name, asked, limit));
            }
        }
        let (split_k, partials) = (Some(split_k), Some(partials));
        Ok(Request { split_k, partials, order: Some(order), ..*self })
    }
}
