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
