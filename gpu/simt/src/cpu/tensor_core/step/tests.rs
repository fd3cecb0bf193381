//! Steps against their definition, and at the places where it matters.

use std::array;

use super::{super::definition, *};
use crate::cpu::order::Random;

const FORMATS: [Format; 3] = [Format::F16, Format::Bf16, Format::Tf32];
const OF_8_BITS: [Format; 2] = [Format::E4m3, Format::E5m2];
const ACCUMULATIONS: [Accumulation; 3] =
    [Accumulation::Fma, Accumulation::Exact, Accumulation::Truncating];

/// What is drawn: numbers of a similar size, of all sizes, and next to the least.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Similar,
    Any,
    Least,
}

fn number(random: &mut Random, kind: Kind) -> f32 {
    let bits = random.next();
    let mantissa = 1.0 + (bits & 0xff_ffff) as f32 / 2f32.powi(24);
    let sign = if bits >> 24 & 1 == 1 { -1.0 } else { 1.0 };
    let small = (bits >> 32) as i32 & 7;
    match kind {
        _ if bits >> 60 == 0 => 0.0 * sign,
        Kind::Similar => sign * mantissa * 2f32.powi(small - 4),
        Kind::Any => sign * mantissa * 2f32.powi((bits >> 32) as i32 % 126),
        Kind::Least => sign * mantissa * 2f32.powi(-126) / (1 << (2 * small)) as f32,
    }
}

/// The bits of a finite number.
fn operand(random: &mut Random, format: Format, kind: Kind) -> u32 {
    loop {
        let bits = match kind {
            Kind::Similar => format.encode(number(random, kind)),
            // All sign, exponent and fraction bits, and what is below tf32, which is to be ignored.
            Kind::Any => random.next() as u32 >> (32 - 8 * format.bytes()),
            Kind::Least => {
                format.encode(number(random, kind) * 2f32.powi(126 + format.least_exponent()))
            }
        };
        if format.decode(bits).is_finite() {
            return bits;
        }
    }
}

/// A whole step, all elements of D as all threads compute them.
struct Case<const K: usize> {
    format: Format,
    a: Vec<[u32; K]>,
    /// Of every column.
    b: Vec<[u32; K]>,
    /// Row by row.
    d: Vec<f32>,
}

impl<const K: usize> Case<K> {
    fn random(random: &mut Random, format: Format, columns: usize, kinds: [Kind; 3]) -> Self {
        let [a, b, d] = kinds;
        let mut operands = |rows, kind| -> Vec<[u32; K]> {
            (0..rows).map(|_| array::from_fn(|_| operand(random, format, kind))).collect()
        };
        let (a, b) = (operands(ROWS, a), operands(columns, b));
        let d = (0..ROWS * columns).map(|_| number(random, d)).collect();
        Case { format, a, b, d }
    }

    fn run(&self, accumulation: Accumulation, portable: bool) -> Vec<f32> {
        let columns = self.b.len();
        let a: [[f32; K]; ROWS] =
            array::from_fn(|row| self.a[row].map(|bits| self.format.decode(bits)));
        let mut b = OperandB::new(columns);
        for (column, elements) in self.b.iter().enumerate() {
            for (k, &bits) in elements.iter().enumerate() {
                b.set(k, column, self.format.decode(bits));
            }
        }
        let step = Step { format: self.format, accumulation, a: &a, b: &b };
        let mut result = vec![f32::NAN; self.d.len()];
        for thread in 0..THREADS {
            let place = |i| {
                let (row, column) = fragment::accumulator(thread, i);
                row * columns + column
            };
            let mut d: Vec<f32> = (0..columns / 2).map(|i| self.d[place(i)]).collect();
            if portable {
                step.add(thread, &mut d);
            } else {
                step.multiply_accumulate(thread, &mut d);
            }
            for (i, d) in d.into_iter().enumerate() {
                result[place(i)] = d;
            }
        }
        result
    }

    fn check(&self, accumulation: Accumulation) {
        let (columns, format) = (self.b.len(), self.format);
        let result = self.run(accumulation, false);
        for row in 0..ROWS {
            for column in 0..columns {
                let (a, b) = (&self.a[row], &self.b[column]);
                let (d, result) = (self.d[row * columns + column], result[row * columns + column]);
                let expected = definition::add(accumulation, format, a, b, d);
                // The definition has no negative zero, nor has the tensor core's fixed point.
                let same = result.to_bits() == expected.to_bits()
                    || result == 0.0 && expected == 0.0 && accumulation != Accumulation::Truncating;
                assert!(
                    same,
                    "{result:e}, not {expected:e} {accumulation:?} {format:?} {a:x?} {b:x?} {d:e}"
                );
            }
        }
        let portable = self.run(accumulation, true);
        let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&portable), bits(&result));
    }
}

fn check_random<const K: usize>(format: Format, columns: usize, kinds: [Kind; 3]) {
    let mut case = Case::<K>::random(&mut Random(columns as u64), format, columns, kinds);
    for accumulation in ACCUMULATIONS {
        case.check(accumulation);
    }
    // Now D nearly cancels the products: what is left are bits that were nearly lost.
    case.d.fill(0.0);
    case.d = case.run(Accumulation::Exact, false).iter().map(|d| -d).collect();
    if case.d.iter().all(|d| d.is_finite()) {
        for accumulation in ACCUMULATIONS {
            case.check(accumulation);
        }
    }
}

#[test]
fn a_step_is_what_the_definition_says() {
    use Kind::{Any, Least, Similar};
    for format in FORMATS.into_iter().chain(OF_8_BITS) {
        // Of A, of B, and of D.
        for kinds in [
            [Similar, Similar, Similar],
            [Similar, Similar, Any],
            [Any, Any, Any],
            [Any, Similar, Similar],
            [Any, Least, Least],
            [Similar, Least, Least],
            [Least, Least, Similar],
            [Least, Least, Least],
        ] {
            match format.step() {
                16 => check_random::<16>(format, 16, kinds),
                32 => check_random::<32>(format, 16, kinds),
                _ => check_random::<8>(format, 16, kinds),
            }
        }
    }
}

#[test]
fn all_columns_are_computed() {
    for columns in [8, 24, 256] {
        let mut random = Random(1);
        let case = Case::<8>::random(&mut random, Format::Tf32, columns, [Kind::Similar; 3]);
        case.check(Accumulation::Fma);
        case.check(Accumulation::Truncating);
    }
}

/// The first element of D after a step from `d`, with these factors and else zeros.
fn element(format: Format, accumulation: Accumulation, factors: &[[f32; 2]], d: f32) -> f32 {
    match format.step() {
        16 => element_of::<16>(format, accumulation, factors, d),
        32 => element_of::<32>(format, accumulation, factors, d),
        _ => element_of::<8>(format, accumulation, factors, d),
    }
}

fn element_of<const K: usize>(
    format: Format,
    accumulation: Accumulation,
    factors: &[[f32; 2]],
    d: f32,
) -> f32 {
    let mut a = [[0.0; K]; ROWS];
    let mut b = OperandB::new(8);
    for (k, factors) in factors.iter().enumerate() {
        a[0][k] = factors[0];
        b.set(k, 0, factors[1]);
    }
    let mut part = [d, 0.0, 0.0, 0.0];
    Step { format, accumulation, a: &a, b: &b }.multiply_accumulate(0, &mut part);
    part[0]
}

fn two(exponent: i32) -> f32 {
    2f32.powi(exponent)
}

#[test]
fn hopper_keeps_25_bits_of_an_addend() {
    for format in FORMATS {
        for sign in [1.0, -1.0] {
            let truncating = |bits: i32, times: usize| {
                let factors = vec![[sign * two(-10), two(10 - bits)]; times];
                sign * element(format, Accumulation::Truncating, &factors, sign)
            };
            assert_eq!(truncating(25, 4), 1.0 + two(-23));
            // (Ampere keeps 24, and would have lost all four.)
            assert_eq!(truncating(26, 8), 1.0);
            // What an f32 cannot hold of the sum is cut off, too.
            assert_eq!(truncating(25, 3), 1.0);
            assert_eq!(truncating(25, 7), 1.0 + two(-23));
            let factors = vec![[sign * two(-10), two(-16)]; 8];
            let exact = element(format, Accumulation::Exact, &factors, sign);
            assert_eq!(sign * exact, 1.0 + two(-23));
        }
    }
}

#[test]
fn hopper_keeps_13_bits_of_8_bit_addends_and_of_their_sum() {
    for format in OF_8_BITS {
        for sign in [1.0, -1.0] {
            let truncating = |bits: i32, times: usize| {
                let factors = vec![[sign * two(-6), two(6 - bits)]; times];
                sign * element(format, Accumulation::Truncating, &factors, sign)
            };
            assert_eq!(truncating(13, 3), 1.0 + 3.0 * two(-13));
            assert_eq!(truncating(14, 32), 1.0);
            // Of a sum from 2 on 2^-13 is cut off, and an odd number of them with it.
            let factors = [[1.0, sign], [sign * two(-6), two(-7)]];
            assert_eq!(element(format, Accumulation::Truncating, &factors, sign), sign * 2.0);
            let exact = element(format, Accumulation::Exact, &factors, sign);
            assert_eq!(exact, sign * (2.0 + two(-13)));
            // Of what D has below the 13 bits nothing stays.
            let d = sign * (1.0 + two(-13) + two(-14));
            let sum = element(format, Accumulation::Truncating, &[], d);
            assert_eq!(sum, sign * (1.0 + two(-13)));
        }
    }
}

#[test]
fn exponents_are_the_formats_not_the_products() {
    let truncating =
        |format, a, b, d| element(format, Accumulation::Truncating, &[[a, b], [-a, b]], d);
    for format in FORMATS {
        // 2.25 has exponent 0, as its factors' exponents say.
        assert_eq!(truncating(format, 1.5, 1.5, two(-25)), two(-25));
        assert_eq!(truncating(format, 1.5, 1.5, two(-26)), 0.0);
    }
    // The least number of f16 has exponent -14, of which it uses the tenth bit.
    assert_eq!(truncating(Format::F16, two(-24), 1.0, two(-39)), two(-39));
    assert_eq!(truncating(Format::F16, two(-24), 1.0, two(-40)), 0.0);
    assert_eq!(truncating(Format::Bf16, two(-24), 1.0, two(-40)), two(-40));
    // Zero has none: not that of the greatest number, by which it is multiplied.
    let factors = [[0.0, two(15)], [two(-10), two(-14)]];
    let zero = element(Format::F16, Accumulation::Truncating, &factors, 0.0);
    assert_eq!(zero, two(-24));
}

/// Why a product on tensor cores is less accurate than one without: rounding toward zero is a bias,
/// which grows with the number of steps.
#[test]
fn truncation_is_a_bias() {
    let mut random = Random(7);
    let mut uniform =
        || Format::Bf16.decode(Format::Bf16.encode((random.next() >> 40) as f32 * two(-24)));
    let steps = 256;
    let (mut truth, mut exact, mut truncating) = (0.0, 0.0, 0.0);
    for _ in 0..steps {
        let factors: [[f32; 2]; 16] = array::from_fn(|_| [uniform(), uniform()]);
        truth += factors.iter().map(|&[a, b]| f64::from(a) * f64::from(b)).sum::<f64>();
        exact = element(Format::Bf16, Accumulation::Exact, &factors, exact);
        truncating = element(Format::Bf16, Accumulation::Truncating, &factors, truncating);
    }
    let error = |sum: f32| (f64::from(sum) / truth - 1.0) * 2f64.powi(24);
    // Half a unit a step, of which there are between 1 and 2 in 2^-23 of the sum.
    let bias = -error(truncating) / f64::from(steps);
    assert!((0.4..1.0).contains(&bias), "{bias}");
    assert!(error(exact).abs() < 16.0, "{}", error(exact));
}

#[test]
fn infinities_and_nan() {
    let infinity = f32::INFINITY;
    for format in FORMATS.into_iter().chain(OF_8_BITS) {
        for accumulation in ACCUMULATIONS {
            let element = |factors: &[[f32; 2]], d| element(format, accumulation, factors, d);
            assert_eq!(element(&[[infinity, 1.0]], 1.0), infinity);
            assert_eq!(element(&[[infinity, -1.0]], 1.0), -infinity);
            assert_eq!(element(&[[1.0, two(-14)]], -infinity), -infinity);
            for nan in [
                element(&[[infinity, 0.0]], 1.0),
                element(&[[infinity, 1.0], [infinity, -1.0]], 1.0),
                element(&[[infinity, 1.0]], -infinity),
                element(&[[f32::NAN, 0.0]], 1.0),
                element(&[[1.0, 1.0]], -f32::NAN),
            ] {
                assert!(nan.is_nan());
                if accumulation == Accumulation::Truncating {
                    assert_eq!(nan.to_bits(), 0x7fff_ffff);
                }
            }
        }
    }
}

#[test]
fn the_ends_of_the_range() {
    use Accumulation::{Exact, Fma, Truncating};
    let big = [two(100), two(100)];
    let minus = [two(100), -two(100)];
    // Products have no range of their own.
    assert_eq!(element(Format::Bf16, Exact, &[big, minus], 1.0), 1.0);
    assert_eq!(element(Format::Bf16, Truncating, &[big, minus], 1.0), 0.0);
    assert!(element(Format::Bf16, Fma, &[big, minus], 1.0).is_infinite());
    assert_eq!(element(Format::Bf16, Truncating, &[big], 1.0), f32::INFINITY);
    assert_eq!(element(Format::Bf16, Truncating, &[minus], 1.0), -f32::INFINITY);
    // Just below 2^128, f32's greatest number is the next toward zero, and infinity the nearest.
    let below = [[two(64), two(63)], [two(64), two(63)], [-two(64), two(39)]];
    assert_eq!(element(Format::Bf16, Truncating, &below, 0.0), f32::MAX);
    assert_eq!(element(Format::Bf16, Exact, &below, 0.0), f32::INFINITY);
    // A subnormal number is cut off as others are.
    let least = two(-149);
    for (format, half) in [(Format::Bf16, two(-75)), (Format::Tf32, two(-75))] {
        let product = [half, half];
        assert_eq!(element(format, Truncating, &[product], least), least);
        assert_eq!(element(format, Truncating, &[product; 2], least), 2.0 * least);
        assert_eq!(element(format, Exact, &[product], least), 2.0 * least);
    }
    assert_eq!(element(Format::F16, Truncating, &[], least), least);
    // The greatest sums have 7 bits before the point. With 25 after it, that is more than an i32
    // has.
    for format in [Format::F16, Format::Tf32] {
        let significand = 2.0 - two(-10);
        for d in [2.0 - two(-23), two(-23) - 2.0] {
            let factors = vec![[significand, significand * d.signum()]; format.step()];
            let product = f64::from(significand).powi(2) * f64::from(d.signum());
            let sum = product * format.step() as f64 + f64::from(d);
            let cut_off = sum - f64::from(element(format, Truncating, &factors, d));
            assert!((0.0..2f64.powi(-17)).contains(&(cut_off * sum.signum())), "{cut_off}");
        }
    }
}

/// A sum that two `f64`s cannot hold.
#[test]
fn an_exact_sum_loses_nothing() {
    let factors = |sign: f32| {
        [[two(100), two(100)], [two(50), two(10)], [two(-60), two(-60)], [sign * two(-100), 1.0]]
    };
    let minus = [[-two(100), two(100)], [-two(50), two(10)], [-two(-60), two(-60)]];
    for sign in [1.0, -1.0] {
        let all = [&factors(sign)[..], &minus[..]].concat();
        let sum = element(Format::Bf16, Accumulation::Exact, &all, 0.0);
        assert_eq!(sum, sign * two(-100));
        // It decides between two neighbours that are as near.
        let half = [[two(-12), two(-12)], [sign * two(-100), two(-100)]];
        let sum = element(Format::Bf16, Accumulation::Exact, &half, 1.0);
        assert_eq!(sum, if sign > 0.0 { 1.0 + two(-23) } else { 1.0 });
        let half = [[two(-12), two(-12)], [sign * two(-100), two(-100)]];
        let sum = element(Format::Bf16, Accumulation::Exact, &half, 1.0 + two(-23));
        assert_eq!(sum, if sign > 0.0 { 1.0 + two(-22) } else { 1.0 + two(-23) });
    }
}
