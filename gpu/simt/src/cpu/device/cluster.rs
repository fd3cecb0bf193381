//! The blocks of a cluster: they run at the same time, and can access each other's shared memory.

use std::panic::Location;

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use super::memory::{is_allowed, reason, sixteen_bytes};
#[cfg(feature = "cpu")]
use crate::cpu::{
    access::Access,
    block::{self, current, current_cluster, wait_for},
    cluster::{ClusterArrival, Wait},
};
use crate::{
    Element,
    cpu::{fast::Fast, mode::Mode},
};

/// The block's rank in its cluster.
#[cfg_attr(not(feature = "cpu"), signatures)]
pub fn block_rank() -> u32 {
    block::rank()
}

/// The number of blocks of the cluster.
#[cfg_attr(not(feature = "cpu"), signatures)]
pub fn blocks() -> u32 {
    current_cluster().blocks
}

/// The cluster's number in the grid, and the number of clusters, in a grid and a cluster that
/// extend along x only.
pub fn numbers() -> (u32, u32) {
    (super::thread::block_idx_x() / blocks(), super::thread::grid_dim_x() / blocks())
}

/// A barrier of the cluster: waits until every thread of the cluster has arrived. What each wrote
/// to shared or global memory before is then visible to all of them.
///
/// # Panics
/// If the thread has called [`arrive_relaxed`] and not waited since.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn sync() {
    arrive(ClusterArrival::Release);
    wait();
}

/// Arrives at the barrier of the cluster and goes on; all threads of the cluster do so, and
/// [`wait`] later. It makes no writes visible to others. It tells the others that this block has
/// begun, so that they may access its shared memory.
///
/// On the CPU all blocks of a cluster begin together, and the others wait for the [`wait`].
///
/// # Panics
/// If the thread has arrived and not waited since.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn arrive_relaxed() {
    arrive(ClusterArrival::Relaxed);
}

#[cfg(feature = "cpu")]
#[track_caller]
fn arrive(how: ClusterArrival) {
    if !current_cluster().arrive_at_cluster(current().number, how) {
        crate::cpu::panics::misuse(
            "arrives at the cluster's barrier again, and has not waited there since it arrived",
        );
    }
}

/// Waits until every thread of the cluster has arrived ([`arrive_relaxed`]).
///
/// # Panics
/// If the thread has not arrived.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn wait() {
    let arrived = current_cluster().wait_at_cluster(current().number);
    let Some(how) = arrived else {
        crate::cpu::panics::misuse("waits at the cluster's barrier, and has not arrived there")
    };
    wait_for(Wait::Cluster(how), Location::caller());
}

/// Shared memory of another block of the cluster. That block must not have ended.
pub type Remote<T> = remotes::Remote<T, Fast>;

/// The types behind the names, generic in the [`Mode`].
pub(crate) mod remotes {
    use super::*;

    /// Shared memory of another block of the cluster.
    #[derive(Clone, Copy, Debug)]
    pub struct Remote<T, M: Mode> {
        base: *mut T,
        len: usize,
        rank: u32,
        tag: M::Shared,
        /// The index of the first of these elements in the other block's array, which may begin
        /// elsewhere than this block's.
        first: usize,
    }

    #[cfg_attr(not(feature = "cpu"), signatures)]
    impl<T: Element, M: Mode> Remote<T, M> {
        /// The `len` elements of the block of that rank that correspond to those at `base` in this
        /// block.
        #[track_caller]
        pub(crate) fn new(base: *mut T, len: usize, rank: u32) -> Self {
            let cluster = current_cluster();
            let blocks = cluster.blocks;
            assert!(rank < blocks, "the block of rank {rank}: the cluster has {blocks}");
            let offset = base.addr() - block::shared_base().addr();
            let array =
                block::checker().and_then(|checker| checker.array_of_block(rank, offset as u32));
            let (array, before) = array.unwrap_or((std::ptr::null(), 0));
            // SAFETY: with a checker there is an array, which lives as long as the launch.
            let tag = unsafe { M::shared_array(array) };
            let base = cluster.shared(rank).wrapping_add(offset).cast();
            // Arrays begin at multiples of sixteen bytes.
            Remote { base, len, rank, tag, first: before / size_of::<T>() }
        }

        /// The `N` elements from `index` on, in one access of 16 bytes. Their address must be a
        /// multiple of 16.
        #[track_caller]
        pub fn load128<const N: usize>(&self, index: usize) -> [T; N] {
            const { sixteen_bytes::<T, N>() };
            if !is_allowed(self.base, self.len, index, N) {
                let refused = reason::<T>(self.len, index, N);
                // SAFETY: as many elements as are read.
                return unsafe { *M::refuse_shared::<[T; N]>(self.tag, refused, Access::Read) };
            }
            M::remote(self.rank, Access::Read);
            // SAFETY: inside the other block's array, as just checked.
            unsafe {
                M::shared::<T>(self.tag, self.first + index, N, Access::Read);
                *self.base.add(index).cast()
            }
        }

        /// Writes `N` elements from `index` on, in one access of 16 bytes. Their address must be a
        /// multiple of 16.
        #[track_caller]
        pub fn store128<const N: usize>(&mut self, index: usize, values: [T; N]) {
            const { sixteen_bytes::<T, N>() };
            self.store(index, values);
        }

        /// Writes `N` elements from `index` on, in one access of 8 bytes. Their address must be a
        /// multiple of 8.
        #[track_caller]
        pub fn store64<const N: usize>(&mut self, index: usize, values: [T; N]) {
            const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
            self.store(index, values);
        }

        #[track_caller]
        fn store<const N: usize>(&mut self, index: usize, values: [T; N]) {
            if !is_allowed(self.base, self.len, index, N) {
                let refused = reason::<T>(self.len, index, N);
                // SAFETY: as many elements as are written.
                unsafe { *M::refuse_shared::<[T; N]>(self.tag, refused, Access::Write) = values };
                return;
            }
            M::remote(self.rank, Access::Write);
            // SAFETY: as in `load128`.
            unsafe {
                M::shared::<T>(self.tag, self.first + index, N, Access::Write);
                *self.base.add(index).cast() = values;
            }
        }
    }
}
