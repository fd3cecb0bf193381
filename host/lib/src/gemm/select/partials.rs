//! Split-K over the grid: a product as a batch of partial products, each of a range of k, that a
//! second launch adds in a fixed order.
//!
//! A small C has few tiles, and a long k makes each of them slow. With a cluster alone, eight
//! blocks share a tile. The number of partial products depends on the request and the kernel. So
//! the same kernel gives the same bits on every GPU. Which kernel is fastest, and whether partial
//! products are, depends on the GPU.

use gpu::registry::{KERNELS, Product, Type};

use super::{
    Choice, Reason, Request,
    layout::{OperandPlan, operands},
    predict::{Times, reduce_times, times},
    rules::ineligible,
};
use crate::gemm::{Target, scalar::Kernel};

/// Partial products at most. The last may have a shorter range of k.
pub(in crate::gemm) const MOST_PARTIALS: u32 = 4096;

/// Elements of a C that is not computed so unless it is asked for: its tiles fill a GPU.
const MOST_LEN: usize = 1 << 22;

/// Each range of k is a multiple of this, so that it begins at multiples of sixteen bytes wherever
/// the operand does.
const STEP: usize = 64;

/// No range of k is shorter unless it is asked for.
const LEAST: usize = 256;

/// A kernel for the partial products.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partials {
    pub(super) kernel: Kernel,
    pub(super) us: f64,
    pub(super) operands: OperandPlan,
    /// Partial products, and k of each but the last.
    pub(super) count: u32,
    /// Bytes of workspace: their sums, and copies of operands.
    pub(super) workspace_bytes: u64,
}

/// k of each partial product where there are about `count`.
pub(in crate::gemm) fn range_of(k: usize, count: usize) -> usize {
    k.div_ceil(count).next_multiple_of(STEP)
}

/// The launches of `count` partial products: the number of the first one, how many there are, and k
/// of each. A shorter last range has a launch of its own, unless the kernel knows where k ends.
pub(in crate::gemm) fn launches(
    product: &Product,
    k: usize,
    count: usize,
) -> impl Iterator<Item = [usize; 3]> {
    let range = range_of(k, count);
    let whole = if product.is_dot() { k.div_ceil(range) } else { k / range };
    let all = [[0, whole, range], [whole, 1, k.saturating_sub(whole * range)]];
    all.into_iter().filter(|[_, batch, k]| *batch > 0 && *k > 0)
}

/// The partial products of a request: a batch in the workspace with a C of sums, which have so many
/// bytes. `None` where k is too short for that many.
fn request_of(request: &Request, count: u32, sum_bytes: u64) -> Option<Request> {
    let (shape, range) = (request.shape, range_of(request.shape.k(), count as usize));
    let batch = shape.k().div_ceil(range.max(1));
    let bytes = (batch as u64).saturating_mul(shape.c_len() as u64).saturating_mul(sum_bytes);
    let [a, b, _] = request.strides;
    let fits = batch > 1 && shape.c_len() > 0 && bytes <= request.most_workspace();
    (fits && request.batch == 1).then(|| Request {
        shape: shape.with_k(range as u32),
        strides: [a, b, [shape.n(), 1]],
        batch,
        split_k: Some(1),
        partials: None,
        plain: false,
        workspace_limit: request.most_workspace() - bytes,
        ..*request
    })
}

/// The time of the partial products of a request in microseconds.
fn us_of(kernel: &Kernel, request: &Request, partial: &Request, target: &Target) -> Option<f64> {
    let bytes = kernel.product.variant.c.bytes();
    let added = reduce_times(partial.batch, request.shape.c_len() * bytes);
    let mut launches = launches(kernel.product, request.shape.k(), partial.batch);
    let all = launches.try_fold(Times::default(), |all, [_, batch, k]| {
        let launch = Request { shape: partial.shape.with_k(k as u32), batch, ..*partial };
        Some(all.and(times(kernel, &launch, target)?))
    })?;
    Some(all.and(added).us())
}

/// The best partial products by that kernel, and their time on an H200.
fn timed(
    kernel: Kernel,
    counts: impl Iterator<Item = u32>,
    request: &Request,
    target: &Target,
) -> Option<Partials> {
    let variant = kernel.product.variant;
    let is_for_it = variant.operands.sums() == Some(variant.c.format())
        && !kernel.product.is_lesson()
        && are_added_on(target);
    let of = |count: u32| {
        let partial = request_of(request, count, variant.c.bytes() as u64).filter(|_| is_for_it)?;
        if ineligible(&kernel, &partial, target).is_some() {
            return None;
        }
        let us = |target| us_of(&kernel, request, &partial, target).unwrap_or(f64::INFINITY);
        let bytes = request.most_workspace() - partial.workspace_limit;
        let operands = operands(&kernel, &partial);
        let (count, workspace_bytes) = (partial.batch as u32, bytes + operands.workspace_bytes());
        Some((
            us(&Target::H200),
            Partials { kernel, us: us(target), operands, count, workspace_bytes },
        ))
    };
    counts.filter_map(of).min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, found)| found)
}

/// Whether the target has the kernel that adds them: of GPUs only Hopper.
fn are_added_on(target: &Target) -> bool {
    !target.cuda || target.capability == (9, 0)
}

/// The partial products that a request asks for, by that kernel.
pub(super) fn of_kernel(kernel: Kernel, request: &Request, target: &Target) -> Option<Partials> {
    timed(kernel, request.partials.into_iter(), request, target)
}

/// The fastest partial products. Their number is the request's, or the one with the shortest
/// predicted time.
pub(super) fn fastest(operands: Type, request: &Request, target: &Target) -> Option<Partials> {
    let shape = request.shape;
    let is_asked = request.partials.is_some();
    let is_for_it = target.cuda && are_added_on(target);
    let is_small = shape.c_len() <= MOST_LEN && shape.k() >= 2 * LEAST;
    if !is_asked && !(is_for_it && is_small && request.split_k.is_none()) {
        return None;
    }
    let counts = || {
        let powers = (1..=MOST_PARTIALS.ilog2()).map(|power| 1 << power);
        let tried = powers.filter(|&count| range_of(shape.k(), count as usize) >= LEAST);
        request.partials.into_iter().chain(tried.filter(|_| !is_asked))
    };
    let kernels = KERNELS.iter().filter_map(|entry| {
        let product = entry.product.as_ref()?;
        (product.variant.operands == operands).then_some(Kernel { entry, product })
    });
    let found = kernels.filter_map(|kernel| timed(kernel, counts(), request, target));
    found.filter(|of| of.us.is_finite()).min_by(|a, b| a.us.total_cmp(&b.us))
}

impl Partials {
    /// The choice of these partial products.
    pub(super) fn choice(&self, reason: Reason) -> Choice {
        Choice {
            entry: self.kernel.entry,
            reason,
            workspace_bytes: self.workspace_bytes,
            split_k: 1,
            partials: self.count,
            recomputed: None,
            operands: self.operands,
        }
    }
}
