//! A warpgroup's accumulators, some columns at a time.

use super::device::warpgroup::Fragment;

/// Rows of a warp of the warpgroup.
pub const ROWS: usize = 16;

/// Calls `act` with row and column of the first of two neighbours, and both, for all of this thread that belong to the `part`th
/// `COLS` columns. Columns are counted from the part's first.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn each_pair_of<const COLS: usize, const N: usize>(
    sums: &Fragment<N>,
    part: usize,
    act: impl FnMut(u32, u32, [f32; 2]),
) {
    // A register has no number that is computed.
    match part {
        0 => sums.for_each_pair_of::<COLS, 0>(act),
        1 => sums.for_each_pair_of::<COLS, 1>(act),
        2 => sums.for_each_pair_of::<COLS, 2>(act),
        _ if N <= 4 * COLS => sums.for_each_pair_of::<COLS, 3>(act),
        3 => sums.for_each_pair_of::<COLS, 3>(act),
        4 => sums.for_each_pair_of::<COLS, 4>(act),
        _ => sums.for_each_pair_of::<COLS, 5>(act),
    }
}
