//! Activations in float64, and what each does to an error bound.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

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

/// The value of an activation in float64, with an error of two units in the last place. NaN for one
/// that there is no reference for.
pub fn activated(activation: Activation, x: f64) -> f64 {
    let of_it = REFERENCES.iter().find(|one| one.activation == activation);
    of_it.map_or(f64::NAN, |one| (one.function)(x))
}

/// An element and its error bound after the activation, from those before it.
///
/// For a C of 16 bits an activation with an error may be off by `2^-13` of its value, or by `2^-26`
/// if that is more. It is at most half of what rounding to f16 adds.
///
/// The reference's own error is two units in the last place of f64.
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
    let of_reference = 4.0 * NumberFormat::F64.roundoff() * want.abs();
    (want, moved + own + of_reference)
}

/// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2` in float64.
fn gelu_tanh(x: f64) -> f64 {
    /// `2 sqrt(2 / pi)`, and what the float64 number lacks.
    const FACTOR: (f64, f64) = (1.595_769_121_605_730_8, -9.969_308_809_110_92e-17);
    /// The same of 0.044715.
    const CUBED: (f64, f64) = (0.044_715, 2.196_021_142_708_559_5e-18);
    // Beyond that it is x or zero, and a cube may be infinite.
    if x.is_nan() || x.abs() > 40.0 {
        return if x < 0.0 { 0.0 } else { x };
    }
    // 2 y = FACTOR x (1 + CUBED x^2). An error of y is an error of exp(y), in parts of it.
    let square = x * x;
    let square_low = x.mul_add(x, -square);
    let term = CUBED.0 * square;
    let term_low = CUBED.0.mul_add(square, -term) + CUBED.0 * square_low + CUBED.1 * square;
    let sum = 1.0 + term;
    let sum_low = if term < 1.0 { (1.0 - sum) + term } else { (term - sum) + 1.0 } + term_low;
    let line = FACTOR.0 * x;
    let line_low = FACTOR.0.mul_add(x, -line) + FACTOR.1 * x;
    let y = line * sum;
    times_logistic(x, y, line.mul_add(sum, -y) + line * sum_low + line_low * sum)
}

/// `x / (1 + exp(-(y + low)))` in float64.
fn times_logistic(x: f64, y: f64, low: f64) -> f64 {
    if x >= 0.0 {
        // The quotient has the digits of 1, so the rest does not matter.
        return x / (1.0 + (-y).exp());
    }
    if x.is_nan() || y < -800.0 {
        return if x.is_nan() { x } else { 0.0 };
    }
    // In two factors, since the exponential may be too small for a number.
    let root = (y / 2.0).exp();
    x * root * (1.0 + low) / (1.0 + root * root) * root
}

/// `x Phi(x)` in float64, with an error of two units in the last place.
fn gelu(x: f64) -> f64 {
    /// The rounding error of `1 / sqrt(2)`.
    const REST: f64 = -4.833_646_656_726_457e-17;
    if x.is_nan() || x > 40.0 {
        return x;
    }
    // Below that it is less than half of the smallest number.
    if x < -40.0 {
        return 0.0;
    }
    if x < -37.0 {
        // erfc is subnormal here. NIST's Digital Library of Mathematical Functions, 7.12.1: the
        // next term is 1e-16.
        let square = x * x;
        let series = [10395.0, -945.0, 105.0, -15.0, 3.0, -1.0];
        let series = series.iter().fold(0.0, |sum, term| (sum + term) / square) + 1.0;
        let root = (-square / 4.0).exp();
        let rest = 1.0 - x.mul_add(x, -square) / 2.0;
        return -root * (FRAC_2_SQRT_PI * FRAC_1_SQRT_2 / 2.0 * series * rest) * root;
    }
    // erfc takes its argument as exact, and is steep: the error of the product is enlarged up to
    // 1400 times.
    let z = -x * FRAC_1_SQRT_2;
    let rest = -x.mul_add(FRAC_1_SQRT_2, z) - x * REST;
    0.5 * x * (-FRAC_2_SQRT_PI * (-z * z).exp()).mul_add(rest, libm::erfc(z))
}

/// `x / (1 + exp(-x))`, likewise.
fn silu(x: f64) -> f64 {
    times_logistic(x, x, 0.0)
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
