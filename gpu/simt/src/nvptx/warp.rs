//! Operations of the lanes of a warp: barriers, votes, shuffles.
//!
//! Every operation names the lanes that take part in a `mask`, bit i for lane i; each must come to
//! it with the same mask, or the result is undefined. Only [`sync_warp`] orders memory.

use crate::Shuffle;

pub const ALL: u32 = u32::MAX;

// Intrinsics rather than `asm!`, because LLVM knows that these are convergent: it does not copy
// them into branches that only some lanes take. (Inline PTX ISA, `bar.warp.sync`, `vote.sync`,
// `shfl.sync`.)
unsafe extern "C" {
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    safe fn bar_warp_sync(mask: u32);
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    safe fn vote_ballot(mask: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.vote.all.sync"]
    safe fn vote_all(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.vote.any.sync"]
    safe fn vote_any(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    safe fn shfl_idx(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    safe fn shfl_bfly(mask: u32, value: u32, lanes: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
    safe fn shfl_down(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
    safe fn shfl_up(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.activemask"]
    safe fn activemask() -> u32;
    #[link_name = "llvm.nvvm.match.any.sync.i32"]
    safe fn match_any_sync(mask: u32, value: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.add"]
    safe fn redux_add(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.umin"]
    safe fn redux_min(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.umax"]
    safe fn redux_max(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.and"]
    safe fn redux_and(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.or"]
    safe fn redux_or(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.xor"]
    safe fn redux_xor(value: u32, mask: u32) -> u32;
    // device.ll
    #[cfg(target_feature = "sm_90a")]
    safe fn simt_elect() -> u32;
}

/// The last lane that `shfl` may read, without dividing the warp into segments.
const LAST: u32 = 31;

#[inline(always)]
pub fn sync_warp(mask: u32) {
    bar_warp_sync(mask);
}

#[inline(always)]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    vote_ballot(mask, predicate)
}

#[inline(always)]
pub fn all(mask: u32, predicate: bool) -> bool {
    vote_all(mask, predicate)
}

#[inline(always)]
pub fn any(mask: u32, predicate: bool) -> bool {
    vote_any(mask, predicate)
}

#[inline(always)]
pub fn shuffle<T: Shuffle>(mask: u32, value: T, lane: u32) -> T {
    value.map_words(|word| shfl_idx(mask, word, lane % 32, LAST))
}

#[inline(always)]
pub fn shuffle_xor<T: Shuffle>(mask: u32, value: T, lanes: u32) -> T {
    value.map_words(|word| shfl_bfly(mask, word, lanes, LAST))
}

#[inline(always)]
pub fn shuffle_down<T: Shuffle>(mask: u32, value: T, delta: u32) -> T {
    value.map_words(|word| shfl_down(mask, word, delta, LAST))
}

#[inline(always)]
pub fn shuffle_up<T: Shuffle>(mask: u32, value: T, delta: u32) -> T {
    value.map_words(|word| shfl_up(mask, word, delta, 0))
}

#[inline(always)]
pub fn active_mask() -> u32 {
    activemask()
}

#[inline(always)]
pub fn match_any(mask: u32, value: u32) -> u32 {
    match_any_sync(mask, value)
}

macro_rules! reductions {
    ($($name:ident = $intrinsic:ident;)*) => {$(
        #[inline(always)]
        pub fn $name(mask: u32, value: u32) -> u32 {
            $intrinsic(value, mask)
        }
    )*};
}

reductions! {
    reduce_add = redux_add;
    reduce_min = redux_min;
    reduce_max = redux_max;
    reduce_and = redux_and;
    reduce_or = redux_or;
    reduce_xor = redux_xor;
}

#[cfg(target_feature = "sm_90a")]
#[inline(always)]
pub fn elect() -> bool {
    simt_elect() != 0
}
