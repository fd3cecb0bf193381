//! Sources and sinks of blocks.

use std::ops::Range;

use crate::{
    buffer::Pod,
    error::{Error, Result},
    matrix::Layout,
};

/// A matrix whose blocks can be read, by several threads at the same time.
pub trait Source<T>: Sync {
    /// The number of rows.
    fn rows(&self) -> usize;

    /// The number of columns.
    fn cols(&self) -> usize;

    /// The layout in which reading is cheapest.
    fn layout(&self) -> Layout;

    /// Reads a block to `values`, dense, in a layout.
    ///
    /// # Errors
    /// [`Error::Argument`] for rows or columns beyond the last, and for another number of values
    /// than the block has; [`Error::Interrupted`](crate::Error::Interrupted); errors of the source.
    fn read(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &mut [T],
    ) -> Result<()>;
}

/// A matrix whose blocks can be written, each once.
pub trait Sink<T>: Send {
    /// The layout in which writing is cheapest.
    fn layout(&self) -> Layout;

    /// Writes a block from `values`, dense, in a layout.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn write(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &[T],
    ) -> Result<()>;
}

impl Layout {
    /// The layout of the transpose: the same memory with rows and columns exchanged.
    #[must_use]
    pub fn transposed(self) -> Layout {
        match self {
            Layout::RowMajor => Layout::ColMajor,
            Layout::ColMajor => Layout::RowMajor,
        }
    }
}

/// The transpose of a matrix. Reading it moves no element.
#[derive(Clone, Copy)]
pub struct Transposed<'a, T>(pub &'a dyn Source<T>);

impl<T> Source<T> for Transposed<'_, T> {
    fn rows(&self) -> usize {
        self.0.cols()
    }

    fn cols(&self) -> usize {
        self.0.rows()
    }

    fn layout(&self) -> Layout {
        self.0.layout().transposed()
    }

    fn read(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &mut [T],
    ) -> Result<()> {
        self.0.read(cols, rows, layout.transposed(), values)
    }
}

/// A dense matrix in memory. `&[T]` is a [`Source`], `&mut [T]` is a [`Sink`].
#[derive(Clone, Copy, Debug)]
pub struct Dense<S> {
    rows: usize,
    cols: usize,
    layout: Layout,
    values: S,
}

impl<S> Dense<S> {
    /// The `rows x cols` matrix with these elements.
    ///
    /// # Errors
    /// [`Error::Argument`] if there are not `rows * cols` elements.
    pub fn new<T>(rows: usize, cols: usize, layout: Layout, values: S) -> Result<Self>
    where
        S: AsRef<[T]>,
    {
        let len = values.as_ref().len();
        if rows.checked_mul(cols) != Some(len) {
            let limit = format!("must be rows * cols = {rows} * {cols}");
            return Err(Error::argument("values.len()", len, limit));
        }
        Ok(Dense { rows, cols, layout, values })
    }

    /// The runs of a block: the range of each in the block, and its elements in the matrix.
    fn places(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        len: usize,
    ) -> Result<impl Iterator<Item = (Range<usize>, Places)> + use<S>> {
        for (name, range, size) in [("rows", &rows, self.rows), ("cols", &cols, self.cols)] {
            if range.start > range.end || range.end > size {
                let limit = format!("the matrix has {size}");
                return Err(Error::argument(name, format!("{range:?}"), limit));
            }
        }
        if len != rows.len() * cols.len() {
            let limit = format!("must be {} x {}", rows.len(), cols.len());
            return Err(Error::argument("values.len()", len, limit));
        }
        let (between_rows, between_cols) = match self.layout {
            Layout::RowMajor => (self.cols, 1),
            Layout::ColMajor => (1, self.rows),
        };
        let first = rows.start * between_rows + cols.start * between_cols;
        let (runs, run, between, stride) = match layout {
            Layout::RowMajor => (rows.len(), cols.len(), between_rows, between_cols),
            Layout::ColMajor => (cols.len(), rows.len(), between_cols, between_rows),
        };
        Ok((0..runs).map(move |index| {
            (index * run..(index + 1) * run, Places { start: first + index * between, stride })
        }))
    }
}

/// The elements of a run in a matrix.
#[derive(Clone, Copy)]
struct Places {
    start: usize,
    stride: usize,
}

impl<T: Pod, S: AsRef<[T]> + Sync> Source<T> for Dense<S> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn cols(&self) -> usize {
        self.cols
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn read(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &mut [T],
    ) -> Result<()> {
        let stored = self.values.as_ref();
        for (run, Places { start, stride }) in self.places(rows, cols, layout, values.len())? {
            crate::check_interrupt()?;
            let run = &mut values[run];
            match stride {
                1 => run.copy_from_slice(&stored[start..start + run.len()]),
                _ => {
                    let places = (start..).step_by(stride.max(1));
                    run.iter_mut().zip(places).for_each(|(value, place)| *value = stored[place]);
                }
            }
        }
        Ok(())
    }
}

impl<T: Pod, S: AsMut<[T]> + Send> Sink<T> for Dense<S> {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn write(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &[T],
    ) -> Result<()> {
        let places = self.places(rows, cols, layout, values.len())?;
        let stored = self.values.as_mut();
        for (run, Places { start, stride }) in places {
            crate::check_interrupt()?;
            let run = &values[run];
            match stride {
                1 => stored[start..start + run.len()].copy_from_slice(run),
                _ => {
                    let places = (start..).step_by(stride.max(1));
                    run.iter().zip(places).for_each(|(&value, place)| stored[place] = value);
                }
            }
        }
        Ok(())
    }
}

#[cfg(feature = "npy")]
impl<T: crate::npy::Element> Source<T> for crate::npy::Reader {
    fn rows(&self) -> usize {
        self.header().rows
    }

    fn cols(&self) -> usize {
        self.header().cols
    }

    fn layout(&self) -> Layout {
        self.header().layout
    }

    fn read(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &mut [T],
    ) -> Result<()> {
        crate::npy::Reader::read(self, rows, cols, layout, values)
    }
}

#[cfg(feature = "npy")]
impl<T: crate::npy::Element> Sink<T> for crate::npy::Writer {
    fn layout(&self) -> Layout {
        self.header().layout
    }

    fn write(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &[T],
    ) -> Result<()> {
        crate::npy::Writer::write(self, rows, cols, layout, values)
    }
}
