//! The sizes of a block, of a fragment and of a stage.

/// Rows or columns of a fragment.
pub const SIDE: usize = 16;

/// Threads of a block: four warps, in two rows of two.
pub const THREADS: usize = 128;

/// Rows of a panel, and elements of each.
pub const PANEL: usize = 32;
