//! The rounding of sums in Hopper's tensor cores, as MMA-Sim found and as measured on an H100.
//!
//! Products are exact. They and D's element are aligned to the greatest exponent among them, and 25
//! bits after the point are kept of each; the rest is truncated toward zero. The sum of these is
//! exact, and is truncated to an `f32`. An exponent here is that of the format: a product of 1.5
//! and 1.5 has exponent 0, and a subnormal number has that of the least normal one.
//!
//! So a sum is mostly too near to zero, and these errors add up over the steps, while errors of
//! rounding to nearest would cancel.
//!
//! A zero in D has the exponent -133, which counts where all products are less; a zero in an
//! operand has none. A sum that is cut off to zero is a positive zero. Measured on an H100 80GB
//! HBM3 (driver 580.159.04, 2026-11-27): 64 x 64 elements each of `mma.sync` and `wgmma`, of bf16
//! and tf32, by k = 8 to 256, factors of nine ranges of exponents from -126 to 3, most sums
//! subnormal. This model has the bits of all of them; with -126, -132 or -134 in the place of -133
//! it had not.
//!
//! Of 8-bit floating-point numbers 13 bits are kept of each addend, and 13 of the sum. That is from
//! the literature (MMA-Sim, arXiv 2511.10909; arXiv 2512.07004 on the H100), and is **to be
//! measured on a GPU**: `tests/simt/tensor_cores/float8.rs` compares bits there.
//!
//! Not measured, because random tests do not produce them: that a sum of 2^128 or more is infinity,
//! and that every NaN is 0x7fffffff.

use super::{
    format::Format,
    operand::{Block, LANES},
};

/// Bits after the point that are kept of an addend, of formats of 16 bits and more. (24 on Ampere,
/// 23 on Volta.)
const KEPT: u32 = 25;

/// Bits after the point of an operand's significand, in every format; of an `f32`'s.
const OPERAND: u32 = 10;
const F32: u32 = 23;

/// Instead of the exponent of zero: no product with it is the greatest.
const ZERO: i32 = -1000;
/// The exponent of a zero in D: that of the least number of bf16.
const ZERO_IN_D: i32 = -133;
/// Instead of the exponent of infinities and NaN: every product with it, even zero's, is greater
/// than [`FINITE`].
const SPECIAL: i32 = 4000;
/// Above all exponents of numbers.
const FINITE: i32 = 1000;

/// The NaN that a step produces, for any sign and payload.
const NAN: f32 = f32::from_bits(0x7fff_ffff);

/// Elements of an operand, each `significand * 2^(exponent - OPERAND)`.
#[derive(Clone, Copy)]
struct Parts<const N: usize> {
    significands: [i32; N],
    exponents: [i32; N],
}

impl<const N: usize> Parts<N> {
    #[inline(always)]
    fn of(values: &[f32; N], format: Format) -> Self {
        let mut parts = Parts { significands: [0; N], exponents: [0; N] };
        for (i, value) in values.iter().enumerate() {
            let (magnitude, exponent) = split(*value);
            // What is subnormal in f16 is not in f32. No bit is lost, for it has none below the
            // format's last.
            let short = (format.least_exponent() - exponent).max(0);
            let magnitude = shift_right(magnitude >> (F32 - OPERAND), short);
            let exponent = if value.is_finite() { exponent + short } else { SPECIAL };
            parts.significands[i] = with_sign(magnitude, value.to_bits());
            parts.exponents[i] = if magnitude == 0 { ZERO } else { exponent };
        }
        parts
    }
}

/// The significand, with [`F32`] bits after the point, and the exponent of a finite number.
#[inline(always)]
fn split(value: f32) -> (u32, i32) {
    let bits = value.to_bits();
    let biased = bits >> F32 & 0xff;
    let fraction = bits & ((1 << F32) - 1);
    let hidden = if biased == 0 { 0 } else { 1 << F32 };
    (hidden | fraction, biased.max(1) as i32 - 127)
}

/// `d` and the products of two rows of A with columns of B.
#[inline(always)]
pub(super) fn add<const K: usize>(
    format: Format,
    rows: [&[f32; K]; 2],
    b: &Block<K>,
    mut d: [[f32; LANES]; 2],
) -> [[f32; LANES]; 2] {
    let row_parts = [Parts::of(rows[0], format), Parts::of(rows[1], format)];
    for lane in 0..LANES {
        let mut column = [0.0; K];
        for k in 0..K {
            column[k] = b[k][lane];
        }
        let column_parts = Parts::of(&column, format);
        for row in 0..2 {
            let d = &mut d[row][lane];
            *d = match finite(format, &row_parts[row], &column_parts, *d) {
                Some(sum) => sum,
                None => special(rows[row], &column, *d),
            };
        }
    }
    d
}

/// The sum of `d` and the products of a row of A with a column of B, if all are finite.
#[inline(always)]
fn finite<const K: usize>(format: Format, a: &Parts<K>, b: &Parts<K>, d: f32) -> Option<f32> {
    // Bits fewer than `KEPT`.
    let fewer = (KEPT - format.kept()) as i32;
    let (magnitude, exponent) = split(d);
    let mut greatest = match d.is_finite() {
        true if magnitude == 0 => ZERO_IN_D,
        true => exponent,
        false => SPECIAL,
    };
    for k in 0..K {
        greatest = greatest.max(a.exponents[k] + b.exponents[k]);
    }
    if greatest > FINITE {
        return None;
    }
    // Sixteen products of significands below 2 in either factor: no more than 2^31 - 2^21. (Of
    // 8-bit numbers there are 32, with 12 bits fewer.)
    let mut products = 0i32;
    for k in 0..K {
        let product = a.significands[k] * b.significands[k];
        let below = greatest - (a.exponents[k] + b.exponents[k]) + fewer;
        let kept = shift_right(product.unsigned_abs() << (KEPT - 2 * OPERAND), below);
        products += with_sign(kept, product as u32);
    }
    let kept = shift_right(magnitude << (KEPT - F32), greatest - exponent + fewer);
    let sum = i64::from(products) + i64::from(with_sign(kept, d.to_bits()));
    let unit = power_of_two(greatest - format.kept() as i32);
    // What is added makes a positive zero of a negative one.
    let sum = toward_zero(sum as f64 * unit) + 0.0;
    let cut_off = const { F32 - 13 } * u32::from(format.kept_of_sum() < F32);
    Some(f32::from_bits(sum.to_bits() >> cut_off << cut_off))
}

/// The same if not all are: an infinity, or NaN.
#[cold]
fn special<const K: usize>(a: &[f32; K], b: &[f32; K], d: f32) -> f32 {
    let products = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b));
    let sum = products.fold(f64::from(d), |sum, product| sum + product);
    if sum.is_nan() { NAN } else { sum as f32 }
}

#[inline(always)]
fn shift_right(bits: u32, by: i32) -> u32 {
    // Not negative; but only if the comparison says so, is this the one instruction that processors
    // have for it.
    if (by as u32) < 32 { bits >> by } else { 0 }
}

/// `magnitude`, negative if the highest bit of `sign` is set.
#[inline(always)]
fn with_sign(magnitude: u32, sign: u32) -> i32 {
    let negative = sign as i32 >> 31;
    (magnitude as i32 ^ negative) - negative
}

#[inline(always)]
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The `f32` next to `value` on the side of zero; an infinity from 2^128 on.
#[inline(always)]
fn toward_zero(value: f64) -> f32 {
    let nearest = value as f32;
    let too_far = f64::from(nearest.abs()) > value.abs() && value.abs() < power_of_two(128);
    f32::from_bits(nearest.to_bits() - u32::from(too_far))
}
