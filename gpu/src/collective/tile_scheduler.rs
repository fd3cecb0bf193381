//! Which tiles of C a block computes, and in which order.
//!
//! The tiles of a batch are one product's after the other's, so a block goes on from a product to the next as from a tile to
//! the next: its ring stays full, and what there is little of in each product there may be enough of in all.
//!
//! There are as many blocks as multiprocessors, or as many fewer as make no difference (4096 x 4096 is four rounds of 128).
//! Tile `i` is that of block `i % blocks`, so at any time the blocks work at neighbouring tiles. (A cluster's blocks have
//! tiles one below the other, and are here a block with one tile; so they are of tf32, where they have tiles beside each
//! other.) Those should share what they read, so that it comes from the second-level cache: tiles are numbered in bands of about 2048 rows of C, down a column of the band before the next
//! column, and what 132 blocks work at is then close to a square.
//!
//! ```text
//!   band 0   0  4  8 12 ..      (bands of four tiles here)
//!            1  5  9 13
//!            2  6 10 14
//!            3  7 11 15
//!   band 1  ..
//! ```

use super::device::*;
use crate::params::GemmParams;

/// Rows of C in a band.
const RASTER_GROUP: u32 = 2048;

/// The tiles of a block, of `ROWS x COLS` elements, that are still to come; it is one of a cluster of `BLOCKS` blocks.
#[derive(Clone, Copy)]
pub struct TileScheduler<const ROWS: usize, const COLS: usize, const BLOCKS: usize> {
    next: u32,
    /// The block's number in its cluster.
    rank: u32,
    /// A cluster's tiles of C: down and across.
    down: u32,
    across: u32,
    /// Of all products.
    tiles: u32,
}

impl<const ROWS: usize, const COLS: usize, const BLOCKS: usize> TileScheduler<ROWS, COLS, BLOCKS> {
    /// All tiles of the block of that rank in its cluster.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(problem: &GemmParams, rank: u32) -> Self {
        let down = problem.m.div_ceil((BLOCKS * ROWS) as u32);
        let across = problem.n.div_ceil(COLS as u32);
        let next = thread::block_idx_x() / BLOCKS as u32;
        TileScheduler { next, rank, down, across, tiles: down * across * problem.products }
    }

    /// Goes on with the next so many columns, when the block has had all of its tiles before these: of one product, whose columns
    /// before were whole tiles. No block begins anew: tiles are numbered on from one part to the other. Returns the first of the columns.
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

    /// The next tile's product, first row and first column. All blocks of a cluster go on together: a tile may lie below the
    /// last row.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn next_tile(&mut self) -> Option<(u32, u32, u32)> {
        if self.next >= self.tiles {
            return None;
        }
        let place = self.place(self.next);
        self.next += thread::grid_dim_x() / BLOCKS as u32;
        Some(place)
    }

    /// Those of the tile of that number.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn place(&self, number: u32) -> (u32, u32, u32) {
        // Neither this nor what is divided by below is zero where there are tiles, which the compiler cannot know.
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
