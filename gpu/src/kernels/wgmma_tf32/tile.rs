//! The operands, and sizes that follow from the instruction and from the swizzle.

use super::{
    collective::{tma::Tma, unaligned_a::UnalignedA},
    device::{warpgroup::*, *},
};

/// K-steps of a stage: 128 bytes, the widest span of the swizzle.
pub const BLOCK_K: usize = 32;

/// K-steps of an MMA.
pub const WGMMA_K: usize = 8;

/// Columns of C of a warpgroup: the rows of the instruction.
pub const WGMMA_M: usize = 64;

/// Columns of a box of B. A row of it is 128 bytes, the widest span of the swizzle.
pub const SPAN: usize = 32;

/// An A of aligned rows. A CTA copies `ROWS` of them.
pub type TmaA<const ROWS: usize> = Tma<Tf32, KMajor<BLOCK_K, 4>, ROWS, BLOCK_K, SPAN>;

/// An A of unaligned rows, in eight alignment classes.
pub type TmaUnalignedA<const ROWS: usize> =
    UnalignedA<Tf32, KMajor<BLOCK_K, 4>, ROWS, BLOCK_K, 8, 4>;

/// An N-major B of `COLS` columns a tile.
pub type TmaB<const COLS: usize> = Tma<Tf32, MnMajor<BLOCK_K>, COLS, BLOCK_K, SPAN>;
