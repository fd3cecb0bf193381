//! Scales: what the numbers of A and B are multiplied by.

use std::ops::Range;

use gpu::params::{BLOCKS, NO_SCALES, ROWS_COLS, ScaleStrides};

use super::Batch;
use crate::{
    buffer::BufferView,
    error::{Error, Result},
    matrix::extent,
    shape::Shape,
};

/// The scales in messages.
pub(super) const NAMES: [&str; 2] = ["scales of A", "scales of B"];

/// What the numbers of A and B are multiplied by. Numbers of 8 bits span few powers of two, so that
/// the numbers they stand for are divided by scales before they are rounded.
///
/// Scales may have any strides, also 0. They multiply sums of f32: nothing of A and B is rounded
/// again. The product of A's and B's is formed first, and is to be a normal f32. A batch of
/// products has a batch of scales, or one matrix of them for all: `MatrixView::into` makes it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Scales<'a> {
    /// A scale for each row of A, and one for each column of B.
    RowsCols {
        /// `m x 1`.
        a: Batch<'a, f32>,
        /// `1 x n`.
        b: Batch<'a, f32>,
    },
    /// A scale for each 1 x 128 of A, and one for each 128 x 128 of B. The last may be of less.
    Blocks {
        /// `m x (k / 128)`, rounded up.
        a: Batch<'a, f32>,
        /// `(k / 128) x (n / 128)`, both rounded up.
        b: Batch<'a, f32>,
    },
}

impl<'a> Scales<'a> {
    /// Rows, columns or k-steps of a block.
    pub const BLOCK: usize = 128;

    /// A's and B's.
    pub(super) fn both(self) -> [Batch<'a, f32>; 2] {
        let (Scales::RowsCols { a, b } | Scales::Blocks { a, b }) = self;
        [a, b]
    }

    /// The same with other elements.
    pub(super) fn of_elements(self, [of_a, of_b]: [BufferView<'a, f32>; 2]) -> Self {
        let mut same = self;
        let (Scales::RowsCols { a, b } | Scales::Blocks { a, b }) = &mut same;
        (a.elements, b.elements) = (of_a, of_b);
        same
    }

    /// Those of some rows and columns of C, of one product. The columns begin with a block.
    ///
    /// # Errors
    /// [`Error::Argument`] for rows and columns that it has not.
    pub(super) fn part(self, [rows, cols]: &[Range<usize>; 2]) -> Result<Self> {
        let mut part = self;
        let (of_a, of_b, each) = match &mut part {
            Scales::RowsCols { a, b } => (a, b, 1),
            Scales::Blocks { a, b } => (a, b, Self::BLOCK),
        };
        let cols = cols.start / each..cols.end.div_ceil(each);
        (of_a.size.0, of_b.size.1) = (rows.len(), cols.len());
        for (side, (of, first)) in [(of_a, rows.start), (of_b, cols.start)].into_iter().enumerate()
        {
            let len = extent(of.size.0, of.size.1, of.strides)?;
            // Without elements strides may be anything.
            let start = if len == 0 { 0 } else { first.saturating_mul(of.strides[side]) };
            of.elements = of.elements.view(start, len)?;
        }
        Ok(part)
    }

    /// Checks the sizes, and the numbers of them.
    pub(super) fn check_sizes(self, shape: Shape, batch: usize) -> Result<()> {
        let [m, n, k] = [shape.m(), shape.n(), shape.k()];
        let sizes = match self {
            Scales::RowsCols { .. } => [(m, 1), (1, n)],
            Scales::Blocks { .. } => {
                [(m, k.div_ceil(Self::BLOCK)), (k.div_ceil(Self::BLOCK), n.div_ceil(Self::BLOCK))]
            }
        };
        for ((name, of), (rows, cols)) in NAMES.into_iter().zip(self.both()).zip(sizes) {
            if of.size != (rows, cols) {
                let value = format!("{} x {}", of.size.0, of.size.1);
                return Err(Error::argument(name, value, format!("must be {rows} x {cols}")));
            }
            if ![1, batch].contains(&of.count) {
                let limit = format!("must be {batch}, as the products, or 1 for all");
                return Err(Error::argument(format!("{name}: count"), of.count, limit));
            }
        }
        Ok(())
    }
}

/// Scales as a plan sees them: what they are of, and their strides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScalePlan {
    /// [`NO_SCALES`], [`ROWS_COLS`] or [`BLOCKS`].
    pub(super) kind: u32,
    /// From a row to the next, and from a column to the next: of A's scales, and of B's.
    strides: [[usize; 2]; 2],
    /// From those of a product to those of the next.
    steps: [usize; 2],
}

impl ScalePlan {
    pub(super) fn of(scales: Option<Scales>) -> Self {
        let kind = match scales {
            None => return ScalePlan::default(),
            Some(Scales::RowsCols { .. }) => ROWS_COLS,
            Some(Scales::Blocks { .. }) => BLOCKS,
        };
        let both = scales.map(Scales::both);
        // Without elements strides and steps may be anything.
        let is_there = |of: &Batch<f32>| !of.elements.is_empty();
        let strides = |of: Batch<f32>| if is_there(&of) { of.strides } else { [0; 2] };
        let strides = both.map_or([[0; 2]; 2], |both| both.map(strides));
        let step = |of: Batch<f32>| if is_there(&of) && of.count > 1 { of.step } else { 0 };
        ScalePlan { kind, strides, steps: both.map_or([0; 2], |both| both.map(step)) }
    }

    pub(super) fn are_there(self) -> bool {
        self.kind != NO_SCALES
    }

    /// Those of `C^T = B^T A^T`.
    pub(super) fn swapped(self) -> Self {
        let [a, b] = self.strides.map(|[rows, cols]| [cols, rows]);
        let [of_a, of_b] = self.steps;
        ScalePlan { strides: [b, a], steps: [of_b, of_a], ..self }
    }

    /// Elements of A's scales before those of a row of a product, and of B's before those of the
    /// product.
    pub(super) fn before(self, product: usize, row: usize) -> [usize; 2] {
        let [of_a, of_b] = self.steps.map(|step| product * step);
        [of_a + row * self.strides[0][0], of_b]
    }

    pub(super) fn for_kernel(self) -> ScaleStrides {
        let [a, b] = self.strides.map(|strides| strides.map(|stride| stride as u64));
        ScaleStrides { a, b }
    }
}

/// The elements of both.
pub(super) fn elements(scales: Option<Scales>) -> Option<[BufferView<f32>; 2]> {
    scales.map(|scales| scales.both().map(|of| of.elements))
}
