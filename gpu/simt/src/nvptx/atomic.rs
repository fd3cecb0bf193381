//! Atomic additions, relaxed, in the scope of the GPU. In global memory the GPU treats subnormal
//! `f32`s as zeros (PTX ISA, `atom`).

use crate::Atomic;

unsafe extern "C" {
    // device.ll
    fn simt_atomic_add_u32(place: *mut u32, value: u32) -> u32;
    fn simt_atomic_add_u64(place: *mut u64, value: u64) -> u64;
    fn simt_atomic_add_f32(place: *mut f32, value: f32) -> f32;
    fn simt_atomic_add_f64(place: *mut f64, value: f64) -> f64;
}

macro_rules! atomics {
    ($($ty:ty: $add:ident;)*) => {$(
        impl Atomic for $ty {
            #[inline(always)]
            unsafe fn atomic_add(place: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's.
                unsafe { $add(place, value) }
            }
        }
    )*};
}

atomics! {
    u32: simt_atomic_add_u32;
    u64: simt_atomic_add_u64;
    f32: simt_atomic_add_f32;
    f64: simt_atomic_add_f64;
}

impl Atomic for i32 {
    #[inline(always)]
    unsafe fn atomic_add(place: *mut Self, value: Self) -> Self {
        // SAFETY: the caller's. In two's complement both additions are the same.
        unsafe { simt_atomic_add_u32(place.cast(), value as u32) as i32 }
    }
}
