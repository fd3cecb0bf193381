//! Sizes that follow from the instruction and from the swizzle.

/// Steps of k in a stage: 128 bytes, the widest span of the swizzle.
pub const BLOCK_K: usize = 32;

/// Steps of k of a product.
pub const WGMMA_K: usize = 8;

/// Columns of C of a warpgroup: the instruction's rows.
pub const WGMMA_M: usize = 64;

/// Columns of a box of B: a row of it is 128 bytes, a span of the swizzle.
pub const SPAN: usize = 32;
