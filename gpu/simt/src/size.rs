//! Sizes in the rules about lengths, `#[kernel(len(a = m * k))]`.

use std::ops::{Add, Div, Mul, Sub};

/// A saturating size. A size that overflows, or is negative, is larger than any buffer.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub struct Size(pub(crate) i128);

macro_rules! sizes {
    ($($ty:ty)*) => {$(
        impl From<$ty> for Size {
            #[allow(unused_comparisons, reason = "some of these types have no negative values")]
            fn from(value: $ty) -> Size {
                Size(if value < 0 { i128::MAX } else { value as i128 })
            }
        }
    )*};
}

sizes! { i32 u32 i64 u64 usize }

macro_rules! operators {
    ($($trait:ident $name:ident $saturating:ident;)*) => {$(
        impl $trait for Size {
            type Output = Size;

            fn $name(self, other: Size) -> Size {
                match (self, other) {
                    // Once out of range, always out of range.
                    (Size(i128::MAX), _) | (_, Size(i128::MAX)) => Size(i128::MAX),
                    (Size(a), Size(b)) => Size(a.$saturating(b)),
                }
            }
        }

        operators! { @with $trait $name i32 usize }
    )*};
    (@with $trait:ident $name:ident $($ty:ty)*) => {$(
        // Literals are i32, constants of a kernel usually usize.
        impl $trait<$ty> for Size {
            type Output = Size;

            fn $name(self, other: $ty) -> Size {
                $trait::$name(self, Size::from(other))
            }
        }

        impl $trait<Size> for $ty {
            type Output = Size;

            fn $name(self, other: Size) -> Size {
                $trait::$name(Size::from(self), other)
            }
        }
    )*};
}

/// A quotient. Division by zero is out of range.
trait Quotient {
    fn quotient(self, other: Self) -> Self;
}

impl Quotient for i128 {
    fn quotient(self, other: i128) -> i128 {
        self.checked_div(other).unwrap_or(i128::MAX)
    }
}

operators! {
    Add add saturating_add;
    Sub sub saturating_sub;
    Mul mul saturating_mul;
    Div div quotient;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_saturate() {
        let [m, k] = [3u32, 5].map(Size::from);
        assert_eq!((m - 1) * k + 2, Size(12));
        assert_eq!(2 * m * 7usize, Size(42));
        assert_eq!((Size::from(0u32) - 1) * k, Size(-5));
        let huge = Size::from(u64::MAX);
        assert_eq!(huge * huge * huge, Size(i128::MAX));
        assert_eq!(Size::from(-1i32) * Size::from(-4i32), Size(i128::MAX));
        assert_eq!(m / 0, Size(i128::MAX));
    }
}
