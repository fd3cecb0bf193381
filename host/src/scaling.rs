//! Scales of products of 8-bit floating-point numbers: drawn, on a device, and in a comparison.

use std::ops::Range;

use gpu_gemm::{Buffer, Device, Layout, MatrixView, Result, Shape, blocks::Source, gemm::Scales};

use crate::operands;

/// Rows, columns or k-steps of a block.
const BLOCK: usize = 128;

/// What scales are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleKind {
    /// Rows of A and columns of B.
    RowsCols,
    /// Blocks of 1 x 128 of A and of 128 x 128 of B.
    Blocks,
}

impl ScaleKind {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ScaleKind::RowsCols => "rows-cols",
            ScaleKind::Blocks => "blocks",
        }
    }

    /// The rows and columns of A that have a scale in common, and those of B.
    fn every(self) -> [[usize; 2]; 2] {
        match self {
            ScaleKind::RowsCols => [[1, usize::MAX], [usize::MAX, 1]],
            ScaleKind::Blocks => [[1, BLOCK], [BLOCK; 2]],
        }
    }
}

/// Scales of A and of B: `V` is their numbers in host memory, or a buffer. They lie as cublasLt
/// reads them. Those of A follow each other along m. Those of blocks of B follow each other along k,
/// from a multiple of four to the next.
#[derive(Clone, Debug)]
pub struct Scaling<V = Vec<f32>> {
    /// What they are of.
    pub kind: ScaleKind,
    shape: Shape,
    values: [V; 2],
}

/// Rows and columns, and the strides.
type Place = ([usize; 2], [usize; 2]);

impl<V> Scaling<V> {
    fn places(kind: ScaleKind, shape: Shape) -> [Place; 2] {
        let [m, n, k] = [shape.m(), shape.n(), shape.k()];
        let [of_k, of_n] = [k, n].map(|size| size.div_ceil(BLOCK));
        match kind {
            ScaleKind::RowsCols => [([m, 1], [1, m]), ([1, n], [n, 1])],
            ScaleKind::Blocks => {
                [([m, of_k], [1, m]), ([of_k, of_n], [1, of_k.next_multiple_of(4)])]
            }
        }
    }

    /// Whether they are of a product of that shape.
    pub fn is_of(&self, shape: Shape) -> bool {
        self.shape == shape
    }

    /// The numbers of A and of B.
    pub fn values(&self) -> &[V; 2] {
        &self.values
    }
}

impl Scaling {
    /// Random scales from 1/2 to 2, or 1 and 2, with which sums of integers stay exact.
    ///
    /// # Errors
    /// [`Error::Interrupted`](gpu_gemm::Error::Interrupted),
    /// [`Error::OutOfMemory`](gpu_gemm::Error::OutOfMemory).
    pub fn draw(kind: ScaleKind, shape: Shape, seed: u64, are_exact: bool) -> Result<Self> {
        let draw = |(number, (sizes, strides)): (u64, Place)| {
            let len = (sizes[0] * strides[0]).max(sizes[1] * strides[1]);
            operands::scales(seed.wrapping_add(number << 40), len, are_exact)
        };
        let [of_a, of_b] = Self::places(kind, shape);
        Ok(Scaling { kind, shape, values: [draw((1, of_a))?, draw((2, of_b))?] })
    }

    /// The same on a device.
    ///
    /// # Errors
    /// As [`Device::upload`].
    pub fn upload(&self, device: &Device) -> Result<Scaling<Buffer<f32>>> {
        let Scaling { kind, shape, values: [a, b] } = self;
        let values = [device.upload(a)?, device.upload(b)?];
        Ok(Scaling { kind: *kind, shape: *shape, values })
    }

    /// A, or B if `operand` is 1, each element multiplied by its scale.
    pub fn of<'a>(&'a self, operand: usize, source: &'a dyn Source<f64>) -> Scaled<'a> {
        let (_, strides) = Self::places(self.kind, self.shape)[operand];
        let every = self.kind.every()[operand];
        Scaled { source, scales: &self.values[operand], strides, every }
    }
}

impl Scaling<Buffer<f32>> {
    /// As [`Gemm::scales`](gpu_gemm::Gemm::scales) takes them.
    ///
    /// # Errors
    /// None: they have the sizes of their shape.
    pub fn scales(&self) -> Result<Scales<'_>> {
        let places = Self::places(self.kind, self.shape);
        let view = |i: usize| {
            let ([rows, cols], strides) = places[i];
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
        let [down, across] = self.every;
        let scale = |row: usize, col: usize, value: &mut f64| {
            let at = row / down * self.strides[0] + col / across * self.strides[1];
            *value *= f64::from(self.scales[at]);
        };
        let (lines, len) = match layout {
            Layout::RowMajor => (rows.clone(), cols.len()),
            Layout::ColMajor => (cols.clone(), rows.len()),
        };
        for (line, values) in lines.zip(values.chunks_mut(len.max(1))) {
            for (at, value) in values.iter_mut().enumerate() {
                match layout {
                    Layout::RowMajor => scale(line, cols.start + at, value),
                    Layout::ColMajor => scale(rows.start + at, line, value),
                }
            }
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
        for kind in [ScaleKind::RowsCols, ScaleKind::Blocks] {
            let scaling = Scaling::draw(kind, shape, 5, false).unwrap();
            let device = Device::cpu();
            let uploaded = scaling.upload(&device).unwrap();
            let (Scales::RowsCols { a, b } | Scales::Blocks { a, b }) = uploaded.scales().unwrap()
            else {
                unreachable!("there are two kinds")
            };
            assert_eq!(
                format!("{a:?}").contains("count: 1"),
                format!("{b:?}").contains("count: 1")
            );
            for (operand, (rows, cols)) in [(0, (3, 300)), (1, (300, 130))] {
                let ones = vec![1.0f64; rows * cols];
                let ones = Dense::new::<f64>(rows, cols, Layout::RowMajor, &ones).unwrap();
                let scaled = scaling.of(operand, &ones);
                let mut all = vec![0.0; rows * cols];
                scaled.read(0..rows, 0..cols, Layout::RowMajor, &mut all).unwrap();
                // A part, column by column.
                let mut part = vec![0.0; 2 * 3];
                scaled.read(1..3, 127..130, Layout::ColMajor, &mut part).unwrap();
                let same = (0..6).all(|at| part[at] == all[(1 + at % 2) * cols + 127 + at / 2]);
                assert!(same, "{kind:?} of {operand}");
                let distinct = |of: &mut dyn Iterator<Item = f64>| {
                    let mut bits = of.map(f64::to_bits).collect::<Vec<_>>();
                    bits.dedup();
                    bits.len()
                };
                let in_a_row = distinct(&mut all[..cols].iter().copied());
                let in_a_column = distinct(&mut all.iter().step_by(cols).copied());
                let want = match (kind, operand) {
                    (ScaleKind::RowsCols, 0) => (1, 3),
                    (ScaleKind::RowsCols, _) => (130, 1),
                    (ScaleKind::Blocks, 0) => (3, 3),
                    (ScaleKind::Blocks, _) => (2, 3),
                };
                assert_eq!((in_a_row, in_a_column), want, "{kind:?} of {operand}");
                assert!(all.iter().all(|scale| (0.5..2.0).contains(scale)));
            }
            let exact = Scaling::draw(kind, shape, 5, true).unwrap();
            assert!(exact.values().iter().flatten().all(|scale| [1.0, 2.0].contains(scale)));
        }
    }
}
