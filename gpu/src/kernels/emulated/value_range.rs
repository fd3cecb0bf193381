//! Between which numbers those of an operand lie, and what follows: from which size on a sum of slices can be relied on.
//!
//! Slices hold an f32 exactly, and tensor cores an f32's products, but where bf16 and f32 end: so what is lost is an absolute
//! error, of a product
//!
//! ```text
//!   2^-134 |y|     if |x| < 2^-110: of x that much is in no slice       (and the same of y)
//!   2^-149         in each of 24 instructions for 64 steps of k, if |x y| < 2^-101: its last digit is below 2^-149
//! ```
//!
//! Of a tile the smallest and largest absolute values are known, so a bound for the sum of k products is. A sum that is 2^26
//! times as large has lost nothing that counts: then that is a quarter of an f32's own rounding. Numbers of ordinary size lose
//! nothing, and their bound is zero. The others' is small, so that mostly nothing is computed twice there either: of
//! probabilities as small as 1e-40, in sums that are about 1, it is 1e-29.

use super::device::{warpgroup::Layout, *};
use crate::params::GemmParams;

/// Rows of a patch.
pub const PATCH_ROWS: usize = 32;
/// Columns of a patch: eight for each lane.
pub const PATCH_COLS: usize = 256;

/// Patches of matrices of so many rows and columns: down and across.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub const fn patches(rows: u32, cols: u32) -> (u32, u32) {
    (rows.div_ceil(PATCH_ROWS as u32), cols.div_ceil(PATCH_COLS as u32))
}

/// The bits of absolute values, which as numbers have the same order.
#[derive(Clone, Copy)]
pub struct Range {
    /// One less than the smallest that is not zero; all bits set where there is none.
    pub below: u32,
    /// The largest; NaN is above infinity.
    pub largest: u32,
}

impl Default for Range {
    /// That of no numbers.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn default() -> Self {
        Range { below: u32::MAX, largest: 0 }
    }
}

impl Range {
    /// Adds a number.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn include(&mut self, number: f32) {
        let size = number.to_bits() & 0x7fff_ffff;
        // Zero becomes the largest, as if it were not there.
        *self = self.and(Range { below: size.wrapping_sub(1), largest: size });
    }

    /// That of both's numbers.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn and(self, other: Range) -> Range {
        Range { below: self.below.min(other.below), largest: self.largest.max(other.largest) }
    }

    /// That of all lanes' numbers: every lane of the warp comes here.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn of_warp(self) -> Range {
        let mut range = self;
        let mut lanes = 16;
        while lanes > 0 {
            let below = warp::shuffle_xor(warp::ALL, range.below, lanes);
            let largest = warp::shuffle_xor(warp::ALL, range.largest, lanes);
            range = range.and(Range { below, largest });
            lanes /= 2;
        }
        range
    }

    /// The smallest and the largest, rounded towards zero; infinity for the smallest of none.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn rounded(self) -> [Bf16; 2] {
        let smallest = if self.below == u32::MAX { 0x7f80_0000 } else { self.below + 1 };
        [smallest, self.largest].map(|bits| Bf16::from_bits((bits >> 16) as u16))
    }

    /// That of one operand's rows (columns of B) of a tile, and all steps of k, by a warp together. `outer` is the first of
    /// them, of `size`.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn of_operand<L: Layout, const TILE: usize>(
        ranges: &In<Bf16>,
        matrix: u32,
        (outer, size): (u32, u32),
        k: u32,
    ) -> Range {
        const { assert!(TILE.is_multiple_of(PATCH_ROWS), "of rows whole patches") };
        // Of a cluster's blocks, some have tiles below the last row.
        if outer >= size {
            return Range::default();
        }
        let ((down, across), first_row, first_col, of_tile) = if L::is_mn_major() {
            let (down, across) = patches(k, size);
            let first = outer / PATCH_COLS as u32;
            let last = ((outer + TILE as u32).min(size) - 1) / PATCH_COLS as u32;
            ((down, across), 0, first, (down, last - first + 1))
        } else {
            let (down, across) = patches(size, k);
            let first = outer / PATCH_ROWS as u32;
            ((down, across), first, 0, ((down - first).min((TILE / PATCH_ROWS) as u32), across))
        };
        let (rows, cols) = of_tile;
        let count = rows * cols;
        let mut range = Range::default();
        // All lanes go round as often, so that what is the same in all of them stays known to be.
        let mut first = 0;
        while first < count {
            let number = first + thread::lane_id();
            // Four are read before one is waited for; those past the last are the last one.
            let read: [_; 4] = core::array::from_fn(|i| {
                let number = (number + 32 * i as u32).min(count - 1);
                let (row, col) =
                    (first_row + number / cols.max(1), first_col + number % cols.max(1));
                let patch = ((matrix * down + row) * across + col) as usize;
                [ranges[2 * patch], ranges[2 * patch + 1]]
            });
            for i in 0..4 {
                // The smallest of a patch of zeros is infinity.
                let [below, largest] = read[i].map(|end| u32::from(end.to_bits()) << 16);
                range = range.and(Range { below, largest });
            }
            first += 4 * 32;
        }
        range.of_warp()
    }

    /// The size from which on the sums of a tile, whose first element is (row, col), can be relied on. All lanes of a warp come
    /// here.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn tile_bound<A: Layout, B: Layout, const ROWS: usize, const COLS: usize>(
        problem: &GemmParams,
        (ranges_a, ranges_b): (&In<Bf16>, &In<Bf16>),
        (product, row, col): (u32, u32, u32),
    ) -> f32 {
        let GemmParams { m, n, k, .. } = *problem;
        let a = Range::of_operand::<A, ROWS>(ranges_a, product, (row, m), k);
        let b = Range::of_operand::<B, COLS>(ranges_b, product, (col, n), k);
        sum_bound(k, a.ends(), b.ends())
    }

    /// What is not larger than the smallest, and not smaller than the largest.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn ends(self) -> [f32; 2] {
        [f32::from_bits(self.below), 2.0 * f32::from_bits(self.largest)]
    }
}

/// 2 to that power, of normal numbers.
const fn power(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

/// The size from which on a sum of k products can be relied on, of numbers between [smallest, largest].
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn sum_bound(
    k: u32,
    [smallest_a, largest_a]: [f32; 2],
    [smallest_b, largest_b]: [f32; 2],
) -> f32 {
    let mut least = 0.0;
    // Each by 2^26: a quarter of an f32's rounding.
    if smallest_a < const { power(-110) } {
        least += largest_b * const { power(26 - 134 + 32) };
    }
    if smallest_b < const { power(-110) } {
        least += largest_a * const { power(26 - 134 + 32) };
    }
    // (Too small to be an f32, the product is zero.)
    if smallest_a * smallest_b < const { power(-101) } {
        least += const { power(26 - 149 + 32) };
    }
    // 24 instructions for 64 steps, and for as many as are begun: not more than k + 64.
    least * (k as f32 + 64.0) * const { power(-32) }
}
