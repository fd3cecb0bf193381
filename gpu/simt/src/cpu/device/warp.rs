//! What the 32 lanes of a warp do together.
//!
//! Every operation names the lanes that take part in a `mask`, bit i for lane i. Each of them must come to
//! the same operation with the same mask, and none may have ended. Only [`sync_warp`] orders memory: what a
//! lane wrote before it is seen by the others after it. A shuffle and a vote do not.
//!
//! A launch on the CPU ends with a fault where that is broken; on a GPU the result is undefined. The value of a
//! lane that takes no part is undefined on a GPU, and NaN (all bits set) on the CPU.

use std::panic::Location;

use crate::{
    Shuffle,
    cpu::block::{self, WARP, WarpKind},
};

/// All 32 lanes.
pub const ALL: u32 = u32::MAX;

/// Waits for the lanes of `mask`; what each wrote before is then seen by all of them.
#[inline]
#[track_caller]
pub fn sync_warp(mask: u32) {
    operation(WarpKind::Sync, mask, 0, Location::caller());
}

/// Bit i says whether lane i's `predicate` holds; zero for lanes outside `mask`.
#[inline]
#[track_caller]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    operation(WarpKind::Ballot, mask, predicate.into(), Location::caller())
}

/// Does `predicate` hold in every lane of `mask`?
#[inline]
#[track_caller]
pub fn all(mask: u32, predicate: bool) -> bool {
    operation(WarpKind::All, mask, predicate.into(), Location::caller()) != 0
}

/// Does `predicate` hold in a lane of `mask`?
#[inline]
#[track_caller]
pub fn any(mask: u32, predicate: bool) -> bool {
    operation(WarpKind::Any, mask, predicate.into(), Location::caller()) != 0
}

/// The `value` of lane `lane` modulo 32.
#[inline]
#[track_caller]
pub fn shuffle<T: Shuffle>(mask: u32, value: T, lane: u32) -> T {
    from_lane(WarpKind::Shuffle(lane % WARP), mask, value, Location::caller())
}

/// The `value` of the lane whose number is this lane's exclusive-or `lanes`; the own where there is none.
#[inline]
#[track_caller]
pub fn shuffle_xor<T: Shuffle>(mask: u32, value: T, lanes: u32) -> T {
    let lane = block::linear_index() % WARP;
    let source = lane ^ lanes;
    let source = if source < WARP { source } else { lane };
    from_lane(WarpKind::Relative(source), mask, value, Location::caller())
}

/// The `value` of the lane `delta` further up; the own where there is none.
#[inline]
#[track_caller]
pub fn shuffle_down<T: Shuffle>(mask: u32, value: T, delta: u32) -> T {
    let lane = block::linear_index() % WARP;
    let source = lane.saturating_add(delta);
    let source = if source < WARP { source } else { lane };
    from_lane(WarpKind::Relative(source), mask, value, Location::caller())
}

/// The `value` of the lane `delta` further down; the own where there is none.
#[inline]
#[track_caller]
pub fn shuffle_up<T: Shuffle>(mask: u32, value: T, delta: u32) -> T {
    let lane = block::linear_index() % WARP;
    let source = lane.checked_sub(delta).unwrap_or(lane);
    from_lane(WarpKind::Relative(source), mask, value, Location::caller())
}

/// Is this the one lane of the whole warp that is elected? Hopper and later. All 32 come here.
#[inline]
#[track_caller]
pub fn elect() -> bool {
    operation(WarpKind::Elect, ALL, 0, Location::caller()) != 0
}

#[inline]
fn from_lane<T: Shuffle>(
    kind: WarpKind,
    mask: u32,
    value: T,
    place: &'static Location<'static>,
) -> T {
    T::from_bits(operation(kind, mask, value.into_bits(), place))
}

#[inline]
fn operation(kind: WarpKind, mask: u32, value: u32, place: &'static Location<'static>) -> u32 {
    block::warp_operation(kind, mask, value, place)
}
