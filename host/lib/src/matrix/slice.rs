//! Matrices in host memory.

use std::marker::PhantomData;

use super::view::{check_distinct, check_extent, extent};
use crate::{
    buffer::Pod,
    device::Device,
    error::{Error, Result},
    matrix::{Layout, Matrix},
    memory,
};

/// A matrix in host memory, for reading. Element (row, col) is
/// `row * strides[0] + col * strides[1]` elements after the first. Memory between the elements is
/// not accessed.
///
/// With the features `nalgebra` and `ndarray`, references to their matrices, and their views,
/// convert into it by `TryFrom`. Nothing is copied.
///
/// ```
/// use gpu_gemm::{Device, Matrix, SliceView};
///
/// let values = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let by_rows = SliceView::row_major(&values, 2, 3)?;
/// let by_columns = SliceView::col_major(&values, 3, 2)?;
/// let device = Device::best().device;
/// let [a, b] = [Matrix::upload(&device, by_rows)?, Matrix::upload(&device, by_columns.t())?];
/// assert_eq!(a.to_row_major()?, b.to_row_major()?);
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct SliceView<'a, T> {
    start: *const T,
    rows: usize,
    cols: usize,
    strides: [usize; 2],
    borrowed: PhantomData<&'a [T]>,
}

/// A matrix in host memory, for writing. As [`SliceView`], and no two elements share memory.
#[derive(Debug)]
pub struct SliceViewMut<'a, T> {
    start: *mut T,
    rows: usize,
    cols: usize,
    strides: [usize; 2],
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: it stands for shared borrows of elements.
unsafe impl<T: Sync> Send for SliceView<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for SliceView<'_, T> {}
// SAFETY: it stands for mutable borrows of elements.
unsafe impl<T: Send> Send for SliceViewMut<'_, T> {}
// SAFETY: a shared reference to it gives out shared borrows alone.
unsafe impl<T: Sync> Sync for SliceViewMut<'_, T> {}

// Not derived: `T` need not be `Copy`.
impl<T> Clone for SliceView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for SliceView<'_, T> {}

impl<'a, T> SliceView<'a, T> {
    /// The `rows x cols` matrix that starts at the first of `data`. `strides`: elements from one
    /// row to the next, and from one column to the next. Any are allowed; with a stride of 0 all
    /// rows, or all columns, are the same.
    ///
    /// # Errors
    /// [`Error::Argument`] for too few elements.
    pub fn new(data: &'a [T], rows: usize, cols: usize, strides: [usize; 2]) -> Result<Self> {
        check_extent(data.len(), rows, cols, strides)?;
        // SAFETY: the slice has all of its elements, and is borrowed as long.
        unsafe { SliceView::from_raw(data.as_ptr(), rows, cols, strides) }
    }

    /// A dense row-major matrix.
    ///
    /// # Errors
    /// As [`SliceView::new`].
    pub fn row_major(data: &'a [T], rows: usize, cols: usize) -> Result<Self> {
        SliceView::new(data, rows, cols, [cols, 1])
    }

    /// A dense column-major matrix.
    ///
    /// # Errors
    /// As [`SliceView::new`].
    pub fn col_major(data: &'a [T], rows: usize, cols: usize) -> Result<Self> {
        SliceView::new(data, rows, cols, [1, rows])
    }

    /// The matrix whose first element is at `start`. Strides are in elements.
    ///
    /// # Errors
    /// [`Error::Argument`] for strides with which the elements cannot be addressed.
    ///
    /// # Safety
    /// 1. The matrix's elements are valid and initialised during `'a`, and nobody writes them.
    pub unsafe fn from_raw(
        start: *const T,
        rows: usize,
        cols: usize,
        strides: [usize; 2],
    ) -> Result<Self> {
        extent(rows, cols, strides)?;
        Ok(SliceView { start, rows, cols, strides, borrowed: PhantomData })
    }

    /// The transpose. Nothing is copied.
    #[must_use]
    pub fn t(self) -> Self {
        let [between_rows, between_cols] = self.strides;
        SliceView {
            rows: self.cols,
            cols: self.rows,
            strides: [between_cols, between_rows],
            ..self
        }
    }
}

impl<'a, T> SliceViewMut<'a, T> {
    /// As [`SliceView::new`], with strides such that no two elements share memory.
    ///
    /// # Errors
    /// [`Error::Argument`] for too few elements, and for strides with which two elements might
    /// share memory.
    pub fn new(data: &'a mut [T], rows: usize, cols: usize, strides: [usize; 2]) -> Result<Self> {
        check_extent(data.len(), rows, cols, strides)?;
        // SAFETY: the slice has all of its elements, and is borrowed as long.
        unsafe { SliceViewMut::from_raw(data.as_mut_ptr(), rows, cols, strides) }
    }

    /// A dense row-major matrix.
    ///
    /// # Errors
    /// As [`SliceViewMut::new`].
    pub fn row_major(data: &'a mut [T], rows: usize, cols: usize) -> Result<Self> {
        SliceViewMut::new(data, rows, cols, [cols, 1])
    }

    /// A dense column-major matrix.
    ///
    /// # Errors
    /// As [`SliceViewMut::new`].
    pub fn col_major(data: &'a mut [T], rows: usize, cols: usize) -> Result<Self> {
        SliceViewMut::new(data, rows, cols, [1, rows])
    }

    /// The matrix whose first element is at `start`. Strides are in elements.
    ///
    /// # Errors
    /// As [`SliceView::from_raw`]; [`Error::Argument`] for strides with which two elements might
    /// share memory.
    ///
    /// # Safety
    /// 1. The matrix's elements are valid and initialised during `'a`, and nobody else reads or
    ///    writes them.
    pub unsafe fn from_raw(
        start: *mut T,
        rows: usize,
        cols: usize,
        strides: [usize; 2],
    ) -> Result<Self> {
        check_distinct(rows, cols, strides)?;
        extent(rows, cols, strides)?;
        Ok(SliceViewMut { start, rows, cols, strides, borrowed: PhantomData })
    }

    /// The transpose. Nothing is copied.
    #[must_use]
    pub fn t(self) -> Self {
        let [between_rows, between_cols] = self.strides;
        SliceViewMut {
            rows: self.cols,
            cols: self.rows,
            strides: [between_cols, between_rows],
            ..self
        }
    }

    /// The same matrix, for reading.
    pub fn as_view(&self) -> SliceView<'_, T> {
        let SliceViewMut { rows, cols, strides, .. } = *self;
        SliceView { start: self.start, rows, cols, strides, borrowed: PhantomData }
    }

    /// The address of the first element.
    pub(crate) fn start(&mut self) -> *mut T {
        self.start
    }
}

impl<T> SliceView<'_, T> {
    /// The address of the first element.
    pub(crate) fn start(&self) -> *const T {
        self.start
    }

    /// The layout of a dense matrix with this order of elements.
    pub(crate) fn layout(&self) -> Layout {
        let [between_rows, between_cols] = self.strides;
        match between_cols <= between_rows {
            true => Layout::RowMajor,
            false => Layout::ColMajor,
        }
    }

    /// The rows (row-major) or columns (column-major) of that layout: their number, their length,
    /// the stride between them, and the stride within them.
    fn runs(&self) -> (usize, usize, usize, usize) {
        let [between_rows, between_cols] = self.strides;
        match self.layout() {
            Layout::RowMajor => (self.rows, self.cols, between_rows, between_cols),
            Layout::ColMajor => (self.cols, self.rows, between_cols, between_rows),
        }
    }

    /// Whether it has no gaps.
    fn is_dense(&self) -> bool {
        let (runs, run, across, along) = self.runs();
        (run <= 1 || along == 1) && (runs <= 1 || across == run)
    }
}

macro_rules! sizes {
    ($($view:ident)*) => {$(
        impl<T> $view<'_, T> {
            /// The number of rows.
            pub fn rows(&self) -> usize {
                self.rows
            }

            /// The number of columns.
            pub fn cols(&self) -> usize {
                self.cols
            }

            /// Elements from one row to the next, and from one column to the next.
            pub fn strides(&self) -> [usize; 2] {
                self.strides
            }
        }
    )*};
}

sizes! { SliceView SliceViewMut }

impl<T: Pod> Matrix<T> {
    /// A copy on a device, dense, in the same layout.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Interrupted`].
    pub fn upload(device: &Device, from: SliceView<T>) -> Result<Self> {
        let (runs, run, across, along) = from.runs();
        let mut matrix = Matrix::with_layout(device, from.rows, from.cols, from.layout(), run)?;
        if runs * run == 0 {
            return Ok(matrix);
        }
        if from.is_dense() {
            // SAFETY: the matrix has no gaps, and its elements are borrowed with the view.
            let elements = unsafe { std::slice::from_raw_parts(from.start, runs * run) };
            matrix.buffer_mut().write(0, elements)?;
            return Ok(matrix);
        }
        let mut packed = memory::reserved(runs * run)?;
        for i in 0..runs {
            crate::check_interrupt()?;
            // SAFETY: an element of the view.
            let element = |j: usize| unsafe { *from.start.add(i * across + j * along) };
            packed.extend((0..run).map(element));
        }
        matrix.buffer_mut().write(0, &packed)?;
        Ok(matrix)
    }

    /// Copies the elements to a matrix of the same shape. Waits for all work on the device. Memory
    /// between the elements of `to` does not change.
    ///
    /// # Errors
    /// [`Error::Argument`] for another shape; [`Error::Interrupted`]; errors of kernels launched
    /// before.
    pub fn download(&self, to: SliceViewMut<T>) -> Result<()> {
        for (name, value, wanted) in [("rows", to.rows, self.rows), ("cols", to.cols, self.cols)] {
            if value != wanted {
                let limit = format!("must be {wanted}, as of the matrix on the device");
                return Err(Error::argument(name, value, limit));
            }
        }
        let count = self.rows * self.cols;
        if count == 0 {
            return Ok(());
        }
        let same_order = to.as_view().layout() == self.layout;
        if same_order && to.as_view().is_dense() && self.buffer.len() == count {
            // SAFETY: the matrix has no gaps, and its elements are mutably borrowed with the view.
            let elements = unsafe { std::slice::from_raw_parts_mut(to.start, count) };
            return self.buffer.read(0, elements);
        }
        let stored = self.buffer.to_vec()?;
        let [between_rows, between_cols] = to.strides;
        for row in 0..self.rows {
            crate::check_interrupt()?;
            for col in 0..self.cols {
                let place = row * between_rows + col * between_cols;
                // SAFETY: an element of the view.
                unsafe { *to.start.add(place) = stored[self.offset(row, col)] };
            }
        }
        Ok(())
    }
}

/// Matrices, vectors and views of nalgebra. A view converts by value: it is a borrow already.
#[cfg(feature = "nalgebra")]
mod of_nalgebra {
    use nalgebra::{Dim, RawStorage, RawStorageMut, ViewStorage, ViewStorageMut};

    use super::{SliceView, SliceViewMut};
    use crate::error::{Error, Result};

    impl<'a, T, R: Dim, C: Dim, S: RawStorage<T, R, C>> TryFrom<&'a nalgebra::Matrix<T, R, C, S>>
        for SliceView<'a, T>
    {
        type Error = Error;

        /// Without a copy.
        fn try_from(matrix: &'a nalgebra::Matrix<T, R, C, S>) -> Result<Self> {
            let ((rows, cols), strides) = (matrix.shape(), matrix.strides().into());
            // SAFETY: the storage's promise: its elements are valid, and borrowed with the matrix.
            unsafe { SliceView::from_raw(matrix.as_ptr(), rows, cols, strides) }
        }
    }

    impl<'a, T, R: Dim, C: Dim, Rows: Dim, Cols: Dim>
        TryFrom<nalgebra::Matrix<T, R, C, ViewStorage<'a, T, R, C, Rows, Cols>>>
        for SliceView<'a, T>
    {
        type Error = Error;

        /// Without a copy.
        fn try_from(
            view: nalgebra::Matrix<T, R, C, ViewStorage<'a, T, R, C, Rows, Cols>>,
        ) -> Result<Self> {
            let ((rows, cols), strides) = (view.shape(), view.strides().into());
            // SAFETY: a view's promise: its elements are valid during its lifetime.
            unsafe { SliceView::from_raw(view.as_ptr(), rows, cols, strides) }
        }
    }

    impl<'a, T, R: Dim, C: Dim, Rows: Dim, Cols: Dim>
        TryFrom<nalgebra::Matrix<T, R, C, ViewStorageMut<'a, T, R, C, Rows, Cols>>>
        for SliceViewMut<'a, T>
    {
        type Error = Error;

        /// Without a copy.
        fn try_from(
            mut view: nalgebra::Matrix<T, R, C, ViewStorageMut<'a, T, R, C, Rows, Cols>>,
        ) -> Result<Self> {
            let ((rows, cols), strides) = (view.shape(), view.strides().into());
            // SAFETY: as above, mutably, and nobody else has the view any more.
            unsafe { SliceViewMut::from_raw(view.as_mut_ptr(), rows, cols, strides) }
        }
    }

    impl<'a, T, R: Dim, C: Dim, S: RawStorageMut<T, R, C>>
        TryFrom<&'a mut nalgebra::Matrix<T, R, C, S>> for SliceViewMut<'a, T>
    {
        type Error = Error;

        /// Without a copy.
        fn try_from(matrix: &'a mut nalgebra::Matrix<T, R, C, S>) -> Result<Self> {
            let ((rows, cols), strides) = (matrix.shape(), matrix.strides().into());
            // SAFETY: as above, mutably.
            unsafe { SliceViewMut::from_raw(matrix.as_mut_ptr(), rows, cols, strides) }
        }
    }
}

/// Arrays and views of ndarray with two dimensions. A view converts by value: it is a borrow
/// already.
#[cfg(feature = "ndarray")]
mod of_ndarray {
    use ndarray::{ArrayBase, ArrayView2, ArrayViewMut2, Data, DataMut, Ix2};

    use super::{SliceView, SliceViewMut};
    use crate::error::{Error, Result};

    /// The strides, if none is negative. An array with an inverted axis has a negative stride,
    /// which is never used if the axis has one element or the array has none.
    fn forward((rows, cols): (usize, usize), strides: &[isize]) -> Result<[usize; 2]> {
        let is_empty = rows == 0 || cols == 0;
        let is_fit = |size: usize, stride: isize| stride >= 0 || size == 1 || is_empty;
        match strides {
            &[between_rows, between_cols]
                if is_fit(rows, between_rows) && is_fit(cols, between_cols) =>
            {
                Ok([between_rows, between_cols].map(isize::unsigned_abs))
            }
            _ => {
                let limit = "must not be negative: copy the array, or invert its axis back";
                Err(Error::argument("strides", format!("{strides:?}"), limit))
            }
        }
    }

    impl<'a, T, S: Data<Elem = T>> TryFrom<&'a ArrayBase<S, Ix2>> for SliceView<'a, T> {
        type Error = Error;

        /// Without a copy.
        fn try_from(array: &'a ArrayBase<S, Ix2>) -> Result<Self> {
            let ((rows, cols), strides) = (array.dim(), forward(array.dim(), array.strides())?);
            // SAFETY: an array's promise: its elements are valid, and borrowed with it.
            unsafe { SliceView::from_raw(array.as_ptr(), rows, cols, strides) }
        }
    }

    impl<'a, T> TryFrom<ArrayView2<'a, T>> for SliceView<'a, T> {
        type Error = Error;

        /// Without a copy.
        fn try_from(view: ArrayView2<'a, T>) -> Result<Self> {
            let ((rows, cols), strides) = (view.dim(), forward(view.dim(), view.strides())?);
            // SAFETY: a view's promise: its elements are valid during its lifetime.
            unsafe { SliceView::from_raw(view.as_ptr(), rows, cols, strides) }
        }
    }

    impl<'a, T> TryFrom<ArrayViewMut2<'a, T>> for SliceViewMut<'a, T> {
        type Error = Error;

        /// Without a copy.
        fn try_from(mut view: ArrayViewMut2<'a, T>) -> Result<Self> {
            let ((rows, cols), strides) = (view.dim(), forward(view.dim(), view.strides())?);
            // SAFETY: as above, mutably, and nobody else has the view any more.
            unsafe { SliceViewMut::from_raw(view.as_mut_ptr(), rows, cols, strides) }
        }
    }

    impl<'a, T, S: DataMut<Elem = T>> TryFrom<&'a mut ArrayBase<S, Ix2>> for SliceViewMut<'a, T> {
        type Error = Error;

        /// Without a copy.
        fn try_from(array: &'a mut ArrayBase<S, Ix2>) -> Result<Self> {
            // This comes first: it copies an array that shares its elements, and the copy has other
            // strides.
            let start = array.as_mut_ptr();
            let ((rows, cols), strides) = (array.dim(), forward(array.dim(), array.strides())?);
            // SAFETY: as above, mutably.
            unsafe { SliceViewMut::from_raw(start, rows, cols, strides) }
        }
    }
}

#[cfg(test)]
mod tests;
