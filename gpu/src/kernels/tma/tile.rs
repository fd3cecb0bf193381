//! Sizes of a thread's part of a tile, and of a slab.

/// A thread's elements of C.
pub type Sums<const ROWS: usize, const COLS: usize> = [[f32; COLS]; ROWS];

/// Rows of C that a thread computes, except in the kernels with producer warps.
pub const ROWS: usize = 8;

/// K-steps of a slab: 128 bytes of a row, the span of the swizzle.
pub const SLAB: usize = 32;

/// K-steps of a round of the main loop. A longer round does not fit the instruction cache.
pub const STEPS: usize = 8;
