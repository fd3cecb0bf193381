//! Atomic additions.

use core::arch::asm;

use crate::Atomic;

macro_rules! atomics {
    ($($ty:ty: $instruction:literal, $class:ident;)*) => {$(
        impl Atomic for $ty {
            #[inline(always)]
            unsafe fn atomic_add(place: *mut Self, value: Self) -> Self {
                let old: $ty;
                // SAFETY: the caller's. Relaxed, and seen by the whole GPU.
                unsafe {
                    asm!(
                        concat!($instruction, " {old}, [{place}], {value};"),
                        old = out($class) old,
                        place = in(reg64) place,
                        value = in($class) value,
                        options(nostack, preserves_flags),
                    )
                };
                old
            }
        }
    )*};
}

atomics! {
    u32: "atom.relaxed.gpu.add.u32", reg32;
    i32: "atom.relaxed.gpu.add.s32", reg32;
    u64: "atom.relaxed.gpu.add.u64", reg64;
    f32: "atom.relaxed.gpu.add.f32", reg32;
    f64: "atom.relaxed.gpu.add.f64", reg64;
}
