//! Sizes of a block, of a fragment and of a panel.

/// Rows or columns of a fragment.
pub const SIDE: usize = 16;

/// Threads of a block that computes a tile of `rows x cols`, its warps `16 m x 16 n` each.
pub const fn threads([rows, cols]: [usize; 2], [m, n]: [usize; 2]) -> usize {
    32 * (rows / (SIDE * m)) * (cols / (SIDE * n))
}

/// Rows of a panel, and elements of a row.
pub const PANEL: usize = 32;
