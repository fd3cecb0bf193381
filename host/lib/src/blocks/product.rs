//! The settings of an out-of-core product.

use std::ops::Range;

use super::{plan::BlockPlan, schedule::Operand, source::Source};
use crate::{
    error::{Error, Result},
    gemm::{Compute, DEFAULT_WORKSPACE_LIMIT, Scalar},
    matrix::Layout,
};

/// The product `C = alpha A B + beta C` of matrices that are read and written in blocks. A
/// transposed operand is [`Transposed`](super::Transposed).
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Product<'a, T> {
    /// The factor of A B.
    pub alpha: f64,
    /// The factor of the old C. With 0 it is not read.
    pub beta: f64,
    /// The name of the kernel.
    pub kernel: &'a str,
    /// A: `m x k`.
    pub a: &'a dyn Source<T>,
    /// B: `k x n`.
    pub b: &'a dyn Source<T>,
    /// The old C: `m x n`. It is needed if `beta` is not 0.
    pub c: Option<&'a dyn Source<T>>,
    /// The arithmetic.
    pub compute: Compute,
    /// The most bytes of workspace, in addition to the plan's buffers.
    pub workspace_limit: u64,
}

impl<'a, T> Product<'a, T> {
    /// `C = A B` by the kernel with that name.
    pub fn new(kernel: &'a str, a: &'a dyn Source<T>, b: &'a dyn Source<T>) -> Self {
        let workspace_limit = DEFAULT_WORKSPACE_LIMIT;
        let compute = Compute::default();
        Product { alpha: 1.0, beta: 0.0, kernel, a, b, c: None, compute, workspace_limit }
    }
}

impl<T: Scalar> Product<'_, T> {
    /// Whether the old C is read.
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
            // With k = 0 A and B are not read.
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

    /// The source of an operand, and the layout in which it is read. C is read in the layout of the
    /// result, `out`.
    pub(super) fn source(&self, operand: Operand, out: Layout) -> (&dyn Source<T>, Layout) {
        match operand {
            Operand::A => (self.a, self.a.layout()),
            Operand::B => (self.b, self.b.layout()),
            // `check` has ensured that a product that reads C has one.
            Operand::C => (self.c.unwrap_or(self.a), out),
        }
    }
}

/// The outer and the inner range of a block: runs, and the elements of each. It also converts them
/// back to rows and columns.
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
