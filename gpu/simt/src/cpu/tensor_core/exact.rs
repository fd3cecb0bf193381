//! A sum of products, rounded once.
//!
//! A product of two operands has at most 22 significant bits, so it is exact in `f64`, at all
//! exponents. Their sum mostly is too; where it is not, it is kept in several `f64`s (Shewchuk,
//! "Adaptive Precision Floating-Point Arithmetic", 1997).

use super::operand::{Block, LANES};

/// `d` and the products of a row of A with columns of B.
#[inline(always)]
pub(super) fn add<const K: usize>(a: &[f32; K], b: &Block<K>, d: [f32; LANES]) -> [f32; LANES] {
    let mut sums = [0.0; LANES];
    for lane in 0..LANES {
        sums[lane] = f64::from(d[lane]);
    }
    let mut errors = [0.0; LANES];
    for k in 0..K {
        for lane in 0..LANES {
            let (sum, error) = two_sum(sums[lane], f64::from(a[k]) * f64::from(b[k][lane]));
            sums[lane] = sum;
            errors[lane] += error.abs();
        }
    }
    let mut result = [0.0; LANES];
    for lane in 0..LANES {
        result[lane] = sums[lane] as f32;
    }
    for lane in 0..LANES {
        // NaN is not equal to 0 either.
        if errors[lane] != 0.0 {
            let products = a.iter().zip(b).map(|(&a, b)| f64::from(a) * f64::from(b[lane]));
            result[lane] = add_in_parts(products, d[lane]);
        }
    }
    result
}

/// The sum as rounded, and what that left out. Exact, for no sum here comes near the ends of
/// `f64`'s range.
#[inline(always)]
fn two_sum(x: f64, y: f64) -> (f64, f64) {
    let sum = x + y;
    let y_in_sum = sum - x;
    (sum, (x - (sum - y_in_sum)) + (y - y_in_sum))
}

#[cold]
fn add_in_parts(products: impl Iterator<Item = f64> + Clone, d: f32) -> f32 {
    let rough = products.clone().fold(f64::from(d), |sum, product| sum + product);
    if !rough.is_finite() {
        return rough as f32;
    }
    // The sum is that of the parts, of which no two have a bit of the same weight, the least first.
    let mut parts: Vec<f64> = Vec::new();
    for mut term in products.chain([f64::from(d)]) {
        parts.retain_mut(|part| {
            let (sum, rest) = two_sum(term, *part);
            term = sum;
            *part = rest;
            rest != 0.0
        });
        parts.push(term);
    }
    let mut sum = 0.0;
    while let Some(part) = parts.pop() {
        let rest;
        (sum, rest) = two_sum(sum, part);
        if rest != 0.0 {
            sum = to_odd(sum, rest);
            break; // What is left is less than the rest.
        }
    }
    sum as f32
}

/// `sum + rest` rounded to odd: where it is not exact, to that neighbour whose last bit is set. As
/// 53 bits are two more than 24 at the least, it can be rounded again, to `f32`, as if it had not
/// been rounded (Boldo and Melquiond, 2008).
fn to_odd(sum: f64, rest: f64) -> f64 {
    if sum.to_bits() & 1 == 1 {
        sum
    } else if rest > 0.0 {
        sum.next_up()
    } else {
        sum.next_down()
    }
}
