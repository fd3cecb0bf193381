//! The fused multiply-add.

/// A type with a fused multiply-add.
pub trait Float: Copy {
    /// `a * b + c`, rounded once.
    fn fma(a: Self, b: Self, c: Self) -> Self;
}

macro_rules! floats {
    ($($ty:ty: $intrinsic:ident;)*) => {$(
        impl Float for $ty {
            #[inline(always)]
            fn fma(a: $ty, b: $ty, c: $ty) -> $ty {
                // `mul_add` is in `std`, which the GPU has not.
                #[cfg(target_arch = "nvptx64")]
                return core::intrinsics::$intrinsic(a, b, c);
                #[cfg(not(target_arch = "nvptx64"))]
                return a.mul_add(b, c);
            }
        }
    )*};
}

floats! {
    f32: fmaf32;
    f64: fmaf64;
}

/// `a * b + c`, rounded once. Rust never fuses `a * b + c` by itself, so a kernel says that it wants this.
#[inline(always)]
pub fn fma<T: Float>(a: T, b: T, c: T) -> T {
    T::fma(a, b, c)
}

/// [`fma`] that stays where it stands: the compiler keeps the order of all of them. On a GPU the order decides which
/// registers an instruction finds in the operand cache, and how many values live at a time.
#[inline(always)]
pub fn fma_in_order(a: f32, b: f32, c: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let sum;
        // SAFETY: arithmetic. Not `pure`, for the sake of the order.
        unsafe {
            core::arch::asm!("fma.rn.f32 {}, {}, {}, {};", out(reg32) sum, in(reg32) a,
                in(reg32) b, in(reg32) c, options(nomem, nostack, preserves_flags));
        }
        sum
    }
    #[cfg(not(target_arch = "nvptx64"))]
    a.mul_add(b, c)
}
