//! Background work: idle warps pack the tail of B while the others multiply the columns before it.
//!
//! TMA needs 16-byte aligned rows, so an unaligned B is packed first ([`copy_rows`]). An earlier
//! launch packs half of the columns. The producer warpgroup has three idle warps. They pack the
//! other half, the *tail*. The CTAs compute the tiles of the tail last:
//!
//! ```text
//!   earlier launch   packs the first half
//!   this launch      tiles of the first half  ..............  | tiles of the tail
//!     idle warps     pack the tail, a few rows at a time      |
//! ```
//!
//! * **A block** has three background warps.
//! * **A warp** claims four rows at a time from a global counter, and copies them.
//! * **A lane** copies pieces of sixteen bytes.
//!
//! Only running warps claim rows. So no CTA waits for a CTA that has not started. (If each CTA had
//! fixed rows, a launch could deadlock: while another grid occupies the SMs, some CTAs may not
//! start until others end.)
//!
//! A counter says how many rows are packed ([`Out::release_add`]). A producer warp waits once,
//! until all rows are packed. TMA reads through the async proxy, hence the fence.

use super::{copy_rows::copy_rows, device::*};
use crate::params::MatrixBatch;

/// Warps of the producer warpgroup that do not produce.
pub const BACKGROUND_WARPS: u32 = 3;

/// Work that a launch does in the background of its product.
pub trait Background {
    /// Whether there is any work.
    const HAS_WORK: bool;

    /// Columns at the end of C that wait for the work.
    fn tail_columns(&self) -> u32;

    /// Does a share of the work. All [background warps](BACKGROUND_WARPS) call this.
    fn work(&mut self);

    /// Waits until all work is done. A producer warp calls this before the first tile of the tail.
    fn wait(&mut self);

    /// Tells that this warp will not wait again.
    fn finish(&mut self);
}

/// No background work.
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

/// Rows that a warp claims at once. The warp reports them when its writes have arrived. Only then
/// does it start the next rows.
const ROWS: u32 = 4;

/// Counters of a launch. They are zero before and after it.
pub const COUNTERS: usize = 3;
/// Groups of rows that were claimed.
const CLAIMED: usize = 0;
/// Groups of rows that were copied.
const COPIED: usize = 1;
/// Warps that neither copy nor wait any more.
const FINISHED: usize = 2;

/// Packs the tail of B: copies unaligned rows to 16-byte aligned ones.
pub struct PackTail<'a, T: Element, const PIECE: usize> {
    /// The tail, from its first element on.
    pub from: &'a In<T>,
    /// Rows and columns of the tail, and its pitch. The pitch is B's. B's rows do not overlap, and
    /// the pitch is more than a piece.
    pub matrix: &'a MatrixBatch,
    /// Whether there is something between the rows of B that is not B's.
    pub gaps: bool,
    /// Where the packed rows go.
    pub to: &'a mut Out<T>,
    /// Elements from one packed row to the next.
    pub to_pitch: usize,
    /// The [counters](COUNTERS).
    pub words: &'a mut Out<u32>,
}

impl<T: Element, const PIECE: usize> PackTail<'_, T, PIECE> {
    /// Groups of [`ROWS`] rows; the last may have fewer.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn row_groups(&self) -> u32 {
        self.matrix.rows.div_ceil(ROWS)
    }

    /// Claims the next group of rows. Lane 0 gets its number.
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
            // The counter's answer takes as long as a load. It is awaited after the copy.
            claimed = self.claim();
            let rows = next * ROWS..self.matrix.rows.min((next + 1) * ROWS);
            let from = (self.from, self.matrix, self.gaps);
            copy_rows::<_, PIECE>(from, (self.to, self.to_pitch), rows);
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

    /// The last warp sets the counters back to zero.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn finish(&mut self) {
        if self.matrix.cols == 0 || !warp::elect() {
            return;
        }
        let (warps, blocks) = (thread::grid_dim_x() * BACKGROUND_WARPS, thread::grid_dim_x());
        let all = warps + blocks;
        if self.words.atomic_add(FINISHED, 1) + 1 == all {
            // Each background warp has claimed one group too many.
            self.words.atomic_add(CLAIMED, (self.row_groups() + warps).wrapping_neg());
            self.words.atomic_add(COPIED, self.row_groups().wrapping_neg());
            self.words.atomic_add(FINISHED, all.wrapping_neg());
        }
    }
}
