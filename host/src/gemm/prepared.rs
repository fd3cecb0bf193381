//! Matrices that are cut into slices once, for any number of products.

use gpu::kernels::gemm_sliced::slices::cut_bf16x3;

use super::sliced::Planes;
use crate::{error::Result, launch::Stream, matrix::MatrixView};

/// A matrix, and the slices that products of [`Compute::Fp32Bf16x6`](super::Compute::Fp32Bf16x6) make of it: weights that
/// many products share are cut once.
///
/// It takes six bytes an element of the device's memory, beside the matrix. [`Gemm::prepared`](super::Gemm::prepared) names it
/// to a product; a transpose of its view lies the same, and has the same slices; of a part of it there are none.
///
/// ```
/// use host::{Compute, Device, Gemm, Matrix, PreparedMatrix};
///
/// let device = Device::best().device;
/// let stream = device.stream()?;
/// let weights = Matrix::from_row_major(&device, 2, 2, &[1.0f32, 2.0, 3.0, 4.0])?;
/// let prepared = PreparedMatrix::new(&stream, weights.view())?;
/// let gemm = Gemm::new().compute(Compute::Fp32Bf16x6).prepared(&prepared);
/// for x in [[1.0f32, 0.0], [0.0, 1.0]] {
///     let x = Matrix::from_row_major(&device, 1, 2, &x)?;
///     let mut y = Matrix::<f32>::zeros(&device, 1, 2)?;
///     gemm.run(&stream, x.view(), prepared.view(), y.view_mut())?;
/// }
/// # Ok::<(), host::Error>(())
/// ```
#[derive(Debug)]
pub struct PreparedMatrix<'a, T> {
    matrix: MatrixView<'a, T>,
    planes: Option<Planes>,
}

impl<'a> PreparedMatrix<'a, f32> {
    /// Cuts a matrix whose rows, or whose columns, have their elements side by side. Products on other streams wait for it.
    ///
    /// On a GPU whose products are not cut, and of a matrix without elements, nothing is done.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for elements that lie side by side neither way, or on another device than
    /// the stream's; [`Error::OutOfMemory`](crate::Error::OutOfMemory); as [`Stream::launch`].
    pub fn new(stream: &Stream, matrix: MatrixView<'a, f32>) -> Result<Self> {
        Ok(PreparedMatrix { matrix, planes: Planes::cut(stream, &cut_bf16x3, matrix)? })
    }
}

impl<'a, T> PreparedMatrix<'a, T> {
    /// The matrix.
    pub fn view(&self) -> MatrixView<'a, T> {
        self.matrix
    }

    /// Its slices.
    pub(super) fn planes(&self) -> Option<&Planes> {
        self.planes.as_ref()
    }
}
