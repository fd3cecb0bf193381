//! The range of an operand's numbers, and the error bound of bf16x6 that follows from it.
//!
//! Slices represent an f32 exactly, and tensor cores an f32's products, except at the ends of the
//! range of bf16 and f32. So what is lost is an absolute error. For a product x y it is
//!
//! ```text
//!   2^-134 |y|     if |x| < 2^-110: that much of x is in no slice       (and the same for y)
//!   2^-149         in each of 24 MMAs for 64 k-steps, if |x y| < 2^-101: its last digit is below 2^-149
//! ```
//!
//! The smallest and the largest absolute value of a tile are known, and give a bound for the sum of
//! k products. A sum of at least 2^26 times the bound has lost nothing that counts: a quarter of an
//! f32's own rounding. Numbers of ordinary size lose nothing, and their bound is zero. For others
//! it is small, so that little is recomputed: for probabilities down to 1e-40, in sums of about 1,
//! it is 1e-29.

use super::device::{warpgroup::Layout, *};
use crate::params::GemmParams;

/// Rows of a patch.
pub const PATCH_ROWS: usize = 32;
/// Columns of a patch: eight for each lane.
pub const PATCH_COLS: usize = 256;

/// Patches of a matrix: down and across.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub const fn patches(rows: u32, cols: u32) -> (u32, u32) {
    (rows.div_ceil(PATCH_ROWS as u32), cols.div_ceil(PATCH_COLS as u32))
}

/// A range of absolute values, as bits. As integers they have the same order.
#[derive(Clone, Copy)]
pub struct Range {
    /// One less than the smallest value that is not zero. All bits are set if there is none.
    pub below: u32,
    /// The largest value. NaN is above infinity.
    pub largest: u32,
}

impl Default for Range {
    /// The range of no numbers.
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
        // Zero wraps to the largest integer, so it does not count.
        *self = self.and(Range { below: size.wrapping_sub(1), largest: size });
    }

    /// The range of both.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn and(self, other: Range) -> Range {
        Range { below: self.below.min(other.below), largest: self.largest.max(other.largest) }
    }

    /// The range of all lanes. All lanes of a warp call this.
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

    /// The smallest and the largest value, rounded towards zero. The smallest of none is infinity.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn rounded(self) -> [Bf16; 2] {
        let smallest = if self.below == u32::MAX { 0x7f80_0000 } else { self.below + 1 };
        [smallest, self.largest].map(|bits| Bf16::from_bits((bits >> 16) as u16))
    }

    /// The range of an operand's rows (columns of B) of a tile, for all k-steps, computed by a
    /// warp. `outer` is the first of them, of `size`.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn of_operand<L: Layout, const TILE: usize>(
        ranges: &In<Bf16>,
        matrix: u32,
        (outer, size): (u32, u32),
        k: u32,
    ) -> Range {
        const { assert!(TILE.is_multiple_of(PATCH_ROWS), "a tile has whole patches of rows") };
        // In a cluster, a block may have a tile below the last row.
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
        // All lanes run equally often, so that the compiler knows what is the same in all of them.
        let mut first = 0;
        while first < count {
            let number = first + thread::lane_id();
            // Four are loaded before one is awaited. Those past the last are the last one.
            let read: [_; 4] = core::array::from_fn(|i| {
                let number = (number + 32 * i as u32).min(count - 1);
                let (row, col) =
                    (first_row + number / cols.max(1), first_col + number % cols.max(1));
                let patch = ((matrix * down + row) * across + col) as usize;
                [ranges[2 * patch], ranges[2 * patch + 1]]
            });
            for i in 0..4 {
                // The smallest value of a patch of zeros is infinity.
                let [below, largest] = read[i].map(|end| u32::from(end.to_bits()) << 16);
                range = range.and(Range { below, largest });
            }
            first += 4 * 32;
        }
        range.of_warp()
    }

    /// The error bound of a tile: sums of at least this size are certain. The first element is
    /// (row, col). All lanes of a warp call this.
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

    /// A lower bound of the smallest value, and an upper bound of the largest.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn ends(self) -> [f32; 2] {
        [f32::from_bits(self.below), 2.0 * f32::from_bits(self.largest)]
    }
}

/// 2^exponent, a normal number.
const fn power(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

/// The error bound of a sum of k products, of numbers in the ranges [smallest, largest].
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
    // If the product is too small for an f32, it is zero.
    if smallest_a * smallest_b < const { power(-101) } {
        least += const { power(26 - 149 + 32) };
    }
    // 24 MMAs for 64 steps, rounded up: at most k + 64 steps.
    least * (k as f32 + 64.0) * const { power(-32) }
}
