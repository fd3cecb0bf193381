//! Matrices that are split into slices once, for many products.

use gpu::{
    kernels::emulated::{split_bf16x3::split_bf16x3, split_f16x2::split_f16x2},
    registry::Scheme,
};
use simt::F16;

use super::{Compute, planes::Planes, split::Slice};
use crate::{
    buffer::{AnyView, Buffer},
    error::Result,
    matrix::MatrixView,
    stream::Stream,
};

/// A matrix with its slices for emulated fp32 ([`Compute::Fp32Bf16x6`] or [`Compute::Fp32F16x3`]).
/// Weights that many products share are split once.
///
/// The slices take six bytes of device memory for each element, or four in f16.
/// [`Gemm::prepared`](super::Gemm::prepared) names the matrix to a product. The slices serve the
/// matrix and its transpose, but no part of it.
///
/// ```
/// use gpu_gemm::{Compute, Device, Gemm, Matrix, PreparedMatrix};
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
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct PreparedMatrix<'a, T> {
    matrix: MatrixView<'a, T>,
    slices: Option<Prepared>,
}

fn any<S: Slice>(buffer: &Buffer<S>) -> AnyView<'_> {
    AnyView::from(buffer.all()).for_boxes::<S>()
}

/// A matrix's slices.
#[derive(Debug)]
pub(super) enum Prepared {
    Bf16(Planes),
    F16(Planes<F16>),
}

impl Prepared {
    /// The planes and the ranges.
    pub(super) fn views(&self) -> [AnyView<'_>; 2] {
        match self {
            Prepared::Bf16(Planes { planes, ranges, .. }) => [planes, ranges].map(any),
            Prepared::F16(Planes { planes, ranges, .. }) => [planes, ranges].map(any),
        }
    }

    /// The number of rows, and of contiguous elements of each, if these are slices for that scheme.
    pub(super) fn rows(&self, scheme: Scheme) -> Option<(usize, usize)> {
        match (self, scheme) {
            (Prepared::Bf16(planes), Scheme::Bf16x6) => Some(planes.rows),
            (Prepared::F16(planes), Scheme::F16x3) => Some(planes.rows),
            _ => None,
        }
    }
}

impl<'a> PreparedMatrix<'a, f32> {
    /// As [`for_compute`](Self::for_compute), for [`Compute::Fp32Bf16x6`].
    ///
    /// # Errors
    /// As [`for_compute`](Self::for_compute).
    pub fn new(stream: &Stream, matrix: MatrixView<'a, f32>) -> Result<Self> {
        Self::for_compute(stream, matrix, Compute::Fp32Bf16x6)
    }

    /// Splits a matrix into the slices of that arithmetic, on a stream. Products on other streams
    /// wait for it. Products with another arithmetic use the matrix itself.
    ///
    /// On a GPU without kernels for slices, and for an empty matrix, this does nothing. The launch
    /// of a [`Graph`](crate::Graph) has no operand for slices. So it refuses a captured product of
    /// them.
    ///
    /// # Errors
    /// [`Error::Capture`](crate::Error::Capture) on a stream that is prepared or captured;
    /// [`Error::Argument`](crate::Error::Argument) for a matrix that is contiguous neither along
    /// rows nor along columns, and for one on another device than the stream's;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); as [`Stream::launch`].
    pub fn for_compute(
        stream: &Stream,
        matrix: MatrixView<'a, f32>,
        compute: Compute,
    ) -> Result<Self> {
        let slices = match compute {
            Compute::Native | Compute::Tf32 => None,
            Compute::Fp32Bf16x6 => {
                Planes::split(stream, &split_bf16x3, matrix)?.map(Prepared::Bf16)
            }
            Compute::Fp32F16x3 => Planes::split(stream, &split_f16x2, matrix)?.map(Prepared::F16),
        };
        Ok(PreparedMatrix { matrix, slices })
    }
}

impl<'a, T> PreparedMatrix<'a, T> {
    /// The matrix.
    pub fn view(&self) -> MatrixView<'a, T> {
        self.matrix
    }

    /// The slices.
    pub(super) fn slices(&self) -> Option<&Prepared> {
        self.slices.as_ref()
    }
}

#[cfg(test)]
mod tests;
