//! Which kernel to take: may it run, and is it the fastest?
//!
//! Both are pure functions of what is asked for and where: [`candidates`] needs no device, and `--plan` prints it.
//!
//! **May it run** ([`Ineligible`]): a general kernel takes every product. A lesson's kernel takes `A B` of dense
//! row-major matrices, one at a time, without scalars, bias or activation. A kernel that takes its operands by tensor
//! copies needs Hopper (or the CPU device), operands that lie the way it reads them, perhaps with A and B exchanged
//! ([`tensor`] has the table), and a workspace for copies of those that do not, or whose rows do not begin at multiples of
//! sixteen bytes. None takes more workspace than it is allowed.
//!
//! **Is it the fastest**: the one with the shortest predicted time. A product is as many blocks as C has tiles, full
//! ones at the edges too. The fullest of the multiprocessors decides: with `q` blocks it needs `q` times a block's
//! operations over its speed, which it only comes to with several blocks at work at once; with one it has a share of it,
//! `alone`. Both numbers were measured, on one H200 and on a CPU core (docs/measurements.md says how); that other
//! devices have others does not change who is ahead of whom where it matters, which is at sizes that fill the device
//! with one tile and not with another. To the time of a kernel by tensor copies belong also its cluster's sums, the
//! bytes that it moves and those of copies ([`tensor`]). On the CPU device these kernels were not timed: there they are
//! taken by name alone.

use std::{cmp::Ordering, fmt};

use super::{
    Compute, Output, Target,
    scalar::{self, Kernel, Scalar},
    tensor::{self, Orientation},
};
use crate::{
    error::{Error, Result},
    product::Shape,
};
use gpu::registry::{Entry, Products, Scheme, Speed};
use serde::Serialize;

/// Bytes of workspace that a kernel may take where nothing else is said, 256 MiB: room for copies of both operands up to
/// 5792 x 5792 in f32, and little beside the memory of any GPU that can run the kernels.
pub const DEFAULT_WORKSPACE_LIMIT: u64 = 256 << 20;

/// The same where factors are cut into slices, 4 GiB: of both operands up to 18918 x 18918. Whoever asks for slices knows that
/// they are somewhere.
pub const SLICES_WORKSPACE_LIMIT: u64 = 4 << 30;

/// What of a product its kernel's choice depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// m, n, k.
    pub shape: Shape,
    /// Strides of A, B and C, in elements: between rows, between columns.
    pub strides: [[usize; 2]; 3],
    /// Products of a batch.
    pub batch: usize,
    /// Do A, and B, and each of a batch's, begin at multiples of sixteen bytes?
    pub aligned: [bool; 2],
    /// How many blocks are to split k between them, of a kernel that can; as many as an H200 has room for where it
    /// says nothing.
    pub split_k: Option<u32>,
    /// How it is to be computed.
    pub compute: Compute,
    /// Is it `A B`, with `alpha = 1`, `beta = 0`, no bias and no activation?
    pub plain: bool,
    /// Bytes of workspace that its kernel may take.
    pub workspace_limit: u64,
}

impl Request {
    /// `C = A B`, once, of matrices with these strides.
    pub fn new(shape: Shape, strides: [[usize; 2]; 3]) -> Self {
        Request {
            shape,
            strides,
            batch: 1,
            aligned: [true; 2],
            split_k: None,
            compute: Compute::default(),
            plain: true,
            workspace_limit: DEFAULT_WORKSPACE_LIMIT,
        }
    }

    /// `C = A B` of dense row-major matrices.
    pub fn dense(shape: Shape) -> Self {
        let (n, k) = (shape.n(), shape.k());
        Request::new(shape, [[k, 1], [n, 1], [n, 1]])
    }

    /// The same product as it is launched: where columns of C lie side by side, as `C^T = B^T A^T`.
    pub(super) fn as_launched(&self) -> Request {
        match scalar::exchanges(self.strides, (self.shape.m(), self.shape.n())) {
            true => self.exchanged(),
            false => *self,
        }
    }

    /// The same product as `C^T = B^T A^T`.
    pub(super) fn exchanged(&self) -> Request {
        let [a, b, c] = self.strides;
        let turned = |[between_rows, between_cols]: [usize; 2]| [between_cols, between_rows];
        let [aligned_a, aligned_b] = self.aligned;
        Request {
            shape: self.shape.transposed(),
            strides: [b, a, c].map(turned),
            aligned: [aligned_b, aligned_a],
            ..*self
        }
    }

    /// Are A, B and C dense and row-major? A stride that nothing is reached by may be any.
    fn is_dense(&self) -> bool {
        let (m, n, k) = (self.shape.m(), self.shape.n(), self.shape.k());
        let sizes = [(m, k), (k, n), (m, n)];
        self.strides.iter().zip(sizes).all(|(&[between_rows, between_cols], (rows, cols))| {
            let empty = rows == 0 || cols == 0;
            empty || (rows == 1 || between_rows == cols) && (cols == 1 || between_cols == 1)
        })
    }
}

/// Why a kernel may not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ineligible {
    /// It computes `A B` and nothing else.
    Plain,
    /// It takes dense row-major matrices.
    Dense,
    /// It computes one product a launch.
    Batch,
    /// It needs another GPU: of this compute capability, without its dot.
    Arch(u32),
    /// It takes the operand of that name (`A` or `B`) with its elements side by side along that side (`k`, `m` or `n`).
    Along {
        /// The operand.
        operand: &'static str,
        /// The side.
        side: &'static str,
    },
    /// The accelerator does not count to this size of A or B.
    TooLong(usize),
    /// It does not split k.
    Split,
    /// It rounds factors to tf32, which [`Compute::Tf32`] allows.
    Tf32,
    /// It cuts factors into slices, which [`Compute::Fp32Bf16x6`] asks for.
    Sliced,
    /// It cuts factors into scaled slices of f16, which [`Compute::Fp32F16x3`] asks for.
    SlicedF16,
    /// It needs more workspace than it may take.
    Workspace {
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that it may take.
        limit: u64,
    },
}

impl fmt::Display for Ineligible {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Ineligible::Plain => {
                f.write_str("computes A B alone: alpha = 1, beta = 0, no bias, no activation")
            }
            Ineligible::Dense => f.write_str("takes dense row-major matrices alone"),
            Ineligible::Batch => f.write_str("computes one product a launch"),
            Ineligible::Arch(arch) => {
                write!(f, "needs a GPU of compute capability {}.{}", arch / 10, arch % 10)
            }
            Ineligible::Along { operand, side } => {
                write!(f, "takes {operand} with its elements side by side along {side}")
            }
            Ineligible::TooLong(size) => {
                write!(f, "takes sizes up to 2^31, and one of A or B is {size}")
            }
            Ineligible::Split => f.write_str("does not split k"),
            Ineligible::Tf32 => f.write_str("rounds factors to tf32, which compute = tf32 allows"),
            Ineligible::SlicedF16 => {
                f.write_str("cuts factors into slices, which compute = fp32-f16x3 asks for")
            }
            Ineligible::Sliced => {
                f.write_str("cuts factors into slices, which compute = fp32-bf16x6 asks for")
            }
            Ineligible::Workspace { needed, limit } => {
                write!(f, "needs {needed} bytes of workspace, and may take {limit}")
            }
        }
    }
}

/// A kernel, whether it may run, and what it would take.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The kernel.
    pub entry: &'static Entry,
    /// Why it may not run, if so.
    pub ineligible: Option<Ineligible>,
    /// The time that it is predicted to take, in microseconds. `None` where nobody has measured it, or where it
    /// would be another kernel in a poorer form: then it is taken by name alone.
    pub predicted_us: Option<f64>,
    /// Bytes that it needs on the device besides its operands.
    pub workspace_bytes: u64,
    /// Blocks that split k between them: a cluster.
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
    /// Bytes that it needs on the device besides its operands, never more than the request's limit: for copies of operands
    /// that do not lie the way the kernel reads them, or whose rows do not begin where it needs them to.
    pub workspace_bytes: u64,
    /// Blocks that split k between them: a cluster.
    pub split_k: u32,
    /// Of a kernel of slices that has been waited for ([`Gemm::run`](super::Gemm::run),
    /// [`run_slices`](super::Gemm::run_slices), [products in blocks](crate::blocks)): how many elements of C it has computed again, by fused multiply-adds, because their
    /// slices could not be trusted. Many of these make it slow. `None` of other kernels, and where nobody has waited:
    /// there [`Stream::recomputed`](crate::Stream::recomputed) says it of all together.
    pub recomputed: Option<u64>,
    /// How it is given its operands.
    pub(super) orientation: Orientation,
}

/// Why a kernel was taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// It was asked for.
    Named,
    /// It is the only one that may run, of those that were measured.
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

/// Microseconds for blocks of so many operations each, so many of them on the fullest multiprocessor.
pub(super) fn time(speed: &Speed, of_one: f64, on_the_fullest: f64) -> f64 {
    let share = (speed.alone * on_the_fullest).min(1.0);
    if on_the_fullest == 0.0 {
        0.0
    } else {
        on_the_fullest * of_one / (speed.gflops * share) * 1e-3
    }
}

/// The tensor kernels', where they were not measured: what splits k best hardly depends on it.
const TENSOR: Speed = Speed { gflops: 400.0, alone: 0.87, fixed_us: 5.4, of: Products::All };

/// How fast a kernel is there, as far as that was measured.
fn speed(entry: &Entry, target: &Target) -> Option<Speed> {
    if target.cuda { entry.on_gpu } else { entry.on_cpu }
}

/// The time that a kernel is predicted to take, in microseconds.
fn predict(kernel: &Kernel, request: &Request, target: &Target) -> Option<f64> {
    let speed = speed(kernel.entry, target)?;
    match speed.of {
        // Hopper has faster units.
        Products::OtherGpus | Products::OtherGpusAligned if target.capability == (9, 0) => {
            return None;
        }
        Products::OtherGpusAligned if !is_in_pieces(kernel, request) => return None,
        _ => {}
    }
    if request.batch == 0 || request.shape.m() == 0 || request.shape.n() == 0 {
        return Some(0.0);
    }
    let product = kernel.product;
    if product.is_particular() {
        let way = orientation(kernel, request);
        let given = way.apply(request);
        let (m, n) = (given.shape.m(), given.shape.n());
        let is_known = match speed.of {
            Products::Columns(most) => n <= most,
            Products::ShorterSide(least) => request.batch == 1 && (least..=64).contains(&m.min(n)),
            _ => true,
        };
        if !is_known
            || tensor::is_narrow_alone(product, &given, target)
            || tensor::needs_no_classes(product, &given)
        {
            return None;
        }
        return Some(tensor::split_k(product, way, request, target, &speed).1);
    }
    let tiles = |size: usize, tile: u32| size.div_ceil(tile as usize) as f64;
    let [rows, cols] = product.tile();
    let shape = request.shape;
    let blocks = tiles(shape.m(), rows) * tiles(shape.n(), cols) * request.batch as f64;
    // What lies outside of C is computed with the rest of a tile, but by kernels that have none: of them threads take four columns.
    let computed = |size: usize, tile: u32| match product.is_direct() {
        true => size.min(tile as usize) as f64,
        false => f64::from(tile),
    };
    let n = shape.n().next_multiple_of(4);
    let of_one = 2.0 * computed(shape.m(), rows) * computed(n, cols) * shape.k() as f64;
    let on_the_fullest = (blocks / f64::from(target.multiprocessors)).ceil();
    Some(speed.fixed_us + time(&speed, of_one, on_the_fullest))
}

/// Are A and B rows or columns that begin at multiples of sixteen bytes?
fn is_in_pieces(kernel: &Kernel, request: &Request) -> bool {
    let unit = 16 / kernel.product.variant.operands.bytes();
    request.aligned == [true; 2]
        && request.strides[..2].iter().all(|&[between_rows, between_cols]| {
            let pitch = if between_cols == 1 { between_rows } else { between_cols };
            (between_rows == 1 || between_cols == 1) && pitch.is_multiple_of(unit)
        })
}

/// Why a kernel may not run, if so.
fn ineligible(kernel: &Kernel, request: &Request, target: &Target) -> Option<Ineligible> {
    // The PTX for 9.0 runs on no other, and the one for newer devices is without these kernels.
    let arch = kernel.entry.declaration().arch;
    let arch = arch.filter(|arch| target.cuda && target.capability != (arch / 10, arch % 10));
    let splits = request.split_k.is_some_and(|blocks| blocks > 1);
    let (product, scheme) = (kernel.product, kernel.product.variant.scheme);
    if arch.is_some() {
        return arch.map(Ineligible::Arch);
    }
    if product.is_lesson() {
        return match request {
            _ if !request.plain => Some(Ineligible::Plain),
            _ if request.batch > 1 => Some(Ineligible::Batch),
            _ if !request.is_dense() => Some(Ineligible::Dense),
            _ => splits.then_some(Ineligible::Split),
        };
    }
    let orientation = match product.is_particular().then(|| tensor::orientation(product, request)) {
        Some(Err((operand, side))) => return Some(Ineligible::Along { operand, side }),
        Some(Ok(orientation)) => Some(orientation),
        None => None,
    };
    match scheme {
        Scheme::Tf32 if request.compute != Compute::Tf32 => return Some(Ineligible::Tf32),
        Scheme::F16x3 if request.compute != Compute::Fp32F16x3 => {
            return Some(Ineligible::SlicedF16);
        }
        Scheme::Bf16x6 if request.compute != Compute::Fp32Bf16x6 => {
            return Some(Ineligible::Sliced);
        }
        _ => {}
    }
    let Some(orientation) = orientation else { return splits.then_some(Ineligible::Split) };
    let (needed, limit) = (orientation.workspace_bytes(), request.workspace_limit);
    let too_long = tensor::too_long(request).map(Ineligible::TooLong);
    too_long.or((needed > limit).then_some(Ineligible::Workspace { needed, limit }))
}

/// How a kernel is given its operands; as they are, where it does not take them.
fn orientation(kernel: &Kernel, request: &Request) -> Orientation {
    match kernel.product.is_particular() {
        true => tensor::orientation(kernel.product, request).unwrap_or_default(),
        false => Orientation::default(),
    }
}

/// Blocks that split k between them.
fn split_k(kernel: &Kernel, request: &Request, target: &Target) -> u32 {
    if !kernel.product.is_particular() {
        return 1;
    }
    let way = orientation(kernel, request);
    let speed = kernel.entry.on_gpu.unwrap_or(TENSOR);
    tensor::split_k(kernel.product, way, request, target, &speed).0
}

fn candidate(kernel: Kernel, request: &Request, target: &Target) -> Candidate {
    Candidate {
        entry: kernel.entry,
        ineligible: ineligible(&kernel, request, target),
        predicted_us: predict(&kernel, request, target),
        workspace_bytes: orientation(&kernel, request).workspace_bytes(),
        split_k: split_k(&kernel, request, target),
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
    choose_kernel::<T, T>(request, target, name).map(|(_, choice)| choice)
}

pub(super) fn choose_kernel<T: Scalar<O>, O: Output>(
    request: &Request,
    target: &Target,
    name: Option<&str>,
) -> Result<(Kernel, Choice)> {
    let request = &request.as_launched();
    let (kernel, reason) = match name {
        Some(name) => (named(scalar::find::<T, O>(name)?, request, target)?, Reason::Named),
        None => fastest(T::kernels(), request, target).ok_or_else(|| {
            let limit = format!("there is none for {} that takes such operands", T::NAME);
            Error::argument("kernel", "auto", limit)
        })?,
    };
    let orientation = orientation(&kernel, request);
    let workspace_bytes = orientation.workspace_bytes();
    let split_k = split_k(&kernel, request, target);
    let choice = Choice {
        entry: kernel.entry,
        reason,
        workspace_bytes,
        split_k,
        recomputed: None,
        orientation,
    };
    Ok((kernel, choice))
}

/// The kernel that was asked for, if it may run.
fn named(kernel: Kernel, request: &Request, target: &Target) -> Result<Kernel> {
    match ineligible(&kernel, request, target) {
        None => Ok(kernel),
        Some(why) => Err(Error::argument("kernel", kernel.entry.name(), why.to_string())),
    }
}

/// The fastest of those that may run.
fn fastest(
    kernels: impl Iterator<Item = Kernel>,
    request: &Request,
    target: &Target,
) -> Option<(Kernel, Reason)> {
    // One pass without an allocation: this is on the way of every launch.
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
