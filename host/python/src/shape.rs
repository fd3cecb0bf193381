//! The shapes of a product, as `numpy.matmul` has them: vectors, and batches by leading dimensions
//! that are broadcast.

use gpu_gemm::{Error, Result, gemm::Scales};

use crate::array::{Dims, MOST_DIMS, shown};

/// The shapes of A, B and the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shapes {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// Whether A and B are vectors, and so the result has no rows, or no columns.
    vectors: [bool; 2],
    /// The leading dimensions of the result.
    batch: [usize; MOST_DIMS],
    batch_len: usize,
}

impl Shapes {
    /// The shapes of the product of two arrays.
    ///
    /// # Errors
    /// [`Error::Argument`] for arrays that do not fit together.
    pub(crate) fn new(a: &Dims, b: &Dims) -> Result<Self> {
        for (name, dims) in [("a", a), ("b", b)] {
            if dims.sizes().is_empty() {
                let name = format!("{name}.ndim");
                return Err(Error::argument(name, 0, "must be at least 1: a number is no matrix"));
            }
        }
        let (of_a, of_b) = (a.sizes(), b.sizes());
        let vectors = [of_a.len() == 1, of_b.len() == 1];
        let (k, m) = (of_a[of_a.len() - 1], if vectors[0] { 1 } else { of_a[of_a.len() - 2] });
        let (n, rows, side) = match vectors[1] {
            true => (1, of_b[0], "b.shape[0]"),
            false => (of_b[of_b.len() - 1], of_b[of_b.len() - 2], "b.shape[-2]"),
        };
        if k != rows {
            return Err(Error::argument("a.shape[-1]", k, format!("must be {side} = {rows}")));
        }
        let leading = |sizes: &[usize]| sizes.len().saturating_sub(2);
        let batch_len = leading(of_a).max(leading(of_b));
        let mut batch = [1; MOST_DIMS];
        for (index, size) in batch[..batch_len].iter_mut().enumerate() {
            let [one, other] = [of_a, of_b].map(|sizes| {
                let skipped = batch_len - leading(sizes);
                if index < skipped { 1 } else { sizes[index - skipped] }
            });
            *size = match (one, other) {
                (one, 1) => one,
                (1, other) => other,
                (one, other) if one == other => one,
                _ => {
                    let limit = format!("cannot be broadcast with a.shape = {}", shown(of_a));
                    return Err(Error::argument("b.shape", shown(of_b), limit));
                }
            };
        }
        Ok(Shapes { m, n, k, vectors, batch, batch_len })
    }

    /// The result's shape: the sizes, of which the first so many count.
    pub(crate) fn result(&self) -> ([usize; MOST_DIMS], usize) {
        let (mut sizes, mut len) = (self.batch, self.batch_len);
        for (size, is_missing) in [(self.m, self.vectors[0]), (self.n, self.vectors[1])] {
            if !is_missing {
                sizes[len] = size;
                len += 1;
            }
        }
        (sizes, len)
    }

    /// Whether a bias of that shape is added to each row of the result: it has an element for each
    /// column. `false`: it is added to each column.
    ///
    /// # Errors
    /// [`Error::Argument`] for another shape.
    pub(crate) fn bias_per_col(&self, bias: &Dims) -> Result<bool> {
        let Shapes { m, n, vectors, .. } = *self;
        match *bias.sizes() {
            [size] if vectors[1] && !vectors[0] && size == m => Ok(false),
            [size] if (!vectors[1] || vectors[0]) && size == n => Ok(true),
            [1, size] if size == n => Ok(true),
            [size, 1] if size == m => Ok(false),
            _ => {
                let vector = if vectors[1] && !vectors[0] { m } else { n };
                let limit = format!("must be ({vector},), (1, {n}) or ({m}, 1)");
                Err(Error::argument("bias.shape", shown(bias.sizes()), limit))
            }
        }
    }

    /// Whether scales of A and B with these shapes are of blocks, and not of rows and columns. One
    /// scale may be that of all rows or columns. Where both fit, both give the same product.
    ///
    /// # Errors
    /// [`Error::Argument`] for other shapes.
    pub(crate) fn are_blocks(&self, scales: [&Dims; 2]) -> Result<bool> {
        let Shapes { m, n, k, .. } = *self;
        let [of_k, of_n] = [k, n].map(|size| size.div_ceil(Scales::BLOCK));
        let (lines, blocks) = ([[m, 1], [1, n]], [[m, of_k], [of_k, of_n]]);
        let matrices = scales.map(|dims| match *dims.sizes() {
            [] => [1, 1],
            [cols] => [1, cols],
            [.., rows, cols] => [rows, cols],
        });
        let of_lines = [0, 1].map(|i| [lines[i], [1, 1]].contains(&matrices[i]));
        let of_blocks = [0, 1].map(|i| matrices[i] == blocks[i]);
        let are_alike = of_lines == [true; 2] || of_blocks == [true; 2];
        let batch = &self.batch[..self.batch_len];
        let words = [["each row of a", "1 x 128"], ["each column of b", "128 x 128"]];
        for (i, name) in ["scale_a.shape", "scale_b.shape"].into_iter().enumerate() {
            let sizes = scales[i].sizes();
            let ([line, block], of) = ([lines[i], blocks[i]].map(|sizes| shown(&sizes)), words[i]);
            let leading = sizes.iter().rev().skip(2);
            let mut sides = leading.zip(batch.iter().rev().chain([&0; MOST_DIMS]));
            let limit = match () {
                () if !of_lines[i] && !of_blocks[i] => {
                    let [line_of, block_of] = of;
                    format!(
                        "must be (1, 1), {line} for {line_of} or {block} for blocks of {block_of}"
                    )
                }
                () if sides.any(|(size, of_batch)| *size != 1 && size != of_batch) => {
                    format!("the leading dimensions of a and b are {}", shown(batch))
                }
                () if are_alike || i == 0 => continue,
                () if of_lines[0] => format!("must be (1, 1) or {line}: scale_a is of no blocks"),
                () => format!("must be {block}: scale_a is of blocks of 1 x 128"),
            };
            return Err(Error::argument(name, shown(sizes), limit));
        }
        Ok(of_lines != [true; 2])
    }

    /// How the products of the batch are reached in memory. No stride is negative, `c` has the
    /// result's shape, and scales one of [`are_blocks`](Self::are_blocks).
    ///
    /// # Errors
    /// [`Error::Argument`] for arrays that cannot be addressed.
    pub(crate) fn bind(
        &self,
        [a, b, c]: [&Dims; 3],
        scales: Option<[&Dims; 2]>,
        folds: bool,
    ) -> Result<Geometry> {
        let Shapes { m, n, k, vectors, .. } = *self;
        let matrix = |dims: &Dims, has: [bool; 2], sizes: [usize; 2]| {
            let strides = dims.strides().iter().map(|&stride| stride.unsigned_abs());
            let mut last = strides.rev();
            let col = if has[1] { last.next() } else { None };
            let row = if has[0] { last.next() } else { None };
            // A side of one element has any stride: the one that it would have in a dense matrix is
            // the simplest.
            let col = col.filter(|_| sizes[1] > 1).unwrap_or(1);
            let dense = col.saturating_mul(sizes[1]).max(1);
            [row.filter(|_| sizes[0] > 1).unwrap_or(dense), col]
        };
        let has = vectors.map(|is_vector| !is_vector);
        // A side of one scale has the stride 0: it is that of all rows or columns.
        let of_scales = |dims: &Dims| {
            let mut last = dims.strides().iter().rev().map(|&stride| stride.unsigned_abs());
            let col = last.next().unwrap_or(0);
            [last.next().unwrap_or(0), col]
        };
        let [scales_a, scales_b] = scales.map_or([[0; 2]; 2], |scales| scales.map(of_scales));
        let strides = [
            matrix(a, [has[0], true], [m, k]),
            matrix(b, [true, has[1]], [k, n]),
            matrix(c, has, [m, n]),
            scales_a,
            scales_b,
        ];
        let arrays = [Some(a), Some(b), Some(c), scales.map(|of| of[0]), scales.map(|of| of[1])];
        let names = ["a", "b", "out", "scale_a", "scale_b"];
        let mut extents = [0; 5];
        for ((extent, dims), name) in extents.iter_mut().zip(arrays).zip(names) {
            let Some(dims) = dims else { continue };
            *extent = dims.extent().ok_or_else(|| {
                let name = format!("{name}.strides");
                Error::argument(name, format!("{:?}", dims.strides()), "cannot be addressed")
            })?;
        }
        // A kernel with scales reads no rows with gaps. A single row may be a column.
        let folds = folds && (scales.is_none() || m > 1 || strides[0][1] == 1);
        let sizes = [m, n, k];
        let mut geometry = Geometry { sizes, strides, extents, levels: Vec::new() };
        let matrix_dims = [1 + usize::from(has[0]), 1 + usize::from(has[1])];
        let of_result = self.result().1 - self.batch_len;
        let matrix_dims = [matrix_dims[0], matrix_dims[1], of_result, 2, 2];
        for index in (0..self.batch_len).rev() {
            let count = self.batch[index];
            let mut steps = [0; 5];
            for ((step, dims), matrix) in steps.iter_mut().zip(arrays).zip(matrix_dims) {
                let Some(dims) = dims else { continue };
                // Counted from the last leading dimension.
                let from_end = self.batch_len - index + matrix;
                let strides = dims.strides();
                *step = match strides.len().checked_sub(from_end) {
                    Some(index) => strides[index].unsigned_abs(),
                    None => 0,
                };
            }
            geometry.add(Level { count, steps }, folds);
        }
        Ok(geometry)
    }
}

/// Products at equal distances: elements from an A, B and C to the next, and from the scales of A
/// and of B.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) count: usize,
    pub(crate) steps: [usize; 5],
}

/// Where the matrices of a batch are.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    /// m, n and k.
    pub(crate) sizes: [usize; 3],
    /// Of A, B and C, and of the scales of A and of B: elements from one row to the next, and from
    /// one column to the next.
    pub(crate) strides: [[usize; 2]; 5],
    /// Elements of these from the first to the last.
    pub(crate) extents: [usize; 5],
    /// The leading dimensions, the last first.
    pub(crate) levels: Vec<Level>,
}

impl Geometry {
    /// Whether there is nothing to compute.
    pub(crate) fn is_empty(&self) -> bool {
        self.sizes[0] == 0 || self.sizes[1] == 0 || self.levels.iter().any(|level| level.count == 0)
    }

    /// Adds a leading dimension in front.
    fn add(&mut self, level: Level, folds: bool) {
        let Level { count, steps } = level;
        if count == 1 {
            return;
        }
        let [m, ..] = self.sizes;
        let [a, _, c, scales, _] = self.strides.map(|[row, _]| row);
        if let Some(last) = self.levels.last_mut() {
            // The dimension continues the one behind it.
            let next = last.steps.map(|step| step.checked_mul(last.count));
            if next == steps.map(Some) {
                last.count *= count;
                return;
            }
        } else if folds && m > 0 && [steps[1], steps[4]] == [0; 2] {
            // All products have the same B, and the rows of A, C and A's scales continue: one
            // product of more rows.
            let scales = if m == 1 { steps[3] } else { scales };
            let next = [a, c, scales].map(|stride| stride.checked_mul(m));
            if next == [steps[0], steps[2], steps[3]].map(Some) {
                self.sizes[0] = m * count;
                self.strides[3][0] = scales;
                return;
            }
        }
        self.levels.push(level);
    }
}
