//! Scales: what the numbers of A and B are multiplied by.

use gpu::params::{BLOCKS, NO_SCALES, ROWS_COLS, ScaleStrides};

use crate::{
    buffer::BufferView,
    error::{Error, Result},
    matrix::MatrixView,
    shape::Shape,
};

/// Rows, columns or k-steps of a block.
const BLOCK: usize = 128;

/// What the numbers of A and B are multiplied by. Numbers of 8 bits span few powers of two, so that
/// the numbers they stand for are divided by scales before they are rounded.
///
/// Scales may have any strides. They multiply sums of f32: nothing of A and B is rounded again.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Scales<'a> {
    /// A scale for each row of A, and one for each column of B.
    RowsCols {
        /// `m x 1`.
        a: MatrixView<'a, f32>,
        /// `1 x n`.
        b: MatrixView<'a, f32>,
    },
    /// A scale for each 1 x 128 of A, and one for each 128 x 128 of B. The last may be of less.
    Blocks {
        /// `m x (k / 128)`, rounded up.
        a: MatrixView<'a, f32>,
        /// `(k / 128) x (n / 128)`, both rounded up.
        b: MatrixView<'a, f32>,
    },
}

impl<'a> Scales<'a> {
    fn both(self) -> [MatrixView<'a, f32>; 2] {
        let (Scales::RowsCols { a, b } | Scales::Blocks { a, b }) = self;
        [a, b]
    }

    /// Checks the sizes.
    pub(super) fn check(self, shape: Shape) -> Result<()> {
        let [m, n, k] = [shape.m(), shape.n(), shape.k()];
        let sizes = match self {
            Scales::RowsCols { .. } => [(m, 1), (1, n)],
            Scales::Blocks { .. } => {
                [(m, k.div_ceil(BLOCK)), (k.div_ceil(BLOCK), n.div_ceil(BLOCK))]
            }
        };
        for ((name, view), (rows, cols)) in
            ["scales of A", "scales of B"].into_iter().zip(self.both()).zip(sizes)
        {
            if (view.rows(), view.cols()) != (rows, cols) {
                let value = format!("{} x {}", view.rows(), view.cols());
                return Err(Error::argument(name, value, format!("must be {rows} x {cols}")));
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
}

impl ScalePlan {
    pub(super) fn of(scales: Option<Scales>) -> Self {
        let kind = match scales {
            None => return ScalePlan::default(),
            Some(Scales::RowsCols { .. }) => ROWS_COLS,
            Some(Scales::Blocks { .. }) => BLOCKS,
        };
        let strides = scales.map_or([[0; 2]; 2], |scales| scales.both().map(|view| view.strides()));
        ScalePlan { kind, strides }
    }

    pub(super) fn are_there(self) -> bool {
        self.kind != NO_SCALES
    }

    /// Those of `C^T = B^T A^T`.
    pub(super) fn swapped(self) -> Self {
        let [a, b] = self.strides.map(|[rows, cols]| [cols, rows]);
        ScalePlan { strides: [b, a], ..self }
    }

    /// Elements of A's scales before those of a row.
    pub(super) fn before_row(self, row: usize) -> usize {
        row * self.strides[0][0]
    }

    pub(super) fn for_kernel(self) -> ScaleStrides {
        let [a, b] = self.strides.map(|strides| strides.map(|stride| stride as u64));
        ScaleStrides { a, b }
    }
}

/// The elements of both.
pub(super) fn elements(scales: Option<Scales>) -> Option<[BufferView<f32>; 2]> {
    scales.map(|scales| scales.both().map(|view| view.elements()))
}
