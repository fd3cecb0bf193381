//! B's way from shared memory to the registers that the tensor cores read.
//!
//! For 8 k-steps a thread holds four elements. With g = lane / 4 and t = lane % 4, they are rows
//! g and g + 8 of the warp's 16 at step t, and both at step t + 4. Any columns of B may be these
//! rows, if the columns of C follow. If rows g and g + 8 are neighbouring columns, one 64-bit load
//! brings both.
//!
//! Shared memory serves such a load to half a warp at a time: 16 lanes, four steps by four pairs.
//! These should cover 128 different bytes modulo 128. A step's row of a box is 32 columns: eight
//! *chunks* of sixteen bytes. The swizzle puts chunk c of step p at c ^ (p % 8). So four steps of
//! one chunk are four places in one half of the row, and half a warp takes its two chunks from both
//! halves:
//!
//! ```text
//!   chunk (4 columns)     0   1   2   3   4   5   6   7     32 columns: two warps
//!   g, of an even warp   0,1 4,5         2,3 6,7
//!   g, of an odd warp            0,1 4,5         2,3 6,7
//! ```

use super::{
    device::*,
    tile::{BLOCK_K, SPAN, WGMMA_K},
};

/// Columns of a warp.
pub const WARP_COLS: usize = 16;

/// Columns of a chunk, which the swizzle moves together.
const CHUNK: usize = 4;

/// A thread's place in B.
pub struct BFragment {
    /// The offsets of its elements in a stage of B: for the first four of 8 k-steps, and for the
    /// next four.
    places: [usize; 2],
}

impl BFragment {
    /// The place of a lane. Its warpgroup has the 64 columns from `first` on.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(first: usize, warp: usize, lane: usize) -> Self {
        let (g, step) = (lane / 4, lane % 4);
        let chunk = BFragment::chunk(warp, g);
        let span = (first + warp / 2 * SPAN) * BLOCK_K;
        let place = |step: usize| span + step * SPAN + (chunk ^ step) * CHUNK + g % 2 * 2;
        BFragment { places: [place(step), place(step + 4)] }
    }

    /// Loads the fragment of the `number`th 8 k-steps. B's part of the stage starts at element
    /// `at`.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn load(&self, tiles: &DynamicShared<Tf32>, at: usize, number: usize) -> [Tf32; 4] {
        let at = at + number * WGMMA_K * SPAN;
        let [first, next] = self.places.map(|place| tiles.load64_in_order::<2>(at + place));
        [first[0], first[1], next[0], next[1]]
    }

    /// The column, of a warpgroup's 64, that is row g of a warp's 16. Row g + 8 is its neighbour.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn column(warp: usize, g: usize) -> usize {
        warp / 2 * SPAN + BFragment::chunk(warp, g) * CHUNK + g % 2 * 2
    }

    /// The chunk of that column in its span.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn chunk(warp: usize, g: usize) -> usize {
        warp % 2 * 2 + g / 4 + g / 2 % 2 * 4
    }
}
