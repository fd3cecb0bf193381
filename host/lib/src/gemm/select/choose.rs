//! Candidates, and the choice among them.

use gpu::{params::NO_SCALES, registry::Entry};
use simt::types::Typed;

use super::{
    Request, Times,
    choice::{Candidate, Choice, Reason},
    fit::{Fit, evaluate},
    partials,
    rules::Ineligible,
};
use crate::{
    error::{Error, Result},
    gemm::{
        Output, Target,
        scalar::{self, Kernel, Scalar},
    },
};

fn candidate(kernel: Kernel, request: &Request, target: &Target) -> Candidate {
    let fit = evaluate(kernel, request, target);
    let known = fit.as_ref().ok();
    let times = known.and_then(|fit| fit.predicted(target));
    Candidate {
        entry: kernel.entry,
        ineligible: fit.err(),
        predicted_us: times.map(|times| times.us()),
        times,
        workspace_bytes: known.map_or(0, |fit| fit.workspace_bytes),
        split_k: known.map_or(1, |fit| fit.split_k),
        partials: 1,
    }
}

/// Every kernel for `T`, in the order of the registry.
pub fn candidates<T: Scalar>(request: &Request, target: &Target) -> Vec<Candidate> {
    candidates_of::<T, T>(request, target)
}

pub(in crate::gemm) fn candidates_of<T: Scalar<O>, O: Output>(
    request: &Request,
    target: &Target,
) -> Vec<Candidate> {
    let request = request.as_launched();
    // A split that the order does not have is an error of the choice.
    let request = request.with_order::<T, O>(target).unwrap_or(request);
    T::kernels().map(|kernel| candidate(kernel, &request, target)).collect()
}

/// Selects the kernel for a product: the one with that name, or the one with the shortest predicted
/// time.
///
/// ```
/// use gpu_gemm::{Shape, gemm::{Request, Target, choose}};
///
/// let request = Request::dense(Shape::new(1000, 700, 513)?);
/// let choice = choose::<f32>(&request, &Target::H200, None)?;
/// println!("{}: {}", choice.entry.name(), choice.reason);
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
///
/// # Errors
/// [`Error::Argument`] for an unknown name, and for a kernel that cannot compute the product.
pub fn choose<T: Scalar>(request: &Request, target: &Target, name: Option<&str>) -> Result<Choice> {
    let kernel = name.map(scalar::find::<T, T>).transpose()?;
    choose_kernel::<T, T>(request, target, kernel).map(|(_, choice)| choice)
}

/// The time on an H200 of a kernel with the request's split of k, for a fit of the figures that an
/// entry has. `None` if it cannot compute the product.
#[doc(hidden)]
pub fn predict(entry: &'static Entry, request: &Request) -> Option<Times> {
    let kernel = Kernel { entry, product: entry.product.as_ref()? };
    let (request, target) = (request.as_launched(), Target::H200);
    let fit = match request.partials {
        Some(2..) => partials::of_kernel(kernel, &request, &target)?,
        _ => evaluate(kernel, &request, &target).ok()?,
    };
    fit.predicted(&target)
}

/// As [`choose`], for any type of C.
pub(in crate::gemm) fn choose_kernel<T: Scalar<O>, O: Output>(
    request: &Request,
    target: &Target,
    kernel: Option<Kernel>,
) -> Result<(Kernel, Choice)> {
    let request = &request.as_launched().with_order::<T, O>(target)?;
    let none = || {
        let mut limit = format!("no kernel for {} can compute this product", T::name());
        let has_scales = request.scales != NO_SCALES;
        if request.order.is_some() || has_scales {
            // The first one that would.
            let what = if has_scales { "scales" } else { "the bits of an invariant one" };
            let why = |kernel: Kernel| match evaluate(kernel, request, target).err()? {
                Ineligible::Order | Ineligible::Scales => None,
                why => Some(format!(" with {what}: {} {why}", kernel.entry.name())),
            };
            limit += &T::kernels().find_map(why).unwrap_or_default();
        }
        Error::argument("kernel", "auto", limit)
    };
    let Ways { whole, in_parts } = Ways::of(request, kernel);
    if let (true, Some(blocks @ 2..)) = (in_parts && !whole, request.split_k) {
        let limit = "must be 1 with partial products, which split k already";
        return Err(Error::argument("split_k", blocks, limit));
    }
    if let Some(kernel) = kernel {
        if request.order.is_some_and(|order| !order.is_of(kernel.product)) {
            return Err(Error::argument(
                "kernel",
                kernel.entry.name(),
                Ineligible::Order.to_string(),
            ));
        }
        let fit = match in_parts {
            false => fit_of(kernel, request, target)?,
            true => partials::of_kernel(kernel, request, target).ok_or_else(|| {
                no_partials(&format!("{} does not compute", kernel.entry.name()), request)
            })?,
        };
        return Ok((kernel, fit.choice(Reason::Named, target)));
    }
    // One pass without an allocation: a thread comes here for each request that it does not
    // remember.
    let (mut best, mut next) = (None::<Fit>, None::<Fit>);
    let whole_products = T::kernels()
        .filter(|_| whole)
        .filter_map(|kernel| evaluate(kernel, request, target).ok())
        .filter(|fit| fit.times.is_some());
    for fit in whole_products {
        if is_faster(&fit, &best) {
            next = best.replace(fit);
        } else if is_faster(&fit, &next) {
            next = Some(fit);
        }
    }
    let types = [T::TYPE, T::Sums::TYPE];
    let whole_us = best.and_then(|fit| fit.us());
    let of_parts = in_parts.then(|| partials::fastest(types, request, target, whole_us)).flatten();
    if let Some(of_parts) = of_parts.filter(|of_parts| is_faster(of_parts, &best)) {
        next = best.replace(of_parts);
    }
    let Some(fit) = best else {
        return Err(if whole { none() } else { no_partials("no kernel computes", request) });
    };
    let us = |fit: &Fit| fit.predicted(target).map(|times| times.us());
    let next = next.and_then(|next| Some((next.kernel, us(&next)?)));
    let reason = match (us(&fit), next) {
        (Some(predicted_us), Some((next, next_us))) => {
            Reason::Fastest { predicted_us, next: next.entry.name(), next_us }
        }
        _ => Reason::Only,
    };
    Ok((fit.kernel, fit.choice(reason, target)))
}

/// Which of both a request allows.
#[derive(Clone, Copy)]
pub(super) struct Ways {
    /// One product.
    pub(super) whole: bool,
    /// Partial products.
    pub(super) in_parts: bool,
}

impl Ways {
    /// Those of a request. A named kernel computes partial products only if they are asked for.
    pub(super) fn of(request: &Request, kernel: Option<Kernel>) -> Self {
        match request.partials {
            None => Ways { whole: true, in_parts: kernel.is_none() },
            Some(count) => Ways { whole: count == 1, in_parts: count > 1 },
        }
    }
}

/// Whether its time is known, and shorter.
fn is_faster(fit: &Fit, than: &Option<Fit>) -> bool {
    let us = |fit: &Fit| fit.us().unwrap_or(f64::INFINITY);
    than.as_ref().is_none_or(|than| us(fit).total_cmp(&us(than)).is_lt())
}

/// The partial products that a request asks for are computed by no kernel, or not by this one.
fn no_partials(who: &str, request: &Request) -> Error {
    if request.order.is_some() {
        let limit = format!(
            "{who} them, and an invariant product of this n and k has so many. They need workspace for copies of A and B and \
             for sums of 64 rows each (64 columns, if C has columns), operands that are contiguous along a side, a kernel \
             whose C has the sums' type, and at most 16384 products of a batch"
        );
        return Error::argument("partials", request.partials.unwrap_or(1), limit);
    }
    let limit = format!(
        "{who} them for this request: one product at a time, with k above 64, \
         with m n sums of workspace each, and a kernel whose C has their type"
    );
    Error::argument("partials", request.partials.unwrap_or(1), limit)
}

fn fit_of(kernel: Kernel, request: &Request, target: &Target) -> Result<Fit> {
    evaluate(kernel, request, target)
        .map_err(|why| Error::argument("kernel", kernel.entry.name(), why.to_string()))
}

/// The choice of a given kernel.
///
/// # Errors
/// [`Error::Argument`] if it cannot compute the product.
#[cfg(feature = "cpu")]
pub(in crate::gemm) fn choice_of(
    kernel: Kernel,
    request: &Request,
    target: &Target,
) -> Result<Choice> {
    fit_of(kernel, request, target).map(|fit| fit.choice(Reason::Named, target))
}

#[cfg(test)]
mod tests;
