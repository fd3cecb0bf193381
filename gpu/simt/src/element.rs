//! Element types of memory.

use crate::Fp8;

/// A type whose every bit pattern is a value, so that unwritten memory can be read as it.
///
/// # Safety
/// 1. Every pattern of its bytes is a valid value, and it has no padding.
/// 2. It is aligned to at most sixteen bytes.
/// 3. The types that it [takes](Self::takes) have its size and its alignment.
pub unsafe trait Element: Copy + 'static {
    /// Whether TMA rounds it to tf32 when it copies boxes.
    #[doc(hidden)]
    const IS_TF32: bool = false;

    /// Whether a kernel's parameter with these elements accepts elements of that type.
    #[cfg(not(target_arch = "nvptx64"))]
    #[doc(hidden)]
    fn takes(given: core::any::TypeId) -> bool {
        let own = core::any::TypeId::of::<Self>();
        // A kernel that only moves elements of 16 bits has u16 for all of them, one of 8 bits u8.
        let is_byte = given == core::any::TypeId::of::<i8>() || Fp8::takes(given);
        given == own
            || own == core::any::TypeId::of::<u16>() && Half::takes(given)
            || own == core::any::TypeId::of::<u8>() && is_byte
    }
}

// SAFETY: sixteen bits; every pattern is a number of either type.
unsafe impl Element for Half {
    #[cfg(not(target_arch = "nvptx64"))]
    fn takes(given: core::any::TypeId) -> bool {
        given == core::any::TypeId::of::<Self>() || Half::chooses(given)
    }
}

// SAFETY: eight bits; every pattern is a number of either type.
unsafe impl Element for Fp8 {
    #[cfg(not(target_arch = "nvptx64"))]
    fn takes(given: core::any::TypeId) -> bool {
        given == core::any::TypeId::of::<Self>() || Fp8::chooses(given)
    }
}

// SAFETY: an array consists of its elements.
unsafe impl<T: Element, const N: usize> Element for [T; N] {}

/// 16 bytes of elements as four words. The first elements are in the lowest bits of the first word.
#[inline(always)]
pub fn to_words<T: Element, const N: usize>(elements: [T; N]) -> [u32; 4] {
    const { assert!(N * size_of::<T>() == 16, "four words are sixteen bytes") };
    // SAFETY: equal sizes, an element has no padding, and a `u32` may hold any bits.
    unsafe { core::mem::transmute_copy(&elements) }
}

/// The elements of four words: the inverse of [`to_words`].
#[inline(always)]
pub fn from_words<T: Element, const N: usize>(words: [u32; 4]) -> [T; N] {
    const { assert!(N * size_of::<T>() == 16, "four words are sixteen bytes") };
    // SAFETY: equal sizes, and every pattern of an element's bytes is a value.
    unsafe { core::mem::transmute_copy(&words) }
}

/// A bfloat16 number, the upper half of an `f32`: 8 bits of exponent, 7 of fraction.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Bf16(u16);

/// An IEEE binary16 number: 5 bits of exponent, 10 of fraction.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct F16(u16);

/// A [`Bf16`] or an [`F16`], by the kernel's constant `half` (`bf16` or `f16`): one source and one
/// PTX text serve matrices of either. A launch sets the constant from its arguments.
///
/// On the CPU it has a value only in a kernel.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Half(u16);

impl Half {
    /// The constant that chooses.
    #[doc(hidden)]
    pub const CONSTANT: &'static str = "half";
}

/// The impls of a number that compares as the `f32` that it is.
macro_rules! widened {
    ($ty:ty) => {
        impl From<$ty> for f32 {
            #[inline(always)]
            fn from(value: $ty) -> f32 {
                value.to_f32()
            }
        }

        impl From<$ty> for f64 {
            #[inline(always)]
            fn from(value: $ty) -> f64 {
                value.to_f32().into()
            }
        }

        // Compares numbers, not bits: both zeros are equal, and NaN differs from itself.
        impl PartialEq for $ty {
            #[inline(always)]
            fn eq(&self, other: &$ty) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $ty {
            #[inline(always)]
            fn partial_cmp(&self, other: &$ty) -> Option<core::cmp::Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }
    };
}
pub(crate) use widened;

macro_rules! halves {
    ($($ty:ident: $to_instruction:expr, $from_instruction:literal, $from_two:literal, $software:ty;)*) => {$(
        // SAFETY: sixteen bits; every pattern is a number.
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe impl bytemuck::Zeroable for $ty {}
        // SAFETY: as above.
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe impl bytemuck::Pod for $ty {}

        impl $ty {
            /// The number with these bits.
            #[inline(always)]
            pub const fn from_bits(bits: u16) -> Self {
                $ty(bits)
            }

            /// Its bits.
            #[inline(always)]
            pub const fn to_bits(self) -> u16 {
                self.0
            }

            /// Rounds to the nearest number, ties to even.
            #[inline(always)]
            pub fn from_f32(value: f32) -> Self {
                #[cfg(target_arch = "nvptx64")]
                {
                    let bits: u16;
                    // SAFETY: arithmetic.
                    unsafe {
                        core::arch::asm!(concat!($from_instruction, " {}, {};"), out(reg16) bits,
                            in(reg32) value, options(pure, nomem, nostack, preserves_flags));
                    }
                    $ty(bits)
                }
                #[cfg(not(target_arch = "nvptx64"))]
                $ty(<$software>::from_f32(value))
            }

            /// [`from_f32`](Self::from_f32) of two numbers by one instruction. It is four times as
            /// fast as two conversions, which ptxas executes on the unit for square roots (`F2F`).
            #[inline(always)]
            pub fn from_two_f32([first, second]: [f32; 2]) -> [Self; 2] {
                #[cfg(target_arch = "nvptx64")]
                {
                    let word: u32;
                    // SAFETY: arithmetic.
                    unsafe {
                        core::arch::asm!(concat!($from_two, " {}, {}, {};"), out(reg32) word,
                            in(reg32) second, in(reg32) first,
                            options(pure, nomem, nostack, preserves_flags));
                    }
                    [$ty(word as u16), $ty((word >> 16) as u16)]
                }
                #[cfg(not(target_arch = "nvptx64"))]
                [Self::from_f32(first), Self::from_f32(second)]
            }

            /// The same number as an `f32`.
            #[inline(always)]
            pub fn to_f32(self) -> f32 {
                #[cfg(target_arch = "nvptx64")]
                {
                    let value: f32;
                    // SAFETY: arithmetic.
                    unsafe {
                        core::arch::asm!($to_instruction, wide = out(reg32) value, value = in(reg16) self.0,
                            options(pure, nomem, nostack, preserves_flags));
                    }
                    value
                }
                #[cfg(not(target_arch = "nvptx64"))]
                <$software>::to_f32(self.0)
            }
        }

        widened! { $ty }
    )*};
}

/// A [`Half`] as an f32.
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90a"))]
macro_rules! half_to_f32 {
    () => {
        "cvt.f32/* simt.constant half */.bf16 {wide}, {value};"
    };
}

/// Before Hopper there is no such instruction for bf16. So both conversions are made, in registers
/// with the names of the types, and the constant selects one.
#[cfg(all(target_arch = "nvptx64", not(target_feature = "sm_90a")))]
macro_rules! half_to_f32 {
    () => {
        concat!(
            "{{ .reg .b16 zero; .reg .f32 bf16, f16; mov.b16 zero, 0; mov.b32 bf16, {{zero, {value}}}; ",
            "cvt.f32.f16 f16, {value}; mov.f32 {wide}, /* simt.constant half */ bf16; }}"
        )
    };
}

halves! {
    // The conversion instruction from bf16 needs Hopper; a bf16 as the upper half of a word works
    // everywhere.
    Bf16: "{{ .reg .b16 zero; mov.b16 zero, 0; mov.b32 {wide}, {{zero, {value}}}; }}", "cvt.rn.bf16.f32", "cvt.rn.bf16x2.f32", software::Bf16;
    F16: "cvt.f32.f16 {wide}, {value};", "cvt.rn.f16.f32", "cvt.rn.f16x2.f32", software::F16;
    Half: half_to_f32!(), "cvt.rn/* simt.constant half */.bf16.f32", "cvt.rn/* simt.constant half */.bf16x2.f32", software::Half;
}

/// The conversions for processors without instructions for them.
#[cfg(not(target_arch = "nvptx64"))]
mod software {
    use crate::halves;

    pub(super) enum Bf16 {}
    pub(super) enum F16 {}
    pub(super) enum Half {}

    macro_rules! formats {
        ($($ty:ident: $from_f32:path, $to_f32:path;)*) => {$(
            impl $ty {
                pub(super) fn from_f32(value: f32) -> u16 {
                    $from_f32(value)
                }

                #[inline(always)]
                pub(super) fn to_f32(bits: u16) -> f32 {
                    $to_f32(bits)
                }
            }
        )*};
    }

    formats! {
        Bf16: halves::bf16_from_f32, halves::bf16_to_f32;
        F16: halves::f16_from_f32, halves::f16_to_f32;
    }

    impl Half {
        pub(super) fn from_f32(value: f32) -> u16 {
            match crate::cpu::is_f16() {
                true => F16::from_f32(value),
                false => Bf16::from_f32(value),
            }
        }

        #[inline(always)]
        pub(super) fn to_f32(bits: u16) -> f32 {
            match crate::cpu::is_f16() {
                true => F16::to_f32(bits),
                false => Bf16::to_f32(bits),
            }
        }
    }
}

/// An `f32` as the tensor cores multiply it: 8 bits of exponent, and the upper 10 bits of the
/// fraction. They ignore the 13 bits below, so a number that has not been rounded is truncated.
///
/// Matrices hold `f32`. TMA rounds a box that it copies as `Tf32`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Tf32(u32);

// SAFETY: the bits of an `f32`; every pattern is a number.
unsafe impl Element for Tf32 {
    const IS_TF32: bool = true;

    #[cfg(not(target_arch = "nvptx64"))]
    fn takes(given: core::any::TypeId) -> bool {
        [core::any::TypeId::of::<f32>(), core::any::TypeId::of::<Self>()].contains(&given)
    }
}

// SAFETY: as above.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl bytemuck::Zeroable for Tf32 {}
// SAFETY: as above.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl bytemuck::Pod for Tf32 {}

impl Tf32 {
    /// The bits below the last bit of a tf32.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) const BELOW: u32 = (1 << 13) - 1;

    /// The number with these bits.
    #[inline(always)]
    pub const fn from_bits(bits: u32) -> Self {
        Tf32(bits)
    }

    /// Its bits.
    #[inline(always)]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Rounds to the nearest number, ties away from zero.
    #[inline(always)]
    pub fn from_f32(value: f32) -> Self {
        #[cfg(target_arch = "nvptx64")]
        {
            let bits: u32;
            // SAFETY: arithmetic.
            unsafe {
                core::arch::asm!("cvt.rna.tf32.f32 {}, {};", out(reg32) bits, in(reg32) value,
                    options(pure, nomem, nostack, preserves_flags));
            }
            Tf32(bits)
        }
        #[cfg(not(target_arch = "nvptx64"))]
        match value.is_nan() {
            true => Tf32(0x7fff_ffff),
            // Half of the last bit is added. A carry out of the fraction increments the exponent;
            // from the greatest exponent it gives infinity.
            false => Tf32((value.to_bits() + (1 << 12)) & !Tf32::BELOW),
        }
    }

    /// The number as an `f32`, without the bits that the tensor cores ignore.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        f32::from_bits(self.0 & !Tf32::BELOW)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl From<Tf32> for f64 {
    #[inline(always)]
    fn from(value: Tf32) -> f64 {
        value.to_f32().into()
    }
}

/// A value that the lanes of a warp can shuffle: of 32 bits by one shuffle, of 64 bits by two.
pub trait Shuffle: Copy {
    /// The value with each of its words, the lower one first, replaced by `each(word)`.
    #[doc(hidden)]
    fn map_words(self, each: impl FnMut(u32) -> u32) -> Self;
}

macro_rules! words {
    ($($ty:ty: |$value:ident| $into:expr, |$bits:ident| $from:expr;)*) => {$(
        impl Shuffle for $ty {
            #[inline(always)]
            fn map_words(self, mut each: impl FnMut(u32) -> u32) -> Self {
                let $value = self;
                let $bits = each($into);
                $from
            }
        }
    )*};
}

macro_rules! pairs_of_words {
    ($($ty:ty: |$value:ident| $into:expr, |$bits:ident| $from:expr;)*) => {$(
        impl Shuffle for $ty {
            #[inline(always)]
            fn map_words(self, mut each: impl FnMut(u32) -> u32) -> Self {
                let $value = self;
                let bits: u64 = $into;
                let (low, high) = (each(bits as u32), each((bits >> 32) as u32));
                let $bits = u64::from(low) | u64::from(high) << 32;
                $from
            }
        }
    )*};
}

words! {
    u32: |v| v, |bits| bits;
    i32: |v| v as u32, |bits| bits as i32;
    f32: |v| v.to_bits(), |bits| f32::from_bits(bits);
}

pairs_of_words! {
    u64: |v| v, |bits| bits;
    i64: |v| v as u64, |bits| bits as i64;
    f64: |v| v.to_bits(), |bits| f64::from_bits(bits);
}
