//! Views of matrices on a device: all, a part, a transpose.

use std::ops::Range;

use simt::count_of;

use crate::{
    buffer::{BufferView, BufferViewMut, Pod, Written},
    device::Device,
    error::{Error, Result},
};

/// A matrix on a device, for reading. Element (row, col) is `row * strides[0] + col * strides[1]`
/// elements after the first.
///
/// ```
/// use gpu_gemm::{Device, MatrixView};
///
/// // A 2 x 3 matrix in rows of 4 elements, and its transpose.
/// let buffer = Device::cpu().upload(&[1.0f32, 2.0, 3.0, 0.0, 4.0, 5.0, 6.0])?;
/// let view = MatrixView::new(buffer.all(), 2, 3, [4, 1])?;
/// assert_eq!((view.t().rows(), view.t().strides()), (3, [1, 4]));
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct MatrixView<'a, T> {
    elements: BufferView<'a, T>,
    rows: usize,
    cols: usize,
    strides: [usize; 2],
}

/// A matrix on a device, for writing. As [`MatrixView`], and no two elements share memory.
#[derive(Debug)]
pub struct MatrixViewMut<'a, T> {
    elements: Written<'a, T>,
    rows: usize,
    cols: usize,
    strides: [usize; 2],
}

// Not derived: `T` need not be `Copy`.
impl<T> Clone for MatrixView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for MatrixView<'_, T> {}

/// The number of elements from the first to the last of a matrix, both included.
///
/// # Errors
/// [`Error::Argument`] if they cannot be addressed.
pub fn extent(rows: usize, cols: usize, strides: [usize; 2]) -> Result<usize> {
    if rows == 0 || cols == 0 {
        return Ok(0);
    }
    let [between_rows, between_cols] = strides.map(|stride| stride as u128);
    // Saturating: a product of two sizes below 2^64 each is below 2^128, their sum may not be.
    let last = (rows as u128 - 1)
        .saturating_mul(between_rows)
        .saturating_add((cols as u128 - 1).saturating_mul(between_cols));
    usize::try_from(last).ok().and_then(|last| last.checked_add(1)).ok_or_else(|| {
        let limit = format!("{rows}x{cols} elements with these strides cannot be addressed");
        Error::argument("strides", format!("{strides:?}"), limit)
    })
}

/// The [`extent`] of a matrix, which must be at most `len`.
pub(crate) fn check_extent(
    len: usize,
    rows: usize,
    cols: usize,
    strides: [usize; 2],
) -> Result<usize> {
    let extent = extent(rows, cols, strides)?;
    match extent <= len {
        true => Ok(extent),
        false => {
            let limit = format!("must be at least {extent} for {rows}x{cols}, strides {strides:?}");
            Err(Error::argument("elements.len()", len, limit))
        }
    }
}

/// Whether no two elements of an array share memory. `dimensions`: size and stride of each, in any
/// order.
///
/// The test is that each stride is longer than the extent of all dimensions with shorter strides.
/// It refuses some arrays that interleave in another way.
pub(crate) fn is_distinct<const N: usize>(mut dimensions: [(usize, usize); N]) -> bool {
    are_distinct(&mut dimensions)
}

/// [`is_distinct`], for any number of dimensions. It sorts them.
fn are_distinct(dimensions: &mut [(usize, usize)]) -> bool {
    if dimensions.iter().any(|(size, _)| *size == 0) {
        return true;
    }
    dimensions.sort_unstable_by_key(|(_, stride)| *stride);
    let mut last = Some(0usize);
    dimensions.iter().filter(|(size, _)| *size > 1).all(|(size, stride)| {
        let is_behind = last.is_some_and(|last| *stride > last);
        let taken = (size - 1).checked_mul(*stride);
        last = last.zip(taken).and_then(|(last, taken)| last.checked_add(taken));
        is_behind
    })
}

/// Refuses an array that is to be written if two of its elements might share memory: then a product
/// of it would depend on the order in which its elements are stored. All of the array is looked at,
/// also the dimensions of a batch. `sizes` and `strides` are those of its dimensions, in any order;
/// a stride may be negative. Strides are in bytes, and `element` is the bytes of an element; or
/// they are in elements, and `element` is 1.
///
/// As [`BatchMut::new`](crate::BatchMut::new), this refuses some arrays whose elements interleave
/// and share no memory.
///
/// # Errors
/// [`Error::Argument`], of the argument with that name.
pub fn check_written(name: &str, element: usize, sizes: &[usize], strides: &[isize]) -> Result<()> {
    if sizes.len() != strides.len() {
        let limit = format!("must be {}, as its sizes", sizes.len());
        return Err(Error::argument(format!("{name}.strides.len()"), strides.len(), limit));
    }
    let strides_of = sizes.iter().zip(strides).map(|(&size, stride)| (size, stride.unsigned_abs()));
    let mut dimensions = strides_of.chain([(element, 1)]).collect::<Vec<_>>();
    match are_distinct(&mut dimensions) {
        true => Ok(()),
        false => {
            let limit = format!("two elements of {sizes:?} that are written might share memory");
            Err(Error::argument(format!("{name}.strides"), format!("{strides:?}"), limit))
        }
    }
}

/// Whether there are elements between those of a matrix that are not its own.
pub(crate) fn has_gaps(rows: usize, cols: usize, strides: [usize; 2]) -> bool {
    if rows == 0 || cols == 0 {
        return false;
    }
    // A side of one element has no stride, and with a stride of 0 a side has one element.
    let sides = [(rows, strides[0]), (cols, strides[1])];
    let mut long = sides.into_iter().filter(|&(size, stride)| size > 1 && stride > 0);
    match (long.next(), long.next()) {
        (None, _) => false,
        (Some((_, stride)), None) => stride > 1,
        (Some(one), Some(other)) => {
            let (near, far) = if one.1 <= other.1 { (one, other) } else { (other, one) };
            near.1 > 1 || far.1 > near.0
        }
    }
}

/// Refuses a matrix in which two elements share memory.
pub(crate) fn check_distinct(rows: usize, cols: usize, strides: [usize; 2]) -> Result<()> {
    match is_distinct([(rows, strides[0]), (cols, strides[1])]) {
        true => Ok(()),
        false => {
            let limit =
                format!("two elements of a written {rows}x{cols} matrix might share memory");
            Err(Error::argument("strides", format!("{strides:?}"), limit))
        }
    }
}

/// Rows and columns of a part.
type Part = (Range<usize>, Range<usize>);

/// The index of the first element of a part, and the part's size.
fn part(
    (rows, cols): (usize, usize),
    strides: [usize; 2],
    part: (&Range<usize>, &Range<usize>),
) -> Result<(usize, usize, usize)> {
    for (name, range, limit) in [("rows", part.0, rows), ("cols", part.1, cols)] {
        if range.start > range.end || range.end > limit {
            let limit = format!("the matrix has {limit} {name}");
            return Err(Error::argument(name, format!("{range:?}"), limit));
        }
    }
    let size = (part.0.len(), part.1.len());
    // An empty part has no first element.
    let start = match size {
        (0, _) | (_, 0) => 0,
        _ => part.0.start * strides[0] + part.1.start * strides[1],
    };
    Ok((start, size.0, size.1))
}

impl<'a, T: Pod> MatrixView<'a, T> {
    /// The `rows x cols` matrix that starts at the first of `elements`. `strides`: elements from
    /// one row to the next, and from one column to the next. Any are allowed; with a stride of 0
    /// all rows, or all columns, are the same.
    ///
    /// # Errors
    /// [`Error::Argument`] for too few elements.
    pub fn new(
        elements: BufferView<'a, T>,
        rows: usize,
        cols: usize,
        strides: [usize; 2],
    ) -> Result<Self> {
        let extent = check_extent(elements.len(), rows, cols, strides)?;
        Ok(MatrixView { elements: elements.view(0, extent)?, rows, cols, strides })
    }

    /// As `new`, for elements that were allocated for the matrix. Those after its last are left
    /// out.
    pub(crate) fn whole(
        elements: BufferView<'a, T>,
        rows: usize,
        cols: usize,
        strides: [usize; 2],
    ) -> Self {
        let extent = extent(rows, cols, strides).unwrap_or(elements.len());
        MatrixView { elements: elements.shortened(extent), rows, cols, strides }
    }

    /// The transpose. Nothing is copied.
    #[must_use]
    pub fn t(self) -> Self {
        let [between_rows, between_cols] = self.strides;
        MatrixView {
            elements: self.elements,
            rows: self.cols,
            cols: self.rows,
            strides: [between_cols, between_rows],
        }
    }

    /// Some rows and columns. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range beyond the last row or column.
    pub fn sub(self, rows: Range<usize>, cols: Range<usize>) -> Result<Self> {
        let (start, rows, cols) = part((self.rows, self.cols), self.strides, (&rows, &cols))?;
        let elements = self.elements.view(start, self.elements.len() - start)?;
        MatrixView::new(elements, rows, cols, self.strides)
    }

    pub(crate) fn elements(&self) -> BufferView<'a, T> {
        self.elements
    }
}

impl<'a, T: Pod> MatrixViewMut<'a, T> {
    /// As [`MatrixView::new`], with strides such that no two elements share memory.
    ///
    /// # Errors
    /// [`Error::Argument`] for too few elements, and for strides with which two elements might
    /// share memory.
    pub fn new(
        elements: BufferViewMut<'a, T>,
        rows: usize,
        cols: usize,
        strides: [usize; 2],
    ) -> Result<Self> {
        MatrixViewMut::of_written(elements.into(), rows, cols, strides)
    }

    fn of_written(
        elements: Written<'a, T>,
        rows: usize,
        cols: usize,
        strides: [usize; 2],
    ) -> Result<Self> {
        check_distinct(rows, cols, strides)?;
        let extent = check_extent(elements.len(), rows, cols, strides)?;
        Ok(MatrixViewMut { elements: elements.into_part(0, extent)?, rows, cols, strides })
    }

    /// As `new`, for elements that were allocated for the matrix. Those after its last are left
    /// out.
    pub(crate) fn whole(
        elements: BufferViewMut<'a, T>,
        rows: usize,
        cols: usize,
        strides: [usize; 2],
    ) -> Self {
        let extent = extent(rows, cols, strides).unwrap_or(elements.len());
        let elements = Written::from(elements).shortened(extent);
        MatrixViewMut { elements, rows, cols, strides }
    }

    /// The transpose. Nothing is copied.
    #[must_use]
    pub fn t(self) -> Self {
        let [between_rows, between_cols] = self.strides;
        MatrixViewMut {
            rows: self.cols,
            cols: self.rows,
            strides: [between_cols, between_rows],
            elements: self.elements,
        }
    }

    /// Some rows and columns. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::Argument`] for a range beyond the last row or column.
    pub fn sub(self, rows: Range<usize>, cols: Range<usize>) -> Result<Self> {
        let (start, rows, cols) = part((self.rows, self.cols), self.strides, (&rows, &cols))?;
        let len = self.elements.len() - start;
        MatrixViewMut::of_written(self.elements.into_part(start, len)?, rows, cols, self.strides)
    }

    /// The rows before `row`, and the others: two matrices that can be written at the same time.
    /// One of them may be empty.
    ///
    /// ```
    /// use gpu_gemm::{Device, Gemm, Matrix};
    ///
    /// let device = Device::best().device;
    /// let x = Matrix::from_row_major(&device, 1, 2, &[1.0f32, 10.0])?;
    /// let w = Matrix::from_row_major(&device, 2, 2, &[1.0, 2.0, 3.0, 4.0])?;
    ///
    /// // X W above X W^T, in one matrix.
    /// let mut y = Matrix::zeros(&device, 2, 2)?;
    /// let (above, below) = y.view_mut().split_rows_at(1)?;
    /// let inputs = [(x.view(), w.view()), (x.view(), w.view().t())];
    /// Gemm::new().launch_array(&device.stream()?, &inputs, &mut [above, below])?;
    /// assert_eq!(y.to_row_major()?, [31.0, 42.0, 21.0, 43.0]);
    /// # Ok::<(), gpu_gemm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] for a row beyond the last.
    pub fn split_rows_at(self, row: usize) -> Result<(Self, Self)> {
        let (rows, cols) = (self.rows, self.cols);
        if row > rows {
            let limit = format!("the matrix has {}", count_of(rows, "row"));
            return Err(Error::argument("row", row, limit));
        }
        self.split((0..row, 0..cols), (row..rows, 0..cols))
    }

    /// The columns before `col`, and the others, as [`split_rows_at`](Self::split_rows_at).
    ///
    /// # Errors
    /// [`Error::Argument`] for a column beyond the last.
    pub fn split_cols_at(self, col: usize) -> Result<(Self, Self)> {
        let (rows, cols) = (self.rows, self.cols);
        if col > cols {
            let limit = format!("the matrix has {}", count_of(cols, "column"));
            return Err(Error::argument("col", col, limit));
        }
        self.split((0..rows, 0..col), (0..rows, col..cols))
    }

    /// Two parts that have no row or no column in common.
    fn split(self, one: Part, other: Part) -> Result<(Self, Self)> {
        let MatrixViewMut { elements, rows, cols, strides } = self;
        // SAFETY: no two elements of a written matrix share memory (`check_distinct`), and each is
        // in at most one part. A kernel writes the elements of its part alone.
        let [first, second] = unsafe { elements.twice() }.map(|elements| MatrixViewMut {
            elements,
            rows,
            cols,
            strides,
        });
        Ok((first.sub(one.0, one.1)?, second.sub(other.0, other.1)?))
    }

    /// The same view, with a shorter borrow.
    pub fn reborrow(&mut self) -> MatrixViewMut<'_, T> {
        let MatrixViewMut { rows, cols, strides, .. } = *self;
        MatrixViewMut { elements: self.elements.reborrow(), rows, cols, strides }
    }

    /// The same matrix, for reading.
    pub fn as_view(&self) -> MatrixView<'_, T> {
        let MatrixViewMut { rows, cols, strides, .. } = *self;
        MatrixView { elements: self.elements.as_view(), rows, cols, strides }
    }

    pub(crate) fn into_elements(self) -> Written<'a, T> {
        self.elements
    }
}

macro_rules! shared {
    ($($view:ident)*) => {$(
        impl<T: Pod> $view<'_, T> {
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

            /// The device whose memory it is in.
            pub fn device(&self) -> &Device {
                self.elements.device()
            }
        }
    )*};
}

shared! { MatrixView MatrixViewMut }

#[cfg(test)]
mod tests;
