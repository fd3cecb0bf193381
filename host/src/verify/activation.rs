//! Activations in float64, and what each does to an error bound.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

use super::{Claim, NumberFormat};
use gpu_gemm::Activation;

/// An activation's reference.
struct Reference {
    activation: Activation,
    function: fn(f64) -> f64,
    /// Its largest slope: it enlarges an error before it.
    slope: f64,
    /// The error of its value in units in the last place of the sums' type. 0: it is exact.
    ulps: f64,
}

/// A line for each activation of the library.
const REFERENCES: [Reference; 5] = [
    Reference { activation: Activation::Identity, function: |x| x, slope: 1.0, ulps: 0.0 },
    // NaN stays.
    Reference {
        activation: Activation::Relu,
        function: |x| if x < 0.0 { 0.0 } else { x },
        slope: 1.0,
        ulps: 0.0,
    },
    // The slope is that at sqrt(2).
    Reference { activation: Activation::Gelu, function: gelu, slope: 1.13, ulps: 4.0 },
    Reference { activation: Activation::GeluTanh, function: gelu_tanh, slope: 1.13, ulps: 4.0 },
    Reference { activation: Activation::Silu, function: silu, slope: 1.1, ulps: 4.0 },
];

/// The activations that there is a reference for: all of the library's.
pub fn activations() -> impl Iterator<Item = Activation> {
    REFERENCES.iter().map(|reference| reference.activation)
}

/// An element and its error bound after the activation, from those before it.
///
/// For a C of 16 bits an activation with an error may be off by `2^-13` of its value, or by `2^-26`
/// if that is more. It is at most half of what rounding to f16 adds.
///
/// The reference's own relative error is a few units of f64 times `1 + x^2`, for an error of an
/// exponential's argument counts that much.
pub(super) fn after(claim: &Claim, x: f64, bound: f64) -> (f64, f64) {
    let of_it = REFERENCES.iter().find(|one| one.activation == claim.activation);
    // Without a reference nothing can be right.
    let Some(&Reference { function, slope, ulps, .. }) = of_it else { return (x, f64::NAN) };
    let want = function(x);
    if x.is_infinite() {
        return (want, 0.0);
    }
    if ulps == 0.0 {
        return (want, bound);
    }
    let moved = slope * bound;
    let value = want.abs() + moved;
    let own = match claim.stored {
        NumberFormat::F16 | NumberFormat::BF16 => (2f64.powi(-13) * value).max(2f64.powi(-26)),
        // A unit in the last place is at most two roundings.
        _ => 2.0 * ulps * claim.computed.roundoff() * value + claim.computed.tiny(),
    };
    let of_reference = 4.0 * NumberFormat::F64.roundoff() * (1.0 + x * x) * want.abs();
    (want, moved + own + of_reference)
}

/// `x Phi(x)`.
fn gelu(x: f64) -> f64 {
    gate(x, |x| 0.5 * libm::erfc(-x * FRAC_1_SQRT_2))
}

/// `x (1 + tanh(y)) / 2`, which is `x / (1 + exp(-2 y))`, with `y = sqrt(2 / pi) (x + 0.044715
/// x^3)`.
fn gelu_tanh(x: f64) -> f64 {
    let twice = |x: f64| FRAC_2_SQRT_PI * SQRT_2 * (x + 0.044_715 * x * x * x);
    gate(x, |x| 1.0 / (1.0 + (-twice(x)).exp()))
}

/// `x / (1 + exp(-x))`.
fn silu(x: f64) -> f64 {
    gate(x, |x| 1.0 / (1.0 + (-x).exp()))
}

/// `x gate(x)`, where the gate goes to 0 faster than `1 / x`.
fn gate(x: f64, gate: impl Fn(f64) -> f64) -> f64 {
    if x == f64::NEG_INFINITY { 0.0 } else { x * gate(x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Option<fn(f64) -> f64> {
        let reference = REFERENCES.iter().find(|one| one.activation.to_string() == name)?;
        Some(reference.function)
    }

    #[test]
    fn references_have_the_values_of_their_definitions() {
        let gelu = of("gelu").unwrap();
        // From PyTorch's documentation of `gelu`: x Phi(x). Phi(1) = 0.8413447460685429.
        assert!((gelu(1.0) - 0.841_344_746_068_542_9).abs() < 1e-15);
        assert!((gelu(-1.0) + 1.0 - 0.841_344_746_068_542_9).abs() < 1e-15);
        let (tanh, silu) = (of("gelu_tanh").unwrap(), of("silu").unwrap());
        for x in [-3.0, -0.5, 0.1, 2.0f64] {
            let y = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
            assert!((tanh(x) - 0.5 * x * (1.0 + y.tanh())).abs() < 1e-15, "{x}");
            assert!((silu(x) - 0.5 * x * (1.0 + (0.5 * x).tanh())).abs() < 1e-15, "{x}");
        }
        let relu = of("relu").unwrap();
        assert_eq!([relu(-2.0), relu(3.0), relu(f64::NEG_INFINITY)], [0.0, 3.0, 0.0]);
        for Reference { function, activation, .. } in &REFERENCES {
            assert!(function(f64::NAN).is_nan(), "{activation}");
            assert_eq!(function(f64::INFINITY), f64::INFINITY, "{activation}");
            assert_eq!(function(0.0), 0.0, "{activation}");
        }
    }

    /// No two points have a steeper slope between them than the one that bounds are enlarged by.
    #[test]
    fn slopes_are_the_largest() {
        for Reference { function, slope, activation, .. } in &REFERENCES {
            let points = (-20_000..20_000).map(|i| f64::from(i) / 1000.0);
            let steepest = points.map(|x| (function(x + 1e-3) - function(x)).abs() / 1e-3);
            let steepest = steepest.fold(0.0, f64::max);
            assert!(steepest <= slope + 1e-9 && steepest > 0.98 * slope, "{activation} {steepest}");
        }
    }
}
