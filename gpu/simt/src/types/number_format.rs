//! Which number an element's bits are.

/// Which number the bits of an element are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberFormat {
    /// Integers from 0 on.
    Unsigned {
        /// All bits.
        bits: u32,
    },
    /// Integers in two's complement.
    Signed {
        /// All bits.
        bits: u32,
    },
    /// IEEE 754's: a sign, an exponent and a fraction.
    Float {
        /// Bits of the exponent.
        exponent: u32,
        /// Bits of the fraction, without the hidden one.
        fraction: u32,
    },
    /// A sign, an exponent and a fraction without infinities: all bits but the sign are NaN, and
    /// the numbers next to it finite.
    FloatWithoutInfinity {
        /// Bits of the exponent.
        exponent: u32,
        /// Bits of the fraction, without the hidden one.
        fraction: u32,
    },
}

impl NumberFormat {
    /// OCP's E4M3.
    pub const E4M3: NumberFormat = NumberFormat::float8(4, 3);
    /// OCP's E5M2.
    pub const E5M2: NumberFormat = NumberFormat::float8(5, 2);
    /// f16: IEEE's binary16.
    pub const F16: NumberFormat = NumberFormat::float(5, 10);
    /// bf16: the upper half of an f32.
    pub const BF16: NumberFormat = NumberFormat::float(8, 7);
    /// tf32: an f32 with the upper 10 bits of its fraction. No type is stored so.
    pub const TF32: NumberFormat = NumberFormat::float(8, 10);
    /// IEEE's binary32.
    pub const F32: NumberFormat = NumberFormat::float(8, 23);
    /// IEEE's binary64.
    pub const F64: NumberFormat = NumberFormat::float(11, 52);

    #[doc(hidden)]
    pub const fn unsigned(bits: u32) -> Self {
        NumberFormat::Unsigned { bits }
    }

    #[doc(hidden)]
    pub const fn signed(bits: u32) -> Self {
        NumberFormat::Signed { bits }
    }

    #[doc(hidden)]
    pub const fn float(exponent: u32, fraction: u32) -> Self {
        NumberFormat::Float { exponent, fraction }
    }

    #[doc(hidden)]
    pub const fn float8(exponent: u32, fraction: u32) -> Self {
        match exponent {
            4 => NumberFormat::FloatWithoutInfinity { exponent, fraction },
            _ => NumberFormat::float(exponent, fraction),
        }
    }

    /// Bits of the exponent and of the fraction of floating-point numbers.
    const fn float_bits(self) -> Option<(u32, u32)> {
        match self {
            NumberFormat::Float { exponent, fraction }
            | NumberFormat::FloatWithoutInfinity { exponent, fraction } => {
                Some((exponent, fraction))
            }
            _ => None,
        }
    }

    /// The bits of a number.
    pub const fn bits(self) -> u32 {
        match self {
            NumberFormat::Unsigned { bits } | NumberFormat::Signed { bits } => bits,
            NumberFormat::Float { exponent, fraction }
            | NumberFormat::FloatWithoutInfinity { exponent, fraction } => 1 + exponent + fraction,
        }
    }

    /// Bits of the largest integer up to which all are numbers of this format.
    pub const fn digits(self) -> u32 {
        match self {
            NumberFormat::Unsigned { bits } => bits,
            NumberFormat::Signed { bits } => bits - 1,
            NumberFormat::Float { fraction, .. }
            | NumberFormat::FloatWithoutInfinity { fraction, .. } => fraction + 1,
        }
    }

    /// Whether they are floating-point numbers.
    pub const fn is_float(self) -> bool {
        self.float_bits().is_some()
    }

    /// Whether they are floating-point numbers of 16 bits or more: those of
    /// [`with_float_types!`](crate::with_float_types).
    pub const fn is_wide_float(self) -> bool {
        self.is_float() && self.bits() > 8
    }

    /// The exponent of the least normal number, and of all subnormal ones. That of integers is 0.
    pub const fn least_exponent(self) -> i32 {
        match self.float_bits() {
            Some((exponent, _)) => 2 - (1 << (exponent - 1)),
            None => 0,
        }
    }

    /// The exponent of the largest number.
    pub const fn largest_exponent(self) -> i32 {
        match self {
            NumberFormat::Float { exponent, .. } => (1 << (exponent - 1)) - 1,
            NumberFormat::FloatWithoutInfinity { exponent, .. } => 1 << (exponent - 1),
            _ => self.digits() as i32 - 1,
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl NumberFormat {
    /// The unit roundoff. Integers are not rounded.
    pub fn roundoff(self) -> f64 {
        match self.float_bits() {
            Some((_, fraction)) => power_of_two(-(fraction as i32) - 1),
            None => 0.0,
        }
    }

    /// The smallest positive number. Of integers none is lost below it: 0.
    pub fn tiny(self) -> f64 {
        match self.float_bits() {
            Some((_, fraction)) => power_of_two(self.least_exponent() - fraction as i32),
            None => 0.0,
        }
    }

    /// The largest finite number. Of 64-bit integers the next above it.
    pub fn largest(self) -> f64 {
        // All ones are NaN where there are no infinities: the largest number has a zero at the end.
        let last = matches!(self, NumberFormat::FloatWithoutInfinity { .. }) as u32;
        let digits = self.digits() - last;
        let all_ones = if digits > 53 { 2.0 } else { 2.0 - power_of_two(1 - digits as i32) };
        all_ones * power_of_two(self.largest_exponent())
    }

    /// The nearest number. Ties go to the even one. Beyond the largest number it is infinity, or
    /// NaN where there is none; for integers the largest or the smallest.
    pub fn nearest(self, value: f64) -> f64 {
        match self {
            NumberFormat::F64 => value,
            NumberFormat::F32 => (value as f32).into(),
            NumberFormat::Float { fraction, .. }
            | NumberFormat::FloatWithoutInfinity { fraction, .. } => {
                // Multiples of the last digit's weight. It is the same for all subnormal numbers.
                let exponent = (value.to_bits() >> 52 & 0x7ff) as i32 - 1023;
                let (least, above) = (self.least_exponent(), self.largest_exponent() + 1);
                let last = power_of_two(exponent.clamp(least, above) - fraction as i32);
                let nearest = (value / last).round_ties_even() * last;
                match nearest.abs() > self.largest() {
                    true if matches!(self, NumberFormat::FloatWithoutInfinity { .. }) => f64::NAN,
                    true => f64::INFINITY.copysign(value),
                    false => nearest,
                }
            }
            NumberFormat::Unsigned { .. } => value.round_ties_even().clamp(0.0, self.largest()),
            NumberFormat::Signed { .. } => {
                let largest = self.largest();
                value.round_ties_even().clamp(-largest - 1.0, largest)
            }
        }
    }

    /// An integer as it is stored: modulo 2^bits. Of another type the number itself.
    pub fn wrapped(self, value: f64) -> f64 {
        match self {
            NumberFormat::Signed { bits } => {
                let all = power_of_two(bits as i32);
                (value + all / 2.0).rem_euclid(all) - all / 2.0
            }
            _ => value,
        }
    }
}

/// 2 to a power from -1074 to 1023.
#[cfg(not(target_arch = "nvptx64"))]
fn power_of_two(power: i32) -> f64 {
    f64::from_bits(match power {
        -1074..-1022 => 1 << (power + 1074),
        _ => ((power + 1023) as u64) << 52,
    })
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_around_and_nothing_else() {
        let format = NumberFormat::signed(32);
        let half = 2f64.powi(31);
        let cases = [(half - 1.0, half - 1.0), (half, -half), (-half - 1.0, half - 1.0)];
        for (value, wrapped) in cases {
            assert_eq!(format.wrapped(value), wrapped);
        }
        assert_eq!(format.wrapped(5.0 * 2f64.powi(33) - 7.0), -7.0);
        assert_eq!(NumberFormat::F32.wrapped(half * 4.0), half * 4.0);
    }

    #[test]
    fn the_facts_are_those_of_the_formats() {
        let facts = |numbers: NumberFormat| [numbers.roundoff(), numbers.tiny(), numbers.largest()];
        let power = |power| 2f64.powi(power);
        assert_eq!(facts(NumberFormat::F16), [power(-11), power(-24), 65504.0]);
        let largest = f32::from_bits(0x7f7f_0000).into();
        assert_eq!(facts(NumberFormat::BF16), [power(-8), power(-133), largest]);
        let largest = f32::from_bits(0x7f7f_e000).into();
        assert_eq!(facts(NumberFormat::TF32), [power(-11), power(-136), largest]);
        let tiny = f32::from_bits(1).into();
        assert_eq!(facts(NumberFormat::F32), [power(-24), tiny, f32::MAX.into()]);
        assert_eq!(facts(NumberFormat::F64), [power(-53), f64::from_bits(1), f64::MAX]);
        assert_eq!(facts(NumberFormat::E4M3), [power(-4), power(-9), 448.0]);
        assert_eq!(facts(NumberFormat::E5M2), [power(-3), power(-16), 57344.0]);
        assert_eq!(facts(NumberFormat::signed(8)), [0.0, 0.0, 127.0]);
        assert_eq!(facts(NumberFormat::unsigned(16)), [0.0, 0.0, 65535.0]);
        assert_eq!(facts(NumberFormat::signed(64)), [0.0, 0.0, power(63)]);
        assert_eq!(
            [NumberFormat::F16, NumberFormat::F64].map(NumberFormat::least_exponent),
            [-14, -1022]
        );
    }

    #[test]
    fn integers_end_at_their_limits() {
        let near =
            [-200.0, -128.4, -0.5, 0.5, 1.5, 300.0].map(|x| NumberFormat::signed(8).nearest(x));
        assert_eq!(near, [-128.0, -128.0, 0.0, 0.0, 2.0, 127.0]);
        assert_eq!(
            [-1.0, 254.6, 256.0].map(|x| NumberFormat::unsigned(8).nearest(x)),
            [0.0, 255.0, 255.0]
        );
    }
}
