//! The device library on the GPU: intrinsics and plain pointers. Nothing is checked.
//!
//! `cpu/device` has the same items, in files of the same names, and documents them. Here stands
//! what is true of the GPU alone.

mod atomic;
#[cfg(target_feature = "sm_90a")]
pub mod bulk;
#[cfg(target_feature = "sm_90a")]
pub mod cluster;
pub mod copies;
pub mod grid;
#[cfg(target_feature = "sm_90a")]
pub mod mbarrier;
mod memory;
mod named_barrier;
#[cfg(target_feature = "sm_90a")]
mod proxy;
mod shared;
mod shared_space;
#[cfg(target_feature = "sm_90a")]
mod tensor;
pub mod thread;
mod variable;
pub mod warp;
#[cfg(target_feature = "sm_90a")]
pub mod warpgroup;
#[cfg(target_feature = "sm_90a")]
mod wgmma;

pub use crate::mma;
pub use crate::{
    Bf16, E4m3, E5m2, Element, F16, Fp8, Half, Shuffle, Tf32, constant, dynamic_shared,
    element::{from_words, to_words},
    float::{MultiplyAdd, at_least, exp, fma, sqrt},
    function_by_constant, global, global_pointer,
    in_order::{add_in_order, fma_in_order},
    named_barriers, shared, shared_array, unrolled,
};
#[cfg(target_feature = "sm_90a")]
pub use crate::{
    cluster_pipeline, mbarriers, pipeline,
    pipeline::{ClusterPipeline, Consumer, Pipeline, Producer, Scope},
};
pub use atomic::AtomicRef;
#[cfg(target_feature = "sm_90a")]
pub use mbarrier::{Mbarrier, Mbarriers};
pub use memory::{In, Out};
pub use named_barrier::{NamedBarrier, NamedBarriers};
#[cfg(target_feature = "sm_90a")]
pub use proxy::{fence_proxy_async, fence_proxy_async_global};
pub use shared::{DynamicShared, Shared};
pub use simt_macros::kernel;
#[cfg(target_feature = "sm_90a")]
pub use tensor::{Boxes, BoxesMut, TensorMap, TensorMapMut, TensorMapParam, TensorMaps};
pub use variable::{Constant, Global, GlobalPointer};

#[doc(hidden)]
pub mod __private {
    /// `#[kernel]` leaves its declaration in the PTX as a comment, and `constant!` declares its
    /// array there; a kernel crate need not name `core`.
    pub use core::arch::{asm, global_asm};
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: `trap` ends the launch with an error, which is what a panic in a kernel should do.
    unsafe { core::arch::nvptx::trap() }
}
