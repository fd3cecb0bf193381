//! Which tiles of C a block computes, and in which order.
//!
//! There are as many blocks as multiprocessors, or fewer, and tile `i` is that of block `i % blocks`: at any time the blocks
//! work at neighbouring tiles. Those should share what they read, so that it comes from the second-level cache. So tiles
//! are numbered in bands of about 2048 rows of C, down a column of the band before the next column: what 132 blocks work
//! at is then close to a square.
//!
//! ```text
//!   band 0   0  4  8 12 ..      (bands of four tiles here)
//!            1  5  9 13
//!            2  6 10 14
//!            3  7 11 15
//!   band 1  ..
//! ```

use super::super::device::*;
use crate::problem::Problem;

/// Rows of C in a band.
const BAND: u32 = 2048;

/// The tiles of a block that are still to come.
#[derive(Clone, Copy)]
pub struct Walk {
    next: u32,
    /// Tiles of C: down and across.
    down: u32,
    across: u32,
}

impl Walk {
    /// All tiles of this block.
    #[inline(always)]
    pub fn new<const TILE_ROWS: usize, const TILE_COLS: usize>(problem: &Problem) -> Self {
        Walk {
            next: thread::block_idx_x(),
            down: problem.m.div_ceil(TILE_ROWS as u32),
            across: problem.n.div_ceil(TILE_COLS as u32),
        }
    }

    /// The next tile's first row and column.
    #[inline(always)]
    pub fn next<const TILE_ROWS: usize, const TILE_COLS: usize>(&mut self) -> Option<(u32, u32)> {
        let tile = self.next;
        if tile >= self.down * self.across {
            return None;
        }
        self.next += thread::grid_dim_x();
        let most = const { BAND / TILE_ROWS as u32 };
        // Neither is zero where there are tiles, which the compiler cannot know.
        let first = tile / (most * self.across).max(1) * most;
        let rows = most.min(self.down - first).max(1);
        let in_band = tile - first * self.across;
        let (row, col) = (first + in_band % rows, in_band / rows);
        Some((row * TILE_ROWS as u32, col * TILE_COLS as u32))
    }
}
