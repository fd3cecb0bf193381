//! The tile scheduler: which tiles of C a persistent CTA computes, and in which order. The families
//! `wgmma`, `wgmma_tf32` and `emulated` use it. In the others the block index is the tile.
//!
//! * **A CTA** computes tile i, then tile i + number of CTAs, and so on. The tiles of a batch are
//!   numbered from product to product. So the CTA's pipeline stays full, and a batch of small
//!   products fills the GPU.
//! * **A grid** has one CTA an SM, or fewer CTAs if they need no more waves: 4096 x 4096 has four
//!   waves of 128 tiles.
//! * **A cluster** whose CTAs share a tile counts as one CTA. Its CTAs have tiles one below the
//!   other. (In tf32 kernels, whose tiles are side by side, the caller adds the column.)
//!
//! Tiles that are computed at the same time should share operands in L2. So tiles are numbered in
//! *raster groups* of about 2048 rows of C: down a column of the group, then down the next column.
//! The tiles of 132 CTAs are then close to a square.
//!
//! ```text
//!   group 0   0  4  8 12 ..      (here a group is four tiles high)
//!             1  5  9 13
//!             2  6 10 14
//!             3  7 11 15
//!   group 1   ..
//! ```

use super::device::*;
use crate::params::GemmParams;

/// Rows of C in a raster group.
const RASTER_GROUP: u32 = 2048;

/// The tiles that a CTA has still to compute. A tile has `ROWS x COLS` elements; the cluster has
/// `BLOCKS` CTAs.
#[derive(Clone, Copy)]
pub struct TileScheduler<const ROWS: usize, const COLS: usize, const BLOCKS: usize> {
    next: u32,
    /// The CTA's rank in its cluster.
    rank: u32,
    /// Tiles of C, counted by clusters: down and across.
    down: u32,
    across: u32,
    /// Tiles of all products.
    tiles: u32,
}

impl<const ROWS: usize, const COLS: usize, const BLOCKS: usize> TileScheduler<ROWS, COLS, BLOCKS> {
    /// All tiles of the CTA of this rank.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(problem: &GemmParams, rank: u32) -> Self {
        let down = problem.m.div_ceil((BLOCKS * ROWS) as u32);
        let across = problem.n.div_ceil(COLS as u32);
        let next = thread::block_idx_x() / BLOCKS as u32;
        TileScheduler { next, rank, down, across, tiles: down * across * problem.products }
    }

    /// Advances to the tail: the next `columns` columns. The CTA has computed all its tiles of the
    /// columns before. There is one product, and the columns before are whole tiles. Numbers
    /// continue, so CTAs stay evenly loaded. Returns the first column of the tail.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn advance_to_tail(&mut self, columns: u32) -> u32 {
        let first = self.across * COLS as u32;
        self.next -= self.tiles;
        self.across = columns.div_ceil(COLS as u32);
        self.tiles = self.down * self.across;
        first
    }

    /// Tiles of all products.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn tiles(&self) -> u32 {
        self.tiles
    }

    /// The product, first row and first column of the next tile. All CTAs of a cluster advance
    /// together, so a tile may start below the last row.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn next_tile(&mut self) -> Option<(u32, u32, u32)> {
        if self.next >= self.tiles {
            return None;
        }
        let place = self.place(self.next);
        self.next += thread::grid_dim_x() / BLOCKS as u32;
        Some(place)
    }

    /// The product, first row and first column of a tile.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn place(&self, number: u32) -> (u32, u32, u32) {
        // No divisor is zero if there are tiles. The compiler cannot know that.
        let of_product = (self.down * self.across).max(1);
        let (product, tile) = (number / of_product, number % of_product);
        let most = const { RASTER_GROUP / (BLOCKS * ROWS) as u32 };
        let first = tile / (most * self.across).max(1) * most;
        let rows = most.min(self.down - first).max(1);
        let in_group = tile - first * self.across;
        let (row, col) = (first + in_group % rows, in_group / rows);
        (product, (row * BLOCKS as u32 + self.rank) * ROWS as u32, col * COLS as u32)
    }
}
