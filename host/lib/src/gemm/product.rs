//! `Gemm`: the settings of a product.

use gpu::registry::{Entry, Scheme};
use simt::types::Typed;

use super::{
    Activation, Batch, Bias, Compute, Invariant, Output, PreparedMatrix, Scalar, Scales, Target,
    TuningCache,
    prepared::Prepared,
    scalar::{self, Kernel},
    scales::ScalePlan,
    select::{
        DEFAULT_WORKSPACE_LIMIT, MOST_PARTIALS, MOST_SPLITS, Request, SLICES_WORKSPACE_LIMIT,
    },
};
use crate::{
    error::{Error, Result},
    stream::Stream,
};

/// The product `C = activation(alpha op(A) op(B) + beta C +
/// bias)`, to be run any number of times. A is `m x k`, B is `k x n`, C is `m x n`.
///
/// A and B have elements of `T`; C and the bias have elements of `O`. [`Scalar`] says which types
/// go together. A transpose is [a view](crate::MatrixView::t) of an operand.
///
/// ```
/// use gpu_gemm::{Activation, Bias, Device, Gemm, Matrix};
///
/// let device = Device::best().device;
/// let a = Matrix::from_row_major(&device, 2, 2, &[1.0f32, 2.0, 3.0, 4.0])?;
/// let mut c = Matrix::from_row_major(&device, 2, 2, &[0.0, 1.0, 2.0, 3.0])?;
/// let bias = device.upload(&[-10.0, 10.0])?;
///
/// // C = relu(A A^T / 2 + C + bias). The bias is added to each row.
/// let gemm = Gemm::new().alpha(0.5).beta(1.0);
/// let gemm = gemm.bias(Bias::PerCol(bias.all())).activation(Activation::Relu);
/// gemm.run(&device.stream()?, a.view(), a.view().t(), c.view_mut())?;
/// assert_eq!(c.to_row_major()?, [0.0, 16.5, 0.0, 25.5]);
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Gemm<'a, T, O = T> {
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) bias: Option<Bias<'a, O>>,
    pub(super) activation: Activation,
    pub(super) scales: Option<Scales<'a>>,
    pub(super) compute: Compute,
    pub(super) kernel: Option<Kernel>,
    pub(super) workspace_limit: Option<u64>,
    pub(super) split_k: Option<u32>,
    pub(super) partials: Option<u32>,
    pub(super) is_invariant: bool,
    /// The device whose order of sums an invariant product has, if not its own.
    pub(super) ordered_as_on: Option<Target>,
    /// A, or B, or both.
    pub(super) prepared: [Option<&'a PreparedMatrix<'a, T>>; 2],
    pub(super) tuned: Option<&'a TuningCache>,
}

impl<T: Scalar> Default for Gemm<'_, T> {
    fn default() -> Self {
        Gemm::new()
    }
}

// Not for any `O`: so the compiler infers the type of C, of a `Matrix::zeros` for example, from
// that of A.
impl<T: Scalar> Gemm<'_, T> {
    /// `C = A B`. C has the type of A and B.
    pub fn new() -> Self {
        Gemm::of_types()
    }
}

impl<'a, T: Scalar<O>, O: Output> Gemm<'a, T, O> {
    /// `C = A B`. C has a type of its own: `Gemm::<Bf16, f32>::of_types()`.
    ///
    /// ```
    /// use gpu_gemm::{Bf16, Device, Gemm, Matrix};
    ///
    /// let device = Device::best().device;
    /// let values = [1.0, 2.0, 3.0, 4.0].map(Bf16::from_f32);
    /// let a = Matrix::from_row_major(&device, 2, 2, &values)?;
    /// let mut c = Matrix::<f32>::zeros(&device, 2, 2)?;
    /// let gemm = Gemm::<Bf16, f32>::of_types();
    /// gemm.run(&device.stream()?, a.view(), a.view().t(), c.view_mut())?;
    /// assert_eq!(c.to_row_major()?, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok::<(), gpu_gemm::Error>(())
    /// ```
    pub fn of_types() -> Self {
        Gemm {
            alpha: 1.0,
            beta: 0.0,
            bias: None,
            activation: Activation::default(),
            scales: None,
            compute: Compute::default(),
            kernel: None,
            workspace_limit: None,
            split_k: None,
            partials: None,
            is_invariant: false,
            ordered_as_on: None,
            prepared: [None; 2],
            tuned: None,
        }
    }

    /// The factor of A B. The default is 1. It is rounded to the type of the sums: that of A and B,
    /// or f32 for narrower floating-point numbers. For sums of i32 it must be an integer, and
    /// products and sums wrap around.
    #[must_use]
    pub fn alpha(self, alpha: impl Into<f64>) -> Self {
        Gemm { alpha: alpha.into(), ..self }
    }

    /// The factor of the old C. The default is 0: then C is not read. It is rounded as alpha is.
    #[must_use]
    pub fn beta(self, beta: impl Into<f64>) -> Self {
        Gemm { beta: beta.into(), ..self }
    }

    /// Adds a vector to each row or column of C. A C of i32 has none, and no activation.
    #[must_use]
    pub fn bias(self, bias: Bias<'a, O>) -> Self {
        Gemm { bias: Some(bias), ..self }
    }

    /// Applies a function to each element of C at the end.
    #[must_use]
    pub fn activation(self, activation: Activation) -> Self {
        Gemm { activation, ..self }
    }

    /// Multiplies A and B by scales. They are for 8-bit numbers with a C of floating-point numbers,
    /// e4m3 and e5m2 on Hopper or the CPU device, for A and B that are contiguous along a side.
    /// Scales of blocks are for floating-point numbers, and for a C whose rows are contiguous. Each
    /// product of a batch is a launch. Over several devices all are in the memory of the first, and
    /// each gets a copy from the first scale of its part to the last, with what is between them.
    #[must_use]
    pub fn scales(self, scales: Scales<'a>) -> Self {
        Gemm { scales: Some(scales), ..self }
    }

    /// Allows another arithmetic. The default is [`Compute::Native`].
    ///
    /// ```
    /// use gpu_gemm::{Compute, Device, Gemm, Matrix};
    ///
    /// let device = Device::cpu();
    /// let a = Matrix::from_row_major(&device, 1, 1, &[1.0f32 + 1.0 / 4096.0])?;
    /// let mut c = Matrix::zeros(&device, 1, 1)?;
    /// let tf32 = Gemm::new().compute(Compute::Tf32).kernel("wgmma_tf32_128x64x32_nn")?;
    /// tf32.run(&device.stream()?, a.view(), a.view(), c.view_mut())?;
    /// assert_eq!(c.to_row_major()?, [1.0]);
    /// # Ok::<(), gpu_gemm::Error>(())
    /// ```
    #[must_use]
    pub fn compute(self, compute: Compute) -> Self {
        Gemm { compute, ..self }
    }

    /// Names an operand whose slices were made before: A or B, or with two calls both. Kernels for
    /// emulated fp32 use the slices. Others use the matrix. The predicted time has no time for
    /// slices that are there, so slices are taken at fewer rows.
    ///
    /// A product is refused if the matrix, or its transpose, is neither A nor B.
    #[must_use]
    pub fn prepared(self, matrix: &'a PreparedMatrix<'a, T>) -> Self {
        let [first, _] = self.prepared;
        Gemm { prepared: [Some(matrix), first], ..self }
    }

    /// The slices for that scheme that were made before, of an operand that is the prepared matrix
    /// or its transpose.
    pub(super) fn planes_of(&self, operand: &Batch<T>, scheme: Scheme) -> Option<&'a Prepared> {
        let prepared = self.prepared.into_iter().flatten();
        let of_it = prepared.filter(|prepared| operand.is(&prepared.view()));
        of_it.filter_map(PreparedMatrix::slices).find(|slices| slices.rows(scheme).is_some())
    }

    /// Uses the kernel with this name, not the one that [`choose`](super::choose) selects. A
    /// product that the kernel cannot compute is refused.
    ///
    /// # Errors
    /// [`Error::Argument`] for a name that no kernel for these types has. It lists the names.
    pub fn kernel(self, name: &str) -> Result<Self> {
        Ok(Gemm { kernel: Some(scalar::find::<T, O>(name)?), ..self })
    }

    /// As [`kernel`](Self::kernel), for an entry of the [registry](gpu::registry).
    ///
    /// # Errors
    /// [`Error::Argument`] for a kernel that is not for these types.
    pub fn entry(self, entry: &'static Entry) -> Result<Self> {
        Ok(Gemm { kernel: Some(scalar::kernel_of::<T, O>(entry)?), ..self })
    }

    /// The most bytes of workspace: device memory besides the operands. A kernel that needs more is
    /// not used. The default is [`DEFAULT_WORKSPACE_LIMIT`], and [`SLICES_WORKSPACE_LIMIT`] for
    /// emulated fp32 and for 8 bits, of which most layouts are copied.
    #[must_use]
    pub fn workspace_limit(self, bytes: u64) -> Self {
        Gemm { workspace_limit: Some(bytes), ..self }
    }

    /// The most bytes of workspace.
    pub(super) fn most_workspace(&self) -> u64 {
        let limit = match self.compute.is_emulated() || T::TYPE.bytes() == 1 {
            true => SLICES_WORKSPACE_LIMIT,
            false => DEFAULT_WORKSPACE_LIMIT,
        };
        self.workspace_limit.unwrap_or(limit)
    }

    /// The number of blocks of a cluster that split k, 1 to 8. With more than 1 only kernels that
    /// can split k are used. The default is the number that is fastest on an H200, on every device.
    /// With any number, partial products are used only if [`partials`](Self::partials) asks for
    /// them, and then it must be 1.
    ///
    /// Each block computes a part of every sum, and the parts are added in order. The bits are the
    /// same in every run, but depend on the number of blocks.
    ///
    /// # Errors
    /// [`Error::Argument`] for a number outside of 1 to 8.
    pub fn split_k(self, blocks: u32) -> Result<Self> {
        match (1..=MOST_SPLITS).contains(&blocks) {
            true => Ok(Gemm { split_k: Some(blocks), ..self }),
            false => {
                let limit = format!("must be 1 to {}", MOST_SPLITS);
                Err(Error::argument("split_k", blocks, limit))
            }
        }
    }

    /// The number of partial products, 1 to 4096: split-K over the grid. Each is of a range of k,
    /// and a second launch adds them in a fixed order. 1 is a product without split-K. By default
    /// a GPU computes a small C with a long k in this way, where that is estimated to be faster.
    /// The number depends on the request and the kernel.
    ///
    /// Each partial product needs workspace for `m n` sums: `4 m n` bytes, of f64 `8 m n`.
    /// ([Invariant](Self::invariant) ones are computed for some rows at a time.)
    ///
    /// # Errors
    /// [`Error::Argument`] for a number outside of 1 to 4096.
    pub fn partials(self, count: u32) -> Result<Self> {
        match (1..=MOST_PARTIALS).contains(&count) {
            true => Ok(Gemm { partials: Some(count), ..self }),
            false => {
                let limit = format!("must be 1 to {MOST_PARTIALS}");
                Err(Error::argument("partials", count, limit))
            }
        }
    }

    /// The bits of a row of C depend on that row of A, on B, the scalars, the bias and the old row
    /// of C: not on the other rows, their number, the batch, or the number of SMs. So a request
    /// gives the same answer whatever is computed beside it.
    ///
    /// The products are added in one order, and k is split in one way, which follow from the types,
    /// n, k and the generation of the GPU. The fastest kernel of that order is used. It may be
    /// slower than without: docs/design/numerics.md has the order, and docs/log/selection.md how
    /// much. Emulated fp32 is not used: its scales are those of 64 rows.
    ///
    /// ```
    /// use gpu_gemm::{Gemm, Shape, gemm::{Request, Target}};
    ///
    /// let choice = |rows| {
    ///     let request = Request::dense(Shape::new(rows, 512, 8192)?);
    ///     Gemm::<f32>::new().invariant().choose(&request, &Target::H200)
    /// };
    /// let (one, many) = (choice(1)?, choice(5000)?);
    /// assert_eq!((one.split_k, one.partials), (many.split_k, many.partials));
    /// # Ok::<(), gpu_gemm::Error>(())
    /// ```
    ///
    /// A product is refused rather than computed with other bits: if a kernel was named that adds
    /// in another order, or another split of k; if copies of A and B do not fit into the
    /// [workspace](Self::workspace_limit), or the partial products of 64 rows of C (of 64 columns,
    /// if C has columns); and where k is split so, for more than 16384 products of a batch. On
    /// Hopper A and B are contiguous along one of their sides (f64: any). NaN is NaN, but may have
    /// other bits.
    #[must_use]
    pub fn invariant(self) -> Self {
        Gemm { is_invariant: true, ..self }
    }

    /// As [`invariant`](Self::invariant), in the order of another device: so the CPU device has the
    /// bits of a GPU. There the kernel is named, since the fastest one of that order is not known.
    #[doc(hidden)]
    #[must_use]
    pub fn invariant_as_on(self, target: Target) -> Self {
        Gemm { ordered_as_on: Some(target), ..self.invariant() }
    }

    /// Takes the kernel that is the fastest when it is timed, in the place of the one that is
    /// predicted to be. The first launch of a product times at most eight candidates with the
    /// shortest predictions, and the cache remembers the fastest: later launches time nothing.
    ///
    /// The first launch loads each candidate's kernel, which may take the driver a second, and
    /// launches each from two to some hundred times, for about 3 ms if it takes less. It waits for
    /// that, and for all work that was queued on the stream before. Until then it has memory for a
    /// second C, with gaps as large, and for the candidates' workspace. The product's C is not
    /// touched before it is computed, once.
    ///
    /// Which kernel is the fastest may differ from run to run where two are as fast as each other,
    /// and other kernels may round otherwise. So two caches may lead to other bits; one does not.
    ///
    /// A named kernel is taken untimed. In the capture of a graph, and where a stream is
    /// [prepared](crate::Stream::prepare) for one, nothing is timed: the choice is the one that the
    /// cache has, otherwise the predicted one. So launch once before. [`Gemm::choose`] and
    /// [`Gemm::plan`], which know no device, predict; [`Gemm::plan_on`] takes what the cache has.
    ///
    /// The launch of a tuned product may fail with [`Error::OutOfMemory`] for the second C, with
    /// errors of earlier work on the stream, for which it waits, and with those of the cache's
    /// [file](TuningCache::open). C is then as it was.
    #[must_use]
    pub fn tuned(self, cache: &'a TuningCache) -> Self {
        Gemm { tuned: Some(cache), ..self }
    }

    /// Whether its kernel may be one for emulated fp32. On the CPU device these are used by name
    /// only.
    pub(super) fn may_be_sliced(&self, stream: &Stream) -> bool {
        let named = |kernel: Kernel| kernel.entry.is_emulated();
        self.compute.is_emulated() && self.kernel.map_or(stream.device().is_cuda(), named)
    }

    /// The request with this product's settings.
    pub(super) fn request(&self, request: &Request) -> Request {
        let plain = request.plain && self.is_plain();
        let (Gemm { compute, split_k, partials, .. }, workspace_limit) =
            (*self, self.most_workspace());
        let invariant = self.is_invariant.then_some(Invariant::Rows).or(request.invariant);
        let ordered_as_on = self.ordered_as_on;
        let scales = ScalePlan::of(self.scales);
        // Scales are of all of k.
        let partials = if scales.are_there() { partials.or(Some(1)) } else { partials };
        let request = Request { plain, compute, workspace_limit, split_k, partials, ..*request };
        Request { invariant, ordered_as_on, scales: scales.kind, ..request }
    }

    /// Whether sums of integers have these factors, this bias and this activation.
    ///
    /// # Errors
    /// [`Error::Argument`].
    pub(super) fn check_epilogue(&self) -> Result<()> {
        if T::Sums::FORMAT.is_float() {
            return Ok(());
        }
        for (name, factor) in [("alpha", self.alpha), ("beta", self.beta)] {
            if T::rounded(factor) != factor {
                let limit = format!("must be an integer of {}, the type of the sums", O::NAME);
                return Err(Error::argument(name, factor, limit));
            }
        }
        let limit = || format!("must be none with a C of {}", O::NAME);
        match (self.bias, self.activation) {
            (Some(_), _) => Err(Error::argument("bias", "a vector", limit())),
            (None, Activation::Identity) => Ok(()),
            (None, other) => Err(Error::argument("activation", other, limit())),
        }
    }

    /// Whether it is `A B` alone.
    pub(super) fn is_plain(&self) -> bool {
        self.alpha == 1.0
            && self.beta == 0.0
            && self.bias.is_none()
            && self.activation == Activation::Identity
            && self.scales.is_none()
    }
}
