//! The general product: `C = activation(alpha op(A) op(B) + beta C + bias)`.
//!
//! ```
//! use host::{Device, Gemm, Layout, Matrix};
//!
//! let device = Device::best().device;
//! let stream = device.stream()?;
//! let a = Matrix::from_row_major(&device, 2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let b = Matrix::from_row_major(&device, 2, 3, &[1.0, 0.0, 1.0, 0.0, 1.0, 1.0])?;
//! let mut c = Matrix::with_layout(&device, 2, 2, Layout::ColMajor, 2)?;
//!
//! // C = A B^T / 2: a transpose is a view, and so is a part of a matrix.
//! let choice = Gemm::new().alpha(0.5).run(&stream, a.view(), b.view().t(), c.view_mut())?;
//! assert_eq!(c.to_row_major()?, [2.0f32, 2.5, 5.0, 5.5]);
//! println!("{}: {}", choice.entry.name(), choice.reason);
//! # Ok::<(), host::Error>(())
//! ```
//!
//! # Rules, as in BLAS
//! * With `beta = 0` C is not read and may hold anything; with `alpha = 0` or `k = 0` A and B are not read.
//! * Any size may be 0. Where C stays as it is (`beta = 1`, and `alpha = 0` or `k = 0`, no bias, no activation)
//!   nothing is launched, and not a bit of it changes.
//! * C shares no element with A, B or the bias. Borrows see to that; of [foreign](crate::Device::foreign) memory it is
//!   checked.
//!
//! # What comes out
//! An element is one sum in the order of k, by fused multiply-adds in the operands' type, then
//! `fma(beta, c, alpha * sum)`, the bias, the activation, each rounded. Operands of [`Bf16`](simt::Bf16) or
//! [`F16`](simt::F16) are widened to f32 first, and everything is computed in that; where C is of their type too, it is
//! rounded once more at the end, to the nearest: of f16 what would be 65520 or more is infinite, though no sum before has
//! overflowed.
//!
//! Every kernel gives the same bits, on every device, in every run, but for four things: a zero's sign where a product
//! underflowed (tiles are filled up with zeros, and -0 + 0 is 0); `rust_cuda_tiled16`, which is taken by name alone and
//! rounds each product; the kernels `tma_..`, which may put a sum together of parts: warps or blocks that split k
//! ([`Gemm::split_k`]; by default as many on every device) add up each its own, and the parts are added in order, as are the partial products
//! of split-K over the grid ([`Gemm::partials`]); and the kernels `wgmma_..` of bf16 and
//! f16, whose tensor cores add 16 products and the sum before at a time, and cut off what is beyond 25 bits behind the
//! greatest and beyond an f32, so that sums are a little too small (of tf32, where [`Compute::Tf32`] allows it, they add 8
//! products of factors that were rounded to it; the kernels `mma_..`, on the tensor cores of other GPUs, add as many as
//! those do, on Ampere and Ada half of it and a bit less of each; of slices, where [`Compute::Fp32Bf16x6`] or [`Compute::Fp32F16x3`]
//! asks for them, up to 64 k-steps go by until a sum is rounded to the nearest). So these give the same bits in every run too, but
//! others. (Those with tiles of two widths, `wgmma_bf16x6_256x192x64_c2_..` and `wgmma_f16x3_256x192x64_c2_..`,
//! have them where it suits the number of SMs: on another device, in a batch or of a part of C some bits may be others, within the same bound.) Subnormal numbers are kept. The sign of a zero is what those operations make of it.

mod batch;
mod compute;
mod counters;
pub(crate) mod execute;
mod operands;
mod plan;
mod prepared;
mod scalar;
mod select;
mod slices;
mod split;
mod target;

use std::fmt;

use gpu::registry::Entry;

pub use batch::{Batch, BatchMut};
pub use compute::Compute;
pub use execute::checked;
pub use plan::{Launch, Plan, Role};
pub use prepared::PreparedMatrix;
#[doc(hidden)]
pub use scalar::Kernel;
pub use scalar::{Output, Scalar};
pub use select::{
    Candidate, Choice, DEFAULT_WORKSPACE_LIMIT, Ineligible, Reason, Request,
    SLICES_WORKSPACE_LIMIT, candidates, choose,
};
pub use target::Target;

use simt::Limits;

use self::{
    plan::Task,
    select::{MOST_PARTIALS, MOST_SPLITS, choose_kernel},
};
use crate::{
    buffer::BufferView,
    error::{Error, Result},
    launch::Stream,
    matrix::{MatrixView, MatrixViewMut, SliceView, SliceViewMut},
};

/// What becomes of an element of C at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activation {
    /// It stays.
    #[default]
    Identity,
    /// `max(x, 0)`; NaN stays NaN.
    Relu,
    /// `x (1 + erf(x / sqrt(2))) / 2`.
    Gelu,
}

/// What is added to C, before the activation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Bias<'a, T> {
    /// Element i to all of row i: m elements.
    PerRow(BufferView<'a, T>),
    /// Element j to all of column j: n elements.
    PerCol(BufferView<'a, T>),
}

impl<'a, T> Bias<'a, T> {
    /// What is added.
    fn elements(self) -> BufferView<'a, T> {
        let (Bias::PerRow(elements) | Bias::PerCol(elements)) = self;
        elements
    }
}

/// A general product, to be run any number of times: of operands of `T`, with C and the bias of `O` ([`Scalar`] says which
/// types go together).
#[derive(Clone, Copy, Debug)]
pub struct Gemm<'a, T, O = T> {
    alpha: f64,
    beta: f64,
    bias: Option<Bias<'a, O>>,
    activation: Activation,
    compute: Compute,
    kernel: Option<Kernel>,
    workspace_limit: Option<u64>,
    split_k: Option<u32>,
    partials: Option<u32>,
    /// Of these A or B may be one, or both.
    prepared: [Option<&'a PreparedMatrix<'a, T>>; 2],
}

impl<T: Scalar> Default for Gemm<'_, T> {
    fn default() -> Self {
        Gemm::new()
    }
}

// Not for any `O`: from one operand's type the compiler is to know the other's and C's, as where `Matrix::zeros` makes C
// and nothing says of what.
impl<T: Scalar> Gemm<'_, T> {
    /// `C = A B`, with C of the operands' type.
    pub fn new() -> Self {
        Gemm::of_types()
    }
}

impl<'a, T: Scalar<O>, O: Output> Gemm<'a, T, O> {
    /// `C = A B`, with C of a type that is named: `Gemm::<Bf16, f32>::of_types()`.
    ///
    /// ```
    /// use host::{Bf16, Device, Gemm, Matrix};
    ///
    /// let device = Device::best().device;
    /// let values = [1.0, 2.0, 3.0, 4.0].map(Bf16::from_f32);
    /// let a = Matrix::from_row_major(&device, 2, 2, &values)?;
    /// let mut c = Matrix::<f32>::zeros(&device, 2, 2)?;
    /// let gemm = Gemm::<Bf16, f32>::of_types();
    /// gemm.run(&device.stream()?, a.view(), a.view().t(), c.view_mut())?;
    /// assert_eq!(c.to_row_major()?, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok::<(), host::Error>(())
    /// ```
    pub fn of_types() -> Self {
        Gemm {
            alpha: 1.0,
            beta: 0.0,
            bias: None,
            activation: Activation::default(),
            compute: Compute::default(),
            kernel: None,
            workspace_limit: None,
            split_k: None,
            partials: None,
            prepared: [None; 2],
        }
    }

    /// The factor of A B; it is rounded to the type that sums are kept in, which is the operands', or f32 for bf16 and
    /// f16. 1 where
    /// nothing else is said.
    #[must_use]
    pub fn alpha(self, alpha: impl Into<f64>) -> Self {
        Gemm { alpha: alpha.into(), ..self }
    }

    /// The factor of what C was; it is rounded as alpha is. 0 where nothing else is said.
    #[must_use]
    pub fn beta(self, beta: impl Into<f64>) -> Self {
        Gemm { beta: beta.into(), ..self }
    }

    /// Adds a bias to C.
    #[must_use]
    pub fn bias(self, bias: Bias<'a, O>) -> Self {
        Gemm { bias: Some(bias), ..self }
    }

    /// What becomes of C's elements at the end.
    #[must_use]
    pub fn activation(self, activation: Activation) -> Self {
        Gemm { activation, ..self }
    }

    /// How it may be computed: [`Compute::Native`] where nothing else is said.
    ///
    /// ```
    /// use host::{Compute, Device, Gemm, Matrix};
    ///
    /// let device = Device::cpu();
    /// let a = Matrix::from_row_major(&device, 1, 1, &[1.0f32 + 1.0 / 4096.0])?;
    /// let mut c = Matrix::zeros(&device, 1, 1)?;
    /// let tf32 = Gemm::new().compute(Compute::Tf32).kernel("wgmma_tf32_128x64x32_nn")?;
    /// tf32.run(&device.stream()?, a.view(), a.view(), c.view_mut())?;
    /// assert_eq!(c.to_row_major()?, [1.0]);
    /// # Ok::<(), host::Error>(())
    /// ```
    #[must_use]
    pub fn compute(self, compute: Compute) -> Self {
        Gemm { compute, ..self }
    }

    /// Operands of which slices have been made before: A, B, or with two calls both. A kernel that multiplies slices takes
    /// these, and others what they would take without.
    ///
    /// A product of which such a matrix is neither A nor B, transposed or not, is refused: it may have been meant to be.
    #[must_use]
    pub fn prepared(self, matrix: &'a PreparedMatrix<'a, T>) -> Self {
        let [first, _] = self.prepared;
        Gemm { prepared: [Some(matrix), first], ..self }
    }

    /// The slices of an operand that have been made before.
    fn planes_of(&self, elements: &BufferView<T>) -> Option<&'a prepared::Prepared> {
        let prepared = self.prepared.into_iter().flatten();
        let mut of_it = prepared.filter(|prepared| {
            let matrix = prepared.view().elements();
            matrix.address() == elements.address() && matrix.device() == elements.device()
        });
        of_it.find_map(PreparedMatrix::slices)
    }

    /// The kernel to take, in place of the one that [`choose`] takes. It is still checked whether it may.
    ///
    /// # Errors
    /// [`Error::Argument`], with the names that there are for these types.
    pub fn kernel(self, name: &str) -> Result<Self> {
        Ok(Gemm { kernel: Some(scalar::find::<T, O>(name)?), ..self })
    }

    /// The same for a kernel of the [registry](gpu::registry).
    ///
    /// # Errors
    /// [`Error::Argument`] for one that is not for these types.
    pub fn entry(self, entry: &'static Entry) -> Result<Self> {
        Ok(Gemm { kernel: Some(scalar::kernel_of::<T, O>(entry)?), ..self })
    }

    /// Bytes of the device's memory that a kernel may take besides the operands: one that needs more may not run.
    /// [`DEFAULT_WORKSPACE_LIMIT`] where nothing else is said, and [`SLICES_WORKSPACE_LIMIT`] for slices.
    #[must_use]
    pub fn workspace_limit(self, bytes: u64) -> Self {
        Gemm { workspace_limit: Some(bytes), ..self }
    }

    /// Bytes of workspace that its kernel may take.
    fn most_workspace(&self) -> u64 {
        let limit = match self.compute.is_emulated() {
            true => SLICES_WORKSPACE_LIMIT,
            false => DEFAULT_WORKSPACE_LIMIT,
        };
        self.workspace_limit.unwrap_or(limit)
    }

    /// How many blocks split k between them, 1 to 8, of a kernel that can; others may not run then, but with 1. As many as
    /// an H200 has room for where nothing else is said, on every device.
    ///
    /// Each adds up its own part of every sum, and the parts are added in order: the same bits in every run, but others
    /// than without.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number.
    pub fn split_k(self, blocks: u32) -> Result<Self> {
        match (1..=MOST_SPLITS).contains(&blocks) {
            true => Ok(Gemm { split_k: Some(blocks), ..self }),
            false => {
                let limit = format!("must be 1 to {}", MOST_SPLITS);
                Err(Error::argument("split_k", blocks, limit))
            }
        }
    }

    /// Partial products, each of a range of k, that a second launch adds in order: split-K over the grid, 1 to 256. 1 is a product without
    /// it. Where nothing is said, a small C with a long k is computed so on Hopper; the number depends on the request alone.
    ///
    /// It takes `4 m n` bytes of workspace for each.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number.
    pub fn partials(self, count: u32) -> Result<Self> {
        match (1..=MOST_PARTIALS).contains(&count) {
            true => Ok(Gemm { partials: Some(count), ..self }),
            false => {
                let limit = format!("must be 1 to {MOST_PARTIALS}");
                Err(Error::argument("partials", count, limit))
            }
        }
    }

    /// Puts the product on a stream and returns: A is `m x k`, B is `k x n`, C is `m x n`, in any layout. On the CPU
    /// device it has ended then.
    ///
    /// Nothing has to wait for it that uses the same matrices: what is launched on the same stream comes after it,
    /// what is launched on another stream of the device waits, and so does everything that reads or writes them from
    /// here.
    ///
    /// # Errors
    /// [`Error::Argument`] for what does not fit together, naming the argument, before
    /// anything is launched; then as [`Stream::launch`].
    pub fn launch(
        &self,
        stream: &Stream,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
    ) -> Result<Choice> {
        self.launch_batch(stream, Batch::one(a), Batch::one(b), BatchMut::one(c))
    }

    /// As [`Gemm::launch`], and waits until C is there. Emulated fp32 says how many elements were recomputed
    /// ([`Choice::recomputed`]). For that it waits for the device's other streams, too; other threads that launch emulated fp32 on the
    /// same stream wait meanwhile.
    ///
    /// # Errors
    /// As [`Gemm::launch`], and those of the kernels on this stream.
    pub fn run(
        &self,
        stream: &Stream,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
    ) -> Result<Choice> {
        let (a, b, c) = (Batch::one(a), Batch::one(b), BatchMut::one(c));
        counters::counted(stream, self.may_be_sliced(stream), || {
            let choice = execute::batch(self, stream, a, b, c)?;
            stream.synchronize()?;
            Ok(choice)
        })
    }

    /// The product of matrices in this machine's memory, slices or nalgebra's or ndarray's, and waits for it. A, B
    /// and, where `beta` is not 0, C are copied to the device as they lie, and C back; on the CPU device nothing is
    /// copied.
    ///
    /// ```
    /// use host::{Device, Gemm, SliceView, SliceViewMut};
    ///
    /// let stream = Device::best().device.stream()?;
    /// let (a, mut c) = ([1.0f64, 2.0, 3.0, 4.0], [0.0f64; 4]);
    /// let a = SliceView::row_major(&a, 2, 2)?;
    /// Gemm::new().run_slices(&stream, a, a.t(), SliceViewMut::row_major(&mut c, 2, 2)?)?;
    /// assert_eq!(c, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok::<(), host::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Gemm::run`]; [`Error::OutOfMemory`].
    pub fn run_slices<'s, A, B, C>(&self, stream: &Stream, a: A, b: B, c: C) -> Result<Choice>
    where
        A: TryInto<SliceView<'s, T>, Error: Into<Error>>,
        B: TryInto<SliceView<'s, T>, Error: Into<Error>>,
        C: TryInto<SliceViewMut<'s, O>, Error: Into<Error>>,
    {
        let a = a.try_into().map_err(|error| slices::of_operand("A", error.into()))?;
        let b = b.try_into().map_err(|error| slices::of_operand("B", error.into()))?;
        let c = c.try_into().map_err(|error| slices::of_operand("C", error.into()))?;
        counters::counted(stream, self.may_be_sliced(stream), || slices::run(self, stream, a, b, c))
    }

    /// Puts a batch of products on a stream, by one launch: product i is of A's, B's and C's i-th matrix, with the
    /// same scalars, bias and activation. The batches have equal counts.
    ///
    /// # Errors
    /// As [`Gemm::launch`].
    pub fn launch_batch(
        &self,
        stream: &Stream,
        a: Batch<T>,
        b: Batch<T>,
        c: BatchMut<O>,
    ) -> Result<Choice> {
        counters::uncounted(stream, self.may_be_sliced(stream), || {
            execute::batch(self, stream, a, b, c)
        })
    }

    /// Puts the products of matrices that lie anywhere on a stream, one launch each. All are checked before the first
    /// is launched.
    ///
    /// # Errors
    /// As [`Gemm::launch`]; [`Error::Argument`] where `inputs` and `outputs` are not as many.
    pub fn launch_array(
        &self,
        stream: &Stream,
        inputs: &[(MatrixView<T>, MatrixView<T>)],
        outputs: &mut [MatrixViewMut<O>],
    ) -> Result<Vec<Choice>> {
        counters::uncounted(stream, self.may_be_sliced(stream), || {
            execute::array(self, stream, inputs, outputs)
        })
    }

    /// May its kernel be one of slices? On the CPU device these are taken by name alone.
    fn may_be_sliced(&self, stream: &Stream) -> bool {
        let named = |kernel: Kernel| kernel.entry.is_emulated();
        self.compute.is_emulated() && self.kernel.map_or(stream.device().is_cuda(), named)
    }

    /// The choice that would be made for such operands, without a device. What this product says of its computation and
    /// its workspace counts, whatever the request does.
    ///
    /// # Errors
    /// [`Error::Argument`] where a kernel was asked for that may not run.
    pub fn choose(&self, request: &Request, target: &Target) -> Result<Choice> {
        let request = self.request(request);
        choose_kernel::<T, O>(&request, target, self.kernel).map(|(_, choice)| choice)
    }

    /// Every kernel for these types, in the order of the registry.
    pub fn candidates(&self, request: &Request, target: &Target) -> Vec<Candidate> {
        select::candidates_of::<T, O>(&self.request(request), target)
    }

    /// The choice that would be made, and the plan that follows from it, on a device with these limits. Batches are dense.
    ///
    /// # Errors
    /// As [`Gemm::choose`].
    pub fn plan(
        &self,
        request: &Request,
        target: &Target,
        limits: &Limits,
    ) -> Result<(Choice, Plan)> {
        let request = &self.request(request);
        let (kernel, choice) = choose_kernel::<T, O>(request, target, self.kernel)?;
        let launched = request.as_launched();
        let (shape, is_swapped) = (launched.shape, launched != *request);
        let bias = match (self.bias, is_swapped) {
            (Some(Bias::PerRow(elements)), true) => Some(Bias::PerCol(elements)),
            (Some(Bias::PerCol(elements)), true) => Some(Bias::PerRow(elements)),
            (bias, _) => bias,
        };
        let task = Task::new(self, launched, [shape.a_len(), shape.b_len(), shape.c_len()], bias);
        let on = (limits, target.sms);
        let split = [choice.split_k, choice.partials];
        let plan = Plan::new::<T, O>(kernel, choice.operands, split, task, on)?;
        Ok((choice, plan))
    }

    /// The request with what this product says of itself.
    fn request(&self, request: &Request) -> Request {
        let plain = request.plain && self.is_plain();
        let (Gemm { compute, split_k, partials, .. }, workspace_limit) =
            (*self, self.most_workspace());
        Request { plain, compute, workspace_limit, split_k, partials, ..*request }
    }

    /// Is it `A B`, and nothing else?
    fn is_plain(&self) -> bool {
        self.alpha == 1.0
            && self.beta == 0.0
            && self.bias.is_none()
            && self.activation == Activation::Identity
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Activation::Identity => "identity",
            Activation::Relu => "relu",
            Activation::Gelu => "gelu",
        })
    }
}
