//! The right result of a product: in float64 with a bound for the error, and bit by bit.

use host::{Activation, verify};
use nalgebra::DMatrix;

use super::{Case, Number, Side};

/// The number of products of one matrix up to which three plain loops are fast enough.
const PLAIN_LOOPS: usize = 1 << 16;

/// The error of a smooth activation's value in units in the last place, with the reference's in
/// f64. Measured are 1.36 for f32, by trying every number, and 1.5 for f64.
const SMOOTH_ULPS: f64 = 4.0;
/// The largest slope of the smooth activations: it enlarges an error before it. It is GELU's at
/// sqrt(2), and almost that of its form with tanh; SiLU's is 1.1.
const SLOPE: f64 = 1.13;
/// Where C has 16 bits, a smooth activation's value is off by this part of itself before it is
/// rounded.
const HALF_PART: f64 = 1.0 / 8192.0;
/// Or by this, if it is more.
const HALF_LEAST: f64 = 1.0 / 67_108_864.0;

/// The elements of all products of a batch, row by row, and their error bounds.
#[derive(Clone, Debug)]
pub struct Want {
    /// In float64.
    pub values: Vec<f64>,
    /// The bounds of `|got - value|`.
    pub bounds: Vec<f64>,
    cols: usize,
}

impl Want {
    /// `gamma(k + 5) (|alpha| |A| |B| + |beta| |C| + |bias|)` and some of the smallest numbers: a
    /// sum of k products in any order, then the products by alpha and beta and the sums with C and
    /// the bias, with one rounding to spare. All of these have the type of the sums. If C has
    /// another type, an element is rounded once more.
    ///
    /// Tensor cores truncate where others round. Their sums keep to it, too:
    /// docs/design/numerics.md says why.
    pub fn bounded<T: Number>(case: &Case<T>) -> Self {
        Want::new(case, true)
    }

    /// Exact, apart from C's own rounding: for integers.
    pub fn exact<T: Number>(case: &Case<T>) -> Self {
        assert!(!is_smooth(case.activation), "{} is not exact", case.activation);
        Want::new(case, false)
    }

    fn new<T: Number>(case: &Case<T>, bounded: bool) -> Self {
        let [m, n, k] = case.sizes();
        let len = case.c.count() * m * n;
        let (mut values, mut magnitudes) = (vec![0.0; len], vec![0.0; len]);
        let [alpha, beta]: [f64; 2] =
            [case.alpha, case.beta].map(|factor| T::Sum::nearest(factor).into());
        if case.multiplies() {
            let (a, b) = (case.a.values(), case.b.values());
            values = products(case, &a, &b, |x| x);
            values.iter_mut().for_each(|value| *value *= alpha);
            if bounded {
                magnitudes = products(case, &a, &b, f64::abs);
                magnitudes.iter_mut().for_each(|magnitude| *magnitude *= alpha.abs());
            }
        }
        let before = case.c.values();
        for (at, (_, row, col)) in case.c.places().enumerate() {
            if beta != 0.0 {
                let before: f64 = before[at].into();
                values[at] += beta * before;
                magnitudes[at] += (beta * before).abs();
            }
            if let Some((side, bias)) = &case.bias {
                let bias: f64 = bias[if *side == Side::Row { row } else { col }].into();
                values[at] += bias;
                magnitudes[at] += bias.abs();
            }
        }
        let mut bounds = vec![0.0; len];
        if bounded {
            let roundings = k as f64 + 5.0;
            let u = T::Sum::U;
            let gamma = roundings * u / (1.0 - roundings * u) * T::SLACK;
            let tiny = roundings * T::Sum::TINY * alpha.abs().max(1.0);
            bounds = magnitudes.iter().map(|magnitude| gamma * magnitude + tiny).collect();
        }
        for (value, bound) in values.iter_mut().zip(&mut bounds) {
            (*value, *bound) = activated::<T>(case.activation, *value, *bound);
            if size_of::<T>() == size_of::<T::Sum>() {
                continue;
            }
            match bounded {
                true => *bound += T::U * (value.abs() + *bound) + T::TINY,
                false => *value = T::nearest(*value).into(),
            }
        }
        Want { values, bounds, cols: n }
    }

    /// Checks the elements. NaN and infinities must be the same, and everything else within the
    /// bounds.
    ///
    /// # Errors
    /// The first wrong element.
    pub fn check<T: Number>(&self, got: &[T]) -> Result<(), String> {
        if got.len() != self.values.len() {
            return Err(format!("{} elements, should be {}", got.len(), self.values.len()));
        }
        for (at, (&got, (&want, &bound))) in
            got.iter().zip(self.values.iter().zip(&self.bounds)).enumerate()
        {
            let got: f64 = got.into();
            if !within(got, want, bound) {
                let (row, col) = (at / self.cols, at % self.cols);
                let off = (got - want).abs() / bound;
                return Err(format!(
                    "row {row} (of all products), column {col}: {got:?}, should be {want:?} up to {bound:e}, which is \
                     {off:.3} times as far"
                ));
            }
        }
        Ok(())
    }
}

fn within(got: f64, want: f64, bound: f64) -> bool {
    match want {
        want if want.is_nan() => got.is_nan(),
        want if want.is_infinite() => got == want,
        want => (got - want).abs() <= bound,
    }
}

/// The value of an activation, and its error bound in the type of the sums, where `x` is off by
/// `bound`.
///
/// # Panics
/// For an activation that this does not know.
pub fn activated<T: Number>(activation: Activation, x: f64, bound: f64) -> (f64, f64) {
    match activation {
        Activation::Identity => (x, bound),
        // NaN stays.
        Activation::Relu if x < 0.0 => (0.0, bound),
        Activation::Relu => (x, bound),
        smooth => {
            let want = verify::activated(smooth, x);
            (want, SLOPE * bound + own_error::<T>(want.abs() + SLOPE * bound))
        }
    }
}

/// By how much a smooth activation's value may be off for an exact argument, before it is rounded
/// to a C of 16 bits. C is of type T.
pub fn own_error<T: Number>(value: f64) -> f64 {
    if size_of::<T>() == size_of::<T::Sum>() {
        // A unit in the last place is at most two roundings.
        2.0 * SMOOTH_ULPS * T::U * value + T::TINY
    } else {
        (HALF_PART * value).max(HALF_LEAST)
    }
}

/// Whether it is an activation that is not exact.
pub fn is_smooth(activation: Activation) -> bool {
    !matches!(activation, Activation::Identity | Activation::Relu)
}

/// The sums of products, in float64.
fn products<T: Number>(case: &Case<T>, a: &[T], b: &[T], f: fn(f64) -> f64) -> Vec<f64> {
    let [m, n, k] = case.sizes();
    let wide = |values: &[T]| values.iter().map(|&x| f(x.into())).collect::<Vec<f64>>();
    let (a, b) = (wide(a), wide(b));
    let mut c = Vec::with_capacity(case.c.count() * m * n);
    for i in 0..case.c.count() {
        let (a, b) = (&a[i * m * k..][..m * k], &b[i * k * n..][..k * n]);
        if m * n * k <= PLAIN_LOOPS {
            c.extend(plain_loops([m, n, k], a, b));
        } else {
            let (a, b) = (DMatrix::from_row_slice(m, k, a), DMatrix::from_row_slice(k, n, b));
            // nalgebra stores columns. The transpose's columns are the rows.
            c.extend_from_slice((a * b).transpose().as_slice());
        }
    }
    c
}

fn plain_loops([m, n, k]: [usize; 3], a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            for p in 0..k {
                c[i * n + j] += a[i * k + p] * b[p * n + j];
            }
        }
    }
    c
}

/// The documented result, bit by bit: a sum in the order of k by fused multiply-adds, then
/// `fma(beta, c, alpha * sum)`, the bias, the activation, and C's own rounding. `None` for smooth
/// activations.
pub fn same_bits<T: Number>(case: &Case<T>) -> Option<Vec<T>> {
    let zero = T::Sum::nearest(0.0);
    let (alpha, beta) = (T::Sum::nearest(case.alpha), T::Sum::nearest(case.beta));
    let k = if case.multiplies() { case.a.size.1 } else { 0 };
    // Without products alpha is not read.
    let alpha = if case.a.size.1 == 0 { zero } else { alpha };
    let element = |(i, row, col)| {
        let mut sum = zero;
        for p in 0..k {
            let (a, b) = (case.a.get(i, row, p), case.b.get(i, p, col));
            sum = a.widened().fused(b.widened(), sum);
        }
        let mut value = alpha.times(sum);
        if beta != zero {
            value = beta.fused(case.c.get(i, row, col).widened(), value);
        }
        if let Some((side, bias)) = &case.bias {
            value = value.plus(bias[if *side == Side::Row { row } else { col }].widened());
        }
        let value = if case.activation == Activation::Relu && value < zero { zero } else { value };
        T::narrowed(value)
    };
    let stays = case.bias.is_none() && case.activation == Activation::Identity;
    if stays && k == 0 && beta == T::Sum::nearest(1.0) {
        return Some(case.c.values());
    }
    (!is_smooth(case.activation)).then(|| case.c.places().map(element).collect())
}
