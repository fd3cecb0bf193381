//! The vocabulary on the GPU: intrinsics and plain pointers, nothing checked.

mod atomic;
pub mod copies;
mod memory;
mod shared;
pub mod thread;
mod variable;
pub mod warp;

pub use crate::{
    Element, constant, dynamic_shared,
    float::{Float, fma},
    global, global_pointer, shared, shared_array,
};
pub use memory::{In, Out};
pub use shared::{DynamicShared, Shared};
pub use simt_macros::kernel;
pub use variable::{Constant, Global, GlobalPointer};

#[doc(hidden)]
pub mod __private {
    /// `#[kernel]` leaves its declaration in the PTX as a comment, and `constant!` declares its array there; a
    /// kernel crate need not name `core`.
    pub use core::arch::{asm, global_asm};
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: `trap` ends the launch with an error, which is what a panic in a kernel should do.
    unsafe { core::arch::nvptx::trap() }
}
