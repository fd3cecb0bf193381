//! What a kernel uses: its thread's indices and barrier, views, shared arrays, fused multiply-add.
//!
//! This is the vocabulary as it stands on the CPU; for `nvptx64` the module of the same name has the same
//! items, made of intrinsics.

pub mod bulk;
pub mod cluster;
pub mod copies;
pub mod grid;
pub mod mbarrier;
mod memory;
pub mod mma;
mod named_barrier;
mod proxy;
mod shared;
pub(crate) mod tensor;
pub mod thread;
mod variable;
pub mod warp;
pub mod warpgroup;

pub use crate::{
    Bf16, Element, F16, Half, Tf32, cluster_pipeline, constant, dynamic_shared,
    element::{from_words, to_words},
    float::{Float, fma},
    global, global_pointer,
    in_order::{add_in_order, fma_in_order},
    mbarriers, named_barriers, pipeline,
    pipeline::{ClusterPipeline, Consumer, Pipeline, Producer, Scope},
    shared, shared_array,
};
pub use mbarrier::{Mbarrier, Mbarriers};
pub(crate) use memory::views;
pub use memory::{In, Out};
#[doc(hidden)]
pub mod __private {
    /// `#[kernel]` reads a kernel's constants.
    #[track_caller]
    pub fn constant(name: &str) -> u32 {
        crate::cpu::block::constant(name)
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
/// | `block = (x, y, z)` | threads of a block; a launch must use them, and the PTX says so (`.reqntid`) |
/// | `shared = bytes` | bytes of its static shared arrays, compared with the PTX and with every run |
/// | `barriers = n` | barriers in its code; by default the calls of `sync_threads` that the body shows |
/// | `len(a = m * k, ..)` | elements that a buffer must have at least, checked before every launch |
/// | `min_blocks = n` | blocks that must fit on a multiprocessor at once (`.minnctapersm`) |
/// | `cluster = (x, y, z)` | blocks of a cluster (`.reqnctapercluster`), Hopper and later |
/// | `dynamic_shared = bytes` | bytes of dynamic shared memory; a launch must give so many |
/// | `arch = 90` | the compute capability that it needs, without its dot |
/// | `opt_level = n` | the level at which the driver's compiler optimises it, 0 to 4 |
/// | `stack = bytes` | bytes of a thread's stack on the CPU device; 256 KiB where it says nothing |
/// | `constants(a = 0 \| 1, ..)` | numbers, or words of instructions, that a launch sets ([`Constants`](crate::Constants)), first what they are where it does not |
/// | `dependent` | it may begin before the kernel before it in its stream has ended, and calls [`grid::wait_for_earlier`] |
///
/// For `nvptx64` it makes the PTX entry point of the function's name. Elsewhere it makes a
/// [`Kernel`](crate::Kernel) of that name, to be launched by [`cpu::launch`](crate::cpu::launch) or by a
/// GPU's driver. That is a static, so no local variable of the module can have the kernel's name.
pub use simt_macros::kernel;
pub use tensor::{
    BoxShape, Boxes, BoxesMut, TensorDescription, TensorMap, TensorMapMut, TensorMaps,
};
pub(crate) use variable::variables;
pub use variable::{Constant, Global, GlobalPointer};
