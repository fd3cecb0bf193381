//! The fused multiply-add, and a maximum.

/// A type with a multiply-add in one instruction.
pub trait MultiplyAdd: Copy {
    /// `a * b + c`, rounded once. Integers wrap around.
    fn fma(a: Self, b: Self, c: Self) -> Self;

    /// The same in code that is compiled for any processor, where [`fma`](Self::fma) is a call.
    ///
    /// # Safety
    /// 1. The processor [has](has_fma) an instruction for it.
    #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
    #[doc(hidden)]
    unsafe fn fma_by_instruction(a: Self, b: Self, c: Self) -> Self {
        Self::fma(a, b, c)
    }
}

/// Whether this processor has an instruction for a fused multiply-add.
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
pub(crate) fn has_fma() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    true
}

macro_rules! floats {
    ($($ty:ty: $intrinsic:ident, $instruction:literal;)*) => {$(
        impl MultiplyAdd for $ty {
            #[inline(always)]
            fn fma(a: $ty, b: $ty, c: $ty) -> $ty {
                // `mul_add` is in `std`, which does not exist on the GPU.
                #[cfg(target_arch = "nvptx64")]
                return core::intrinsics::$intrinsic(a, b, c);
                #[cfg(not(target_arch = "nvptx64"))]
                return a.mul_add(b, c);
            }

            #[cfg(all(feature = "cpu", target_arch = "x86_64"))]
            #[inline(always)]
            unsafe fn fma_by_instruction(a: $ty, b: $ty, c: $ty) -> $ty {
                let mut sum = c;
                // SAFETY: arithmetic; the processor has it, as the caller says. It sets exception
                // flags of MXCSR, so flags are not said to be preserved.
                unsafe {
                    std::arch::asm!($instruction, inout(xmm_reg) sum, in(xmm_reg) a,
                        in(xmm_reg) b, options(pure, nomem, nostack));
                }
                sum
            }
        }
    )*};
}

floats! {
    f32: fmaf32, "vfmadd231ss {}, {}, {}";
    f64: fmaf64, "vfmadd231sd {}, {}, {}";
}

impl MultiplyAdd for i32 {
    #[inline(always)]
    fn fma(a: i32, b: i32, c: i32) -> i32 {
        a.wrapping_mul(b).wrapping_add(c)
    }
}

/// `a * b + c`, rounded once. Rust never fuses `a * b + c` by itself, so a kernel must call this.
#[inline(always)]
pub fn fma<T: MultiplyAdd>(a: T, b: T, c: T) -> T {
    T::fma(a, b, c)
}

/// x, or `least` if that is more. NaN stays NaN; `least` must be a number. Of two zeros the result
/// is 0, unless both are -0. On a GPU it is one instruction.
#[inline(always)]
pub fn at_least(x: f32, least: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let more;
        // SAFETY: arithmetic.
        unsafe {
            core::arch::asm!("max.NaN.f32 {}, {}, {};", out(reg32) more, in(reg32) x, in(reg32) least,
                options(pure, nomem, nostack, preserves_flags));
        }
        more
    }
    #[cfg(not(target_arch = "nvptx64"))]
    if x < least || (x == least && x.is_sign_negative()) { least } else { x }
}
