//! A product's settings.

use gpu::registry::Entry;

use super::{
    Activation, Bias, Compute, Output, PreparedMatrix, Scalar,
    prepared::Prepared,
    scalar::{self, Kernel},
    select::{
        DEFAULT_WORKSPACE_LIMIT, MOST_PARTIALS, MOST_SPLITS, Request, SLICES_WORKSPACE_LIMIT,
    },
};
use crate::{
    buffer::BufferView,
    error::{Error, Result},
    stream::Stream,
};

/// A general product, to be run any number of times: of operands of `T`, with C and the bias of `O` ([`Scalar`] says which
/// types go together).
#[derive(Clone, Copy, Debug)]
pub struct Gemm<'a, T, O = T> {
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) bias: Option<Bias<'a, O>>,
    pub(super) activation: Activation,
    pub(super) compute: Compute,
    pub(super) kernel: Option<Kernel>,
    pub(super) workspace_limit: Option<u64>,
    pub(super) split_k: Option<u32>,
    pub(super) partials: Option<u32>,
    /// Of these A or B may be one, or both.
    pub(super) prepared: [Option<&'a PreparedMatrix<'a, T>>; 2],
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
    pub(super) fn planes_of(&self, elements: &BufferView<T>) -> Option<&'a Prepared> {
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
    pub(super) fn most_workspace(&self) -> u64 {
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

    /// May its kernel be one of slices? On the CPU device these are taken by name alone.
    pub(super) fn may_be_sliced(&self, stream: &Stream) -> bool {
        let named = |kernel: Kernel| kernel.entry.is_emulated();
        self.compute.is_emulated() && self.kernel.map_or(stream.device().is_cuda(), named)
    }

    /// The request with what this product says of itself.
    pub(super) fn request(&self, request: &Request) -> Request {
        let plain = request.plain && self.is_plain();
        let (Gemm { compute, split_k, partials, .. }, workspace_limit) =
            (*self, self.most_workspace());
        Request { plain, compute, workspace_limit, split_k, partials, ..*request }
    }

    /// Is it `A B`, and nothing else?
    pub(super) fn is_plain(&self) -> bool {
        self.alpha == 1.0
            && self.beta == 0.0
            && self.bias.is_none()
            && self.activation == Activation::Identity
    }
}
