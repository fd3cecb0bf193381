//! The shapes of a product, as `numpy.matmul` has them: vectors, and batches by leading dimensions
//! that are broadcast.

use gpu_gemm::{Error, Result};

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

    /// How the products of the batch are reached in memory. No stride is negative, and `c` has the
    /// result's shape.
    ///
    /// # Errors
    /// [`Error::Argument`] for arrays that cannot be addressed.
    pub(crate) fn bind(&self, [a, b, c]: [&Dims; 3], folds: bool) -> Result<Geometry> {
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
        let strides = [
            matrix(a, [has[0], true], [m, k]),
            matrix(b, [true, has[1]], [k, n]),
            matrix(c, has, [m, n]),
        ];
        let mut extents = [0; 3];
        for ((extent, dims), name) in extents.iter_mut().zip([a, b, c]).zip(["a", "b", "out"]) {
            *extent = dims.extent().ok_or_else(|| {
                let name = format!("{name}.strides");
                Error::argument(name, format!("{:?}", dims.strides()), "cannot be addressed")
            })?;
        }
        let sizes = [m, n, k];
        let mut geometry = Geometry { sizes, strides, extents, levels: Vec::new() };
        let matrix_dims = [1 + usize::from(has[0]), 1 + usize::from(has[1])];
        let matrix_dims = [matrix_dims[0], matrix_dims[1], self.result().1 - self.batch_len];
        for index in (0..self.batch_len).rev() {
            let count = self.batch[index];
            let mut steps = [0; 3];
            for ((step, dims), matrix) in steps.iter_mut().zip([a, b, c]).zip(matrix_dims) {
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

/// Products at equal distances: elements from an A, B and C to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) count: usize,
    pub(crate) steps: [usize; 3],
}

/// Where the matrices of a batch are.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    /// m, n and k.
    pub(crate) sizes: [usize; 3],
    /// Of A, B and C: elements from one row to the next, and from one column to the next.
    pub(crate) strides: [[usize; 2]; 3],
    /// Elements of A, B and C from the first to the last.
    pub(crate) extents: [usize; 3],
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
        let [a, _, c] = self.strides;
        if let Some(last) = self.levels.last_mut() {
            // The dimension continues the one behind it.
            let next = last.steps.map(|step| step.checked_mul(last.count));
            if next == steps.map(Some) {
                last.count *= count;
                return;
            }
        } else if folds && m > 0 && steps[1] == 0 {
            // All products have the same B, and the rows of A and C continue: one product of more
            // rows.
            let next = [a[0], c[0]].map(|stride| stride.checked_mul(m));
            if next == [Some(steps[0]), Some(steps[2])] {
                self.sizes[0] = m * count;
                return;
            }
        }
        self.levels.push(level);
    }
}
