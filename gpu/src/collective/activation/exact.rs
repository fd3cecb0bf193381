//! The activation functions for a C of f32 or f64: up to two units in the last place, however small
//! the result.
//!
//! Each is `max(x, 0) - t S(-t)`, and `S(-t) = exp(-a) R`.
//!
//! ```text
//!          a                                         R
//!   GELU   t² / 2                                    falls slowly from 1/2
//!   tanh   2 sqrt(2 / pi) (t + 0.044715 t³)          1 / (1 + exp(-a))
//!   SiLU   t                                         1 / (1 + exp(-a))
//! ```
//!
//! GELU is `x Phi(x)`, where Phi is the distribution function of the normal distribution (Hendrycks
//! and Gimpel, "Gaussian Error Linear Units", 2016). `(t + 1) R(t)` is between 0.42 and 0.53. That
//! is `15/32` plus a polynomial in `y = (t - 4) / (t + 4)`, whose own error counts an eighth. The
//! coefficients of this polynomial and of the exponential interpolate at Chebyshev's points,
//! computed with 60 digits. Their relative errors are 2.4e-9 and 1.0e-8 in f32, 5.9e-17 and 2.3e-19
//! in f64.
//!
//! What a step rounds off is kept, by fused multiply-adds, up to the last sum (Dekker, "A
//! floating-point technique for extending the available precision", 1971). There is no branch in a
//! number and no table.
//!
//! Errors, in units in the last place of the result: f32, GELU, each t from 1.2e-10 to where the
//! result is zero, at most 1.36; tanh and SiLU, each 13th, 1.17 and 1.05. f64: GELU, 400,000 random
//! t, at most 1.5; tanh and SiLU, 5,000 each, 0.92 and 0.83.

use super::{device::*, vector::FOUR};
use crate::params::{GELU, SILU};

/// Evaluates a polynomial by Horner's rule, from the highest power.
#[inline(always)]
fn polynomial<T: MultiplyAdd, const N: usize>(coefficients: [T; N], x: T) -> T {
    let mut sum = coefficients[0];
    for next in &coefficients[1..] {
        sum = fma(sum, x, *next);
    }
    sum
}

macro_rules! activations {
    ($($module:ident, $called:ident: $real:ident, bits = $bits:ident,
        R = $r:expr, EXP = $exp:expr, ends = $ends:expr, CUBIC = $cubic:expr, LN_2 = $ln_2:expr,
        ABOUT = $about:expr, STEPS = $steps:expr;)*) => {$(
        /// The functions in this type.
        pub mod $module {
            use super::*;

            /// Numbers in eight bytes.
            const LANES: usize = 8 / size_of::<$real>();

            /// A number and what it lacks, which is less than a unit in its last place.
            #[derive(Clone, Copy, Default)]
            struct Pair($real, $real);

            /// `2^n (1 + q + rest)`.
            #[derive(Clone, Copy, Default)]
            struct Power {
                n: $bits,
                q: $real,
                rest: $real,
            }

            /// The function of each number. `kind` is [`GELU`],
            /// [`GELU_TANH`](crate::params::GELU_TANH) or [`SILU`].
            #[inline(always)]
            pub fn activated(kind: u32, mut four: [$real; FOUR]) -> [$real; FOUR] {
                for at in (0..FOUR).step_by(LANES) {
                    let done = $called(kind, word(&four, at));
                    for lane in 0..LANES {
                        four[at + lane] = number(done, lane);
                    }
                }
                four
            }

            /// The function of the numbers in eight bytes. A thread computes all of them at once,
            /// so that latencies overlap. (With twice as many, two kernels spilled.)
            // A call, since an epilogue has up to 32 of them: inlined, they were a tenth of all
            // PTX, and half the instructions of gemm_f32_128x128x8. The branches that call it are
            // taken only if a function was asked for, and ptxas knows which registers it needs. An
            // array would be passed in memory. The functions share what they can, for the same
            // reason.
            #[inline(never)]
            // SAFETY: no other function of the kernels' modules has the name.
            #[cfg_attr(target_arch = "nvptx64", unsafe(no_mangle))]
            fn $called(kind: u32, of: u64) -> u64 {
                const ENDS: [$real; 3] = $ends;
                const CUBIC: [$real; 4] = $cubic;
                // From its end on, `t S(-t)` is zero.
                let (end, cubic) = match kind {
                    GELU => (ENDS[0], CUBIC),
                    SILU => (ENDS[2], [1.0, 0.0, 0.0, 0.0]),
                    _ => (ENDS[1], CUBIC),
                };
                let mut values = [0.0; LANES];
                let mut ts = [0.0; LANES];
                let mut exponents = [Pair::default(); LANES];
                let mut powers = [Power::default(); LANES];
                let mut rs = [Pair::default(); LANES];
                for lane in 0..LANES {
                    (ts[lane], values[lane]) = parts(number(of, lane), end);
                }
                // GELU's R first, while few registers hold anything else.
                for lane in 0..LANES {
                    if kind == GELU {
                        (rs[lane], exponents[lane]) = (r(ts[lane]), half_square(ts[lane]));
                    } else {
                        exponents[lane] = cubic_of(cubic, ts[lane]);
                    }
                }
                for lane in 0..LANES {
                    powers[lane] = exp_of_minus(exponents[lane]);
                }
                for lane in 0..LANES {
                    if kind != GELU {
                        rs[lane] = inverse_of_one_plus(powers[lane]);
                    }
                }
                for lane in 0..LANES {
                    values[lane] -= product(ts[lane], rs[lane], powers[lane]);
                }
                word(&values, 0)
            }

            #[inline(always)]
            fn word(values: &[$real], at: usize) -> u64 {
                (0..LANES).fold(0, |word, lane| word | (values[at + lane].to_bits() as u64) << (32 * lane))
            }

            #[inline(always)]
            fn number(word: u64, lane: usize) -> $real {
                $real::from_bits((word >> (32 * lane)) as _)
            }

            /// t, which ends, and `max(x, 0)`.
            #[inline(always)]
            fn parts(x: $real, end: $real) -> ($real, $real) {
                // Comparisons that NaN fails, so that NaN stays. Infinity times zero would not be
                // zero.
                (if x.abs() > end { end } else { x.abs() }, if x < 0.0 { 0.0 } else { x })
            }

            /// t² / 2.
            #[inline(always)]
            fn half_square(t: $real) -> Pair {
                let half = 0.5 * t;
                let square = half * t;
                Pair(square, fma(half, t, -square))
            }

            /// `t (c + d t²)`. The factors are c, what c lacks, d, and what d lacks.
            #[inline(always)]
            fn cubic_of([c, c_low, d, d_low]: [$real; 4], t: $real) -> Pair {
                let square = t * t;
                let square_low = fma(t, t, -square);
                let term = d * square;
                let term_low = fma(d, square, -term) + fma(d, square_low, d_low * square);
                // Either may be the larger one.
                let sum = c + term;
                let of_term = sum - c;
                let low = (c - (sum - of_term)) + (term - of_term) + (c_low + term_low);
                let cubic = t * sum;
                Pair(cubic, fma(t, low, fma(t, sum, -cubic)))
            }

            /// `exp(-a)`.
            #[inline(always)]
            fn exp_of_minus(Pair(a, a_low): Pair) -> Power {
                // -a = n ln 2 + q + q_low. Adding `ROUND` rounds n to an integer.
                const ROUND: $real = 1.5 / $real::EPSILON;
                let shifted = fma(a, -core::$real::consts::LOG2_E, ROUND);
                let n = shifted - ROUND;
                let q_high = fma(n, -$ln_2.0, -a);
                let q_rest = fma(n, -$ln_2.1, -a_low);
                let q = q_high + q_rest;
                let q_low = (q_high - q) + q_rest;
                let rest = fma(q * q, polynomial($exp, q), q_low);
                let n = (shifted.to_bits() as $bits).wrapping_sub(ROUND.to_bits() as $bits);
                Power { n, q, rest }
            }

            /// x 2^n. In two factors, since 2^n alone may be too small for a number.
            #[inline(always)]
            fn scaled(x: $real, n: $bits) -> $real {
                let power = |n: $bits| {
                    const ONE: $bits = (1.0 as $real).to_bits() as $bits;
                    $real::from_bits(ONE.wrapping_add(n << ($real::MANTISSA_DIGITS - 1)) as _)
                };
                x * power(n >> 1) * power(n.wrapping_sub(n >> 1))
            }

            /// GELU's R(t), with one division.
            #[inline(always)]
            fn r(t: $real) -> Pair {
                // s + s_low = t + 1.
                let s = t + 1.0;
                let s_low = (t - (s - (s - t))) + (1.0 - (s - t));
                let u = t + 4.0;
                let of_both = reciprocal(s * u);
                let (of_s, of_u) = (u * of_both, s * of_both);
                let y = (t - 4.0) * of_u;
                let y = fma(fma(-y, u, t - 4.0), of_u, y);
                let small = polynomial($r, y);
                let p = 0.46875 + small;
                let p_low = (0.46875 - p) + small;
                let r = p * of_s;
                Pair(r, fma(-r, s_low, fma(-r, s, p) + p_low) * of_s)
            }

            /// `1 / (1 + e)` of an e up to 1.
            #[inline(always)]
            fn inverse_of_one_plus(Power { n, q, rest }: Power) -> Pair {
                let e = 1.0 + (q + rest);
                let e_low = scaled(((1.0 - e) + q) + rest, n);
                let e = scaled(e, n);
                let sum = 1.0 + e;
                let sum_low = ((1.0 - sum) + e) + e_low;
                let r = reciprocal(sum);
                Pair(r, fma(-r, sum_low, fma(-r, sum, 1.0)) * r)
            }

            /// `t r 2^n (1 + q + rest)`.
            #[inline(always)]
            fn product(t: $real, Pair(r, r_low): Pair, Power { n, q, rest }: Power) -> $real {
                let w = t * r;
                let w_low = fma(t, r_low, fma(t, r, -w));
                scaled(w + fma(w, q, fma(w, rest, fma(w_low, q, w_low))), n)
            }

            /// 1 / x of a normal number, to a unit in the last place. It lacks the branch that a
            /// division has for other numbers.
            #[inline(always)]
            fn reciprocal(x: $real) -> $real {
                // The exponent is negated, and a straight line replaces the fraction: the error is
                // an eighth. Each step squares it.
                let mut y = $real::from_bits(x.to_bits().wrapping_neg().wrapping_add($about));
                for _ in 0..$steps {
                    y = fma(y, fma(-x, y, 1.0), y);
                }
                y
            }
        }
    )*};
}

activations! {
    of_f32, activate_f32: f32, bits = i32,
        R = [
            -7.393246e-5, -6.572076e-5, 6.9123355e-4, -3.00497e-4, -0.005002521, 0.017939549,
            -0.03219773, 0.028600028, 0.013999631, -0.09670347, 0.0033032065
        ],
        EXP = [0.001392625, 0.008363233, 0.041666552, 0.16666576, 0.5],
        ends = [14.5, 11.0, 110.0], CUBIC = [1.595_769_2, -4.534_068e-8, 0.071_354_814, 2.398_832_5e-9],
        LN_2 = (0.693_359_4, -2.121_944_4e-4),
        ABOUT = 0x7ef3_11c7, STEPS = 3;
    of_f64, activate_f64: f64, bits = i64,
        R = [
            1.9844072305621602e-10, 4.347202324981508e-9, 1.134064999612679e-8, -1.888137725703163e-8,
            -1.0111129755671242e-7, 2.8055596826956697e-9, 5.432100827612577e-7, 4.02096637961752e-7,
            -2.608039199565658e-6, -3.430553944494517e-6, 1.362512870208532e-5, 2.1249416709821007e-5,
            -8.785278100423642e-5, -9.443010932300517e-5, 6.948970458933204e-4, -2.856231172674321e-4,
            -0.005002378585987421, 0.017936097481063274, -0.03219783742831323, 0.028600364053505536,
            0.013999634724429484, -0.09670347732652537, 0.0033032065098446686
        ],
        EXP = [
            2.09147553258932e-9, 2.5105312729622103e-8, 2.755727347871858e-7, 2.755725517000089e-6,
            2.480158732567746e-5, 1.984126987500228e-4, 0.0013888888888883711, 0.008333333333326084,
            0.04166666666666667, 0.1666666666666667, 0.5
        ],
        ends = [39.0, 22.0, 760.0], CUBIC = [1.5957691216057308, -9.96930880911092e-17, 0.07135481627260025, -6.175149918155315e-19],
        LN_2 = (0.6931471803691238, 1.9082149292705877e-10),
        ABOUT = 0x7fde_6238_22fc_16e6, STEPS = 4;
}
