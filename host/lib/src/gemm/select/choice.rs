//! The outcome of a selection.

use std::fmt;

use gpu::registry::Entry;
#[cfg(feature = "serde")]
use serde::Serialize;
use simt::count_of;

use super::{layout::OperandPlan, rules::Ineligible, times::Times};

/// A kernel, whether it can compute a product, and its cost.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The kernel.
    pub entry: &'static Entry,
    /// The rule that rejects it. Then nothing else is known of it.
    pub ineligible: Option<Ineligible>,
    /// The predicted time in microseconds. `None` if the kernel was not measured, or another one is
    /// always better. Then it is used by name only.
    pub predicted_us: Option<f64>,
    /// That time by part.
    pub times: Option<Times>,
    /// Bytes of workspace.
    pub workspace_bytes: u64,
    /// The number of blocks of a cluster that split k.
    pub split_k: u32,
    /// The number of partial products, each of a range of k, that a second launch adds.
    pub partials: u32,
}

/// The kernel of a product.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Choice {
    /// The kernel.
    pub entry: &'static Entry,
    /// Why it was selected.
    pub reason: Reason,
    /// Bytes of workspace for packed or transposed copies of operands, or for slices. At most the
    /// request's limit.
    pub workspace_bytes: u64,
    /// The number of blocks of a cluster that split k.
    pub split_k: u32,
    /// The number of partial products, each of a range of k, that a second launch adds: split-K
    /// over the grid. 1 if the kernel writes C.
    pub partials: u32,
    /// The predicted time by part. `None` as [`Candidate::predicted_us`].
    pub times: Option<Times>,
    /// The number of elements of C that a kernel for emulated fp32 has recomputed by fused
    /// multiply-adds, because their error bound was too large. Many of them make it slow. `None`
    /// for other kernels, and for products that were launched without waiting.
    /// [`Stream::recomputed`](crate::Stream::recomputed) is the stream's total.
    pub recomputed: Option<u64>,
    /// How its operands are prepared.
    pub(in crate::gemm) operands: OperandPlan,
}

/// The kernel, why it was selected, how k is split, and the workspace.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Choice { entry, reason, split_k, partials, workspace_bytes, .. } = self;
        write!(f, "{}: {reason}", entry.name())?;
        if *split_k > 1 {
            write!(f, "; k is split over {split_k} blocks of a cluster")?;
        }
        if *partials > 1 {
            write!(f, "; {partials} partial products")?;
        }
        match workspace_bytes {
            0 => Ok(()),
            bytes => write!(f, "; {} of workspace", count_of(bytes, "byte")),
        }
    }
}

/// Why a kernel was selected.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Reason {
    /// It was named.
    Named,
    /// It is the only measured kernel that can compute the product.
    Only,
    /// It was the fastest when it was timed beside others ([`Gemm::tuned`](crate::Gemm::tuned)).
    Tuned {
        /// Microseconds of a product, when it was timed.
        us: f64,
        /// The number of candidates that were timed.
        timed: u32,
    },
    /// It has the shortest predicted time.
    Fastest {
        /// The predicted time in microseconds.
        predicted_us: f64,
        /// The kernel with the second shortest time.
        next: &'static str,
        /// That one's predicted time in microseconds.
        next_us: f64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Reason::Named => f.write_str("asked for by name"),
            Reason::Only => f.write_str("the only kernel for these operands"),
            Reason::Tuned { us, timed } => {
                write!(f, "timed: {}, the fastest of {timed}", microseconds(*us))
            }
            Reason::Fastest { predicted_us, next, next_us } => write!(
                f,
                "predicted to take {}, {next} {}",
                microseconds(*predicted_us),
                microseconds(*next_us)
            ),
        }
    }
}

/// A predicted time, with two digits: more would not be meaningful.
fn microseconds(us: f64) -> String {
    match us {
        us if us < 9.95 => format!("{us:.1} us"),
        us if us < 9_950.0 => format!("{us:.0} us"),
        us => format!("{:.0} ms", us * 1e-3),
    }
}
