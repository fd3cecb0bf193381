//! Elements of other libraries' memory.

use crate::buffer::Pod;
#[cfg(feature = "cudarc")]
use crate::simt::{Bf16, F16};

/// An element of another library's memory, and this library's type with the same bytes.
pub trait ForeignElement: sealed::Sealed {
    /// The type here.
    type Element: Pod;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! foreign_elements {
    ($($foreign:ty => $own:ty;)*) => {$(
        impl sealed::Sealed for $foreign {}

        impl ForeignElement for $foreign {
            type Element = $own;
        }
    )*};
}

/// Every type of the table is itself.
macro_rules! own_elements {
    ({} $($row:ident: $ty:ty = $name:literal $kind:ident $bits:tt
        $code:literal $numpy:literal $dlpack:literal $tma:literal $cublas:literal
        $(, $sum:ty => $c:tt)*;)+) => {
        foreign_elements! { $($ty => $ty;)+ }
    };
}

simt::element_types! { [own_elements] {} }

#[cfg(feature = "cudarc")]
foreign_elements! {
    half::bf16 => Bf16;
    half::f16 => F16;
}
