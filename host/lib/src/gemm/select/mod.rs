//! Which kernel computes a product: [`candidates`] lists all, [`choose`] takes one. Both are pure functions of a [`Request`] and a
//! [`Target`]; `--plan` prints them without a device.
//!
//! * [`rules`] reject kernels that cannot compute the request. A general kernel takes every product. A lesson's kernel takes `A B` of
//!   dense row-major matrices, one at a time. A TMA kernel needs Hopper (or the CPU device), operands that its [`layout`] rules can bring
//!   into its form, and workspace for their copies.
//! * [`predict`] gives each remaining kernel a time. The shortest wins.
//! * [`cache`] remembers a thread's last choices.

mod cache;
pub(super) mod layout;
pub(super) mod partials;
mod predict;
mod request;
mod rules;

use std::{cmp::Ordering, fmt};

use gpu::registry::Entry;
use serde::Serialize;

pub(super) use self::{
    cache::choose_cached, partials::MOST as MOST_PARTIALS, request::MOST_SPLITS,
};
use self::{
    layout::{OperandPlan, operand_plan},
    predict::{predict, split_k},
    rules::ineligible,
};
pub use self::{
    request::{DEFAULT_WORKSPACE_LIMIT, Request, SLICES_WORKSPACE_LIMIT},
    rules::Ineligible,
};
use super::{
    Output, Target,
    scalar::{self, Kernel, Scalar},
};
use crate::error::{Error, Result};

/// A kernel, whether it may run, and its cost.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The kernel.
    pub entry: &'static Entry,
    /// The rule that rejects it.
    pub ineligible: Option<Ineligible>,
    /// Its predicted time in microseconds. `None` where it was not measured, or where another kernel is always better: then it runs
    /// only if it is named.
    pub predicted_us: Option<f64>,
    /// Bytes of workspace.
    pub workspace_bytes: u64,
    /// Blocks of a cluster that split k.
    pub split_k: u32,
}

/// The kernel of a product.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Choice {
    /// The kernel.
    pub entry: &'static Entry,
    /// Why this one.
    pub reason: Reason,
    /// Bytes of workspace, at most the request's limit: for packed or transposed copies of operands, or for their slices.
    pub workspace_bytes: u64,
    /// Blocks of a cluster that split k.
    pub split_k: u32,
    /// Partial products, each of a range of k, that a second launch adds: split-K over the grid. 1 where the kernel writes C itself.
    pub partials: u32,
    /// Elements of C that a kernel for emulated fp32 recomputed by fused multiply-adds, because their error bound was too large. Many of
    /// them make it slow. `None` for other kernels, and for products that were launched without waiting: there
    /// [`Stream::recomputed`](crate::Stream::recomputed) gives the stream's total.
    pub recomputed: Option<u64>,
    /// What is done to its operands before.
    pub(super) operands: OperandPlan,
}

/// Why a kernel was selected.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// It was asked for.
    Named,
    /// It is the only measured one that may run.
    Only,
    /// It has the shortest predicted time.
    Fastest {
        /// Its predicted time in microseconds.
        predicted_us: f64,
        /// The next one.
        next: &'static str,
        /// The next one's predicted time in microseconds.
        next_us: f64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Reason::Named => f.write_str("asked for by name"),
            Reason::Only => f.write_str("the only one that takes such operands"),
            Reason::Fastest { predicted_us, next, next_us } => write!(
                f,
                "predicted to take {}, {next} {}",
                microseconds(*predicted_us),
                microseconds(*next_us)
            ),
        }
    }
}

/// A predicted time: two digits are more than it is good for.
fn microseconds(us: f64) -> String {
    match us {
        us if us < 9.95 => format!("{us:.1} us"),
        us if us < 9_950.0 => format!("{us:.0} us"),
        us => format!("{:.0} ms", us * 1e-3),
    }
}

/// The operand plan of a kernel that may run; nothing for one that may not.
fn operands(kernel: &Kernel, request: &Request) -> OperandPlan {
    match kernel.product.is_particular() {
        true => operand_plan(kernel.product, request).unwrap_or_default(),
        false => OperandPlan::default(),
    }
}

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

pub(super) fn candidates_of<T: Scalar<O>, O: Output>(
    request: &Request,
    target: &Target,
) -> Vec<Candidate> {
    let request = request.as_launched();
    T::kernels().map(|kernel| candidate(kernel, &request, target)).collect()
}

/// The kernel for such a product: the one of that name, or the fastest of those that may run.
///
/// # Errors
/// [`Error::Argument`] for a name that there is not, or of a kernel that may not run.
pub fn choose<T: Scalar>(request: &Request, target: &Target, name: Option<&str>) -> Result<Choice> {
    let kernel = name.map(scalar::find::<T, T>).transpose()?;
    choose_kernel::<T, T>(request, target, kernel).map(|(_, choice)| choice)
}

/// [`choose`], for C of another type.
pub(super) fn choose_kernel<T: Scalar<O>, O: Output>(
    request: &Request,
    target: &Target,
    kernel: Option<Kernel>,
) -> Result<(Kernel, Choice)> {
    let request = &request.as_launched();
    let none = || {
        let limit = format!("there is none for {} that takes such operands", T::NAME);
        Error::argument("kernel", "auto", limit)
    };
    // What is asked for, or allowed.
    let (whole, in_parts) = match request.partials {
        None => (true, kernel.is_none()),
        Some(count) => (count == 1, count > 1),
    };
    if let Some(kernel) = kernel {
        return match partials::of_kernel(kernel, request, target).filter(|_| in_parts) {
            Some(of) => Ok((kernel, of.choice(Reason::Named))),
            None if in_parts => Err(refused(kernel, Ineligible::Partials)),
            None => Ok((kernel, choice_of(kernel, request, target)?)),
        };
    }
    let of_whole = whole.then(|| fastest(T::kernels(), request, target)).flatten();
    let us = of_whole.map_or(f64::INFINITY, |(kernel, _)| {
        predict(&kernel, request, target).unwrap_or(f64::INFINITY)
    });
    let of_parts = in_parts.then(|| partials::fastest(T::ELEMENT, request, target)).flatten();
    match (of_whole, of_parts.filter(|of| of.us < us || !whole)) {
        (None, Some(of)) => Ok((of.kernel, of.choice(Reason::Only))),
        (Some((next, _)), Some(of)) => {
            let (predicted_us, next) = (of.us, next.entry.name());
            Ok((of.kernel, of.choice(Reason::Fastest { predicted_us, next, next_us: us })))
        }
        (Some((kernel, reason)), None) => Ok((kernel, made(kernel, reason, request, target))),
        (None, None) => Err(none()),
    }
}

fn refused(kernel: Kernel, why: Ineligible) -> Error {
    Error::argument("kernel", kernel.entry.name(), why.to_string())
}

/// The choice of that kernel.
///
/// # Errors
/// [`Error::Argument`] for one that may not run.
pub(super) fn choice_of(kernel: Kernel, request: &Request, target: &Target) -> Result<Choice> {
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

/// The fastest kernel that may run.
fn fastest(
    kernels: impl Iterator<Item = Kernel>,
    request: &Request,
    target: &Target,
) -> Option<(Kernel, Reason)> {
    // One pass without an allocation: every launch goes through here.
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
    Some((kernel, reason))
}

#[cfg(test)]
mod tests;
