//! The same bits for a row, whatever is beside it ([`Gemm::invariant`](crate::Gemm::invariant)).
//!
//! The bits of an element follow from its row of A, its column of B and from the order in which
//! the products are added: that of a block, and how k is split. [`order_of`] says both from the
//! types, the sizes that all rows share, n and k, and the generation of the GPU. Kernels of that
//! order alone are candidates. Among them the fastest is taken, as always: their bits are equal.
//!
//! A figure here decides bits and speeds. Each was taken from predicted times
//! (docs/log/selection.md, "The same bits for a row").

use gpu::{
    params::NO_SCALES,
    registry::{Family, Scheme, SumOrder, Type},
};

use super::{
    Request,
    order::{Invariant, Order},
    request::MOST_PARTIALS,
};
use crate::{
    error::{Error, Result},
    gemm::{
        Compute, Output, Target,
        scalar::{self, Kernel, Scalar},
    },
};

/// The order of a block's sums.
#[derive(Clone, Copy)]
enum Sum {
    /// That of the first kernel of any GPU: on CUDA cores.
    General,
    /// That of tensor cores of any GPU, if they may multiply these types.
    Cores,
    /// This one.
    Of(SumOrder),
}

/// What holds from a length of k on: the order of a block's sums, the blocks of a cluster that
/// split k, and k of a partial product, if there are any.
type From = (usize, Sum, u32, usize);

/// The longest k first: of a C with rows shorter than [`WIDE`], and of another.
type Rules = [&'static [From]; 2];

/// Elements of a row from which a C of few rows has tiles enough for a GPU.
const WIDE: usize = 1024;

/// Sums of a row of C at most, in all of its partial products: those of 64 rows fit into a quarter
/// of the default workspace. (If C has columns, A and B are swapped, and it is 64 columns of m
/// sums.)
const MOST_SUMS: usize = 1 << 17;

/// No partial products.
const ALL: usize = usize::MAX;

const WGMMA: Sum = Sum::Of(SumOrder::Wgmma);
const BY_WARPGROUPS: Sum = Sum::Of(SumOrder::Dealt { sums: 2, steps: 32 });
const BY_WARPS: Sum = Sum::Of(SumOrder::Dealt { sums: 4, steps: 16 });

/// No split: GPUs other than Hopper have no clusters, and partial products are not used here. Nor
/// does the CPU device profit.
const ON_CORES: Rules = [&[(0, Sum::Cores, 1, ALL)]; 2];
const GENERAL: Rules = [&[(0, Sum::General, 1, ALL)]; 2];
/// Hopper, by types.
const HALF: Rules = [
    &[(65536, WGMMA, 1, 2048), (16384, WGMMA, 8, ALL), (4096, WGMMA, 4, ALL), (0, WGMMA, 1, ALL)],
    &[(0, WGMMA, 1, ALL)],
];
/// Of a product with scales on Hopper or the CPU device: they are of all of k.
const SCALED: Rules =
    [&[(16384, WGMMA, 8, ALL), (4096, WGMMA, 4, ALL), (0, WGMMA, 1, ALL)], HALF[1]];
const TF32: Rules = [
    &[
        (65536, BY_WARPGROUPS, 1, 2048),
        (4096, BY_WARPGROUPS, 2, ALL),
        (1024, BY_WARPGROUPS, 1, ALL),
        (192, WGMMA, 1, ALL),
        (0, Sum::General, 1, ALL),
    ],
    &[(0, WGMMA, 1, ALL)],
];
const F32: Rules = [
    &[
        (16384, Sum::General, 1, 512),
        (4096, BY_WARPS, 1, 512),
        (1024, BY_WARPS, 4, ALL),
        (0, Sum::General, 1, ALL),
    ],
    &[(1024, BY_WARPS, 2, ALL), (0, BY_WARPS, 1, ALL)],
];
const F64: Rules = [
    &[(1024, Sum::General, 1, 512), (0, Sum::General, 1, ALL)],
    &[(8192, Sum::General, 1, 2048), (0, Sum::General, 1, ALL)],
];

/// The order of all rows of a request.
fn order_of<T: Scalar<O>, O: Output>(
    request: &Request,
    lines: Invariant,
    target: &Target,
) -> Result<Order> {
    let (shape, k) = (request.shape, request.shape.k());
    let n = if lines == Invariant::Rows { shape.n() } else { shape.m() };
    let is_tf32 = request.compute == Compute::Tf32;
    let ty = T::TYPE;
    let is_scaled = request.scales != NO_SCALES;
    let rules = match () {
        () if is_scaled && (!target.cuda || target.capability == (9, 0)) => SCALED,
        () if !target.cuda => GENERAL,
        () if target.capability != (9, 0) => ON_CORES,
        () if ty == Type::F64 => F64,
        () if ty == Type::F32 && is_tf32 => TF32,
        () if ty == Type::F32 => F32,
        () if ty.bytes() <= 2 => HALF,
        () => GENERAL,
    };
    let mut rules = rules[usize::from(n >= WIDE)].iter();
    let &(_, sum, split_k, range) =
        rules.find(|rule| rule.0 <= k).unwrap_or(&(0, Sum::General, 1, ALL));
    let most = (MOST_SUMS / n.max(1)).clamp(1, MOST_PARTIALS as usize);
    let partials = (k / range).clamp(1, most) as u32;
    let is_on_cores = |kernel: &Kernel| {
        let variant = &kernel.product.variant;
        let is_allowed = variant.scheme == Scheme::Native || is_tf32;
        variant.family == Family::Mma && is_allowed
    };
    let on_cores = || T::kernels().find(is_on_cores);
    let sum = match sum {
        // In any order. (But parts of a sum are rounded to a C that is not i32.)
        _ if ty == Type::I8 => SumOrder::Exact,
        Sum::Of(sum) => sum,
        Sum::Cores if let Some(kernel) = on_cores() => kernel.product.sum_order(k),
        Sum::Cores | Sum::General => scalar::general::<T, O>()?.product.sum_order(k),
    };
    Ok(Order { sum, k, split_k, partials })
}

impl Request {
    /// The request with the order of its sums, and with the split of k that follows from that, if
    /// it [is invariant](Request::invariant).
    ///
    /// # Errors
    /// [`Error::Argument`] for a request of another split.
    pub(super) fn with_order<T: Scalar<O>, O: Output>(&self, target: &Target) -> Result<Self> {
        let Some(lines) = self.invariant else { return Ok(*self) };
        // Without an element there are no bits.
        if self.batch == 0 || self.shape.c_len() == 0 {
            return Ok(*self);
        }
        let target = self.ordered_as_on.as_ref().unwrap_or(target);
        let order = order_of::<T, O>(self, lines, target)?;
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
