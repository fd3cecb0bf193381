//! What a thread has of a tile.

/// A thread's elements of C.
pub type Sums<const ROWS: usize, const COLS: usize> = [[f32; COLS]; ROWS];

/// Rows of C that a thread computes, where nothing else is said.
pub const ROWS: usize = 8;

/// Steps of k of a slab: 128 bytes of a row, the span of the swizzle.
pub const SLAB: usize = 32;

/// Steps of k that the main loop goes through at a time. Longer, and it does not fit the instruction cache.
pub const STEPS: usize = 8;
