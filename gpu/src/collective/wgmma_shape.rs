//! Sizes that follow from the instruction `wgmma` and from the swizzle, for 16-bit elements.

/// Rows of A of a `wgmma` instruction, and so of a warpgroup.
pub const WGMMA_M: usize = 64;

/// K-steps of a pipeline stage: 128 bytes, the widest span of the swizzle.
pub const BLOCK_K: usize = 64;
