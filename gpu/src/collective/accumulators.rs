//! The accumulators of a warpgroup, some columns at a time.

use super::device::warpgroup::{Fragment, WgmmaSum};

/// Rows of a warp.
pub const ROWS: usize = 16;

/// A number that accumulators of type `S` become before they are finished.
pub trait OfSums<S: WgmmaSum>: WgmmaSum {
    /// The accumulators as they are, or converted into `room`.
    fn of_accumulators<'a, const N: usize>(
        sums: &'a mut Fragment<N, S>,
        room: &'a mut Fragment<N, Self>,
    ) -> &'a mut Fragment<N, Self>;
}

impl<S: WgmmaSum> OfSums<S> for S {
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn of_accumulators<'a, const N: usize>(
        sums: &'a mut Fragment<N, S>,
        _: &'a mut Fragment<N, S>,
    ) -> &'a mut Fragment<N, S> {
        sums
    }
}

impl OfSums<i32> for f32 {
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn of_accumulators<'a, const N: usize>(
        sums: &'a mut Fragment<N, i32>,
        room: &'a mut Fragment<N, f32>,
    ) -> &'a mut Fragment<N, f32> {
        room.set(sums, |sum| sum as f32);
        room
    }
}

/// Calls `act` for each pair of neighbouring accumulators of this thread in the `part`th `COLS`
/// columns, with row and column of the first. Columns are counted from the start of the part.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn each_pair_of<S: WgmmaSum, const COLS: usize, const N: usize>(
    sums: &Fragment<N, S>,
    part: usize,
    act: impl FnMut(u32, u32, [S; 2]),
) {
    // Registers cannot be indexed by a computed number.
    match part {
        0 => sums.for_each_pair_of::<COLS>(0, act),
        1 => sums.for_each_pair_of::<COLS>(1, act),
        2 => sums.for_each_pair_of::<COLS>(2, act),
        _ if N <= 4 * COLS => sums.for_each_pair_of::<COLS>(3, act),
        3 => sums.for_each_pair_of::<COLS>(3, act),
        4 => sums.for_each_pair_of::<COLS>(4, act),
        _ => sums.for_each_pair_of::<COLS>(5, act),
    }
}
