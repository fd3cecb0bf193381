//! Sizes of a block, of a fragment and of a panel.

/// Rows or columns of a fragment.
pub const SIDE: usize = 16;

/// Threads of a block: four warps, two by two.
pub const THREADS: usize = 128;

/// Rows of a panel, and elements of a row.
pub const PANEL: usize = 32;
