//! Candidates, and the choice among them.

use std::cmp::Ordering;

use super::{
    Candidate, Choice, Ineligible, Reason, Request,
    layout::operands,
    partials,
    predict::{predict, split_k},
    rules::ineligible,
};
use crate::{
    error::{Error, Result},
    gemm::{
        Output, Target,
        scalar::{self, Kernel, Scalar},
    },
};

fn candidate(kernel: Kernel, request: &Request, target: &Target) -> Candidate {
    let operands = operands(&kernel, request);
    Candidate {
        entry: kernel.entry,
        ineligible: ineligible(&kernel, request, target),
        predicted_us: predict(&kernel, request, target),
        workspace_bytes: operands.workspace_bytes(),
        split_k: split_k(&kernel, operands, request, target),
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

/// As [`choose`], for any type of C.
pub(in crate::gemm) fn choose_kernel<T: Scalar<O>, O: Output>(
    request: &Request,
    target: &Target,
    kernel: Option<Kernel>,
) -> Result<(Kernel, Choice)> {
    let request = &request.as_launched();
    let none = || {
        let limit = format!("no kernel for {} can compute this product", T::name());
        Error::argument("kernel", "auto", limit)
    };
    // Which of both the request allows: one product, or partial products.
    let (whole, in_parts) = match request.partials {
        None => (true, kernel.is_none()),
        Some(count) => (count == 1, count > 1),
    };
    if let (true, Some(blocks @ 2..)) = (in_parts && !whole, request.split_k) {
        let limit = "must be 1 with partial products, which split k already";
        return Err(Error::argument("split_k", blocks, limit));
    }
    if let Some(kernel) = kernel {
        return match partials::of_kernel(kernel, request, target).filter(|_| in_parts) {
            Some(of) => Ok((kernel, of.choice(Reason::Named))),
            None if in_parts => {
                Err(no_partials(&format!("{} does not compute", kernel.entry.name()), request))
            }
            None => Ok((kernel, choice_of(kernel, request, target)?)),
        };
    }
    let of_whole = whole.then(|| fastest(T::kernels(), request, target)).flatten();
    let us = of_whole.map_or(f64::INFINITY, |(us, ..)| us);
    let of_parts = in_parts.then(|| partials::fastest(T::TYPE, request, target)).flatten();
    match (of_whole, of_parts.filter(|of| of.us < us || !whole)) {
        (None, Some(of)) => Ok((of.kernel, of.choice(Reason::Only))),
        (Some((_, next, _)), Some(of)) => {
            let (predicted_us, next) = (of.us, next.entry.name());
            Ok((of.kernel, of.choice(Reason::Fastest { predicted_us, next, next_us: us })))
        }
        (Some((_, kernel, reason)), None) => Ok((kernel, made(kernel, reason, request, target))),
        (None, None) if !whole => Err(no_partials("no kernel computes", request)),
        (None, None) => Err(none()),
    }
}

/// The partial products that a request asks for are computed by no kernel, or not by this one.
fn no_partials(who: &str, request: &Request) -> Error {
    let limit = format!(
        "{who} them for this request: one product at a time, with k above 64, on the CPU or on a GPU of compute \
         capability 9.0, with m n sums of workspace each, and a kernel whose C has their type"
    );
    Error::argument("partials", request.partials.unwrap_or(1), limit)
}

fn refused(kernel: Kernel, why: Ineligible) -> Error {
    Error::argument("kernel", kernel.entry.name(), why.to_string())
}

/// The choice of a given kernel.
///
/// # Errors
/// [`Error::Argument`] if it cannot compute the product.
pub(in crate::gemm) fn choice_of(
    kernel: Kernel,
    request: &Request,
    target: &Target,
) -> Result<Choice> {
    match ineligible(&kernel, request, target) {
        None => Ok(made(kernel, Reason::Named, request, target)),
        Some(why) => Err(refused(kernel, why)),
    }
}

fn made(kernel: Kernel, reason: Reason, request: &Request, target: &Target) -> Choice {
    let operands = operands(&kernel, request);
    Choice {
        entry: kernel.entry,
        reason,
        workspace_bytes: operands.workspace_bytes(),
        split_k: split_k(&kernel, operands, request, target),
        partials: 1,
        recomputed: None,
        operands,
    }
}

/// The kernel with the shortest predicted time, after that time in microseconds.
fn fastest(
    kernels: impl Iterator<Item = Kernel>,
    request: &Request,
    target: &Target,
) -> Option<(f64, Kernel, Reason)> {
    // One pass without an allocation: a thread comes here for each request that it does not
    // remember.
    let (mut best, mut next) = (None::<(f64, Kernel)>, None::<(f64, Kernel)>);
    for kernel in kernels.filter(|kernel| ineligible(kernel, request, target).is_none()) {
        let Some(time) = predict(&kernel, request, target) else { continue };
        let faster = |than: &Option<(f64, _)>| {
            than.as_ref().is_none_or(|(other, _)| time.total_cmp(other) == Ordering::Less)
        };
        if faster(&best) {
            next = best.replace((time, kernel));
        } else if faster(&next) {
            next = Some((time, kernel));
        }
    }
    let (predicted_us, kernel) = best?;
    let reason = next.map_or(Reason::Only, |(next_us, next)| Reason::Fastest {
        predicted_us,
        next: next.entry.name(),
        next_us,
    });
    Some((predicted_us, kernel, reason))
}

#[cfg(test)]
mod tests;
