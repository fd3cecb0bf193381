//! Scales of products of 8-bit numbers: drawn, on a device, and in a comparison.

use std::{fmt, ops::Range, str::FromStr};

use gpu::params::{BLOCKS, ROWS_COLS};
use gpu_gemm::{Buffer, Device, Layout, MatrixView, Result, Shape, blocks::Source, gemm::Scales};

use crate::operands;

/// What scales are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleKind {
    /// Rows of A and columns of B.
    RowsCols,
    /// Blocks of 1 x 128 of A and of 128 x 128 of B.
    Blocks,
}

impl ScaleKind {
    /// The number by which kernels know it.
    pub(crate) fn number(self) -> u32 {
        match self {
            ScaleKind::RowsCols => ROWS_COLS,
            ScaleKind::Blocks => BLOCKS,
        }
    }
}

/// As on the command line.
impl fmt::Display for ScaleKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(if *self == ScaleKind::Blocks { "blocks" } else { "rows-cols" })
    }
}

impl FromStr for ScaleKind {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let all = [ScaleKind::RowsCols, ScaleKind::Blocks];
        let found = all.into_iter().find(|kind| kind.to_string() == text.trim());
        found.ok_or("must be rows-cols or blocks")
    }
}

/// Scales of A and of B: `V` is their numbers in host memory, or a buffer. They lie as cublasLt
/// reads them. Those of A follow each other along m, those of blocks of B along k, from a multiple
/// of four to the next.
#[derive(Clone, Debug)]
pub struct Scaling<V = Vec<f32>> {
    kind: ScaleKind,
    shape: Shape,
    /// Those of A and of B.
    pub(crate) values: [V; 2],
}

impl<V> Scaling<V> {
    /// Those of a kind, if there are any.
    pub fn find(all: &[Self], kind: Option<ScaleKind>) -> Option<&Self> {
        all.iter().find(|of| Some(of.kind) == kind)
    }
}

/// Of the scales of A and of those of B: rows and columns, and the strides.
fn places(kind: ScaleKind, shape: Shape) -> [([usize; 2], [usize; 2]); 2] {
    let [m, n, k] = [shape.m(), shape.n(), shape.k()];
    let [of_k, of_n] = [k, n].map(|size| size.div_ceil(Scales::BLOCK));
    match kind {
        ScaleKind::RowsCols => [([m, 1], [1, m]), ([1, n], [n, 1])],
        ScaleKind::Blocks => [([m, of_k], [1, m]), ([of_k, of_n], [1, of_k.next_multiple_of(4)])],
    }
}

impl Scaling {
    /// Random scales from 1/2 to 2, or 1 and 2, with which sums of integers stay exact.
    ///
    /// # Errors
    /// [`Error::Interrupted`](gpu_gemm::Error::Interrupted),
    /// [`Error::OutOfMemory`](gpu_gemm::Error::OutOfMemory).
    pub fn draw(kind: ScaleKind, shape: Shape, seed: u64, are_exact: bool) -> Result<Self> {
        let [of_a, of_b] = places(kind, shape).map(|(sizes, strides)| {
            let len = (sizes[0] * strides[0]).max(sizes[1] * strides[1]);
            move |seed| operands::scales(seed, len, are_exact)
        });
        // Not that of A, nor of what epilogues read.
        let seed = seed.wrapping_add(3 << 32);
        Ok(Scaling { kind, shape, values: [of_a(seed)?, of_b(operands::seed_of_b(seed))?] })
    }

    /// The same on a device.
    ///
    /// # Errors
    /// As [`Device::upload`].
    pub fn upload(&self, device: &Device) -> Result<Scaling<Buffer<f32>>> {
        let Scaling { kind, shape, values: [ref a, ref b] } = *self;
        Ok(Scaling { kind, shape, values: [device.upload(a)?, device.upload(b)?] })
    }

    /// A, or B if `operand` is 1, each element multiplied by its scale.
    pub fn of<'a>(&'a self, operand: usize, source: &'a dyn Source<f64>) -> Scaled<'a> {
        let (_, strides) = places(self.kind, self.shape)[operand];
        let all = [[[1, usize::MAX], [usize::MAX, 1]], [[1, Scales::BLOCK], [Scales::BLOCK; 2]]];
        let every = all[self.kind as usize][operand];
        Scaled { source, scales: &self.values[operand], strides, every }
    }
}

impl Scaling<Buffer<f32>> {
    /// Whether they are of that kind, for products of that shape.
    pub fn are(&self, kind: Option<ScaleKind>, shape: Shape) -> bool {
        (Some(self.kind), self.shape) == (kind, shape)
    }

    /// As [`Gemm::scales`](gpu_gemm::Gemm::scales) takes them.
    ///
    /// # Errors
    /// None: they have the sizes of their shape.
    pub fn scales(&self) -> Result<Scales<'_>> {
        let view = |i: usize| {
            let ([rows, cols], strides) = places(self.kind, self.shape)[i];
            MatrixView::new(self.values[i].all(), rows, cols, strides)
        };
        let (a, b) = (view(0)?.into(), view(1)?.into());
        Ok(match self.kind {
            ScaleKind::RowsCols => Scales::RowsCols { a, b },
            ScaleKind::Blocks => Scales::Blocks { a, b },
        })
    }
}

/// A matrix whose elements are multiplied by scales: [`Scaling::of`] makes it.
pub struct Scaled<'a> {
    source: &'a dyn Source<f64>,
    scales: &'a [f32],
    strides: [usize; 2],
    /// Rows and columns with a scale in common.
    every: [usize; 2],
}

impl Source<f64> for Scaled<'_> {
    fn rows(&self) -> usize {
        self.source.rows()
    }

    fn cols(&self) -> usize {
        self.source.cols()
    }

    fn layout(&self) -> Layout {
        self.source.layout()
    }

    fn read(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &mut [f64],
    ) -> Result<()> {
        self.source.read(rows.clone(), cols.clone(), layout, values)?;
        let by_rows = layout == Layout::RowMajor;
        let (lines, line) = if by_rows { (rows, cols) } else { (cols, rows) };
        let places = lines.flat_map(|outer| line.clone().map(move |inner| (outer, inner)));
        for ((outer, inner), value) in places.zip(values) {
            let place = if by_rows { [outer, inner] } else { [inner, outer] };
            let [down, across] = [0, 1].map(|i| place[i] / self.every[i] * self.strides[i]);
            *value *= f64::from(self.scales[down + across]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use gpu_gemm::blocks::Dense;

    use super::*;

    #[test]
    fn each_element_has_the_scale_of_its_block() {
        let shape = Shape::new(3, 130, 300).unwrap();
        for (kind, operand, [rows, cols], distinct) in [
            (ScaleKind::RowsCols, 0, [3, 300], [3, 1]),
            (ScaleKind::RowsCols, 1, [300, 130], [1, 130]),
            (ScaleKind::Blocks, 0, [3, 300], [3, 3]),
            (ScaleKind::Blocks, 1, [300, 130], [3, 2]),
        ] {
            let scaling = Scaling::draw(kind, shape, 5, false).unwrap();
            let ones = vec![1.0f64; rows * cols];
            let ones = Dense::new::<f64>(rows, cols, Layout::RowMajor, &ones).unwrap();
            let scaled = scaling.of(operand, &ones);
            let mut all = vec![0.0; rows * cols];
            scaled.read(0..rows, 0..cols, Layout::RowMajor, &mut all).unwrap();
            // A part, column by column.
            let mut part = vec![0.0; 2 * 3];
            scaled.read(1..3, 127..130, Layout::ColMajor, &mut part).unwrap();
            assert!((0..6).all(|at| part[at] == all[(1 + at % 2) * cols + 127 + at / 2]));
            let [mut column, mut row] = [(cols, rows), (1, cols)]
                .map(|(step, len)| all.iter().step_by(step).take(len).collect::<Vec<_>>());
            column.dedup();
            row.dedup();
            assert_eq!([column.len(), row.len()], distinct, "{kind} of {operand}");
            assert!(all.iter().all(|scale| (0.5..2.0).contains(scale)));
            let exact = Scaling::draw(kind, shape, 5, true).unwrap();
            assert!(exact.values.iter().flatten().all(|scale| [1.0, 2.0].contains(scale)));
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }
}
