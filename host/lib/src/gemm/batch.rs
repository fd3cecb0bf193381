//! Batches: matrices of one shape, evenly spaced.

use crate::{
    buffer::{BufferView, BufferViewMut, Pod, Written},
    error::{Error, Result},
    matrix::{
        MatrixView, MatrixViewMut,
        view::{check_distinct, extent, is_distinct},
    },
};

/// `count` matrices to be read, the next one `step` elements after the one before. With a step of 0 all are one.
#[derive(Debug)]
pub struct Batch<'a, T> {
    pub(super) elements: BufferView<'a, T>,
    pub(super) size: (usize, usize),
    pub(super) strides: [usize; 2],
    pub(super) count: usize,
    pub(super) step: usize,
}

/// `count` matrices to be written, no two of whose elements are one.
#[derive(Debug)]
pub struct BatchMut<'a, T> {
    pub(super) elements: Written<'a, T>,
    pub(super) size: (usize, usize),
    pub(super) strides: [usize; 2],
    pub(super) count: usize,
    pub(super) step: usize,
}

/// Elements from the first of the first matrix to the last of the last.
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
        let limit = format!("{count} matrices lie further apart than can be addressed");
        Error::argument("step", step, limit)
    })
}

/// Refuses a memory that is too short for a batch.
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
    /// `count` matrices of `rows x cols`, with these strides and this step in elements.
    ///
    /// # Errors
    /// [`Error::Argument`] where `elements` are too few.
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

    /// The same matrix, for each product of a batch.
    pub fn repeat(matrix: MatrixView<'a, T>, count: usize) -> Self {
        Batch { count, ..Batch::one(matrix) }
    }

    /// One matrix.
    pub(super) fn one(matrix: MatrixView<'a, T>) -> Self {
        let (size, strides) = ((matrix.rows(), matrix.cols()), matrix.strides());
        Batch { elements: matrix.elements(), size, strides, count: 1, step: 0 }
    }

    /// Is it that matrix alone, or its transpose?
    pub(super) fn is(&self, matrix: &MatrixView<T>) -> bool {
        let ((rows, cols), [between_rows, between_cols]) = (self.size, self.strides);
        let (size, strides) = ((matrix.rows(), matrix.cols()), matrix.strides());
        let as_it_is = self.size == size && self.strides == strides;
        let transposed = (cols, rows) == size && [between_cols, between_rows] == strides;
        self.elements.address() == matrix.elements().address() && (as_it_is || transposed)
    }

    /// Each of them transposed.
    #[must_use]
    pub fn t(self) -> Self {
        let ((rows, cols), [between_rows, between_cols]) = (self.size, self.strides);
        Batch { size: (cols, rows), strides: [between_cols, between_rows], ..self }
    }
}

impl<'a, T: Pod> BatchMut<'a, T> {
    /// `count` matrices of `rows x cols`, with these strides and this step in elements.
    ///
    /// # Errors
    /// [`Error::Argument`] where `elements` are too few, or where two elements of the matrices might be one. MatrixBatch may lie one after
    /// another, or interleave: the heads of an array of (tokens, heads, width) are matrices of strides `[heads * width, 1]` and
    /// step `width`.
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
                "two elements of {count} written {rows}x{cols} matrices of strides [{one}, {two}] might be one"
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

    /// Each of them transposed.
    #[must_use]
    pub fn t(self) -> Self {
        let ((rows, cols), [between_rows, between_cols]) = (self.size, self.strides);
        BatchMut { size: (cols, rows), strides: [between_cols, between_rows], ..self }
    }
}
