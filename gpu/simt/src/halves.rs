//! Numbers of 16 bits on the CPU: what `cvt` does between them and `f32`.
//!
//! The crate `half` has these too. But another crate of a program may ask for more of its features,
//! and then this package, and all kernels, would be compiled once more.

/// The bits of an `f32` without its sign.
const MAGNITUDE: u32 = 0x7fff_ffff;

/// The exponent and the fraction of an `f32` that is infinite.
const INFINITY: u32 = 0x7f80_0000;

/// The difference of the biases of their exponents, where an `f32` has its exponent.
const REBIAS: u32 = (127 - 15) << 23;

/// Bits of an f32's fraction that an f16 has not.
const F16_BELOW: u32 = 13;

/// The number that an f16 is. A NaN becomes a quiet one.
#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    let value = match magnitude {
        // A subnormal: so many times 2^-24. (Never an f32 that is subnormal, which some modes of a
        // CPU take for zero.)
        0..0x400 => (magnitude as f32 * (1.0 / 16_777_216.0)).to_bits(),
        0x400..0x7c00 => (magnitude << F16_BELOW) + REBIAS,
        0x7c00 => INFINITY,
        _ => INFINITY | 1 << 22 | magnitude << F16_BELOW,
    };
    f32::from_bits(sign | value)
}

/// The f16 nearest to a number, of two that are equally near the even one. A NaN becomes a quiet
/// one.
#[inline]
pub(crate) fn f16_from_f32(value: f32) -> u16 {
    /// The least `f32` that is rounded to infinity: in the middle between the greatest f16 and the
    /// next power of two.
    const TOO_GREAT: u32 = 65_520f32.to_bits();
    /// The least normal f16.
    const NORMAL: u32 = (1.0f32 / 16_384.0).to_bits();
    let sign = (value.to_bits() >> 16) & 0x8000;
    let magnitude = value.to_bits() & MAGNITUDE;
    let rounded = match magnitude {
        // The last bit of 0.5 is 2^-24, that of a subnormal f16: the sum is rounded there.
        0..NORMAL => (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5f32.to_bits(),
        // What is added carries into the last bit that stays, where the bits below are more than
        // half, or half and that bit is odd.
        NORMAL..TOO_GREAT => {
            let is_odd = magnitude >> F16_BELOW & 1;
            (magnitude - REBIAS + ((1 << (F16_BELOW - 1)) - 1) + is_odd) >> F16_BELOW
        }
        TOO_GREAT..=INFINITY => 0x7c00,
        _ => 0x7e00 | magnitude >> F16_BELOW & 0x3ff,
    };
    (sign | rounded) as u16
}

/// The number that a bf16 is. A NaN becomes a quiet one.
#[inline(always)]
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    let is_nan = bits & 0x7fff > 0x7f80;
    f32::from_bits(u32::from(bits | u16::from(is_nan) << 6) << 16)
}

/// The bf16 nearest to a number, of two that are equally near the even one. A NaN becomes a quiet
/// one.
#[inline]
pub(crate) fn bf16_from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 1 << 6;
    }
    // As in `f16_from_f32`. The carry of the greatest number gives infinity.
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_16_bits_is_widened_as_by_half() {
        for bits in 0..=u16::MAX {
            let of_f16 = half::f16::from_bits(bits).to_f32();
            assert_eq!(f16_to_f32(bits).to_bits(), of_f16.to_bits(), "f16 {bits:#x}");
            let of_bf16 = half::bf16::from_bits(bits).to_f32();
            assert_eq!(bf16_to_f32(bits).to_bits(), of_bf16.to_bits(), "bf16 {bits:#x}");
        }
    }

    /// Every upper half of an f32, with lower halves around what decides: nothing, the middles
    /// of either format, one below the next number.
    #[test]
    fn numbers_are_rounded_as_by_half() {
        const LOWER: [u32; 15] = [
            0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x2fff, 0x3000, 0x3001, 0x7fff, 0x8000,
            0x8001, 0xf000, 0xffff,
        ];
        for upper in 0..=0xffffu32 {
            for lower in LOWER {
                let value = f32::from_bits(upper << 16 | lower);
                let name = value.to_bits();
                let of_f16 = half::f16::from_f32(value).to_bits();
                assert_eq!(f16_from_f32(value), of_f16, "f16 of {name:#x}");
                let of_bf16 = half::bf16::from_f32(value).to_bits();
                assert_eq!(bf16_from_f32(value), of_bf16, "bf16 of {name:#x}");
            }
        }
    }

    #[test]
    fn numbers_between_subnormals_are_rounded_as_by_half() {
        // Quarters of the least subnormal f16, and what is next to them.
        for quarters in 0..=4 * 1024u32 {
            let exact = quarters as f32 * 2f32.powi(-26);
            for value in [exact.next_down(), exact, exact.next_up()] {
                let expected = half::f16::from_f32(value).to_bits();
                assert_eq!(f16_from_f32(value), expected, "{value:e}");
            }
        }
    }
}
