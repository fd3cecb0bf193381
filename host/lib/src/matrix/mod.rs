//! Matrices on a device.

mod slice;
pub(crate) mod view;

pub use slice::{SliceView, SliceViewMut};
pub use view::{MatrixView, MatrixViewMut, check_written, extent};

use crate::{
    buffer::{Buffer, BufferViewMut, Pod},
    device::Device,
    error::{Error, Result},
    memory,
};

/// The order of a matrix's elements in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The elements of a row are contiguous: the order of C and Rust.
    RowMajor,
    /// The elements of a column are contiguous: the order of Fortran and BLAS.
    ColMajor,
}

/// A matrix in the memory of a device: a buffer with a shape.
///
/// `leading_dimension` is the number of elements from the start of one row to the start of the next
/// (row-major), or of one column to the next (column-major). The elements between two rows or
/// columns are padding, which nobody reads or writes.
///
/// ```
/// use gpu_gemm::{Device, Layout, Matrix};
///
/// let device = Device::best().device;
/// let a = Matrix::from_row_major(&device, 2, 3, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(a.view().t().sub(1..3, 0..1)?.strides(), [1, 3]);
///
/// // Column-major, with columns of two elements that start four elements apart.
/// let mut b = Matrix::with_layout(&device, 2, 3, Layout::ColMajor, 4)?;
/// b.write_row_major(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(b.buffer().to_vec()?[..6], [1.0, 4.0, 0.0, 0.0, 2.0, 5.0]);
/// assert_eq!(b.to_row_major()?, a.to_row_major()?);
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct Matrix<T> {
    rows: usize,
    cols: usize,
    layout: Layout,
    leading_dimension: usize,
    buffer: Buffer<T>,
}

impl<T: Pod> Matrix<T> {
    /// A dense row-major matrix of zeros.
    ///
    /// # Errors
    /// As [`Matrix::with_layout`].
    pub fn zeros(device: &Device, rows: usize, cols: usize) -> Result<Self> {
        Matrix::with_layout(device, rows, cols, Layout::RowMajor, cols)
    }

    /// A matrix of zeros with a layout and a leading dimension, in elements.
    ///
    /// # Errors
    /// [`Error::Argument`] for a leading dimension shorter than a row (row-major) or a column
    /// (column-major), and for a matrix that cannot be addressed; [`Error::OutOfMemory`].
    pub fn with_layout(
        device: &Device,
        rows: usize,
        cols: usize,
        layout: Layout,
        leading_dimension: usize,
    ) -> Result<Self> {
        let (runs, run) = match layout {
            Layout::RowMajor => (rows, cols),
            Layout::ColMajor => (cols, rows),
        };
        if leading_dimension < run {
            let limit = format!("must be at least {run} for {rows}x{cols} {layout:?}");
            return Err(Error::argument("leading_dimension", leading_dimension, limit));
        }
        let len = runs.checked_mul(leading_dimension).ok_or_else(|| {
            let limit = format!("a matrix has at most {} elements, padding included", usize::MAX);
            Error::argument("rows * cols", format!("{runs} * {leading_dimension}"), limit)
        })?;
        Ok(Matrix { rows, cols, layout, leading_dimension, buffer: device.zeros(len)? })
    }

    /// A dense row-major matrix with a copy of `values`.
    ///
    /// # Errors
    /// [`Error::Argument`] if there are not `rows * cols` values; [`Error::OutOfMemory`].
    pub fn from_row_major(device: &Device, rows: usize, cols: usize, values: &[T]) -> Result<Self> {
        let mut matrix = Matrix::zeros(device, rows, cols)?;
        matrix.write_row_major(values)?;
        Ok(matrix)
    }

    /// Copies `values`, dense and row-major, to the matrix, whatever its layout. Padding does not
    /// change. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Argument`] if there are not `rows * cols` values; errors of kernels launched
    /// before.
    pub fn write_row_major(&mut self, values: &[T]) -> Result<()> {
        if values.len() != self.rows * self.cols {
            let limit = format!("must be rows * cols = {}", self.rows * self.cols);
            return Err(Error::argument("values.len()", values.len(), limit));
        }
        if self.is_dense_row_major() {
            return self.buffer.write(0, values);
        }
        let mut stored = self.buffer.to_vec()?;
        for (index, &value) in values.iter().enumerate() {
            stored[self.offset(index / self.cols, index % self.cols)] = value;
        }
        self.buffer.write(0, &stored)
    }

    /// A copy of the elements, dense and row-major, whatever the layout. Waits for all work on the
    /// device.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] of the host; errors of kernels launched before.
    pub fn to_row_major(&self) -> Result<Vec<T>> {
        let stored = self.buffer.to_vec()?;
        if self.is_dense_row_major() {
            return Ok(stored);
        }
        let mut values = memory::reserved(self.rows * self.cols)?;
        for row in 0..self.rows {
            values.extend((0..self.cols).map(|col| stored[self.offset(row, col)]));
        }
        Ok(values)
    }

    /// The index of element (row, col) in the buffer.
    fn offset(&self, row: usize, col: usize) -> usize {
        let [between_rows, between_cols] = self.strides();
        row * between_rows + col * between_cols
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The order of its elements.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Elements from the start of one row (row-major) or column (column-major) to the start of the
    /// next.
    pub fn leading_dimension(&self) -> usize {
        self.leading_dimension
    }

    /// The device whose memory it is in.
    pub fn device(&self) -> &Device {
        self.buffer.device()
    }

    /// Whether it is row-major without padding.
    pub fn is_dense_row_major(&self) -> bool {
        self.layout == Layout::RowMajor && self.leading_dimension == self.cols
    }

    /// All of its memory, padding included.
    pub fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    /// All of its memory, padding included, for writing.
    pub fn buffer_mut(&mut self) -> BufferViewMut<'_, T> {
        // A view: with `&mut Buffer` the caller could put a shorter buffer in its place.
        self.buffer.all_mut()
    }

    /// All of it, for reading.
    pub fn view(&self) -> MatrixView<'_, T> {
        MatrixView::whole(self.buffer.all(), self.rows, self.cols, self.strides())
    }

    /// All of it, for writing.
    pub fn view_mut(&mut self) -> MatrixViewMut<'_, T> {
        let (rows, cols, strides) = (self.rows, self.cols, self.strides());
        MatrixViewMut::whole(self.buffer.all_mut(), rows, cols, strides)
    }

    /// Elements from one row to the next, and from one column to the next.
    fn strides(&self) -> [usize; 2] {
        match self.layout {
            Layout::RowMajor => [self.leading_dimension, 1],
            Layout::ColMajor => [1, self.leading_dimension],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_holds_the_same_matrix() {
        let device = Device::cpu();
        let values = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        for (layout, leading) in [
            (Layout::RowMajor, 3),
            (Layout::RowMajor, 7),
            (Layout::ColMajor, 2),
            (Layout::ColMajor, 5),
        ] {
            let mut matrix = Matrix::with_layout(&device, 2, 3, layout, leading).unwrap();
            matrix.buffer_mut().fill_bytes(0xff).unwrap();
            matrix.write_row_major(&values).unwrap();
            assert_eq!(matrix.to_row_major().unwrap(), values, "{layout:?} {leading}");
            let padding = matrix.buffer().to_vec().unwrap().into_iter().filter(|x| x.is_nan());
            assert_eq!(padding.count(), matrix.buffer().len() - 6, "{layout:?} {leading}");
        }
    }

    #[test]
    fn a_matrix_without_elements_gives_none() {
        let device = Device::cpu();
        for (rows, cols) in [(3, 0), (0, 3), (0, 0)] {
            for layout in [Layout::RowMajor, Layout::ColMajor] {
                let matrix = Matrix::<f32>::with_layout(&device, rows, cols, layout, 7).unwrap();
                assert_eq!(matrix.to_row_major().unwrap(), [], "{rows} x {cols}, {layout:?}");
            }
        }
    }

    #[test]
    fn a_short_leading_dimension_is_named() {
        let make =
            |layout, leading| Matrix::<f32>::with_layout(&Device::cpu(), 2, 3, layout, leading);
        for (layout, leading) in [(Layout::RowMajor, 2), (Layout::ColMajor, 1)] {
            let error = make(layout, leading).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("leading_dimension = {leading}: must be")),
                "{error}"
            );
        }
    }
}
