//! Batches: matrices of one shape at equal distances.

use crate::{
    buffer::{BufferView, BufferViewMut, Pod, Written},
    error::{Error, Result},
    matrix::{
        MatrixView, MatrixViewMut,
        view::{check_distinct, extent, is_distinct},
    },
};

/// A batch of matrices, for reading: `count` matrices of one shape, each `step` elements after the
/// one before. With a step of 0 all are the same.
///
/// ```
/// use gpu_gemm::{Batch, BatchMut, Device, Gemm, Matrix};
///
/// // C0 = A0 B and C1 = A1 B. The matrices of a batch are in one buffer.
/// let device = Device::best().device;
/// let a = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 0.0, 1.0, 1.0, 0.0])?;
/// let b = Matrix::from_row_major(&device, 2, 1, &[1.0f32, 10.0])?;
/// let mut c = device.zeros::<f32>(4)?;
/// let a = Batch::new(a.all(), (2, 2), [2, 1], 2, 4)?;
/// let to = BatchMut::new(c.all_mut(), (2, 1), [1, 1], 2, 2)?;
/// Gemm::new().launch_batch(&device.stream()?, a, Batch::repeat(b.view(), 2), to)?;
/// assert_eq!(c.to_vec()?, [21.0, 43.0, 10.0, 1.0]);
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a, T> {
    pub(super) elements: BufferView<'a, T>,
    pub(super) size: (usize, usize),
    pub(super) strides: [usize; 2],
    pub(super) count: usize,
    pub(super) step: usize,
}

/// A batch of matrices, for writing. As [`Batch`], and no two elements share memory.
#[derive(Debug)]
pub struct BatchMut<'a, T> {
    pub(super) elements: Written<'a, T>,
    pub(super) size: (usize, usize),
    pub(super) strides: [usize; 2],
    pub(super) count: usize,
    pub(super) step: usize,
}

/// The number of elements from the first of the first matrix to the last of the last.
fn batch_extent(
    size: (usize, usize),
    strides: [usize; 2],
    count: usize,
    step: usize,
) -> Result<usize> {
    let one = extent(size.0, size.1, strides)?;
    if count == 0 || one == 0 {
        return Ok(0);
    }
    let last = (count - 1).checked_mul(step).and_then(|last| last.checked_add(one));
    last.ok_or_else(|| {
        let limit = format!("{count} matrices with this step cannot be addressed");
        Error::argument("step", step, limit)
    })
}

/// Checks that `len` elements are enough for a batch.
fn check_len(len: usize, needed: usize, count: usize, step: usize) -> Result<()> {
    match needed <= len {
        true => Ok(()),
        false => {
            let limit = format!("must be at least {needed} for {count} matrices, step {step}");
            Err(Error::argument("elements.len()", len, limit))
        }
    }
}

impl<'a, T: Pod> Batch<'a, T> {
    /// `count` matrices of `rows x cols`. `strides`: elements from one row to the next, and from
    /// one column to the next. `step`: elements from one matrix to the next.
    ///
    /// # Errors
    /// [`Error::Argument`] for too few elements.
    pub fn new(
        elements: BufferView<'a, T>,
        (rows, cols): (usize, usize),
        strides: [usize; 2],
        count: usize,
        step: usize,
    ) -> Result<Self> {
        let needed = batch_extent((rows, cols), strides, count, step)?;
        check_len(elements.len(), needed, count, step)?;
        let elements = elements.view(0, needed)?;
        Ok(Batch { elements, size: (rows, cols), strides, count, step })
    }

    /// The same matrix for each product of a batch.
    pub fn repeat(matrix: MatrixView<'a, T>, count: usize) -> Self {
        Batch { count, ..Batch::one(matrix) }
    }

    /// One matrix.
    pub(super) fn one(matrix: MatrixView<'a, T>) -> Self {
        let (size, strides) = ((matrix.rows(), matrix.cols()), matrix.strides());
        Batch { elements: matrix.elements(), size, strides, count: 1, step: 0 }
    }

    /// Whether each of its matrices is that matrix, or its transpose: the same elements of the same
    /// device.
    pub(super) fn is(&self, matrix: &MatrixView<T>) -> bool {
        let ((rows, cols), [between_rows, between_cols]) = (self.size, self.strides);
        let is_one = self.count <= 1 || self.step == 0;
        let (size, strides) = ((matrix.rows(), matrix.cols()), matrix.strides());
        let as_it_is = self.size == size && self.strides == strides;
        let transposed = (cols, rows) == size && [between_cols, between_rows] == strides;
        let elements = matrix.elements();
        let is_there = self.elements.address() == elements.address()
            && self.elements.device() == elements.device();
        is_one && is_there && (as_it_is || transposed)
    }

    /// The transposes. Nothing is copied.
    #[must_use]
    pub fn t(self) -> Self {
        let ((rows, cols), [between_rows, between_cols]) = (self.size, self.strides);
        Batch { size: (cols, rows), strides: [between_cols, between_rows], ..self }
    }
}

impl<'a, T: Pod> From<MatrixView<'a, T>> for Batch<'a, T> {
    /// One matrix.
    fn from(matrix: MatrixView<'a, T>) -> Self {
        Batch::one(matrix)
    }
}

impl<'a, T: Pod> BatchMut<'a, T> {
    /// As [`Batch::new`], for matrices in which no two elements share memory. The matrices may
    /// interleave: the heads of an array of (tokens, heads, width) are matrices with strides
    /// `[heads * width, 1]` and a step of `width`.
    ///
    /// # Errors
    /// [`Error::Argument`] for too few elements, and for strides or a step with which two elements
    /// might share memory.
    pub fn new(
        elements: BufferViewMut<'a, T>,
        (rows, cols): (usize, usize),
        strides: [usize; 2],
        count: usize,
        step: usize,
    ) -> Result<Self> {
        check_distinct(rows, cols, strides)?;
        if !is_distinct([(rows, strides[0]), (cols, strides[1]), (count, step)]) {
            let [one, two] = strides;
            let limit = format!(
                "two elements of {count} written {rows}x{cols} matrices of strides [{one}, {two}] might share memory"
            );
            return Err(Error::argument("step", step, limit));
        }
        let needed = batch_extent((rows, cols), strides, count, step)?;
        check_len(elements.len(), needed, count, step)?;
        let elements = elements.into_part(0, needed)?.into();
        Ok(BatchMut { elements, size: (rows, cols), strides, count, step })
    }

    /// One matrix.
    pub(super) fn one(matrix: MatrixViewMut<'a, T>) -> Self {
        let (size, strides) = ((matrix.rows(), matrix.cols()), matrix.strides());
        BatchMut { elements: matrix.into_elements(), size, strides, count: 1, step: 0 }
    }

    /// The transposes. Nothing is copied.
    #[must_use]
    pub fn t(self) -> Self {
        let ((rows, cols), [between_rows, between_cols]) = (self.size, self.strides);
        BatchMut { size: (cols, rows), strides: [between_cols, between_rows], ..self }
    }
}
