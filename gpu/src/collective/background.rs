//! Columns of B that a product's idle warps copy while its others multiply the columns before.
//!
//! A B whose rows begin anywhere is copied before the accelerator can have it ([`pad`](super::super::gemm::pad)). Half of its columns
//! are, by a launch before; and of the warpgroup that begins copies three warps have nothing to do. So these copy the other half,
//! and blocks come to the tiles of that when they have done with the first:
//!
//! ```text
//!   launch before   columns of the first half
//!   this one        tiles of the first half  ..............  | tiles of the second half
//!     idle warps    rows of the second half, a few at a time |
//! ```
//!
//! Rows are given out by number, four at a time, to whichever warp asks. So no block waits for another that has not begun: what has
//! been given out has been to warps that run. (Blocks with rows of their own could stand still for ever: where another grid has the
//! multiprocessors, some may not begin before others end.)
//!
//! That rows have been copied is told by a word ([`Out::release_add`]), and a warp that copies to the ring waits for all of them once. What
//! that copies by the accelerator is another proxy's, hence the fence.

use super::{copy_rows::copy_rows, device::*};
use crate::params::MatrixBatch;

/// Warps of the warpgroup that copies which have nothing to do with it.
pub const BACKGROUND_WARPS: u32 = 3;

/// What a launch does beside its product.
pub trait Background {
    /// Is there anything?
    const HAS_WORK: bool;

    /// How many of C's last columns wait for it.
    fn tail_columns(&self) -> u32;

    /// Does a part of it, as a warp of the [many](BESIDE) of each block that have nothing else to do.
    fn work(&mut self);

    /// Waits until all of it has been done. A warp that copies to the ring comes here, before the first tile of the other columns.
    fn wait(&mut self);

    /// Such a warp will not wait any more.
    fn finish(&mut self);
}

/// Nothing.
pub struct NoBackground;

impl Background for NoBackground {
    const HAS_WORK: bool = false;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn tail_columns(&self) -> u32 {
        0
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn work(&mut self) {}

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn wait(&mut self) {}

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn finish(&mut self) {}
}

/// Rows that are given out at once: a warp says that it has copied them when its writes have arrived, and has begun no others until then.
const ROWS: u32 = 4;

/// Words that a launch counts by. They are zero before it, and behind it.
pub const COUNTERS: usize = 3;
/// How often rows have been claimed for.
const CLAIMED: usize = 0;
/// And how often such have been copied.
const COPIED: usize = 1;
/// Warps that will neither copy nor wait any more.
const FINISHED: usize = 2;

/// The last columns of B are copied from rows that begin anywhere to rows that begin at multiples of sixteen bytes.
pub struct PackTail<'a, T: Element, const PIECE: usize> {
    /// Where they lie, the first element first.
    pub from: &'a In<T>,
    /// How many rows and columns, and how far apart rows are there: as far as B's, of which none overlap, so more than a piece.
    pub matrix: &'a MatrixBatch,
    /// Where they are to be.
    pub to: &'a mut Out<T>,
    /// Elements from one row to the next there.
    pub to_pitch: usize,
    /// [`COUNTERS`] to count by.
    pub words: &'a mut Out<u32>,
}

impl<T: Element, const PIECE: usize> PackTail<'_, T, PIECE> {
    /// How often there are [`ROWS`] to be given out, or as many as are left.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn row_groups(&self) -> u32 {
        self.matrix.rows.div_ceil(ROWS)
    }

    /// Asks for the next rows that nobody has. The first lane is told how often others have been told before.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn claim(&mut self) -> u32 {
        if thread::lane_id() == 0 { self.words.atomic_add(CLAIMED, 1) } else { 0 }
    }
}

impl<T: Element, const PIECE: usize> Background for PackTail<'_, T, PIECE> {
    const HAS_WORK: bool = true;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn tail_columns(&self) -> u32 {
        self.matrix.cols
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn work(&mut self) {
        if self.matrix.cols == 0 {
            return;
        }
        let mut claimed = self.claim();
        loop {
            let next = warp::shuffle(warp::ALL, claimed, 0);
            if next >= self.row_groups() {
                break;
            }
            // The answer takes as long as a read: it is waited for behind the copy.
            claimed = self.claim();
            let rows = next * ROWS..self.matrix.rows.min((next + 1) * ROWS);
            copy_rows::<_, PIECE>((self.from, self.matrix), (self.to, self.to_pitch), rows);
            warp::sync_warp(warp::ALL);
            if warp::elect() {
                self.words.release_add(COPIED, 1);
            }
        }
        self.finish();
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn wait(&mut self) {
        self.words.wait_for_at_least(COPIED, self.row_groups());
        fence_proxy_async_global();
    }

    /// The last of all makes the words zero again.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn finish(&mut self) {
        if self.matrix.cols == 0 || !warp::elect() {
            return;
        }
        let (warps, blocks) = (thread::grid_dim_x() * BACKGROUND_WARPS, thread::grid_dim_x());
        let all = warps + blocks;
        if self.words.atomic_add(FINISHED, 1) + 1 == all {
            // Each warp has claimed once more than it was given some.
            self.words.atomic_add(CLAIMED, (self.row_groups() + warps).wrapping_neg());
            self.words.atomic_add(COPIED, self.row_groups().wrapping_neg());
            self.words.atomic_add(FINISHED, all.wrapping_neg());
        }
    }
}
