//! The fused multiply-add, a maximum, the exponential function and the square root.

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

/// e to the power of x: at most 0.87 units in the last place off, of all f32. NaN stays NaN. From
/// 88.73 on it is infinite, and from -103.98 down zero.
///
/// It is made of additions and multiply-adds, so a GPU gives the bits of the CPU. The GPU's own
/// `ex2.approx`, which CUDA's `__expf` takes, is faster, and no CPU has its bits.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Beyond these ends the result is infinite or zero.
    let x = at_least(if x > 89.0 { 89.0 } else { x }, -104.0);
    // x = n ln 2 + q. Adding `ROUND` rounds n to an integer. The higher part of ln 2 has so few
    // bits that n times it is exact.
    const ROUND: f32 = 1.5 / f32::EPSILON;
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    let shifted = fma(x, core::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let q = fma(n, -LN_2[1], fma(n, -LN_2[0], x));
    // exp(q) = 1 + q + q^2 p: p is interpolated at Chebyshev's points.
    let p = [0.008363233, 0.041666552, 0.16666576, 0.5];
    let p = p.iter().fold(0.001392625, |sum, next| fma(sum, q, *next));
    // What the sum of 1 and q rounds off is added after it.
    let sum = 1.0 + q;
    let power = sum + fma(q * q, p, (1.0 - sum) + q);
    // Times 2^n, in two factors, since 2^n alone may be too small or too large for a number.
    let n = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let of = |n: i32| f32::from_bits(1.0f32.to_bits().wrapping_add((n as u32) << 23));
    power * of(n >> 1) * of(n.wrapping_sub(n >> 1))
}

/// The square root, rounded to the nearest f32. Of a negative number it is NaN.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let root;
        // SAFETY: arithmetic.
        unsafe {
            core::arch::asm!("sqrt.rn.f32 {}, {};", out(reg32) root, in(reg32) x,
                options(pure, nomem, nostack, preserves_flags));
        }
        root
    }
    #[cfg(not(target_arch = "nvptx64"))]
    x.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_less_than_a_unit_off() {
        let ulps = |x: f32| {
            let right = f64::from(x).exp();
            let exponent = (right.log2().floor() as i32).clamp(-126, 127);
            (f64::from(exp(x)) - right).abs() / 2f64.powi(exponent - 23)
        };
        // Each 1009th f32 between the ends.
        let all = (0..=u32::MAX).step_by(1009).map(f32::from_bits);
        let inside = all.filter(|x| (-103.9..88.7).contains(x));
        let worst = inside.map(ulps).fold(0.0, f64::max);
        assert!(worst <= 0.87, "{worst}");
        for (x, right) in [
            (0.0, 1.0),
            (-0.0, 1.0),
            (88.73, f32::INFINITY),
            (f32::INFINITY, f32::INFINITY),
            (-103.98, 0.0),
            (f32::NEG_INFINITY, 0.0),
        ] {
            assert_eq!(exp(x).to_bits(), f32::to_bits(right), "{x}");
        }
        assert!(exp(f32::NAN).is_nan() && exp(-f32::NAN).is_nan());
    }
}
