//! A request: the properties of a product by which its kernel is selected.

use gpu::params::NO_SCALES;

use super::order::{Invariant, Order};
use crate::{
    error::{Error, Result},
    gemm::{Compute, Target, scalar},
    matrix::extent,
    shape::Shape,
};

/// The default limit of the workspace in bytes: 256 MiB. That is enough for copies of two f32
/// operands of 5792 x 5792, and a small part of the memory of any GPU that runs these kernels.
pub const DEFAULT_WORKSPACE_LIMIT: u64 = 256 << 20;

/// The default limit for emulated fp32 and for 8 bits in bytes: 4 GiB. That is enough for the
/// slices of two operands of 18918 x 18918, and for copies of two operands of i8 of 46340 x 46340.
pub const SLICES_WORKSPACE_LIMIT: u64 = 4 << 30;

/// The largest cluster that every GPU with clusters allows.
pub(in crate::gemm) const MOST_SPLITS: u32 = 8;

/// Partial products at most. The last may have a shorter range of k.
pub(in crate::gemm) const MOST_PARTIALS: u32 = 4096;

/// The properties of a product by which its kernel is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// m, n and k.
    pub shape: Shape,
    /// The strides of A, B and C in elements: from one row to the next, and from one column to the
    /// next.
    pub strides: [[usize; 2]; 3],
    /// The number of products of a batch.
    pub batch: usize,
    /// Whether every A, every B and every C is 16-byte aligned. That of C is for kernels that store
    /// it by TMA.
    pub aligned: [bool; 3],
    /// The number of blocks of a cluster that split k. `None`: the number that is fastest on an
    /// H200.
    pub split_k: Option<u32>,
    /// The number of partial products that split k over the grid. `None`: the number with the
    /// shortest predicted time.
    pub partials: Option<u32>,
    /// The arithmetic.
    pub compute: Compute,
    /// The lines of C whose bits depend on nothing beside them: see
    /// [`Gemm::invariant`](crate::Gemm::invariant).
    pub invariant: Option<Invariant>,
    /// What the scales of A and B are of.
    pub(in crate::gemm) scales: u32,
    /// Whether there are slices of A, and of B, for the arithmetic: then they are not split again.
    pub(in crate::gemm) prepared: [bool; 2],
    /// The device whose order of sums it has, if not the one that it is computed on.
    pub(in crate::gemm) ordered_as_on: Option<Target>,
    /// The order of sums that follows from that.
    pub(in crate::gemm) order: Option<Order>,
    /// Whether it is `A B` alone: `alpha = 1`, `beta = 0`, no bias, no activation.
    pub plain: bool,
    /// The limit of the workspace in bytes.
    pub workspace_limit: u64,
}

impl Request {
    /// One product `C = A B` of matrices with these strides.
    pub fn new(shape: Shape, strides: [[usize; 2]; 3]) -> Self {
        Request {
            shape,
            strides,
            batch: 1,
            aligned: [true; 3],
            split_k: None,
            partials: None,
            compute: Compute::default(),
            invariant: None,
            scales: NO_SCALES,
            prepared: [false; 2],
            ordered_as_on: None,
            order: None,
            plain: true,
            workspace_limit: DEFAULT_WORKSPACE_LIMIT,
        }
    }

    /// One product `C = A B` of dense row-major matrices.
    pub fn dense(shape: Shape) -> Self {
        let (n, k) = (shape.n(), shape.k());
        Request::new(shape, [[k, 1], [n, 1], [n, 1]])
    }

    /// The most bytes of workspace: the limit, or what can be addressed.
    pub(super) fn most_workspace(&self) -> u64 {
        self.workspace_limit.min(isize::MAX as u64)
    }

    /// Refuses a product whose matrices cannot be addressed. Batches are dense.
    ///
    /// # Errors
    /// [`Error::Argument`].
    pub(in crate::gemm) fn check(&self) -> Result<()> {
        let (m, n, k) = (self.shape.m(), self.shape.n(), self.shape.k());
        let sizes = [("A", m, k), ("B", k, n), ("C", m, n)];
        let matrices = sizes.into_iter().zip(self.strides).zip(self.dense_steps());
        for (((name, rows, cols), strides), step) in matrices {
            let most = isize::MAX as u128 / size_of::<f64>() as u128;
            let one = extent(rows, cols, strides).map_or(u128::MAX, |one| one as u128);
            if one > most {
                let limit =
                    format!("{rows}x{cols} elements with these strides cannot be addressed");
                let name = format!("request: {name}.strides");
                return Err(Error::argument(name, format!("{strides:?}"), limit));
            }
            if (self.batch as u128).saturating_mul(step as u128) > most {
                let limit = format!("so many matrices {name} of {rows}x{cols} cannot be addressed");
                return Err(Error::argument("request: batch", self.batch, limit));
            }
        }
        Ok(())
    }

    /// The product as it is launched: `C^T = B^T A^T` where C is column-major.
    pub(in crate::gemm) fn as_launched(&self) -> Request {
        if self.is_swapped() { self.swapped() } else { *self }
    }

    /// Whether it is launched as `C^T = B^T A^T`.
    pub(in crate::gemm) fn is_swapped(&self) -> bool {
        scalar::swaps(self.strides, (self.shape.m(), self.shape.n()), self.scales)
    }

    /// Elements from one A, B and C of a dense batch to the next.
    pub(in crate::gemm) fn dense_steps(&self) -> [usize; 3] {
        [self.shape.a_len(), self.shape.b_len(), self.shape.c_len()]
    }

    /// `C^T = B^T A^T`.
    pub(in crate::gemm) fn swapped(&self) -> Request {
        let [a, b, c] = self.strides;
        let transposed = |[between_rows, between_cols]: [usize; 2]| [between_cols, between_rows];
        let [aligned_a, aligned_b, aligned_c] = self.aligned;
        let [prepared_a, prepared_b] = self.prepared;
        Request {
            shape: self.shape.transposed(),
            strides: [b, a, c].map(transposed),
            aligned: [aligned_b, aligned_a, aligned_c],
            prepared: [prepared_b, prepared_a],
            invariant: self.invariant.map(Invariant::transposed),
            ..*self
        }
    }

    /// Whether the rows or columns of A and B, of elements of that many bytes, begin at multiples
    /// of sixteen bytes.
    pub(super) fn has_aligned_rows(&self, bytes: usize) -> bool {
        self.aligned[..2] == [true; 2]
            && self.strides[..2].iter().all(|&[between_rows, between_cols]| {
                let pitch = if between_cols == 1 { between_rows } else { between_cols };
                let is_contiguous = between_rows == 1 || between_cols == 1;
                is_contiguous && pitch.saturating_mul(bytes).is_multiple_of(16)
            })
    }

    /// Whether these rows or columns also end at multiples of sixteen bytes.
    pub(super) fn has_whole_pieces(&self, bytes: usize) -> bool {
        let (m, n, k) = (self.shape.m(), self.shape.n(), self.shape.k());
        self.has_aligned_rows(bytes)
            && self.strides.iter().zip([[m, k], [k, n]]).all(
                |(&[_, between_cols], [rows, cols])| {
                    let len = if between_cols == 1 { cols } else { rows };
                    len.saturating_mul(bytes).is_multiple_of(16)
                },
            )
    }

    /// Whether A, B and C are dense and row-major. The stride of a side of one element may be any.
    pub(super) fn is_dense(&self) -> bool {
        let (m, n, k) = (self.shape.m(), self.shape.n(), self.shape.k());
        let sizes = [(m, k), (k, n), (m, n)];
        self.strides.iter().zip(sizes).all(|(&[between_rows, between_cols], (rows, cols))| {
            let empty = rows == 0 || cols == 0;
            empty || (rows == 1 || between_rows == cols) && (cols == 1 || between_cols == 1)
        })
    }
}
