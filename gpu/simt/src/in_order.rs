//! Arithmetic that stays where it stands: the compiler neither moves it nor computes parts of it elsewhere.

/// [`fma`](crate::float::fma) that stays where it stands: the compiler keeps the order of all of them. On a GPU the order decides which
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

/// `a + b`, wrapping. Of a sum of sums, what is the same in each round of a loop, the compiler would compute before the loop and keep
/// in registers.
#[inline(always)]
pub fn add_in_order(a: usize, b: usize) -> usize {
    #[cfg(target_arch = "nvptx64")]
    {
        let sum;
        // SAFETY: arithmetic. Not `pure`, for the sake of the order.
        unsafe {
            core::arch::asm!("add.s64 {}, {}, {};", out(reg64) sum, in(reg64) a, in(reg64) b,
                options(nomem, nostack, preserves_flags));
        }
        sum
    }
    #[cfg(not(target_arch = "nvptx64"))]
    a.wrapping_add(b)
}
