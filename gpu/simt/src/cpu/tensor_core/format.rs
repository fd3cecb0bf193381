//! The numbers that operands consist of.

use crate::{E4m3, E5m2, Tf32, halves, types::NumberFormat};

/// An operand's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// IEEE's 16 bits: 5 of exponent, 10 of fraction.
    F16,
    /// The upper half of an `f32`: 8 bits of exponent, 7 of fraction.
    Bf16,
    /// An `f32` of whose fraction only the upper 10 bits are read.
    Tf32,
    /// Integers from -128 to 127.
    S8,
    /// 8 bits: 4 of exponent, 3 of fraction.
    E4m3,
    /// 8 bits: 5 of exponent, 2 of fraction.
    E5m2,
}

impl Format {
    /// The numbers: what the table of types says of them.
    pub const fn numbers(self) -> NumberFormat {
        match self {
            Format::F16 => NumberFormat::F16,
            Format::Bf16 => NumberFormat::BF16,
            Format::Tf32 => NumberFormat::TF32,
            Format::S8 => NumberFormat::signed(8),
            Format::E4m3 => NumberFormat::E4M3,
            Format::E5m2 => NumberFormat::E5M2,
        }
    }

    /// Bytes of an element in memory. A tf32 is in the upper bits of an `f32`.
    pub const fn bytes(self) -> u32 {
        self.numbers().bits().next_power_of_two() / 8
    }

    /// Elements along K that one step multiplies: 32 bytes of them.
    pub const fn step(self) -> usize {
        32 / self.bytes() as usize
    }

    /// The exponent of the least normal number, and of all subnormals.
    pub const fn least_exponent(self) -> i32 {
        self.numbers().least_exponent()
    }

    /// Bits after the point that Hopper's tensor cores keep of an addend.
    pub(super) const fn kept(self) -> u32 {
        match self {
            Format::E4m3 | Format::E5m2 => 13,
            _ => 25,
        }
    }

    /// Bits after the point that they keep of a sum.
    pub(super) const fn kept_of_sum(self) -> u32 {
        match self {
            Format::E4m3 | Format::E5m2 => 13,
            _ => 23,
        }
    }

    /// The number that the tensor core reads in these bits. A shorter format has the lowest ones.
    ///
    /// Of an `f32` it ignores what is below a tf32, which rounds toward zero. So a NaN that has
    /// nothing but low bits is read as an infinity.
    pub fn decode(self, bits: u32) -> f32 {
        match self {
            Format::F16 => halves::f16_to_f32(bits as u16),
            Format::Bf16 => halves::bf16_to_f32(bits as u16),
            Format::Tf32 => Tf32::from_bits(bits).to_f32(),
            Format::S8 => f32::from(bits as i8),
            Format::E4m3 => E4m3::from_bits(bits as u8).to_f32(),
            Format::E5m2 => E5m2::from_bits(bits as u8).to_f32(),
        }
    }

    /// The bits of the nearest number, as `cvt.rn` and for tf32 `cvt.rna` give it: of two that are
    /// equally near the even one, for tf32 that away from zero.
    pub fn encode(self, value: f32) -> u32 {
        match self {
            Format::F16 => halves::f16_from_f32(value).into(),
            Format::Bf16 => halves::bf16_from_f32(value).into(),
            Format::Tf32 => Tf32::from_f32(value).to_bits(),
            Format::S8 => u32::from(value.round_ties_even() as i8 as u8),
            Format::E4m3 => E4m3::from_f32(value).to_bits().into(),
            Format::E5m2 => E5m2::from_f32(value).to_bits().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number as its format's definition has it.
    fn value(bits: u32, exponent_bits: u32, fraction_bits: u32) -> f64 {
        let bias = (1 << (exponent_bits - 1)) - 1;
        let sign = if bits >> (exponent_bits + fraction_bits) == 1 { -1.0 } else { 1.0 };
        let exponent = (bits >> fraction_bits & ((1 << exponent_bits) - 1)) as i32;
        let fraction = f64::from(bits & ((1 << fraction_bits) - 1)) / f64::from(1 << fraction_bits);
        let magnitude = match exponent {
            0 => fraction * 2f64.powi(1 - bias),
            e if e == 2 * bias + 1 && fraction == 0.0 => f64::INFINITY,
            e if e == 2 * bias + 1 => f64::NAN,
            e => (1.0 + fraction) * 2f64.powi(e - bias),
        };
        sign * magnitude
    }

    #[test]
    fn every_number_of_16_bits_is_read_as_defined_and_comes_back() {
        for (format, exponent_bits, fraction_bits) in [(Format::F16, 5, 10), (Format::Bf16, 8, 7)] {
            for bits in 0..=0xffff {
                let expected = value(bits, exponent_bits, fraction_bits);
                let read = format.decode(bits);
                if expected.is_nan() {
                    assert!(read.is_nan());
                    assert!(format.decode(format.encode(read)).is_nan());
                } else {
                    let same = f64::from(read).to_bits() == expected.to_bits();
                    assert!(same, "{read}, not {expected}: {format:?} {bits:#x}");
                    assert_eq!(format.encode(read), bits, "{format:?}");
                }
            }
        }
    }

    #[test]
    fn every_integer_of_8_bits_is_read_and_comes_back() {
        for value in i8::MIN..=i8::MAX {
            let bits = u32::from(value as u8);
            assert_eq!(Format::S8.decode(bits), f32::from(value));
            assert_eq!(Format::S8.encode(f32::from(value)), bits);
        }
        assert_eq!((Format::S8.bytes(), Format::S8.step()), (1, 32));
    }

    #[test]
    fn tf32_is_read_toward_zero_and_written_to_the_nearest() {
        let ulp = 2f32.powi(-10);
        let numbers: [(f32, f32, f32); 11] = [
            (1.0, 1.0, 1.0),
            (1.0 + 0.49 * ulp, 1.0, 1.0),
            // Halfway: away from zero.
            (1.0 + 0.5 * ulp, 1.0, 1.0 + ulp),
            (-1.0 - 0.5 * ulp, -1.0, -1.0 - ulp),
            (1.0 + 0.99 * ulp, 1.0, 1.0 + ulp),
            (2.0 - 0.25 * ulp, 2.0 - ulp, 2.0),
            (f32::MAX, (2.0 - ulp) * 2f32.powi(127), f32::INFINITY),
            (f32::INFINITY, f32::INFINITY, f32::INFINITY),
            // Of a subnormal too, ten bits below 2^-126 are read.
            (2f32.powi(-136), 2f32.powi(-136), 2f32.powi(-136)),
            (2f32.powi(-137), 0.0, 2f32.powi(-136)),
            (-0.0, -0.0, -0.0),
        ];
        for (value, read, written) in numbers {
            let decoded = Format::Tf32.decode(value.to_bits());
            assert_eq!(decoded.to_bits(), read.to_bits(), "{value}");
            assert_eq!(Format::Tf32.encode(value), written.to_bits(), "{value}");
        }
        let nan = Format::Tf32.encode(-f32::NAN);
        assert_eq!(nan, 0x7fff_ffff);
        assert!(Format::Tf32.decode(nan).is_nan());
        assert_eq!(Format::Tf32.decode(0x7f80_0001), f32::INFINITY);
    }

    #[test]
    fn rounding_to_16_bits_is_to_the_nearest_even() {
        let ulp = 2f32.powi(-10);
        assert_eq!(Format::F16.encode(1.0 + 0.5 * ulp), 0x3c00);
        assert_eq!(Format::F16.encode(1.0 + 1.5 * ulp), 0x3c02);
        assert_eq!(Format::F16.encode(65_520.0), 0x7c00);
        assert_eq!(Format::F16.encode(2f32.powi(-25)), 0);
        assert_eq!(Format::F16.encode(1.5 * 2f32.powi(-25)), 1);
        let ulp = 2f32.powi(-7);
        assert_eq!(Format::Bf16.encode(1.0 + 0.5 * ulp), 0x3f80);
        assert_eq!(Format::Bf16.encode(1.0 + 1.5 * ulp), 0x3f82);
        assert_eq!(Format::Bf16.encode(f32::MAX), 0x7f80);
    }
}
