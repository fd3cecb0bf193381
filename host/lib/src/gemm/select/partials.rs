//! Split-K over the grid: a product as a batch of partial products, each of a range of k, that a
//! second launch adds in a fixed order.
//!
//! A small C has few tiles, and a long k makes each of them slow. With a cluster alone, eight
//! blocks share a tile. The number of partial products depends on the request and the kernel. So
//! the same kernel gives the same bits on every GPU. Which kernel is fastest, and whether partial
//! products are, depends on the GPU.

use gpu::registry::{Product, Type};

use super::{
    Request,
    fit::{Fit, untimed},
    request::MOST_PARTIALS,
    times::Times,
};
use crate::gemm::{
    Target,
    scalar::{Kernel, kernels_of},
};

/// So often at most, since the plan is in host memory.
const MOST_REPETITIONS: usize = 1 << 14;

/// Elements of a C that is not computed so unless it is asked for: its tiles fill a GPU.
const MOST_LEN: usize = 1 << 22;

/// Each range of k is a multiple of this, so that it begins at multiples of sixteen bytes wherever
/// the operand does.
const STEP: usize = 64;

/// No range of k is shorter unless it is asked for.
const LEAST: usize = 256;

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

/// Rows of C whose partial products are computed and added before those of the next rows. All, but
/// for an [invariant](Request::invariant) product: then the sums and a copy of these rows of A take
/// half of the workspace at most. Or they are 64 rows, which begin at multiples of sixteen bytes
/// wherever the operand does.
pub(in crate::gemm) fn rows_at_once(request: &Request, count: usize, sum_bytes: usize) -> usize {
    let shape = request.shape;
    if request.invariant.is_none() {
        return shape.m();
    }
    let is_copied = !request.has_aligned_rows(sum_bytes);
    let copied = if is_copied { shape.k() } else { 0 };
    let sums = shape.n().saturating_mul(count);
    let row = sums.saturating_add(copied).saturating_mul(sum_bytes).max(1);
    let rows = (request.most_workspace() / 2) as usize / row;
    (rows / STEP * STEP).max(STEP).min(shape.m())
}

/// How often partial products are computed and added: for each product of a batch, and so many rows
/// of it at once. More than one is for an invariant product alone.
fn repetitions(request: &Request, rows: usize) -> usize {
    request.batch.saturating_mul(request.shape.m().div_ceil(rows.max(1)))
}

/// The partial products of a request: a batch in the workspace with a C of sums, which have so many
/// bytes. `None` where k is too short for that many.
fn request_of(request: &Request, count: u32, sum_bytes: u64) -> Option<Request> {
    let (shape, range) = (request.shape, range_of(request.shape.k(), count as usize));
    let batch = shape.k().div_ceil(range.max(1));
    let rows = rows_at_once(request, batch, sum_bytes as usize);
    let len = (rows as u64).saturating_mul(shape.n() as u64);
    let bytes = (batch as u64).saturating_mul(len).saturating_mul(sum_bytes);
    let [a, b, _] = request.strides;
    let fits = batch > 1 && shape.c_len() > 0 && bytes <= request.most_workspace();
    let most = if request.invariant.is_some() { MOST_REPETITIONS } else { 1 };
    let times = repetitions(request, rows);
    (fits && (1..=most).contains(&times)).then(|| Request {
        shape: shape.with_m(rows as u32).with_k(range as u32),
        strides: [a, b, [shape.n(), 1]],
        batch,
        split_k: Some(1),
        partials: None,
        plain: true,
        // Slices are of whole matrices.
        prepared: [false; 2],
        workspace_limit: request.most_workspace() - bytes,
        ..*request
    })
}

/// The time of the partial products of a request, and of their sum.
fn times(fit: &Fit, request: &Request, target: &Target) -> Option<Times> {
    let (product, count) = (fit.kernel.product, fit.partials as usize);
    let mut launches = launches(product, request.shape.k(), count);
    let all = launches.try_fold(Times::default(), |all, [_, batch, k]| {
        Some(all.and(fit.with(batch, k).launches_on(target)?))
    })?;
    let bytes = product.variant.c.bytes();
    let rows = rows_at_once(request, count, bytes);
    let sum = Times::of_sum(count, request.shape.with_m(rows as u32), bytes);
    Some(all.and(sum).repeated(repetitions(request, rows)).called())
}

/// That many partial products by a kernel, after their time on an H200. `None` if it does not
/// compute them.
fn of_count(
    kernel: Kernel,
    count: u32,
    request: &Request,
    target: &Target,
) -> Option<(Option<Times>, Fit)> {
    let bytes = kernel.product.variant.c.bytes() as u64;
    let partial = request_of(request, count, bytes)?;
    let mut fit = untimed(kernel, &partial, target).ok()?;
    fit.partials = partial.batch as u32;
    fit.workspace_bytes += request.most_workspace() - partial.workspace_limit;
    let of_h200 = times(&fit, request, &Target::H200);
    // Of Hopper GPUs the SMs alone count.
    let counts = |of: &Target| (of.cuda, of.capability, of.sms);
    fit.times = match counts(target) == counts(&Target::H200) {
        true => of_h200,
        false => times(&fit, request, target),
    };
    Some((of_h200, fit))
}

/// The best partial products by that kernel: the number that is fastest on an H200.
fn best(
    kernel: Kernel,
    counts: impl Iterator<Item = u32>,
    request: &Request,
    target: &Target,
) -> Option<Fit> {
    let variant = kernel.product.variant;
    let is_of_sums = variant.operands.sums_for(variant.c) == Some(variant.c.format());
    if !is_of_sums || kernel.product.is_lesson() {
        return None;
    }
    let us = |times: &Option<Times>| times.map_or(f64::INFINITY, |times| times.us());
    let of = counts.filter_map(|count| of_count(kernel, count, request, target));
    of.min_by(|(a, _), (b, _)| us(a).total_cmp(&us(b))).map(|(_, fit)| fit)
}

/// The partial products that a request asks for, by that kernel.
pub(super) fn of_kernel(kernel: Kernel, request: &Request, target: &Target) -> Option<Fit> {
    best(kernel, request.partials.into_iter(), request, target)
}

/// The fastest partial products. Their number is the request's, or the one with the shortest
/// predicted time. `whole_us`: the time of the fastest whole product. `None` where none is faster
/// than that without a look at each, unless the request asks for them.
pub(super) fn fastest(
    [operands, sums]: [Type; 2],
    request: &Request,
    target: &Target,
    whole_us: Option<f64>,
) -> Option<Fit> {
    // Two launches at least, of which one adds.
    let sum = Times::of_sum(2, request.shape, sums.bytes());
    let least_us = sum.and(Times::of_launch()).called().us();
    if request.partials.is_none() && whole_us.is_some_and(|us| us <= least_us) {
        return None;
    }
    let found = each([operands, sums], request, target);
    let timed = found.filter_map(|fit| Some((fit.us()?, fit)));
    timed.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, fit)| fit)
}

/// The best partial products of each kernel, if they are asked for, or may be faster.
pub(super) fn each<'a>(
    types: [Type; 2],
    request: &'a Request,
    target: &'a Target,
) -> impl Iterator<Item = Fit> + 'a {
    let shape = request.shape;
    let is_asked = request.partials.is_some();
    let is_small = shape.c_len() <= MOST_LEN && shape.k() >= 2 * LEAST;
    let may_be = is_asked || target.cuda && is_small && request.split_k.is_none();
    let counts = move || {
        let powers = (1..=MOST_PARTIALS.ilog2()).map(|power| 1 << power);
        let tried = powers.filter(move |&count| range_of(shape.k(), count as usize) >= LEAST);
        request.partials.into_iter().chain(tried.filter(move |_| !is_asked))
    };
    let kernels = may_be.then(|| kernels_of(types)).into_iter().flatten();
    kernels.filter_map(move |kernel| best(kernel, counts(), request, target))
}
