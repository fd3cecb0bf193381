//! What products of slices leave behind for those after them on the same stream, and for who asks: some words, which are zeros
//! before the first.

use super::device::*;

/// The first of two words, the lower half first: how many elements of C have been computed again.
pub const RECOMPUTED: usize = 0;
/// Where the clusters of a launch keep step ([`grid::Pace`]): zero before and after. On another line of the second-level cache.
pub const PACE: usize = 32;
/// So many words.
pub const LEN: usize = 64;

/// Counts elements that are computed again, as one thread.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn count_recomputed(mut counters: Out<u32>, elements: u32) {
    let before = counters.atomic_add(RECOMPUTED, elements);
    // Of all that add, one alone carries.
    if before.checked_add(elements).is_none() {
        counters.atomic_add(RECOMPUTED + 1, 1);
    }
}
