//! Sizes of a block and of a fragment; and the sides of a product.

use crate::params::GemmParams;

/// Rows or columns of a fragment.
pub const SIDE: usize = 16;

/// Threads of a block that computes a tile of `rows x cols`, its warps `16 m x 16 n` each.
pub const fn threads([rows, cols]: [usize; 2], [m, n]: [usize; 2]) -> usize {
    32 * (rows / (SIDE * m)) * (cols / (SIDE * n))
}

/// Which operand.
#[derive(Clone, Copy, PartialEq)]
pub enum Which {
    /// `m x k`.
    A,
    /// `k x n`, transposed.
    B,
}

impl Which {
    /// The size of the outer side, the strides along it and along k, and from one product to the
    /// next.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn of(self, problem: &GemmParams) -> (u32, [u64; 2], u64) {
        match self {
            Which::A => (problem.m, problem.a, problem.batch[0]),
            Which::B => (problem.n, [problem.b[1], problem.b[0]], problem.batch[1]),
        }
    }
}
