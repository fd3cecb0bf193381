//! A product of matrices that come and go in blocks.

use std::ops::Range;

use super::{plan::BlockPlan, schedule::Operand, source::Source};
use crate::{
    error::{Error, Result},
    gemm::{Compute, DEFAULT_WORKSPACE_LIMIT, Scalar},
    matrix::Layout,
};

/// A product of matrices that come and go in blocks: `C = alpha A B + beta C`. A transposed operand is
/// [`Transposed`](super::Transposed).
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Product<'a, T> {
    /// alpha.
    pub alpha: f64,
    /// beta; with 0 C is not read.
    pub beta: f64,
    /// The kernel, by its name.
    pub kernel: &'a str,
    /// A, m x k.
    pub a: &'a dyn Source<T>,
    /// B, k x n.
    pub b: &'a dyn Source<T>,
    /// C as it was, m x n; needed where `beta` is not 0.
    pub c: Option<&'a dyn Source<T>>,
    /// How it may be computed.
    pub compute: Compute,
    /// Bytes of the device's memory that the kernel may take besides the plan's.
    pub workspace_limit: u64,
}

impl<'a, T> Product<'a, T> {
    /// `C = A B`.
    pub fn new(kernel: &'a str, a: &'a dyn Source<T>, b: &'a dyn Source<T>) -> Self {
        let workspace_limit = DEFAULT_WORKSPACE_LIMIT;
        let compute = Compute::default();
        Product { alpha: 1.0, beta: 0.0, kernel, a, b, c: None, compute, workspace_limit }
    }
}

impl<T: Scalar> Product<'_, T> {
    /// Does C matter as it was?
    pub fn reads_c(&self) -> bool {
        self.beta != 0.0
    }

    pub(super) fn check(&self, plan: &BlockPlan) -> Result<()> {
        let shape = plan.shape();
        let (m, n, k) = (shape.m(), shape.n(), shape.k());
        let c = self.c.filter(|_| self.reads_c());
        if self.reads_c() && c.is_none() {
            return Err(Error::argument("beta", self.beta, "must be 0 where there is no C"));
        }
        let sizes =
            [Some((self.a, "a", m, k)), Some((self.b, "b", k, n)), c.map(|c| (c, "c", m, n))];
        for (source, name, rows, cols) in sizes.into_iter().flatten() {
            // With k = 0 in the plan neither A nor B matters.
            if k == 0 && name != "c" {
                continue;
            }
            if (source.rows(), source.cols()) != (rows, cols) {
                let value = format!("{} x {}", source.rows(), source.cols());
                return Err(Error::argument(name, value, format!("must be {rows} x {cols}")));
            }
        }
        Ok(())
    }

    /// Where an operand comes from, and in which layout it is read: C's is that of the result.
    pub(super) fn source(&self, operand: Operand, out: Layout) -> (&dyn Source<T>, Layout) {
        match operand {
            Operand::A => (self.a, self.a.layout()),
            Operand::B => (self.b, self.b.layout()),
            // Of a product that reads C there is one, `check` has seen to it.
            Operand::C => (self.c.unwrap_or(self.a), out),
        }
    }
}

/// Runs and the elements of each, of rows and columns; and back.
pub(super) fn sides(
    layout: Layout,
    rows: Range<usize>,
    cols: Range<usize>,
) -> (Range<usize>, Range<usize>) {
    match layout {
        Layout::RowMajor => (rows, cols),
        Layout::ColMajor => (cols, rows),
    }
}
