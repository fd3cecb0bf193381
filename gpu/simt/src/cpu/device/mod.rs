//! The device library as kernels use it: thread indices and barriers, views, shared arrays, tensor
//! cores and so on.
//!
//! This is the version for the CPU. For `nvptx64` the module of the same name has the same items,
//! made of intrinsics.

pub(crate) mod atomic;
mod box_shape;
pub mod bulk;
pub mod cluster;
pub mod copies;
pub mod grid;
pub mod mbarrier;
mod memory;
mod named_barrier;
mod proxy;
mod shared;
pub(crate) mod tensor;
pub mod thread;
mod variable;
pub mod warp;
pub mod warpgroup;

pub use crate::mma;
pub use crate::{
    Bf16, E4m3, E5m2, Element, F16, Fp8, Half, Shuffle, Tf32, cluster_pipeline, constant,
    dynamic_shared,
    element::{from_words, to_words},
    float::{MultiplyAdd, at_least, exp, fma, sqrt},
    function_by_constant, global, global_pointer,
    in_order::{add_in_order, fma_in_order},
    mbarriers, named_barriers, pipeline,
    pipeline::{ClusterPipeline, Consumer, Pipeline, Producer, Scope},
    shared, shared_array, unrolled,
};
/// An element for atomic operations, which `Out::atomic`, `Shared::atomic` and `Global::atomic`
/// give.
pub type AtomicRef<'a, T> = atomic::AtomicRef<'a, T, crate::cpu::fast::Fast>;
pub use box_shape::BoxShape;
pub use mbarrier::{Mbarrier, Mbarriers};
pub(crate) use memory::views;
pub use memory::{In, Out};
#[doc(hidden)]
pub mod __private {
    /// `#[kernel]` reads a kernel's constants by it.
    #[track_caller]
    pub fn constant(name: &str) -> u32 {
        crate::cpu::constant(name)
    }
}
pub use named_barrier::{NamedBarrier, NamedBarriers};
pub use proxy::{fence_proxy_async, fence_proxy_async_global};
pub(crate) use shared::arrays;
pub use shared::{DynamicShared, Shared};
/// Makes a function a kernel.
///
/// What it may declare, all of it optional:
///
/// | key | meaning |
/// |---|---|
/// | `block = (x, y, z)` | threads of a block; a launch must use them (`.reqntid` in the PTX) |
/// | `shared = bytes` | bytes of its static shared arrays, which are compared with the PTX and with every run |
/// | `barriers = n` | barriers in its code; by default the calls of `sync_threads` in the body |
/// | `len(a = m * k, ..)` | the least elements of a buffer, checked before every launch |
/// | `min_blocks = n` | blocks that must fit on an SM at once (`.minnctapersm`) |
/// | `cluster = (x, y, z)` | blocks of a cluster (`.reqnctapercluster`), Hopper and later |
/// | `dynamic_shared = bytes` | bytes of dynamic shared memory; a launch must give at least these |
/// | `arch = 90` | the compute capability that it needs, without the dot |
/// | `opt_level = n` | the optimisation level of the driver's compiler, 0 to 4 |
/// | `stack = bytes` | bytes of a thread's stack on the CPU device; by default 256 KiB |
/// | `constants(a = 0 \| 1, ..)` | specialisation constants ([`Constants`](crate::Constants)): numbers or words of instructions, the default first |
/// | `dependent` | it may begin before the previous kernel of its stream has ended, and calls [`grid::wait_for_earlier`] |
///
/// For `nvptx64` it makes a PTX entry point with the function's name. For other targets it makes a
/// static [`Kernel`](crate::Kernel) of that name, which [`cpu::launch`](crate::cpu::launch) or a
/// GPU's driver launches. Because it is a static, no local variable of the module can have the
/// kernel's name. Without the feature `cpu` the body is left out.
pub use simt_macros::kernel;
pub use tensor::{Boxes, BoxesMut, TensorDescription, TensorMap, TensorMapMut, TensorMaps};
pub(crate) use variable::variables;
pub use variable::{Constant, Global, GlobalPointer};
