//! Element types of files, and their conversion to f32 and f64.

use half::{bf16, f16, slice::HalfFloatSliceExt};
use simt::{
    Bf16, F16,
    types::{Type, Typed},
    with_float_types,
};

use crate::buffer::Pod;

/// The name on the command line: NumPy's code without a byte order, or `bf16`, for which NumPy has
/// none.
pub fn name(of: Type) -> &'static str {
    match of.numpy_code() {
        code if code.starts_with('V') => of.name(),
        code => code,
    }
}

/// The types of files: floating-point numbers of 16 bits and more.
pub fn types() -> impl Iterator<Item = Type> {
    Type::multiplied().filter(|of| of.format().is_wide_float())
}

/// The type to compute with, which holds all elements of these types: f64 if one of them is f64,
/// otherwise f32.
pub fn computed(types: impl IntoIterator<Item = Type>) -> Type {
    types.into_iter().fold(Type::F32, |most, of| if of.bytes() > most.bytes() { of } else { most })
}

/// A type that files are read to and written from: f32 or f64.
pub trait Element: Pod + Typed + Default + Into<f64> {
    /// The nearest number. Ties go to even, and numbers that are too large to infinity.
    fn from_f64(value: f64) -> Self;
    /// The same number.
    fn from_f32(value: f32) -> Self;
    /// The nearest f32.
    fn to_f32(self) -> f32;
    /// The nearest f16, rounded once.
    fn to_f16(self) -> f16;
    /// The nearest bfloat16, rounded once.
    fn to_bf16(self) -> bf16;
}

impl Element for f32 {
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    fn from_f32(value: f32) -> Self {
        value
    }
    fn to_f32(self) -> f32 {
        self
    }
    fn to_f16(self) -> f16 {
        f16::from_f32(self)
    }
    fn to_bf16(self) -> bf16 {
        bf16::from_f32(self)
    }
}

impl Element for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
    fn from_f32(value: f32) -> Self {
        value.into()
    }
    fn to_f32(self) -> f32 {
        self as f32
    }
    fn to_f16(self) -> f16 {
        f16::from_f32(to_odd(self))
    }
    fn to_bf16(self) -> bf16 {
        bf16::from_f32(to_odd(self))
    }
}

/// `value` as f32, to be rounded to 16 bits next. Two roundings to nearest can differ from one. So
/// this one rounds to odd: an inexact result has its last bit set, and the next rounding is
/// correct.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || !nearest.is_finite() || nearest == 0.0 {
        nearest
    } else {
        let toward_zero = match f64::from(nearest).abs() > value.abs() {
            true => f32::from_bits(nearest.to_bits() - 1),
            false => nearest,
        };
        f32::from_bits(toward_zero.to_bits() | 1)
    }
}

/// Converts the bytes of a file to numbers. Nothing is rounded: the caller reads 64-bit elements as
/// f64 only.
pub(super) fn decode<T: Element>(of: Type, big_endian: bool, bytes: &[u8], values: &mut [T]) {
    debug_assert_eq!(bytes.len(), values.len() * of.bytes());
    with_float_types!((of, of), |E, C| E::decode(big_endian, bytes, values))
        .expect("a type of files");
}

/// Converts numbers to bytes of a type, little-endian, rounded to nearest. Returns the number of
/// finite values that became infinite.
pub(super) fn encode<T: Element>(of: Type, values: &[T], bytes: &mut [u8]) -> u64 {
    debug_assert_eq!(bytes.len(), values.len() * of.bytes());
    with_float_types!((of, of), |E, C| E::encode(values, bytes)).expect("a type of files")
}

/// A type of elements in files.
trait InFile: Sized {
    /// Bytes as numbers.
    fn decode<T: Element>(big_endian: bool, bytes: &[u8], values: &mut [T]);

    /// Numbers as bytes, little-endian. Returns the number of finite values that became infinite.
    fn encode<T: Element>(values: &[T], bytes: &mut [u8]) -> u64;
}

/// A type whose elements are converted one by one: from bytes, to the type that is read, and from
/// the type that is written.
macro_rules! in_file {
    ($($of:ty as $number:ident: |$wide:ident| $read:expr, |$value:ident| $written:expr;)*) => {$(
        impl InFile for $of {
            fn decode<T: Element>(big_endian: bool, bytes: &[u8], values: &mut [T]) {
                let number = if big_endian { $number::from_be_bytes } else { $number::from_le_bytes };
                for (value, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
                    let $wide = number(*bytes);
                    *value = $read;
                }
            }

            fn encode<T: Element>(values: &[T], bytes: &mut [u8]) -> u64 {
                let mut overflows = 0;
                for (&$value, bytes) in values.iter().zip(bytes.as_chunks_mut().0) {
                    let number: $number = $written;
                    let wide: f64 = $value.into();
                    overflows += u64::from(number.is_infinite() && wide.is_finite());
                    *bytes = number.to_le_bytes();
                }
                overflows
            }
        }
    )*};
}

in_file! {
    Bf16 as bf16: |number| T::from_f32(number.to_f32()), |value| value.to_bf16();
    f32 as f32: |number| T::from_f32(number), |value| value.to_f32();
    f64 as f64: |number| T::from_f64(number), |value| value.into();
}

impl InFile for F16 {
    fn decode<T: Element>(big_endian: bool, bytes: &[u8], values: &mut [T]) {
        let (mut halves, mut singles) = ([f16::ZERO; 64], [0.0; 64]);
        let number = if big_endian { f16::from_be_bytes } else { f16::from_le_bytes };
        for (bytes, values) in bytes.chunks(128).zip(values.chunks_mut(64)) {
            let count = values.len();
            for (half, bytes) in halves.iter_mut().zip(bytes.as_chunks().0) {
                *half = number(*bytes);
            }
            halves[..count].convert_to_f32_slice(&mut singles[..count]);
            for (value, single) in values.iter_mut().zip(singles) {
                *value = T::from_f32(single);
            }
        }
    }

    fn encode<T: Element>(values: &[T], bytes: &mut [u8]) -> u64 {
        let mut overflows = 0;
        for (&value, bytes) in values.iter().zip(bytes.as_chunks_mut().0) {
            let (number, wide): (f16, f64) = (value.to_f16(), value.into());
            overflows += u64::from(number.is_infinite() && wide.is_finite());
            *bytes = number.to_le_bytes();
        }
        overflows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_comes_back() {
        all_come_back(Type::F16, |bits| f16::from_bits(bits).into());
    }

    #[test]
    fn every_bfloat16_comes_back() {
        all_come_back(Type::BF16, |bits| bf16::from_bits(bits).into());
    }

    fn all_come_back(dtype: Type, value: fn(u16) -> f32) {
        let values = (0..=u16::MAX).map(value).filter(|value| !value.is_nan()).collect::<Vec<_>>();
        let mut bytes = vec![0; 2 * values.len()];
        assert_eq!(encode(dtype, &values, &mut bytes), 0);
        let mut back = vec![0f64; values.len()];
        decode(dtype, false, &bytes, &mut back);
        assert!(values.iter().zip(&back).all(|(&a, &b)| f64::from(a) == b));
        bytes.as_chunks_mut().0.iter_mut().for_each(|pair: &mut [u8; 2]| pair.reverse());
        decode(dtype, true, &bytes, &mut back);
        assert!(values.iter().zip(&back).all(|(&a, &b)| f64::from(a) == b));
    }

    #[test]
    fn doubles_are_rounded_to_bfloat16_once() {
        // Just above and below the middle between two: by way of 32 bits each would become the
        // middle.
        let above = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
        assert_eq!(f64::from(above.to_bf16()), 1.0 + 2f64.powi(-7));
        let below = 1.0 + 3.0 * 2f64.powi(-8) - 2f64.powi(-40);
        assert_eq!(f64::from(below.to_bf16()), 1.0 + 2f64.powi(-7));
        assert_eq!((-above).to_bf16(), -above.to_bf16());
        assert_eq!((1.0 + 2f64.powi(-8)).to_bf16(), bf16::ONE);
        // Half of the smallest one and a little more.
        assert_eq!((2f64.powi(-134) + 2f64.powi(-170)).to_bf16(), bf16::from_bits(1));
        assert_eq!(2f64.powi(-134).to_bf16(), bf16::ZERO);
        assert_eq!(3.39e38.to_bf16(), bf16::MAX);
        assert!(3.4e38f32.to_bf16().is_infinite() && 1e300.to_bf16().is_infinite());
        assert!(f64::NAN.to_bf16().is_nan());
    }

    #[test]
    fn doubles_are_rounded_to_halves_once() {
        // Just above the middle between 1 and the next half: by way of 32 bits it would become the
        // middle, and then 1, the even one.
        let above = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(f64::from(above.to_f16()), 1.0 + 2f64.powi(-10));
        let below = 1.0 + 3.0 * 2f64.powi(-11) - 2f64.powi(-40);
        assert_eq!(f64::from(below.to_f16()), 1.0 + 2f64.powi(-10));
        assert_eq!((-above).to_f16(), -above.to_f16());
        // Half of the smallest half and a little more.
        assert_eq!((2f64.powi(-25) + 2f64.powi(-70)).to_f16(), f16::from_bits(1));
        assert_eq!(2f64.powi(-25).to_f16(), f16::ZERO);
        assert_eq!(1e-300.to_f16(), f16::ZERO);
        assert_eq!(65519.999.to_f16(), f16::MAX);
        assert!(65520.0.to_f16().is_infinite() && 1e300.to_f16().is_infinite());
        assert!(f64::NAN.to_f16().is_nan());
    }

    #[test]
    fn what_becomes_infinite_is_counted() {
        let values = [65504.0, 65520.0, -1e30, f32::INFINITY, f32::NAN, 0.0];
        assert_eq!(encode(Type::F16, &values, &mut [0; 12]), 2);
        assert_eq!(encode(Type::BF16, &[3.4e38, f32::MIN, 3.38e38, f32::INFINITY], &mut [0; 8]), 2);
        assert_eq!(encode(Type::F32, &[1e300, 1.0, f64::INFINITY], &mut [0; 12]), 1);
    }
}
