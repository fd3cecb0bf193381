//! Floating-point numbers of 8 bits, as the Open Compute Project defines them (*OCP 8-bit Floating
//! Point Specification*, 2023).
//!
//! ```text
//!           NumPy's name (ml_dtypes)   exponent   fraction   largest   least    infinities
//!   E4m3    float8_e4m3fn              4 bits     3 bits     448       2^-9     none
//!   E5m2    float8_e5m2                5 bits     2 bits     57344     2^-16    as IEEE's
//! ```
//!
//! Every E4m3 and E5m2 is an f32. The other way a number is rounded to the nearest, of two the even
//! one. What would be beyond the largest number is NaN in E4m3 and infinite in E5m2, as in PyTorch
//! and ml_dtypes. (PTX's `cvt.rn.satfinite` and cublasLt give the largest number instead.)

use crate::element::widened;

/// Bits after the point of an f32, and the bias of its exponent.
const F32: u32 = 23;
const F32_BIAS: u32 = 127;

/// All bits but the sign: NaN in either format. E5m2 has two more, and infinity below them.
const NAN: u32 = 0x7f;
const INFINITY_OF_E5M2: u32 = 0x7c;

/// An 8-bit number with 4 bits of exponent and 3 of fraction. It has no infinities.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct E4m3(u8);

/// An 8-bit number with 5 bits of exponent and 2 of fraction.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct E5m2(u8);

/// The bias of the exponent where the fraction has so many bits.
const fn bias(fraction: u32) -> u32 {
    (1 << (6 - fraction)) - 1
}

/// A power of two.
const fn two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + F32_BIAS as i32) as u32) << F32)
}

/// The number that these bits are, with `FRACTION` bits of fraction.
#[inline(always)]
fn widened<const FRACTION: u32>(bits: u8) -> f32 {
    let rebias = const { (F32_BIAS - bias(FRACTION)) << F32 };
    let least = const { two(1 - bias(FRACTION) as i32 - FRACTION as i32) };
    let (sign, magnitude) = (u32::from(bits & 0x80) << 24, u32::from(bits & 0x7f));
    let is_subnormal = magnitude >> FRACTION == 0;
    let value = if is_subnormal {
        // A multiple of the least number. (Never an f32 that is subnormal, as in `halves`.)
        (magnitude as f32 * least).to_bits()
    } else if FRACTION == 2 && magnitude == INFINITY_OF_E5M2 {
        f32::INFINITY.to_bits()
    } else if magnitude == NAN || FRACTION == 2 && magnitude > INFINITY_OF_E5M2 {
        f32::NAN.to_bits()
    } else {
        (magnitude << (F32 - FRACTION)) + rebias
    };
    f32::from_bits(sign | value)
}

/// The bits of the number nearest to `value`.
#[inline]
fn nearest<const FRACTION: u32>(value: f32) -> u8 {
    let below = const { F32 - FRACTION };
    let rebias = const { (F32_BIAS - bias(FRACTION)) << F32 };
    let normal = const { two(1 - bias(FRACTION) as i32).to_bits() };
    // Its last bit is that of a subnormal number: a sum with it is rounded there.
    let magic = const { two(1 - bias(FRACTION) as i32 - FRACTION as i32 + F32 as i32) };
    let sign = value.to_bits() >> 24 & 0x80;
    let magnitude = value.to_bits() & 0x7fff_ffff;
    let beyond = if FRACTION == 2 { INFINITY_OF_E5M2 } else { NAN };
    let rounded = if value.is_nan() {
        NAN
    } else if magnitude < normal {
        (f32::from_bits(magnitude) + magic).to_bits() - magic.to_bits()
    } else {
        // What is added carries into the last bit that stays, where the bits below are more than
        // half, or half and that bit is odd.
        let is_odd = magnitude >> below & 1;
        ((magnitude - rebias + (1 << (below - 1)) - 1 + is_odd) >> below).min(beyond)
    };
    (sign | rounded) as u8
}

macro_rules! float8 {
    ($($ty:ident: $fraction:literal;)*) => {$(
        // SAFETY: eight bits; every pattern is a number.
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe impl bytemuck::Zeroable for $ty {}
        // SAFETY: as above.
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe impl bytemuck::Pod for $ty {}

        impl $ty {
            /// The number with these bits.
            #[inline(always)]
            pub const fn from_bits(bits: u8) -> Self {
                $ty(bits)
            }

            /// Its bits.
            #[inline(always)]
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// Rounds to the nearest number, ties to even. Beyond the largest number it is
            /// infinite, or NaN where there are no infinities.
            #[inline]
            pub fn from_f32(value: f32) -> Self {
                $ty(nearest::<$fraction>(value))
            }

            /// The same number as an `f32`.
            #[inline(always)]
            pub fn to_f32(self) -> f32 {
                widened::<$fraction>(self.0)
            }
        }

        widened! { $ty }
    )*};
}

float8! {
    E4m3: 3;
    E5m2: 2;
}

/// An [`E4m3`] or an [`E5m2`], by the kernel's constant `fp8` (`e4m3` or `e5m2`): one source and
/// one PTX text serve matrices of either. A launch sets the constant from its arguments.
///
/// On the CPU it has a value only in a kernel.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Fp8(u8);

impl Fp8 {
    /// The constant that chooses.
    #[doc(hidden)]
    pub const CONSTANT: &'static str = "fp8";

    /// Rounds as the type does that the constant says.
    #[inline]
    pub fn from_f32(value: f32) -> Self {
        let [e4m3, e5m2] = [E4m3::from_f32(value).0, E5m2::from_f32(value).0];
        Fp8(chosen(e4m3.into(), e5m2.into()) as u8)
    }

    /// The number as an `f32`.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        let [e4m3, e5m2] = [E4m3(self.0).to_f32(), E5m2(self.0).to_f32()];
        f32::from_bits(chosen(e4m3.to_bits(), e5m2.to_bits()))
    }
}

/// The word for the type that the constant says.
#[inline(always)]
fn chosen(e4m3: u32, e5m2: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let word: u32;
        // SAFETY: arithmetic.
        unsafe {
            core::arch::asm!(
                "{{ .reg .b32 e4m3, e5m2; mov.b32 e4m3, {e4m3}; mov.b32 e5m2, {e5m2};",
                "mov.b32 {word}, /* simt.constant fp8 */ e4m3; }}",
                word = out(reg32) word,
                e4m3 = in(reg32) e4m3,
                e5m2 = in(reg32) e5m2,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        word
    }
    #[cfg(not(target_arch = "nvptx64"))]
    if crate::cpu::is_e5m2() { e5m2 } else { e4m3 }
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;
    use crate::types::NumberFormat;

    /// Conversions from bits and from an f32, and the definition of the format.
    type Conversions = (NumberFormat, fn(u8) -> f32, fn(f32) -> u8, fn(u8) -> f64);

    const FORMATS: [Conversions; 2] = [
        (NumberFormat::E4M3, |b| E4m3(b).to_f32(), |x| E4m3::from_f32(x).0, |b| defined(b, 4)),
        (NumberFormat::E5M2, |b| E5m2(b).to_f32(), |x| E5m2::from_f32(x).0, |b| defined(b, 5)),
    ];

    /// The number as the specification's tables say it, by the fields.
    fn defined(bits: u8, exponent_bits: i32) -> f64 {
        let fraction_bits = 7 - exponent_bits;
        let (exponent, fraction) =
            (i32::from(bits & 0x7f) >> fraction_bits, i32::from(bits) & ((1 << fraction_bits) - 1));
        let bias = (1 << (exponent_bits - 1)) - 1;
        let part = f64::from(fraction) / f64::from(1 << fraction_bits);
        let magnitude = match (exponent_bits, exponent, fraction) {
            (4, 15, 7) | (5, 31, 1..) => f64::NAN,
            (5, 31, 0) => f64::INFINITY,
            (_, 0, _) => part * 2f64.powi(1 - bias),
            _ => (1.0 + part) * 2f64.powi(exponent - bias),
        };
        if bits >= 0x80 { -magnitude } else { magnitude }
    }

    #[test]
    fn all_256_numbers_are_those_of_the_specification_and_come_back() {
        for (format, read, write, defined) in FORMATS {
            for bits in 0..=u8::MAX {
                let (value, want) = (read(bits), defined(bits));
                if want.is_nan() {
                    assert!(value.is_nan(), "{format:?} {bits:#x}");
                    assert_eq!(write(value), 0x7f | bits & 0x80);
                    continue;
                }
                assert_eq!(f64::from(value).to_bits(), want.to_bits(), "{format:?} {bits:#x}");
                assert_eq!(write(value), bits, "{format:?} {value}");
                assert_eq!(format.nearest(want), want);
            }
        }
        let read = |bits: [u8; 4]| bits.map(|bits| E4m3(bits).to_f32());
        assert_eq!(read([0x7e, 0x01, 0x08, 0xb8]), [448.0, two(-9), two(-6), -1.0]);
        let read = |bits: [u8; 4]| bits.map(|bits| E5m2(bits).to_f32());
        assert_eq!(read([0x7b, 0x01, 0x04, 0xbc]), [57344.0, two(-16), two(-14), -1.0]);
    }

    /// Around every number and every middle of two neighbours, by a search among all.
    #[test]
    fn numbers_are_rounded_to_the_nearest_even_one() {
        for (format, read, write, defined) in FORMATS {
            let (largest, beyond) = (format.largest(), write(f32::MAX));
            let above = (u8::MAX / 2).min(beyond);
            let mut count = 0;
            for bits in 0..above {
                let next = if bits + 1 == above {
                    // Where the next number would be.
                    2.0 * defined(bits) - defined(bits - 1)
                } else {
                    defined(bits + 1)
                };
                let middle = (0.5 * (defined(bits) + next)) as f32;
                let even = if bits % 2 == 0 { bits } else { bits + 1 };
                let wants = [bits, even, bits + 1];
                for (value, want) in
                    [middle.next_down(), middle, middle.next_up()].into_iter().zip(wants)
                {
                    assert_eq!(write(value), want, "{format:?} {value}");
                    assert_eq!(write(-value), want | 0x80, "{format:?} {value}");
                    let (wide, nearest) = (f64::from(read(want)), format.nearest(value.into()));
                    assert!(wide == nearest || wide.is_nan() && nearest.is_nan(), "{value}");
                    count += 1;
                }
            }
            assert_eq!(count, 3 * usize::from(above));
            assert_eq!(defined(above - 1), largest);
            for value in [f32::MAX, f32::INFINITY, 2.0 * largest as f32] {
                assert_eq!([write(value), write(-value)], [beyond, beyond | 0x80]);
            }
        }
        assert_eq!([E4m3::from_f32(464.0).0, E4m3::from_f32(465.0).0], [0x7e, 0x7f]);
        assert_eq!([E5m2::from_f32(61_439.0).0, E5m2::from_f32(61_440.0).0], [0x7b, 0x7c]);
    }
}
