//! The vocabulary of [`device`] for a checked launch: the same names, every access watched.
//!
//! See [`check`](crate::check).

use super::{check::Watched, device};

pub use super::device::{
    ClusterPipeline, Consumer, Float, Mbarrier, Mbarriers, NamedBarrier, NamedBarriers, Pipeline,
    Producer, Scope, add_in_order, bulk, cluster, cluster_pipeline, fence_proxy_async,
    fence_proxy_async_global, grid, kernel, mbarrier, mbarriers, mma, named_barriers, pipeline,
    shared_array, thread, warp, warpgroup,
};
pub use crate::{
    Bf16, Element, F16, Half, Tf32, checked_constant as constant,
    checked_dynamic_shared as dynamic_shared, checked_global as global,
    checked_global_pointer as global_pointer, checked_shared as shared,
    element::{from_words, to_words},
};

/// Global memory that the kernel reads, indexed like a slice.
pub type In<T> = device::views::In<T, Watched>;
/// Global memory that the kernel writes (and may read), indexed like a slice.
pub type Out<T> = device::views::Out<T, Watched>;
/// A batch of matrices in global memory, which copies take boxes of. A kernel's parameter.
///
/// A box begins at a multiple of sixteen bytes of a row, or the accelerator does not copy it.
pub type TensorMap<T> = device::tensor::maps::TensorMap<T, Watched>;
/// `COUNT` [`TensorMap`]s as one parameter of a kernel, which takes one of them by a number that it computes.
pub type TensorMaps<T, const COUNT: usize> = device::tensor::maps::TensorMaps<T, COUNT, Watched>;
/// The boxes of a [`TensorMap`].
pub type Boxes<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize> =
    device::tensor::maps::Boxes<T, ROWS, COLS, SWIZZLE, Watched>;
/// A batch of matrices in global memory, which copies write boxes of. A kernel's parameter.
///
/// A box begins at a multiple of sixteen bytes of a row, or the accelerator does not copy it.
pub type TensorMapMut<T> = device::tensor::maps::TensorMapMut<T, Watched>;
/// The boxes of a [`TensorMapMut`].
pub type BoxesMut<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize> =
    device::tensor::maps::BoxesMut<T, ROWS, COLS, SWIZZLE, Watched>;
/// An array in shared memory, made by [`shared!`].
pub type Shared<T, const ROWS: usize, const COLS: usize = 1> =
    device::arrays::Shared<T, ROWS, COLS, Watched>;
/// The shared memory whose size the launch gives, made by [`dynamic_shared!`].
pub type DynamicShared<T> = device::arrays::DynamicShared<T, Watched>;
/// An array in global memory, made by [`global!`]. It is another than that of the fast version.
pub type Global<T, const N: usize> = device::variables::Global<T, N, Watched>;
/// An array in constant memory, made by [`constant!`]. It is another than that of the fast version.
pub type Constant<T, const N: usize> = device::variables::Constant<T, N, Watched>;
/// A pointer in global memory, made by [`global_pointer!`]. It is another than that of the fast version.
pub type GlobalPointer<T> = device::variables::GlobalPointer<T, Watched>;

/// `a * b + c`, rounded once.
#[inline(always)]
#[track_caller]
pub fn fma<T: Float>(a: T, b: T, c: T) -> T {
    <Watched as super::mode::Mode>::fma();
    T::fma(a, b, c)
}

/// [`fma`] that stays where it stands.
#[inline(always)]
#[track_caller]
pub fn fma_in_order(a: f32, b: f32, c: f32) -> f32 {
    fma(a, b, c)
}

/// Groups of asynchronous copies, as in [`device::copies`].
pub mod copies {
    use crate::cpu::{check::Watched, mode::Mode};

    /// The copies that this thread has begun since the last call become a group.
    #[track_caller]
    pub fn commit_group() {
        Watched::commit_group();
    }

    /// Waits until of this thread's groups at most the last `PENDING` are on their way.
    #[track_caller]
    pub fn wait_group<const PENDING: u32>() {
        Watched::wait_group(PENDING);
    }
}
