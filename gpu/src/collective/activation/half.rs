//! The activation functions for a C of 16 bits. Four numbers at a time are computed in f32, and the
//! caller rounds them to C's type.
//!
//! `S(-t)` falls like an exponential function. Its 8th or 16th root falls slowly, so a polynomial
//! of low degree is enough, which is then squared three or four times. A squared polynomial plus a
//! number is one of twice the degree for one instruction, so the polynomials are built of such
//! steps, too. A multiply-add takes a coefficient out of the instruction, so there is no load, and
//! no register holds one.
//!
//! SiLU's `S(-t) = e / (1 + e)`, where `e = exp(-t)`, has poles too near to 0 for that. Its `e` is
//! the 8th power, and `1 / (1 + e)` is a polynomial in e.
//!
//! Steps and coefficients were searched by a program: of all sequences of as many steps the one
//! whose largest error is least, by linear programs on the linearised error, from random starts.
//! `e` and `1 / (1 + e)` were fitted together. Where t ends, the polynomial is zero, so that S is.
//!
//! Before it is rounded the value is off by less than 2^-13 of itself or by 2^-26, whichever is
//! more. Half an ulp of f16 is between 2^-12 and 2^-11 of the value, and 2^-25 of a subnormal one;
//! half an ulp of bf16 is eight times as much.
//!
//! ```text
//!               steps    instructions an element    largest error, as a part of 2^-12 or 2^-25
//!   GELU          9      12                         0.066
//!   tanh         10      13                         0.24
//!   SiLU         12      15                         0.39
//! ```

use super::{device::*, vector::FOUR};
use crate::params::{GELU, GELU_TANH, SILU};

/// The function of each number, by a call. `kind` is [`GELU`], [`GELU_TANH`] or
/// [`SILU`].
#[inline(always)]
pub fn activated(kind: u32, four: [f32; FOUR]) -> [f32; FOUR] {
    let of = (0..FOUR).fold(0, |of, i| of | (four[i].to_bits() as u128) << (32 * i));
    numbers(activate_half(kind, of))
}

/// The function of four numbers, for epilogues with several calls: its code is 8 KB of PTX. A
/// thread computes the four at once, so that latencies overlap.
// An array would be passed in memory; the sixteen bytes are passed in four registers.
#[inline(never)]
// SAFETY: no other function of the kernels' modules has the name.
#[cfg_attr(target_arch = "nvptx64", unsafe(no_mangle))]
fn activate_half(kind: u32, of: u128) -> u128 {
    let four = match kind {
        GELU => numbers(of).map(gelu),
        GELU_TANH => numbers(of).map(gelu_tanh),
        _ => numbers(of).map(silu),
    };
    (0..FOUR).fold(0, |of, i| of | (four[i].to_bits() as u128) << (32 * i))
}

function_by_constant! {
    /// The function of a number, which the kernel's constant `smooth` chooses. It is inlined when
    /// the kernel is loaded, so an epilogue may have it for each of a thread's accumulators.
    pub fn smooth by "smooth" { 2 => gelu, 3 => gelu_tanh, 4 => silu }
}

const _: () = assert!(GELU == 2 && GELU_TANH == 3 && SILU == 4, "the values of `smooth`");

#[inline(always)]
fn gelu(x: f32) -> f32 {
    activate(x, 9.489038, gelu_of_minus)
}

#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    activate(x, 6.257772, tanh_of_minus)
}

#[inline(always)]
fn silu(x: f32) -> f32 {
    activate(x, 25.758518, silu_of_minus)
}

/// `x S(x)`. S(-t) is zero at the end, and from there on.
#[inline(always)]
fn activate(x: f32, end: f32, s_of_minus: fn(f32) -> f32) -> f32 {
    // NaN stays in the last operand. A zero keeps its sign there.
    let t = x.abs().min(end);
    fma(-t, s_of_minus(t), at_least(x, -0.0))
}

/// Phi(-t), where Phi is the distribution function of the normal distribution.
#[inline(always)]
fn gelu_of_minus(t: f32) -> f32 {
    let v = fma(t, -0.003655911, 0.080335625);
    let v = fma(v, t, 0.2149695);
    let v = fma(v, v, -0.30422416);
    let v = fma(v, v, -0.114326224);
    let v = fma(v, t, 0.9576024);
    square(square(square(square(v))))
}

/// `1 / (1 + exp(2 sqrt(2 / pi) (t + 0.044715 t^3)))`.
#[inline(always)]
fn tanh_of_minus(t: f32) -> f32 {
    let v = fma(t, 5.5152617e-5, -0.0006845453);
    let v = fma(v, t, 0.003476695);
    let v = fma(v, t, -0.009772255);
    let v = fma(v, t, -0.057504095);
    let v = fma(v, t, 0.27244297);
    let v = fma(v, v, -0.165746);
    let v = fma(v, t, 0.91699946);
    square(square(square(v)))
}

/// `e / (1 + e)`, where `e = exp(-t)`.
#[inline(always)]
fn silu_of_minus(t: f32) -> f32 {
    // At the end the sum is `LEAST`. Few bits, so that powers are exact and cancel to zero.
    const LEAST: f32 = 7.0 / 128.0;
    const LEAST_4: f32 = (LEAST * LEAST) * (LEAST * LEAST);
    let v = fma(t, -2.899977e-5, 0.0017507587);
    let v = fma(v, t, -0.06336978);
    let v = fma(v, t, 0.96631056);
    let v = square(square(fma(v, v, LEAST)));
    let e = fma(v, v, -(LEAST_4 * LEAST_4));
    let r = fma(e, 0.15401709, -0.55691457);
    let r = fma(r, e, 0.94404894);
    let r = fma(r, e, -1.0951144);
    e * fma(r, e, 1.077951)
}

#[inline(always)]
fn square(x: f32) -> f32 {
    x * x
}

#[inline(always)]
fn numbers(of: u128) -> [f32; FOUR] {
    core::array::from_fn(|i| f32::from_bits((of >> (32 * i)) as u32))
}
