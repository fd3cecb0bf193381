//! Whether a candidate's C is right, and how accurate it is.

use host::{
    Compute, Device,
    baseline::{DenseBatch, Epilogue},
    operands,
    scaling::Scaling,
    verify::{Comparison, Criterion},
};

use super::{
    added::Added,
    case::{Case, Set, draw, of_batch},
    row::Row,
};
use crate::cli::{
    Failure,
    args::Verify,
    list::six_digits,
    types::Value,
    verification::{After, Verification},
};

/// An upper limit of the relative error of an f32 sum of k products. Up to k = 15625 it is a tenth
/// of tf32's error, 3e-4. From there it grows with the root of k.
fn fp32_level(k: usize) -> f64 {
    (2.4e-7 * (k as f64).sqrt()).max(3e-5)
}

/// No arithmetic of tensor cores has such an error: C is another product, or none.
const NO_PRODUCT: f64 = 0.05;

/// The numbers of a product and of its epilogues, in host memory.
pub(super) struct Numbered<T, O> {
    /// A and B.
    pub(super) operands: [Vec<T>; 2],
    pub(super) added: Added<O>,
}

/// What C must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct How {
    pub(super) compute: Compute,
    pub(super) epilogue: Epilogue,
    pub(super) criterion: Criterion,
}

/// Integers, for an exact product: in host memory, and on the device.
type Integers<T, O> = (Numbered<T, O>, Set<T, O>);

/// The reference of a size.
pub(super) struct Reference<T, O> {
    /// Uniform numbers.
    pub(super) real: Numbered<T, O>,
    /// Integers of the same sizes.
    pub(super) integers: Option<Integers<T, O>>,
    /// How much of C is compared: all, a sample, or nothing.
    pub(super) verify: Verify,
    /// For real numbers, and for integers.
    pub(super) known: [Known<O>; 2],
}

impl<T: Value, O: Value> Reference<T, O> {
    /// Draws integers, and decides how much to compare: a sample, if all takes more than `seconds`.
    pub(super) fn new(
        device: &Device,
        case: &Case,
        real: Numbered<T, O>,
        verify: Verify,
        seed: u64,
        seconds: f64,
    ) -> Result<Self, Failure> {
        let product = &case.product;
        let verify = match verify {
            Verify::Auto if estimate(product) <= seconds => Verify::Full,
            Verify::Auto => Verify::Sample,
            asked => asked,
        };
        // Scales are up to two, of A and of B.
        let factor = if case.epilogues.iter().any(|of| of.scales.is_some()) { 4 } else { 1 };
        let steps = product.shape.k().saturating_mul(factor);
        let magnitude = operands::exact_magnitude_of(steps, (T::TYPE, O::TYPE));
        let integers = match magnitude.filter(|_| verify != Verify::None) {
            None => None,
            Some(magnitude) => {
                let [a, b] = draw::<T>(product, seed, Some(magnitude))?;
                let added = Added::draw(case, seed, Some(magnitude))?;
                let set =
                    Set::upload(device, product, [&a, &b])?.with(&added.bias, &added.scaling)?;
                Some((Numbered { operands: [a, b], added }, set))
            }
        };
        Ok(Reference { real, integers, verify, known: [Known::NOTHING, Known::NOTHING] })
    }
}

/// An upper estimate of the seconds to compare all of C: three products, at 5 GFLOP/s per core in
/// float64.
fn estimate(product: &DenseBatch) -> f64 {
    3.0 * product.flop() / (5e9 * f64::from(Device::cpu().sms()))
}

/// Compares products of a batch: all of them, or with a sample the first, one in the middle and the
/// last.
fn compare<T: Value, O: Value>(
    product: &DenseBatch,
    verify: Verify,
    Numbered { operands: [a, b], added }: &Numbered<T, O>,
    c: &[O],
    how: How,
    seed: u64,
) -> Result<Vec<Verification>, Failure> {
    let DenseBatch { shape, count, .. } = *product;
    let mut which = match verify {
        Verify::Sample => vec![0, count / 2, count.saturating_sub(1)],
        _ => (0..count).collect(),
    };
    which.dedup();
    let mut found = Vec::new();
    for index in which {
        let of_one = of_batch(shape, index, (&a[..], &b[..], c));
        let How { compute, epilogue, criterion } = how;
        let before = match epilogue.beta {
            0.0 => &[],
            _ => &added.before[index * shape.c_len()..][..shape.c_len()],
        };
        let scaling = Scaling::find(&added.scaling, epilogue.scales);
        let after = After { epilogue, bias: &added.bias, before, scaling };
        found.extend(Verification::after(verify, shape, of_one, after, compute, criterion, seed)?);
    }
    Ok(found)
}

/// The bits of a number in float64, which holds it.
fn bits(value: impl Into<f64>) -> u64 {
    value.into().to_bits()
}

/// The last C, what it had to be, and its comparison. Another kernel with the same bits is not
/// compared again.
pub(super) struct Known<O>(Option<(Vec<O>, How, Vec<Verification>)>);

impl<O: Value> Known<O> {
    const NOTHING: Self = Known(None);

    /// As [`compare`]. A C with the bits of the last one is not compared again.
    pub(super) fn compare<T: Value>(
        &mut self,
        product: &DenseBatch,
        verify: Verify,
        numbers: &Numbered<T, O>,
        c: Vec<O>,
        how: How,
        seed: u64,
    ) -> Result<Vec<Verification>, Failure> {
        if let Some((last, wanted, found)) = &self.0
            && *wanted == how
            && last.len() == c.len()
            && last.iter().zip(&c).all(|(one, other)| bits(*one) == bits(*other))
        {
            return Ok(found.clone());
        }
        let found = compare(product, verify, numbers, &c, how, seed)?;
        self.0 = Some((c, how, found.clone()));
        Ok(found)
    }
}

/// The results of a candidate on real numbers and on integers.
pub(super) struct Verdict {
    k: usize,
    verify: Verify,
    /// Over all products compared. `None` if none was.
    elements: Option<Comparison>,
    /// Whether no product is wrong. Also true if nothing was compared.
    pub(super) nothing_wrong: bool,
    exact: Option<bool>,
    verified: Option<bool>,
}

impl Verdict {
    pub(super) fn new(
        product: &DenseBatch,
        verify: Verify,
        real: &[Verification],
        exact: Option<&[Verification]>,
        must_be_exact: bool,
    ) -> Self {
        let nothing_wrong = |found: &[Verification]| found.iter().all(Verification::nothing_wrong);
        let passed = |found: &[Verification]| found.iter().all(Verification::passed);
        let elements =
            real.iter().map(|one| one.elements().clone()).reduce(|all, one| all.merge(one));
        Verdict {
            k: product.shape.k(),
            verify,
            nothing_wrong: nothing_wrong(real) && exact.is_none_or(nothing_wrong),
            exact: exact.map(nothing_wrong),
            verified: elements
                .as_ref()
                .map(|_| passed(real) && exact.map_or(!must_be_exact, passed)),
            elements,
        }
    }

    fn err(&self) -> Option<f64> {
        self.elements.as_ref().map(Comparison::relative_err)
    }

    /// Whether it is the product at all, in any arithmetic. Also true if nothing was compared.
    pub(super) fn is_a_product(&self) -> bool {
        self.err().is_none_or(|err| err <= NO_PRODUCT)
    }

    /// Whether its error is that of f32 sums. `None` if nothing was compared.
    pub(super) fn is_fp32(&self) -> Option<bool> {
        self.err().map(|err| err <= fp32_level(self.k))
    }

    pub(super) fn tell(&self, row: &mut Row) {
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let of = |figure: fn(&Comparison) -> f64| {
            self.elements.as_ref().map(figure).and_then(finite).map(six_digits)
        };
        row.err = of(Comparison::relative_err);
        row.max_abs_err = of(|elements| elements.max_abs_err);
        row.max_err_over_bound = of(|elements| elements.max_err_over_bound);
        row.verify = match self.verify {
            Verify::None => "none",
            Verify::Sample => "sample",
            _ => "full",
        }
        .to_owned();
        row.exact_on_integers = self.exact;
        row.verified = self.verified;
    }
}

#[cfg(test)]
mod tests {
    use host::Shape;

    use super::*;

    fn plain(operands: [Vec<f32>; 2]) -> Numbered<f32, f32> {
        Numbered {
            operands,
            added: Added { bias: Vec::new(), before: Vec::new(), scaling: Vec::new() },
        }
    }

    fn how(criterion: Criterion) -> How {
        How { compute: Compute::Native, epilogue: Epilogue::PLAIN, criterion }
    }

    /// A x B with each factor rounded to a significand of `bits`.
    fn rounded(bits: u32) -> Verdict {
        let product = DenseBatch::one(Shape::new(40, 30, 200).unwrap());
        let [a, b] = draw::<f32>(&product, 1, None).unwrap();
        let round = |x: f32| {
            let unit = 2f32.powi(x.abs().log2().floor() as i32 + 1 - bits as i32);
            (x / unit).round() * unit
        };
        let mut c = vec![0.0; 1200];
        for (index, c) in c.iter_mut().enumerate() {
            let (row, col) = (index / 30, index % 30);
            for p in 0..200 {
                *c += round(a[row * 200 + p]) * round(b[p * 30 + col]);
            }
        }
        let found = compare(&product, Verify::Full, &plain([a, b]), &c, how(Criterion::Bound), 1);
        let found = found.unwrap();
        Verdict::new(&product, Verify::Full, &found, None, false)
    }

    #[test]
    fn the_error_tells_float32_from_tf32_and_both_from_nothing() {
        let fp32 = rounded(24);
        assert!(fp32.nothing_wrong && fp32.is_fp32() == Some(true), "{:?}", fp32.err());
        assert!(fp32.err().is_some_and(|err| (1e-8..1e-6).contains(&err)), "{:?}", fp32.err());
        let tf32 = rounded(11);
        assert!(tf32.is_a_product() && tf32.is_fp32() == Some(false), "{:?}", tf32.err());
        assert!(tf32.err().is_some_and(|err| (1e-4..1e-3).contains(&err)), "{:?}", tf32.err());
        assert!(!rounded(1).is_a_product());
    }

    #[test]
    fn only_the_same_bits_are_known() {
        let product = DenseBatch::one(Shape::new(2, 2, 2).unwrap());
        let [a, b] = [[1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 0.0, 1.0]];
        let numbers = plain([a.to_vec(), b.to_vec()]);
        let mut known = Known::NOTHING;
        let mut right = |c: [f32; 4]| {
            let how = how(Criterion::Exact);
            let found = known.compare(&product, Verify::Full, &numbers, c.to_vec(), how, 1);
            found.unwrap().iter().all(Verification::passed)
        };
        assert!(right(a) && right(a));
        assert!(!right([1.0, 2.0, 3.0, 5.0]) && !right([1.0, 2.0, 3.0, f32::NAN]) && right(a));
    }

    #[test]
    fn one_wrong_product_of_a_batch_is_found() {
        let product = DenseBatch { count: 5, ..DenseBatch::one(Shape::new(3, 3, 3).unwrap()) };
        let [a, b] = draw::<f32>(&product, 1, Some(3)).unwrap();
        let mut c = vec![0.0f32; 45];
        for (index, c) in c.iter_mut().enumerate() {
            let (start, row, col) = (index / 9 * 9, index / 3 % 3, index % 3);
            *c = (0..3).map(|p| a[start + row * 3 + p] * b[start + p * 3 + col]).sum();
        }
        let numbers = plain([a, b]);
        let verdict = |c: &[f32], verify| {
            let found = compare(&product, verify, &numbers, c, how(Criterion::Exact), 1).unwrap();
            Verdict::new(&product, verify, &found, Some(&found), true)
        };
        assert_eq!(verdict(&c, Verify::Full).verified, Some(true));
        assert_eq!(verdict(&c, Verify::Sample).verified, Some(true));
        let nothing = verdict(&c, Verify::None);
        assert!(nothing.nothing_wrong && nothing.verified.is_none() && nothing.is_a_product());
        c[44] += 1.0;
        let last = verdict(&c, Verify::Sample);
        assert_eq!(
            (last.nothing_wrong, last.exact, last.verified),
            (false, Some(false), Some(false))
        );
        c[44] = f32::NAN;
        assert!(!verdict(&c, Verify::Full).is_a_product());
    }
}
