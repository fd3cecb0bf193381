//! Distributed matrices, and their products.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gpu_gemm::{Device, Matrix, SliceView, Stream, memory};
use mpi::{
    Count, Rank,
    datatype::PartitionMut,
    traits::{Communicator, Root},
};

use crate::{
    cyclic::{Cyclic, Span},
    error::{Error, Result},
    exchange::{Exchange, Operand},
    grid::{Grid, is_direct},
    messages::int,
    product::{self, Element, Report},
};

/// A matrix in blocks over the ranks of a grid. Each rank has its elements on its device.
pub struct Distributed<T> {
    rows: usize,
    cols: usize,
    /// How its rows go to the rows of the grid, and its columns to the columns.
    cyclic: [Cyclic; 2],
    /// This rank's row and column in the grid.
    place: [usize; 2],
    /// This rank's rows and columns, column-major.
    own: Matrix<T>,
}

impl<T: Element> Distributed<T> {
    /// A matrix with these elements, in blocks of `block` rows and columns. Each rank calls
    /// `element` for its own. All ranks call this.
    ///
    /// # Errors
    /// A block without rows or columns; [`Error::Gemm`], of any rank, where memory is short or
    /// `element` panics.
    pub fn from_fn(
        grid: &Grid,
        device: &Device,
        [rows, cols]: [usize; 2],
        block: [usize; 2],
        element: impl Fn(usize, usize) -> T,
    ) -> Result<Self> {
        let cyclic = [0, 1].map(|side| {
            let (procs, block) = (grid.size[side], block[side]);
            Cyclic { procs, source: Some(0), first: block, block }
        });
        let own = || -> Result<_> {
            if block.contains(&0) {
                let value = format!("{} x {}", block[0], block[1]);
                return Err(Error::argument("block", value, "must have rows and columns".into()));
            }
            let indices = |side: usize, len| -> gpu_gemm::Result<Vec<usize>> {
                let (cyclic, place) = (&cyclic[side], grid.own[side]);
                let mut own = memory::reserved(cyclic.count(place, len))?;
                own.extend((0..len).filter(|&index| cyclic.owner(index) == Some(place)));
                Ok(own)
            };
            let (own_rows, own_cols) = (indices(0, rows)?, indices(1, cols)?);
            let mut values = memory::reserved(own_rows.len().saturating_mul(own_cols.len()))?;
            for &col in &own_cols {
                values.extend(own_rows.iter().map(|&row| element(row, col)));
            }
            let values = SliceView::col_major(&values, own_rows.len(), own_cols.len())?;
            Ok(Matrix::upload(device, values)?)
        };
        // A rank that unwinds leaves the others waiting. Nothing of what panicked is used again.
        let own = catch_unwind(AssertUnwindSafe(own)).unwrap_or_else(|_| {
            Err(Error::argument("element", "a function that panicked", "must return".into()))
        });
        Ok(Distributed { rows, cols, cyclic, place: grid.own, own: grid.agree(own)? })
    }

    /// Whether it is of this grid, or one with the same places.
    fn is_of(&self, grid: &Grid) -> bool {
        self.place == grid.own && self.cyclic.each_ref().map(|of| of.procs) == grid.size
    }

    /// The number of rows and of columns.
    pub fn size(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }

    /// This rank's elements.
    pub fn own(&self) -> &Matrix<T> {
        &self.own
    }

    /// All elements, row-major, at rank `root`. All ranks call this.
    ///
    /// # Errors
    /// Another grid than the matrix's; a rank with more elements than MPI counts; a matrix that
    /// does not fit into memory; those of the device.
    pub fn gather(&self, grid: &Grid, root: usize) -> Result<Option<Vec<T>>> {
        let is_root = grid.rank_at(grid.own) == root;
        let memories = || {
            if root >= grid.ranks() {
                let limit = format!("must be below {}, the number of ranks", grid.ranks());
                return Err(Error::argument("root", root, limit));
            }
            if !self.is_of(grid) {
                let value = "that of another matrix";
                return Err(Error::argument("grid", value, "must be the matrix's".into()));
            }
            let len = if is_root { self.rows * self.cols } else { 0 };
            int("elements", self.rows * self.cols)?;
            let own = self.own.buffer().to_vec()?;
            Ok((own, memory::filled(T::default(), len)?, memory::reserved(len)?))
        };
        let (own, mut all, mut values) = grid.agree(memories())?;
        let target = grid.all.process_at_rank(root as Rank);
        if !is_root {
            target.gather_varcount_into(&own[..]);
            return Ok(None);
        }
        let spans =
            [Span::whole(&self.cyclic[0], self.rows), Span::whole(&self.cyclic[1], self.cols)];
        let sizes = (0..grid.ranks()).map(|rank| {
            let place = grid.place(rank);
            [spans[0].count(place[0]), spans[1].count(place[1])]
        });
        let sizes = sizes.collect::<Vec<_>>();
        let counts = sizes.iter().map(|[rows, cols]| (rows * cols) as Count).collect::<Vec<_>>();
        let starts =
            counts.iter().scan(0, |next, count| Some(std::mem::replace(next, *next + count)));
        let starts = starts.collect::<Vec<Count>>();
        let mut parts = PartitionMut::new(&mut all[..], counts, &starts[..]);
        target.gather_varcount_into_root(&own[..], &mut parts);
        for row in 0..self.rows {
            for col in 0..self.cols {
                let place =
                    [spans[0].owner(row), spans[1].owner(col)].map(Option::unwrap_or_default);
                let rank = grid.rank_at(place);
                let (row, col) = (spans[0].place(place[0], row), spans[1].place(place[1], col));
                values.push(all[starts[rank] as usize + col * sizes[rank][0] + row]);
            }
        }
        Ok(Some(values))
    }

    /// This rank's elements as an operand of a product: A (side 0) or B (1).
    fn operand(&self, side: usize, stream: &Stream, values: &[T]) -> Result<Operand<T>> {
        let sizes = [self.rows, self.cols];
        let [outer, inner] =
            [side, 1 - side].map(|side| Span::whole(&self.cyclic[side], sizes[side]));
        let start = match values {
            [] => self.own.buffer().all().address_on(stream)?,
            values => values.as_ptr(),
        };
        let leading = self.own.leading_dimension();
        Ok(Operand { outer, inner, has_outer_rows: side == 0, start, leading })
    }
}

/// `C = alpha A B + beta C` on the devices of the ranks. All ranks of the grid call this, with the
/// same scalars; the stream is of the device that has this rank's elements.
///
/// # Errors
/// Sizes that do not fit together, matrices of another grid; the first error that a rank meets, on
/// all ranks. C may then be half-written.
pub fn multiply<T: Element>(
    grid: &Grid,
    stream: &Stream,
    scalars: [f64; 2],
    a: &Distributed<T>,
    b: &Distributed<T>,
    c: &mut Distributed<T>,
) -> Result<Report> {
    let of_device = [a, b, c].iter().all(|matrix| matrix.own.device() == stream.device());
    let checked = check([a.size(), b.size(), c.size()]).and_then(|()| {
        let limit = || {
            format!(
                "must be of this grid, {} x {}, and of the stream's device",
                grid.size[0], grid.size[1]
            )
        };
        match of_device && [a, b, c].iter().all(|matrix| matrix.is_of(grid)) {
            true => Ok(()),
            false => Err(Error::argument("matrices", "of another grid or device", limit())),
        }
    });
    // Where MPI does not know the device's memory, it reads copies.
    let copies = checked.and_then(|()| {
        let copy = |of: &Distributed<T>| match is_direct(stream.device()) {
            true => Ok(Vec::new()),
            false => of.own.buffer().to_vec(),
        };
        let copies = [copy(a)?, copy(b)?];
        Ok(([a.operand(0, stream, &copies[0])?, b.operand(1, stream, &copies[1])?], copies))
    });
    let ([left, right], _copies) = grid.agree(copies)?;
    let wanted = [Span::whole(&c.cyclic[0], c.rows), Span::whole(&c.cyclic[1], c.cols)];
    let [rows, cols] = wanted;
    // SAFETY: A and B, or the copies, have their elements, and are borrowed until the product ends.
    let exchanges =
        unsafe { [Exchange::new(grid, 0, left, rows), Exchange::new(grid, 1, right, cols)] };
    product::multiply(grid, stream, scalars, &exchanges, a.cols, c.own.view_mut())
}

/// `C = A B`, in blocks as A's rows and B's columns.
///
/// # Errors
/// As [`multiply`].
pub fn product<T: Element>(
    grid: &Grid,
    stream: &Stream,
    a: &Distributed<T>,
    b: &Distributed<T>,
) -> Result<(Distributed<T>, Report)> {
    let block = [a.cyclic[0].block, b.cyclic[1].block];
    let size = [a.rows, b.cols];
    let mut c = Distributed::from_fn(grid, stream.device(), size, block, |_, _| T::default())?;
    let report = multiply(grid, stream, [1.0, 0.0], a, b, &mut c)?;
    Ok((c, report))
}

fn check([a, b, c]: [[usize; 2]; 3]) -> Result<()> {
    for (name, value, wanted) in [("b", b, [a[1], b[1]]), ("c", c, [a[0], b[1]])] {
        if value != wanted {
            let [rows, cols] = wanted;
            let value = format!("{} x {}", value[0], value[1]);
            return Err(Error::argument(name, value, format!("must be {rows} x {cols}")));
        }
    }
    Ok(())
}
