//! Operations of the lanes of a warp: barriers, votes, shuffles.
//!
//! Every operation has a `mask` of the participating lanes, bit i for lane i. Each of them must
//! reach the same operation with the same mask, and none may have ended. Only [`sync_warp`] orders
//! memory: what a lane wrote before it is visible to the others after it. Shuffles and votes order
//! nothing.
//!
//! On the CPU a violation ends the launch with a fault; on a GPU the result is undefined. The value
//! of a lane outside the mask is undefined on a GPU, and NaN (all bits set) on the CPU.

use std::panic::Location;

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

use crate::Shuffle;
#[cfg(feature = "cpu")]
use crate::cpu::{block, limits::WARP, warp_operation::WarpKind};

/// All 32 lanes.
pub const ALL: u32 = u32::MAX;

/// Waits for the lanes of `mask`. What each wrote before is then visible to all of them.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn sync_warp(mask: u32) {
    operation(WarpKind::Sync, mask, 0, Location::caller());
}

/// Bit i tells whether `predicate` holds in lane i; it is 0 for lanes outside `mask`.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    operation(WarpKind::Ballot, mask, predicate.into(), Location::caller())
}

/// Whether `predicate` holds in every lane of `mask`.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn all(mask: u32, predicate: bool) -> bool {
    operation(WarpKind::All, mask, predicate.into(), Location::caller()) != 0
}

/// Whether `predicate` holds in any lane of `mask`.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn any(mask: u32, predicate: bool) -> bool {
    operation(WarpKind::Any, mask, predicate.into(), Location::caller()) != 0
}

/// The `value` of lane `lane` modulo 32.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn shuffle<T: Shuffle>(mask: u32, value: T, lane: u32) -> T {
    from_lane(WarpKind::Shuffle(lane % WARP), mask, value, Location::caller())
}

/// The `value` of lane `this lane ^ lanes`; the own value where there is no such lane.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn shuffle_xor<T: Shuffle>(mask: u32, value: T, lanes: u32) -> T {
    let lane = block::linear_index() % WARP;
    let source = lane ^ lanes;
    let source = if source < WARP { source } else { lane };
    from_lane(WarpKind::Relative(source), mask, value, Location::caller())
}

/// The `value` of the lane `delta` above this one; the own value where there is no such lane.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn shuffle_down<T: Shuffle>(mask: u32, value: T, delta: u32) -> T {
    let lane = block::linear_index() % WARP;
    let source = lane.saturating_add(delta);
    let source = if source < WARP { source } else { lane };
    from_lane(WarpKind::Relative(source), mask, value, Location::caller())
}

/// The `value` of the lane `delta` below this one; the own value where there is no such lane.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn shuffle_up<T: Shuffle>(mask: u32, value: T, delta: u32) -> T {
    let lane = block::linear_index() % WARP;
    let source = lane.checked_sub(delta).unwrap_or(lane);
    from_lane(WarpKind::Relative(source), mask, value, Location::caller())
}

/// The lanes that are here together with this one, bit i for lane i (PTX `activemask`). Which these
/// are is the hardware's choice: a kernel must be right for any that include this lane. On the CPU
/// it is this lane alone, so a kernel that relies on more gives another result.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
pub fn active_mask() -> u32 {
    1 << (block::linear_index() % WARP)
}

/// The lanes of `mask` that have the same value as this one, bit i for lane i.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn match_any(mask: u32, value: u32) -> u32 {
    operation(WarpKind::Match, mask, value, Location::caller())
}

/// The sum of the values of the lanes of `mask`, modulo 2^32 (PTX `redux.sync`).
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn reduce_add(mask: u32, value: u32) -> u32 {
    operation(WarpKind::Reduce(u32::wrapping_add), mask, value, Location::caller())
}

/// The least of the values of the lanes of `mask`.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn reduce_min(mask: u32, value: u32) -> u32 {
    operation(WarpKind::Reduce(std::cmp::min), mask, value, Location::caller())
}

/// The greatest of the values of the lanes of `mask`.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn reduce_max(mask: u32, value: u32) -> u32 {
    operation(WarpKind::Reduce(std::cmp::max), mask, value, Location::caller())
}

/// The bits that all values of the lanes of `mask` have.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn reduce_and(mask: u32, value: u32) -> u32 {
    operation(WarpKind::Reduce(|a, b| a & b), mask, value, Location::caller())
}

/// The bits that any value of the lanes of `mask` has.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn reduce_or(mask: u32, value: u32) -> u32 {
    operation(WarpKind::Reduce(|a, b| a | b), mask, value, Location::caller())
}

/// The bits that an odd number of the values of the lanes of `mask` have.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn reduce_xor(mask: u32, value: u32) -> u32 {
    operation(WarpKind::Reduce(|a, b| a ^ b), mask, value, Location::caller())
}

/// Whether this lane is the one that is elected. Hopper and later. All 32 lanes call it.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn elect() -> bool {
    operation(WarpKind::Elect, ALL, 0, Location::caller()) != 0
}

#[cfg(feature = "cpu")]
#[inline]
fn from_lane<T: Shuffle>(
    kind: WarpKind,
    mask: u32,
    value: T,
    place: &'static Location<'static>,
) -> T {
    value.map_words(|word| operation(kind, mask, word, place))
}

#[cfg(feature = "cpu")]
#[inline]
fn operation(kind: WarpKind, mask: u32, value: u32, place: &'static Location<'static>) -> u32 {
    block::warp_operation(kind, mask, value, place)
}
