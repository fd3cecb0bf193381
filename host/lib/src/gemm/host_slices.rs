//! Products of matrices in host memory.

use super::{Batch, BatchMut, Choice, Gemm, Output, Scalar, execute};
use crate::{
    error::{Error, Result},
    matrix::{Layout, Matrix, MatrixView, MatrixViewMut, SliceView, SliceViewMut, view::extent},
    shape::Shape,
    stream::Stream,
};

/// The error of an operand that cannot be converted.
pub(super) fn of_operand(name: &str, error: Error) -> Error {
    error.renamed(|argument| format!("{name}.{argument}"))
}

/// [`Gemm::run_slices`].
pub(super) fn run<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    a: SliceView<T>,
    b: SliceView<T>,
    mut c: SliceViewMut<O>,
) -> Result<Choice> {
    // The sizes are checked before anything is copied.
    Shape::of_matrices([(a.rows(), a.cols()), (b.rows(), b.cols()), (c.rows(), c.cols())])?;
    let device = stream.device();
    if !device.is_cuda() {
        let buffer = |view: &SliceView<T>| {
            let len = extent(view.rows(), view.cols(), view.strides())?;
            // SAFETY: the elements are the view's, borrowed until this returns. The memory between
            // them may be somebody else's. A kernel does not access it, and nobody reads the buffer
            // as a whole.
            unsafe { device.foreign(view.start().expose_provenance() as u64, len) }
        };
        let (a_buffer, b_buffer) = (buffer(&a)?, buffer(&b)?);
        let c_len = extent(c.rows(), c.cols(), c.strides())?;
        // SAFETY: as above, borrowed mutably.
        let mut c_buffer = unsafe { device.foreign(c.start().expose_provenance() as u64, c_len) }?;
        let a = MatrixView::new(a_buffer.view(..)?, a.rows(), a.cols(), a.strides())?;
        let b = MatrixView::new(b_buffer.view(..)?, b.rows(), b.cols(), b.strides())?;
        let c = MatrixViewMut::new(c_buffer.view_mut(..)?, c.rows(), c.cols(), c.strides())?;
        // The borrows ensure that C overlaps neither A nor B, even if their rows alternate in
        // memory.
        let (a, b, c) = (Batch::one(a), Batch::one(b), BatchMut::one(c));
        let choice = execute::batch_of_borrows(gemm, stream, a, b, c)?;
        stream.synchronize()?;
        return Ok(choice);
    }
    let (a, b) = (Matrix::upload(device, a)?, Matrix::upload(device, b)?);
    let mut on_device = match gemm.beta == 0.0 {
        true => {
            let layout = c.as_view().layout();
            let leading = if layout == Layout::RowMajor { c.cols() } else { c.rows() };
            Matrix::with_layout(device, c.rows(), c.cols(), layout, leading)?
        }
        false => Matrix::upload(device, c.as_view())?,
    };
    let (a, b, to) = (a.view(), b.view(), on_device.view_mut());
    let (a, b, to) = (Batch::one(a), Batch::one(b), BatchMut::one(to));
    let choice = execute::batch(gemm, stream, a, b, to)?;
    on_device.download(c)?;
    Ok(choice)
}
