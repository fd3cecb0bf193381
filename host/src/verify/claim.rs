//! The claim about a result, and its error bound.

use std::ops::Range;

use simt::types::NumberFormat;

use gpu_gemm::{Activation, Error, Layout, Pod, Result, Shape, blocks::Source, memory};

/// The claim that C is `activation(alpha A B + beta C0 + bias)`, apart from rounding.
/// [`Claim::product`] makes one. Its fields change the details.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Claim<'a> {
    /// A, m x k. It is not read if `alpha` is 0.
    pub a: &'a dyn Source<f64>,
    /// B, k x n. It is not read if `alpha` is 0.
    pub b: &'a dyn Source<f64>,
    /// The old C. It is not read if `beta` is 0.
    pub before: Option<&'a dyn Source<f64>>,
    /// The result.
    pub c: &'a dyn Source<f64>,
    /// alpha, as rounded for the computation.
    pub alpha: f64,
    /// beta, as rounded for the computation.
    pub beta: f64,
    /// What is added to each row: an element for each column of C.
    pub bias: Option<&'a [f64]>,
    /// What is applied to each element at the end.
    pub activation: Activation,
    /// The format to which A and B were rounded before they were multiplied, if it is narrower than
    /// theirs. No element may be so small that this underflows.
    pub factors: Option<NumberFormat>,
    /// Whether A and B may have been split into slices for tensor cores. No significant slice may
    /// underflow.
    pub sliced: bool,
    /// The format of A and B if that is of 8-bit floating-point numbers, of whose products tensor
    /// cores keep a sum with few bits.
    pub of_8_bits: Option<NumberFormat>,
    /// The format of the computation.
    pub computed: NumberFormat,
    /// The format in which C is stored.
    pub stored: NumberFormat,
}

impl<'a> Claim<'a> {
    /// `C = A B`, computed in f32.
    pub fn product(a: &'a dyn Source<f64>, b: &'a dyn Source<f64>, c: &'a dyn Source<f64>) -> Self {
        let format = NumberFormat::F32;
        let (computed, stored) = (format, format);
        let (factors, before, sliced) = (None, None, false);
        let (bias, activation) = (None, Activation::Identity);
        let (alpha, beta, of_8_bits) = (1.0, 0.0, None);
        Claim {
            a,
            b,
            before,
            c,
            alpha,
            beta,
            bias,
            activation,
            factors,
            sliced,
            of_8_bits,
            computed,
            stored,
        }
    }

    /// Its sizes.
    ///
    /// # Errors
    /// [`Error::Argument`] for matrices that do not fit together.
    pub(super) fn shape(&self) -> Result<Shape> {
        let Claim { a, b, c, .. } = *self;
        let (m, n, k) = (a.rows(), b.cols(), a.cols());
        let before = self.before().map(|before| ("before", before, m, n));
        let others = [("b", b, k, n), ("c", c, m, n)];
        for (name, source, rows, cols) in others.into_iter().chain(before) {
            if (source.rows(), source.cols()) != (rows, cols) {
                let value = format!("{} x {}", source.rows(), source.cols());
                return Err(Error::argument(name, value, format!("must be {rows} x {cols}")));
            }
        }
        if let Some(bias) = self.bias
            && bias.len() != n
        {
            return Err(Error::argument("bias.len()", bias.len(), format!("must be {n}")));
        }
        Shape::new(m as u64, n as u64, if self.alpha == 0.0 { 0 } else { k as u64 })
    }

    /// The old C, if it is read.
    pub(super) fn before(&self) -> Option<&'a dyn Source<f64>> {
        self.before.filter(|_| self.beta != 0.0)
    }

    /// An upper bound of the number of roundings of an element of C.
    fn roundings(&self, k: usize) -> f64 {
        let plain = self.alpha == 1.0 && self.before().is_none() && self.bias.is_none();
        k as f64 + if plain { 3.0 } else { 5.0 }
    }

    /// The error bounds of elements that are sums of `k` products.
    ///
    /// `gamma(k + 3) magnitude + (k + 3) tiny`. With alpha, beta or a bias, `k + 5` replaces `k +
    /// 3`. For a result in f64 four are added: the reference is a sum in twice the precision, which
    /// is rounded once, and then alpha, beta and the bias are. It is infinite if k is so large that
    /// there is no bound.
    ///
    /// If factors are rounded with roundoff `u`, each product is off by `2 u + u²`. Tensor cores
    /// truncate the sum and each of 8 products, 25 bits below the largest: at most `k + 20`
    /// roundings to the nearest. (Ampere's and Ada's add 4 products at a time, and truncate 24 bits
    /// below. If each step lost the most, this would be `1.5 k + 20`. Half of that is lost if all
    /// terms have one sign, and less otherwise.)
    ///
    /// Of 8-bit floating-point numbers the tensor cores add 128 products in four steps. A step cuts
    /// off less than `2^(e - 13)` from each of 32 products and the sum before, where `e` is the
    /// greatest exponent, and less than `2^-13` of the sum that results. The exponent of a product
    /// with a subnormal factor is up to `f` above its own, where the format has `f` bits of
    /// fraction. (With two such factors nothing is cut off.) In later steps the sum before has its
    /// own exponent. So it is at most `(2^f + 3) 34 2^-13` of the terms.
    ///
    /// Emulated fp32 has at most `k / 32 + 48` roundings, or `k / 32 + 58` with scaled slices of
    /// f16. It is not known here whether f32 was split: `k + 58` is above both.
    pub(super) fn bounds(&self, k: usize) -> Bounds {
        let (mut roundings, format) = (self.roundings(k), self.computed);
        let mut of_factors = 0.0;
        if let Some(factors) = self.factors {
            let u = factors.roundoff();
            of_factors = 2.0 * u + u * u;
            roundings += 17.0;
        }
        if let Some(format) = self.of_8_bits {
            of_factors = (2f64.powi(format.digits() as i32 - 1) + 3.0) * 34.0 / 8192.0;
        }
        if self.sliced {
            roundings += 55.0;
        }
        if format == NumberFormat::F64 {
            roundings += 4.0;
        }
        let gamma = match roundings * format.roundoff() {
            small if small < 1.0 => small / (1.0 - small),
            _ => f64::INFINITY,
        };
        let least = roundings * format.tiny() * self.alpha.abs().max(1.0);
        Bounds { gamma: of_factors + gamma * (1.0 + of_factors), least }
    }

    /// The error of an element after an exact sum of integers.
    pub(super) fn after_an_exact_sum(&self, magnitude: f64) -> f64 {
        match self.is_exact(magnitude, self.computed) {
            true => 0.0,
            false => self.rounded_after(magnitude),
        }
    }

    /// The error of sums of elements after exact sums. Alpha, beta and the bias take three
    /// roundings, one to spare. None is taken to be needed if the factors have few digits behind
    /// the point.
    pub(super) fn sum_after_exact_sums(&self, magnitude: f64) -> f64 {
        if self.digits_behind_the_point().is_some() { 0.0 } else { self.rounded_after(magnitude) }
    }

    /// Whether the format holds what alpha, beta and the bias make of integers. `magnitude`: the
    /// sum of their absolute values at the end.
    pub(super) fn is_exact(&self, magnitude: f64, format: NumberFormat) -> bool {
        let largest = 2f64.powi(format.digits() as i32);
        // Of a NaN nothing is rounded.
        let is_beyond = |digits| magnitude * 2f64.powi(digits) > largest;
        self.digits_behind_the_point().is_some_and(|digits| !is_beyond(digits))
    }

    /// The binary digits of alpha and beta behind the point. `None` if these are more than eight.
    fn digits_behind_the_point(&self) -> Option<i32> {
        let is_whole = |digits: &i32| {
            [self.alpha, self.beta]
                .iter()
                .all(|factor| (factor * 2f64.powi(*digits)).fract() == 0.0)
        };
        (0..=8).find(is_whole)
    }

    fn rounded_after(&self, magnitude: f64) -> f64 {
        let roundings = 4.0 * self.computed.roundoff();
        roundings / (1.0 - roundings) * magnitude
    }

    /// Whether a sum may have overflowed. `size` and `magnitude`: the sums of its terms' absolute
    /// values, before alpha and at the end.
    pub(super) fn may_overflow(&self, size: f64, magnitude: f64) -> bool {
        let largest = size.max(magnitude);
        // Rounding makes no sum twice as large.
        largest.is_finite() && largest > self.computed.largest() / 2.0
    }

    /// The smallest and the largest value of an element that was also rounded when it was stored.
    pub(super) fn stored(&self, want: f64, bound: f64) -> (f64, f64) {
        (self.stored.nearest(want - bound), self.stored.nearest(want + bound))
    }

    /// The bound of an element that is stored as a finite number.
    pub(super) fn stored_bound(&self, want: f64, bound: f64) -> f64 {
        if self.stored == self.computed {
            return bound;
        }
        let (low, high) = self.stored(want, bound);
        if low == high && low.is_infinite() {
            return 0.0; // The stored value must be infinite.
        }
        let largest = self.stored.largest();
        let off = |end: f64| (end.clamp(-largest, largest) - want).abs();
        off(low).max(off(high))
    }
}

/// The error bounds of elements.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    gamma: f64,
    /// The part for underflow. It also holds if all terms are zero.
    pub(super) least: f64,
}

impl Bounds {
    /// The bound of an element. `magnitude`: the sum of its terms' absolute values.
    pub(super) fn of(self, magnitude: f64) -> f64 {
        // An infinite gamma times a magnitude of zero is an exact zero.
        let relative = if magnitude == 0.0 { 0.0 } else { self.gamma * magnitude };
        relative + self.least
    }
}

/// Numbers of a narrower type as f64.
pub struct Widened<'a, T>(pub &'a dyn Source<T>);

impl<T: Pod + Default + Into<f64>> Source<f64> for Widened<'_, T> {
    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn cols(&self) -> usize {
        self.0.cols()
    }

    fn layout(&self) -> Layout {
        self.0.layout()
    }

    fn read(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &mut [f64],
    ) -> Result<()> {
        let mut narrow = memory::filled(T::default(), values.len())?;
        self.0.read(rows, cols, layout, &mut narrow)?;
        values.iter_mut().zip(narrow).for_each(|(value, narrow)| *value = narrow.into());
        Ok(())
    }
}

#[cfg(all(test, feature = "npy"))]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_sixteen_bits_are_the_nearest() {
        use simt::Bf16;
        let numbers = (0..=u16::MAX).map(|bits| f64::from(Bf16::from_bits(bits)));
        for value in numbers.filter(|value| value.is_finite()) {
            assert_eq!(NumberFormat::BF16.nearest(value), value);
            // The midpoint to the next f32, and numbers next to it.
            let bits = (value as f32).to_bits();
            for near in [bits | 0x7fff, bits | 0x8000, bits | 0x8001].map(f32::from_bits) {
                let wanted = f64::from(Bf16::from_f32(near));
                assert_eq!(NumberFormat::BF16.nearest(near.into()), wanted, "{near}");
            }
        }
        assert_eq!(NumberFormat::BF16.nearest(3.39e38), NumberFormat::BF16.largest());
        assert_eq!(NumberFormat::BF16.nearest(f64::MAX), f64::INFINITY);
        assert_eq!(NumberFormat::BF16.nearest(-3.4e38), f64::NEG_INFINITY);
        assert!(NumberFormat::BF16.nearest(f64::NAN).is_nan());
    }

    #[test]
    fn halves_are_the_nearest() {
        use simt::F16;
        let halves = (0..=u16::MAX).map(|bits| f64::from(F16::from_bits(bits).to_f32()));
        for value in halves.filter(|half| half.is_finite()) {
            assert_eq!(NumberFormat::F16.nearest(value), value);
            for near in
                [value * (1.0 + 2f64.powi(-12)), value * (1.0 + 2f64.powi(-11)), value * 1.0007]
            {
                use gpu_gemm::npy::Element;
                assert_eq!(NumberFormat::F16.nearest(near), f64::from(near.to_f16()), "{near}");
            }
        }
        assert_eq!(NumberFormat::F16.nearest(-1e9), f64::NEG_INFINITY);
        assert!(NumberFormat::F16.nearest(f64::NAN).is_nan());
    }
}
