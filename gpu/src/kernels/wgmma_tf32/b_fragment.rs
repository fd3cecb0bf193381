//! BFragment of B on their way from shared memory to the registers that the tensor cores read them from.
//!
//! Of 8 steps of k a thread holds four elements: with g = lane / 4 and t = lane % 4, the instruction's rows g and g + 8 (of
//! the warp's 16) at step t, and both at step t + 4. Which columns of B are these rows is free, as long as C's columns
//! follow. If rows g and g + 8 are neighbouring columns, a load of 64 bits brings both.
//!
//! Such a load is served to half a warp at a time: 16 lanes, four steps by four pairs. They should take 128 different bytes
//! modulo 128. A step's row of a box is 32 columns, eight *chunks* of sixteen bytes, and the swizzle puts chunk c of step p to
//! c ^ (p % 8). Four steps of one chunk then are four places of the same half of the row; so half a warp takes its two
//! chunks from both halves:
//!
//! ```text
//!   chunk (4 columns)     0   1   2   3   4   5   6   7     32 columns: two warps'
//!   g, of an even warp   0,1 4,5         2,3 6,7
//!   g, of an odd warp            0,1 4,5         2,3 6,7
//! ```

use super::{
    device::*,
    tile::{BLOCK_K, SPAN, WGMMA_K},
};

/// BFragment of a warp.
pub const WARP_COLS: usize = 16;

/// BFragment of a chunk, which the swizzle moves together.
const CHUNK: usize = 4;

/// The columns of a thread.
pub struct BFragment {
    /// Where its elements of the first 4 steps of k are in a stage's columns of B, and of the next 4.
    places: [usize; 2],
}

impl BFragment {
    /// Those of a lane of a warpgroup's warp; the warpgroup's are the 64 from `first` on.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(first: usize, warp: usize, lane: usize) -> Self {
        let (g, step) = (lane / 4, lane % 4);
        let chunk = BFragment::chunk(warp, g);
        let span = (first + warp / 2 * SPAN) * BLOCK_K;
        let place = |step: usize| span + step * SPAN + (chunk ^ step) * CHUNK + g % 2 * 2;
        BFragment { places: [place(step), place(step + 4)] }
    }

    /// What the tensor cores are to have of the `number`th 8 steps of k. B's columns begin at element `at`.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn load(&self, tiles: &DynamicShared<Tf32>, at: usize, number: usize) -> [Tf32; 4] {
        let at = at + number * WGMMA_K * SPAN;
        let [first, next] = self.places.map(|place| tiles.load64_in_order::<2>(at + place));
        [first[0], first[1], next[0], next[1]]
    }

    /// The column of a warpgroup's 64 that is row g of the instruction, of a warp's 16; row g + 8 is its neighbour.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn column(warp: usize, g: usize) -> usize {
        warp / 2 * SPAN + BFragment::chunk(warp, g) * CHUNK + g % 2 * 2
    }

    /// The chunk of a span that it lies in.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn chunk(warp: usize, g: usize) -> usize {
        warp % 2 * 2 + g / 4 + g / 2 % 2 * 4
    }
}
