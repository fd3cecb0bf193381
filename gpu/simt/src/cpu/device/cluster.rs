//! The blocks of a cluster: they run at the same time, and reach each other's shared memory.

use std::panic::Location;

use crate::{
    Element,
    cpu::{
        block::{self, current, current_cluster, wait_for},
        cluster::Wait,
        mode::{Access, Fast, Mode},
    },
};

use super::memory::{is_allowed, reason, sixteen_bytes};

/// The block's number in its cluster.
pub fn block_rank() -> u32 {
    block::rank()
}

/// Blocks of the cluster.
pub fn blocks() -> u32 {
    current_cluster().blocks
}

/// The cluster's number in the grid, and how many there are, where its blocks and the grid's are along x.
pub fn numbers() -> (u32, u32) {
    (super::thread::block_idx_x() / blocks(), super::thread::grid_dim_x() / blocks())
}

/// Waits until every thread of the cluster is here; what each wrote to shared or global memory before is then seen by
/// all of them.
///
/// # Panics
/// In a thread that has called [`arrive_relaxed`], and not waited since.
#[track_caller]
pub fn sync() {
    arrive_relaxed();
    wait();
}

/// Says that this thread is here, and goes on; all threads of the cluster do, and later [`wait`]. What it wrote before is not
/// seen by others for that. It tells that a block has begun, before which nobody may reach its shared memory.
///
/// On the CPU all blocks of a cluster have begun from the start, and it is the [`wait`] that others wait for.
///
/// # Panics
/// In a thread that has done so, and not waited since.
#[track_caller]
pub fn arrive_relaxed() {
    assert!(
        current_cluster().arrives(current()),
        "has said that it is at the cluster's barrier, and not waited there"
    );
}

/// Waits until every thread of the cluster has said that it is here ([`arrive_relaxed`]).
///
/// # Panics
/// In a thread that has not.
#[track_caller]
pub fn wait() {
    assert!(
        current_cluster().leaves(current()),
        "waits at the cluster's barrier, and has not said that it is there"
    );
    wait_for(Wait::Cluster, Location::caller());
}

/// Shared memory of another block of the cluster. That block must not have ended.
pub type Remote<T> = remotes::Remote<T, Fast>;

/// The type behind the name, generic in how accesses are carried out.
pub(crate) mod remotes {
    use super::*;

    /// Shared memory of another block of the cluster.
    #[derive(Clone, Copy, Debug)]
    pub struct Remote<T, M: Mode> {
        base: *mut T,
        len: usize,
        rank: u32,
        tag: M::Shared,
        /// Of the array that the other block has there, the number of the first of these elements: that array may begin elsewhere than
        /// this block's.
        first: usize,
    }

    impl<T: Element, M: Mode> Remote<T, M> {
        /// The same `len` elements of the block of that rank, which are at `base` in this block.
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

        /// The `N` elements from `index` on, sixteen bytes in one access. Their address must be a multiple of
        /// sixteen.
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

        /// Writes `N` elements from `index` on, sixteen bytes in one access. Their address must be a multiple of
        /// sixteen.
        #[track_caller]
        pub fn store128<const N: usize>(&mut self, index: usize, values: [T; N]) {
            const { sixteen_bytes::<T, N>() };
            self.store(index, values);
        }

        /// Writes `N` elements from `index` on, eight bytes in one access. Their address must be a multiple of eight.
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
