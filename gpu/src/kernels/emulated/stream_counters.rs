//! Counters that the emulated products of a stream share: for the products that follow, and for the
//! user who asks. They are zero before the first product.

use super::device::*;

/// The number of recomputed elements of C, in two words, the lower one first.
pub const RECOMPUTED: usize = 0;
/// The state by which the clusters of a launch keep pace ([`grid::Pace`]). It is zero before and
/// after a launch, and on another cache line.
pub const PACE: usize = 32;
/// Words in all.
pub const LEN: usize = 64;

/// Counts recomputed elements. One thread calls this.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn count_recomputed(mut counters: Out<u32>, elements: u32) {
    let before = counters.atomic_add(RECOMPUTED, elements);
    // Of all threads that add, exactly one carries.
    if before.checked_add(elements).is_none() {
        counters.atomic_add(RECOMPUTED + 1, 1);
    }
}
