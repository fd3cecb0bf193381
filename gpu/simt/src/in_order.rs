//! Arithmetic in program order: the compiler neither moves it nor computes parts of it elsewhere.

/// [`fma`](crate::float::fma) in program order. On a GPU the order decides which registers an
/// instruction finds in the operand cache, and the number of live values.
#[inline(always)]
pub fn fma_in_order(a: f32, b: f32, c: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let sum;
        // SAFETY: arithmetic. Not `pure`, which keeps the order.
        unsafe {
            core::arch::asm!("fma.rn.f32 {}, {}, {}, {};", out(reg32) sum, in(reg32) a,
                in(reg32) b, in(reg32) c, options(nomem, nostack, preserves_flags));
        }
        sum
    }
    #[cfg(not(target_arch = "nvptx64"))]
    a.mul_add(b, c)
}

/// `a + b`, wrapping. It keeps the compiler from computing loop-invariant parts of a sum before the
/// loop, where they would occupy registers.
#[inline(always)]
pub fn add_in_order(a: usize, b: usize) -> usize {
    #[cfg(target_arch = "nvptx64")]
    {
        let sum;
        // SAFETY: arithmetic. Not `pure`, which keeps the order.
        unsafe {
            core::arch::asm!("add.s64 {}, {}, {};", out(reg64) sum, in(reg64) a, in(reg64) b,
                options(nomem, nostack, preserves_flags));
        }
        sum
    }
    #[cfg(not(target_arch = "nvptx64"))]
    a.wrapping_add(b)
}
