//! What memory may hold.

/// A type whose every bit pattern is a value, so that memory nobody has written can be read as it.
///
/// # Safety
/// 1. Every pattern of its bytes is a valid value, and it has no padding.
/// 2. It is aligned to at most sixteen bytes.
pub unsafe trait Element: Copy + 'static {}

macro_rules! elements {
    ($($ty:ty)*) => {$(
        // SAFETY: a plain number.
        unsafe impl Element for $ty {}
    )*};
}

elements! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

// SAFETY: an array holds nothing but its elements.
unsafe impl<T: Element, const N: usize> Element for [T; N] {}

/// An element that threads may add to without losing each other's additions.
pub trait Atomic: Element {
    /// Adds `value` to what is at `place` and gives what it was before.
    ///
    /// # Safety
    /// `place` is valid and aligned, and accessed by nothing but atomic additions meanwhile.
    #[doc(hidden)]
    unsafe fn atomic_add(place: *mut Self, value: Self) -> Self;
}

/// A value of 32 bits, which lanes of a warp may hand to each other.
pub trait Shuffle: Copy {
    /// Its bits.
    #[doc(hidden)]
    fn into_bits(self) -> u32;
    /// The value of these bits.
    #[doc(hidden)]
    fn from_bits(bits: u32) -> Self;
}

macro_rules! words {
    ($($ty:ty: |$value:ident| $into:expr, |$bits:ident| $from:expr;)*) => {$(
        impl Shuffle for $ty {
            #[inline(always)]
            fn into_bits(self) -> u32 {
                let $value = self;
                $into
            }

            #[inline(always)]
            fn from_bits($bits: u32) -> Self {
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
