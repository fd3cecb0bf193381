//! Element types of files, and their conversion to f32 and f64.

use std::fmt;

use half::{bf16, f16, slice::HalfFloatSliceExt};

use crate::buffer::Pod;

/// The element type of a file: IEEE's binary16, binary32 or binary64, or bfloat16. A wider type is
/// greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dtype {
    /// NumPy's `float16`.
    F2,
    /// `bfloat16` of the package `ml_dtypes`: the upper half of a `float32`. To NumPy it is two raw
    /// bytes.
    Bf16,
    /// NumPy's `float32`.
    F4,
    /// NumPy's `float64`.
    F8,
}

impl Dtype {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Dtype::F2 | Dtype::Bf16 => 2,
            Dtype::F4 => 4,
            Dtype::F8 => 8,
        }
    }

    /// NumPy's code, without a byte order.
    pub(super) fn code(self) -> &'static str {
        match self {
            Dtype::F2 => "f2",
            Dtype::Bf16 => "V2",
            Dtype::F4 => "f4",
            Dtype::F8 => "f8",
        }
    }
}

/// The name on the command line: `f2`, `bf16`, `f4`, `f8`.
impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(if *self == Dtype::Bf16 { "bf16" } else { self.code() })
    }
}

/// A type that files are read to and written from: f32 or f64.
pub trait Element: Pod + Default + Into<f64> {
    /// The same type in a file.
    const DTYPE: Dtype;
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
    const DTYPE: Dtype = Dtype::F4;
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
    const DTYPE: Dtype = Dtype::F8;
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
pub(super) fn decode<T: Element>(dtype: Dtype, big_endian: bool, bytes: &[u8], values: &mut [T]) {
    debug_assert_eq!(bytes.len(), values.len() * dtype.bytes());
    match dtype {
        Dtype::F2 => {
            let (mut halves, mut singles) = ([f16::ZERO; 64], [0.0; 64]);
            for (bytes, values) in bytes.chunks(128).zip(values.chunks_mut(64)) {
                let count = values.len();
                for (half, bytes) in halves.iter_mut().zip(bytes.as_chunks().0) {
                    *half = if big_endian {
                        f16::from_be_bytes(*bytes)
                    } else {
                        f16::from_le_bytes(*bytes)
                    };
                }
                halves[..count].convert_to_f32_slice(&mut singles[..count]);
                for (value, single) in values.iter_mut().zip(singles) {
                    *value = T::from_f32(single);
                }
            }
        }
        Dtype::Bf16 => {
            let number = if big_endian { bf16::from_be_bytes } else { bf16::from_le_bytes };
            for (value, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
                *value = T::from_f32(number(*bytes).to_f32());
            }
        }
        Dtype::F4 => {
            let number = if big_endian { f32::from_be_bytes } else { f32::from_le_bytes };
            for (value, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
                *value = T::from_f32(number(*bytes));
            }
        }
        Dtype::F8 => {
            let number = if big_endian { f64::from_be_bytes } else { f64::from_le_bytes };
            for (value, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
                *value = T::from_f64(number(*bytes));
            }
        }
    }
}

/// Converts numbers to bytes of a type, little-endian, rounded to nearest. Returns the number of
/// finite values that became infinite.
pub(super) fn encode<T: Element>(dtype: Dtype, values: &[T], bytes: &mut [u8]) -> u64 {
    debug_assert_eq!(bytes.len(), values.len() * dtype.bytes());
    let mut overflows = 0;
    let lost = |value: T, infinite: bool| u64::from(infinite && value.into().is_finite());
    match dtype {
        Dtype::F2 => {
            for (value, bytes) in values.iter().zip(bytes.as_chunks_mut().0) {
                let half = value.to_f16();
                overflows += lost(*value, half.is_infinite());
                *bytes = half.to_le_bytes();
            }
        }
        Dtype::Bf16 => {
            for (value, bytes) in values.iter().zip(bytes.as_chunks_mut().0) {
                let half = value.to_bf16();
                overflows += lost(*value, half.is_infinite());
                *bytes = half.to_le_bytes();
            }
        }
        Dtype::F4 => {
            for (value, bytes) in values.iter().zip(bytes.as_chunks_mut().0) {
                let single = value.to_f32();
                overflows += lost(*value, single.is_infinite());
                *bytes = single.to_le_bytes();
            }
        }
        Dtype::F8 => {
            for (value, bytes) in values.iter().zip(bytes.as_chunks_mut().0) {
                let double: f64 = (*value).into();
                *bytes = double.to_le_bytes();
            }
        }
    }
    overflows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_comes_back() {
        let halves = (0..=u16::MAX).map(f16::from_bits).filter(|half| !half.is_nan());
        let values = halves.map(f32::from).collect::<Vec<_>>();
        let mut bytes = vec![0; 2 * values.len()];
        assert_eq!(encode(Dtype::F2, &values, &mut bytes), 0);
        let mut back = vec![0f64; values.len()];
        decode(Dtype::F2, false, &bytes, &mut back);
        assert!(values.iter().zip(&back).all(|(&a, &b)| f64::from(a) == b));
        bytes.as_chunks_mut().0.iter_mut().for_each(|pair: &mut [u8; 2]| pair.reverse());
        decode(Dtype::F2, true, &bytes, &mut back);
        assert!(values.iter().zip(&back).all(|(&a, &b)| f64::from(a) == b));
    }

    #[test]
    fn every_bfloat16_comes_back() {
        let halves = (0..=u16::MAX).map(bf16::from_bits).filter(|half| !half.is_nan());
        let values = halves.map(f32::from).collect::<Vec<_>>();
        let mut bytes = vec![0; 2 * values.len()];
        assert_eq!(encode(Dtype::Bf16, &values, &mut bytes), 0);
        let mut back = vec![0f64; values.len()];
        decode(Dtype::Bf16, false, &bytes, &mut back);
        assert!(values.iter().zip(&back).all(|(&a, &b)| f64::from(a) == b));
        bytes.as_chunks_mut().0.iter_mut().for_each(|pair: &mut [u8; 2]| pair.reverse());
        decode(Dtype::Bf16, true, &bytes, &mut back);
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
        assert_eq!(encode(Dtype::F2, &values, &mut [0; 12]), 2);
        assert_eq!(
            encode(Dtype::Bf16, &[3.4e38, f32::MIN, 3.38e38, f32::INFINITY], &mut [0; 8]),
            2
        );
        assert_eq!(encode(Dtype::F4, &[1e300, 1.0, f64::INFINITY], &mut [0; 12]), 1);
    }
}
