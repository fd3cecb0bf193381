//! The kernels.

use super::device;

pub mod atomics;
pub mod barriers;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod bulk;
pub mod clean;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod clusters;
pub mod copies;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod grids;
pub mod memory;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod multicast;
pub mod named;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod pipelines;
pub mod races;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod registers;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod stores;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod tma;
pub mod votes;
pub mod warps;

/// The thread, and its place among those of all blocks, which have so many threads along x.
#[inline(always)]
fn here(threads: usize) -> (usize, usize) {
    let t = device::thread::thread_idx_x() as usize;
    (t, device::thread::block_idx_x() as usize * threads + t)
}
