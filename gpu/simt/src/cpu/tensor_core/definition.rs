//! What a step computes, by its plain definition in integers: what the tests compare with.

use super::{format::Format, step::Accumulation};

/// An integer of 768 bits, of which the lowest weighs 2^-320. Digits have 16 bits, and room for
/// carries.
struct Wide([i64; 48]);

const LOWEST: i32 = -320;

impl Wide {
    /// Adds `integer` * 2^`exponent`.
    fn add(&mut self, integer: i128, exponent: i32) {
        let place = usize::try_from(exponent - LOWEST).unwrap();
        let mut rest = integer.unsigned_abs() << (place % 16);
        for digit in &mut self.0[place / 16..] {
            *digit += integer.signum() as i64 * (rest & 0xffff) as i64;
            rest >>= 16;
        }
        assert_eq!(rest, 0);
    }

    /// Whether it is negative, and the bits of its magnitude.
    fn bits(&self) -> (bool, Vec<bool>) {
        for sign in [1, -1] {
            let mut carry = 0;
            let mut bits = Vec::new();
            for digit in self.0 {
                carry += sign * digit;
                bits.extend((0..16).map(|bit| carry >> bit & 1 == 1));
                carry >>= 16;
            }
            if carry == 0 {
                return (sign == -1, bits);
            }
        }
        unreachable!("neither positive nor negative")
    }

    /// The nearest `f32`, the even one of two; or else the next one toward zero, infinity from
    /// 2^128 on.
    fn round(&self, to_nearest: bool) -> f32 {
        let (negative, bits) = self.bits();
        let Some(highest) = bits.iter().rposition(|&bit| bit) else {
            return 0.0;
        };
        let exponent = (highest as i32 + LOWEST).max(-126);
        let last = (exponent - 23 - LOWEST) as usize;
        let significant = bits[last..=highest.max(last)].iter().rev();
        let significand = significant.fold(0u32, |bits, &bit| bits << 1 | u32::from(bit));
        let more_than_half = bits[last - 1] && bits[..last - 1].contains(&true);
        let half = bits[last - 1] && !more_than_half;
        let up = to_nearest && (more_than_half || half && significand % 2 == 1);
        // One less than the exponent's field. The significand's highest bit adds it, but not a
        // subnormal's.
        let field = (exponent + 126) as u32;
        let magnitude = if exponent > 127 {
            f32::INFINITY.to_bits()
        } else {
            ((field << 23) + significand + u32::from(up)).min(f32::INFINITY.to_bits())
        };
        f32::from_bits(magnitude | u32::from(negative) << 31)
    }
}

/// A finite number in its format: `significand * 2^(exponent - fraction)`, the exponent as the
/// format has it.
struct Number {
    significand: i128,
    exponent: i32,
    fraction: i32,
}

impl Number {
    fn new(bits: u32, exponent_bits: u32, fraction_bits: u32) -> Self {
        let bias = (1 << (exponent_bits - 1)) - 1;
        let field = bits >> fraction_bits & ((1 << exponent_bits) - 1);
        let fraction = i128::from(bits & ((1 << fraction_bits) - 1));
        let (significand, exponent) = match field {
            0 => (fraction, 1 - bias),
            _ => ((1 << fraction_bits) + fraction, field as i32 - bias),
        };
        let negative = bits >> (exponent_bits + fraction_bits) == 1;
        let significand = if negative { -significand } else { significand };
        Number { significand, exponent, fraction: fraction_bits as i32 }
    }

    fn of(bits: u32, format: Format) -> Self {
        match format {
            Format::F16 => Number::new(bits, 5, 10),
            Format::Bf16 => Number::new(bits, 8, 7),
            Format::Tf32 => Number::new(bits >> 13, 8, 10),
            Format::E4m3 => Number::new(bits, 4, 3),
            Format::E5m2 => Number::new(bits, 5, 2),
            Format::S8 => unreachable!("no floating-point number"),
        }
    }
}

/// One element of D after a step of finite numbers: `a` is its row of A, `b` its column of B, in
/// their formats' bits.
pub(super) fn add(accumulation: Accumulation, format: Format, a: &[u32], b: &[u32], d: f32) -> f32 {
    let products = a.iter().zip(b).map(|(&a, &b)| {
        let (a, b) = (Number::of(a, format), Number::of(b, format));
        Number {
            significand: a.significand * b.significand,
            exponent: a.exponent + b.exponent,
            fraction: a.fraction + b.fraction,
        }
    });
    let old = Number::new(d.to_bits(), 8, 23);
    match accumulation {
        Accumulation::Fma => products.fold(d, |sum, product| {
            if sum.is_infinite() {
                sum
            } else {
                exact([Number::new(sum.to_bits(), 8, 23), product])
            }
        }),
        Accumulation::Exact => exact(products.chain([old])),
        Accumulation::Truncating => {
            let addends = products.chain([old]).collect::<Vec<_>>();
            let mut sum = Wide([0; 48]);
            let exponents = addends.iter().filter(|addend| addend.significand != 0);
            // D's zero has the exponent -133.
            let greatest = exponents.map(|addend| addend.exponent).max().unwrap_or(-133).max(-133);
            let is_8_bits = matches!(format, Format::E4m3 | Format::E5m2);
            let unit = greatest - if is_8_bits { 13 } else { 25 };
            for addend in addends {
                let below = unit - (addend.exponent - addend.fraction);
                // Division cuts off toward zero. No significand has 2^100.
                let units = match below {
                    ..0 => addend.significand << -below,
                    0..100 => addend.significand / (1 << below),
                    _ => 0,
                };
                sum.add(units, unit);
            }
            // A negative sum that is cut off to zero is a positive zero.
            let sum = sum.round(false) + 0.0;
            // Of 8-bit numbers the sum, too, has 13 bits after the point.
            if is_8_bits { f32::from_bits(sum.to_bits() >> 10 << 10) } else { sum }
        }
    }
}

fn exact(addends: impl IntoIterator<Item = Number>) -> f32 {
    let mut sum = Wide([0; 48]);
    for addend in addends {
        sum.add(addend.significand, addend.exponent - addend.fraction);
    }
    sum.round(true)
}
