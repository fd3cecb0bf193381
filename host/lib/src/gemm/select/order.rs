//! The order in which the products of an element are added, as a value.

use gpu::registry::{Product, SumOrder};

/// The lines of C whose bits depend on nothing that is beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invariant {
    /// Rows: their bits depend on no other row of A.
    Rows,
    /// Columns: their bits depend on no other column of B. So it is of rows, once A and B have been
    /// swapped.
    Cols,
}

impl Invariant {
    /// The same lines of the transpose.
    pub(in crate::gemm) fn transposed(self) -> Self {
        match self {
            Invariant::Rows => Invariant::Cols,
            Invariant::Cols => Invariant::Rows,
        }
    }
}

/// The order in which the products of an element are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gemm) struct Order {
    /// By a block, of `k` products in all.
    pub(super) sum: SumOrder,
    pub(super) k: usize,
    /// Blocks of a cluster that split k.
    pub(super) split_k: u32,
    /// Partial products.
    pub(super) partials: u32,
}

impl Order {
    /// Whether a kernel can add in that order.
    pub(super) fn is_of(&self, product: &Product) -> bool {
        product.sum_order(self.k) == self.sum && self.split_k <= product.most_splits
    }
}
