//! The names of [`device`] for a checked launch, in which the checker observes every access.
//!
//! See [`check`](mod@crate::check).

use super::{
    check::{Watched, is_plain_fma},
    device,
};

pub use super::device::{
    ClusterPipeline, Consumer, Mbarrier, Mbarriers, MultiplyAdd, NamedBarrier, NamedBarriers,
    Pipeline, Producer, Scope, add_in_order, at_least, bulk, cluster, cluster_pipeline, exp,
    fence_proxy_async, fence_proxy_async_global, grid, kernel, mbarrier, mbarriers, mma,
    named_barriers, pipeline, shared_array, sqrt, thread, warp, warpgroup,
};
pub use crate::{
    Bf16, E4m3, E5m2, Element, F16, Fp8, Half, Shuffle, Tf32, checked_constant as constant,
    checked_dynamic_shared as dynamic_shared, checked_global as global,
    checked_global_pointer as global_pointer, checked_shared as shared,
    element::{from_words, to_words},
    function_by_constant, unrolled,
};

/// An element for atomic operations.
pub type AtomicRef<'a, T> = device::atomic::AtomicRef<'a, T, Watched>;
/// Global memory that the kernel reads, indexed like a slice.
pub type In<T> = device::views::In<T, Watched>;
/// Global memory that the kernel writes (and may read), indexed like a slice.
pub type Out<T> = device::views::Out<T, Watched>;
/// A batch of matrices in global memory, from which TMA copies boxes. A kernel's parameter.
///
/// A box begins at a multiple of sixteen bytes of a row; TMA copies no other.
pub type TensorMap<T> = device::tensor::maps::TensorMap<T, Watched>;
/// `COUNT` [`TensorMap`]s as one parameter of a kernel, which selects one by its index.
pub type TensorMaps<T, const COUNT: usize> = device::tensor::maps::TensorMaps<T, COUNT, Watched>;
/// The boxes of a [`TensorMap`].
pub type Boxes<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize> =
    device::tensor::maps::Boxes<T, ROWS, COLS, SWIZZLE, Watched>;
/// A batch of matrices in global memory, to which TMA copies boxes. A kernel's parameter.
///
/// A box begins at a multiple of sixteen bytes of a row; TMA copies no other.
pub type TensorMapMut<T> = device::tensor::maps::TensorMapMut<T, Watched>;
/// The boxes of a [`TensorMapMut`].
pub type BoxesMut<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize> =
    device::tensor::maps::BoxesMut<T, ROWS, COLS, SWIZZLE, Watched>;
/// An array in shared memory, made by [`shared!`].
pub type Shared<T, const ROWS: usize, const COLS: usize = 1> =
    device::arrays::Shared<T, ROWS, COLS, Watched>;
/// The shared memory whose size the launch gives, made by [`dynamic_shared!`].
pub type DynamicShared<T> = device::arrays::DynamicShared<T, Watched>;
/// An array in global memory, made by [`global!`]. The fast version of the kernel has an array of
/// its own.
pub type Global<T, const N: usize> = device::variables::Global<T, N, Watched>;
/// An array in constant memory, made by [`constant!`]. The fast version of the kernel has an array
/// of its own.
pub type Constant<T, const N: usize> = device::variables::Constant<T, N, Watched>;
/// A pointer in global memory, made by [`global_pointer!`]. The fast version of the kernel has a
/// pointer of its own.
pub type GlobalPointer<T> = device::variables::GlobalPointer<T, Watched>;

/// `a * b + c`, rounded once.
#[inline(always)]
#[track_caller]
pub fn fma<T: MultiplyAdd>(a: T, b: T, c: T) -> T {
    match is_plain_fma() {
        // SAFETY: the processor has it.
        true => unsafe { T::fma_by_instruction(a, b, c) },
        false => T::fma(a, b, c),
    }
}

/// [`fma`] that the compiler does not move.
#[inline(always)]
#[track_caller]
pub fn fma_in_order(a: f32, b: f32, c: f32) -> f32 {
    fma(a, b, c)
}

/// Groups of asynchronous copies, as in [`device::copies`].
pub mod copies {
    use crate::cpu::{check::Watched, mode::Mode};

    /// Makes a group of the asynchronous copies that this thread has begun since the last call.
    #[track_caller]
    pub fn commit_group() {
        Watched::commit_group();
    }

    /// Waits until at most the last `PENDING` groups of this thread's copies are in flight.
    #[track_caller]
    pub fn wait_group<const PENDING: u32>() {
        Watched::wait_group(PENDING);
    }
}
