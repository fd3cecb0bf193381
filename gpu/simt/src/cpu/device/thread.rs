//! A thread's indices, and the barrier of its block. All functions panic outside a kernel.

use std::panic::Location;

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use crate::cpu::{block, check::FenceScope};

macro_rules! index {
    ($($(#[$doc:meta])* $name:ident = $value:expr;)*) => {$(
        $(#[$doc])*
        #[cfg_attr(not(feature = "cpu"), signatures)]
        #[inline(always)]
        pub fn $name() -> u32 {
            $value
        }
    )*};
}

index! {
    /// The thread's x index in its block.
    thread_idx_x = block::thread_index()[0];
    /// The thread's y index in its block.
    thread_idx_y = block::thread_index()[1];
    /// The thread's z index in its block.
    thread_idx_z = block::thread_index()[2];
    /// The block's x index in the grid.
    block_idx_x = block::block_index()[0];
    /// The block's y index in the grid.
    block_idx_y = block::block_index()[1];
    /// The block's z index in the grid.
    block_idx_z = block::block_index()[2];
    /// Threads of a block along x.
    block_dim_x = block::launch_config().block[0];
    /// Threads of a block along y.
    block_dim_y = block::launch_config().block[1];
    /// Threads of a block along z.
    block_dim_z = block::launch_config().block[2];
    /// Blocks of the grid along x.
    grid_dim_x = block::launch_config().grid[0];
    /// Blocks of the grid along y.
    grid_dim_y = block::launch_config().grid[1];
    /// Blocks of the grid along z.
    grid_dim_z = block::launch_config().grid[2];
    /// The thread's lane in its warp, 0 to 31.
    lane_id = block::linear_index() % 32;
    /// The warp's number in its block: threads are counted x first, then y, then z, 32 to a warp.
    warp_id = block::linear_index() / 32;
}

/// The same number, of which the compiler of a GPU's kernel knows nothing. Addresses that follow
/// from it are computed where they are used. Without this, the compiler computes what is constant
/// in a loop before it, and keeps it in registers.
#[inline]
pub fn opaque(number: usize) -> usize {
    number
}

/// The barrier of the block: waits until every thread of the block has arrived. What each wrote to
/// shared or global memory before is then visible to all of them.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn sync_threads() {
    block::barrier(Location::caller());
}

/// [`sync_threads`], and the number of the block's threads that have come to it with `predicate`.
/// (PTX: `bar.red`. Some of its threads may not come to [`sync_threads`] meanwhile.)
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn sync_threads_count(predicate: bool) -> u32 {
    block::vote(predicate, Location::caller())
}

/// [`sync_threads`], and whether all threads of the block have come to it with `predicate`.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn sync_threads_and(predicate: bool) -> bool {
    block::vote(!predicate, Location::caller()) == 0
}

/// [`sync_threads`], and whether any thread of the block has come to it with `predicate`.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn sync_threads_or(predicate: bool) -> bool {
    block::vote(predicate, Location::caller()) > 0
}

/// A fence for threads of the same block. What this thread has done before is visible to a thread
/// that sees what it writes behind the fence by an atomic operation, and calls a fence, too (PTX
/// `fence.sc.cta`, CUDA's `__threadfence_block`).
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn fence_block() {
    fence(FenceScope::Block, Location::caller());
}

/// [`fence_block`] for all threads of the GPU (`fence.sc.gpu`, `__threadfence`).
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn fence_device() {
    fence(FenceScope::Device, Location::caller());
}

/// [`fence_block`] for all threads of all GPUs, and the processor (`fence.sc.sys`,
/// `__threadfence_system`).
#[cfg_attr(not(feature = "cpu"), signatures)]
#[inline]
#[track_caller]
pub fn fence_system() {
    fence(FenceScope::Device, Location::caller());
}

#[cfg(feature = "cpu")]
fn fence(scope: FenceScope, place: &'static Location<'static>) {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    if let Some(checker) = block::checker() {
        checker.fence(scope, place);
    }
}
