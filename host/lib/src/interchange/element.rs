//! Elements of other libraries' memory.

use crate::{
    buffer::Pod,
    simt::{Bf16, F16},
};

/// An element of another library's memory, and this library's type with the same bytes.
pub trait ForeignElement: sealed::Sealed {
    /// The type here.
    type Element: Pod;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($(#[$attribute:meta])* $foreign:ty => $own:ty;)*) => {$(
        $(#[$attribute])*
        impl sealed::Sealed for $foreign {}
        $(#[$attribute])*
        impl ForeignElement for $foreign {
            type Element = $own;
        }
    )*};
}

elements! {
    u8 => u8;
    i8 => i8;
    u16 => u16;
    i16 => i16;
    u32 => u32;
    i32 => i32;
    u64 => u64;
    i64 => i64;
    f32 => f32;
    f64 => f64;
    Bf16 => Bf16;
    F16 => F16;
    #[cfg(feature = "cudarc")]
    half::bf16 => Bf16;
    #[cfg(feature = "cudarc")]
    half::f16 => F16;
}
