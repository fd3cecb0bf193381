//! The vocabulary on the GPU: intrinsics and plain pointers, nothing checked.

mod memory;
mod shared;
pub mod thread;

pub use crate::{dynamic_shared, shared, shared_array};
pub use memory::{In, Out};
pub use shared::{DynamicShared, Shared};
pub use simt_macros::kernel;

/// A type with a fused multiply-add.
pub trait Float: Copy {
    /// `a * b + c`, rounded once.
    fn fma(a: Self, b: Self, c: Self) -> Self;
}

impl Float for f32 {
    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        core::intrinsics::fmaf32(a, b, c)
    }
}

impl Float for f64 {
    #[inline(always)]
    fn fma(a: f64, b: f64, c: f64) -> f64 {
        core::intrinsics::fmaf64(a, b, c)
    }
}

/// `a * b + c`, rounded once. Rust never fuses `a * b + c` by itself, so a kernel says that it wants this.
#[inline(always)]
pub fn fma<T: Float>(a: T, b: T, c: T) -> T {
    T::fma(a, b, c)
}

#[doc(hidden)]
pub mod __private {
    /// `#[kernel]` leaves its declaration in the PTX as a comment; a kernel crate need not name `core`.
    pub use core::arch::asm;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: `trap` ends the launch with an error, which is what a panic in a kernel should do.
    unsafe { core::arch::nvptx::trap() }
}
