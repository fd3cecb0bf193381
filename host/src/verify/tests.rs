//! Claims with alpha, beta, other types and layouts: right results pass, wrong ones do not.

use super::*;
use crate::operands;
use gpu_gemm::{Activation, blocks::Source};

const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColMajor];

/// Matrices of a product with alpha and beta, in f64 and row-major, and the right C.
struct Case {
    sizes: [usize; 3],
    factors: (f64, f64),
    a: Vec<f64>,
    b: Vec<f64>,
    before: Vec<f64>,
    bias: Option<Vec<f64>>,
    activation: Activation,
    criterion: Criterion,
    c: Vec<f64>,
}

impl Case {
    fn new(sizes: [usize; 3], factors: (f64, f64), scale: f64) -> Self {
        let [m, n, k] = sizes;
        let draw = |seed, len| {
            let values = operands::uniform::<f32>(seed, len).unwrap();
            values.into_iter().map(|x| f64::from(x) * scale).collect::<Vec<_>>()
        };
        let (a, b, before) = (draw(1, m * k), draw(2, k * n), draw(3, m * n));
        let element = |i: usize| {
            let sum: f64 = (0..k).map(|p| a[i / n * k + p] * b[p * n + i % n]).sum();
            factors.0 * sum + factors.1 * before[i]
        };
        let c = (0..m * n).map(element).collect();
        let (bias, activation, criterion) = (None, Activation::Identity, Criterion::Bound);
        Case { sizes, factors, a, b, before, bias, activation, criterion, c }
    }

    /// The case with a bias and a function.
    fn with(mut self, activation: Activation, function: impl Fn(f64) -> f64) -> Self {
        let n = self.sizes[1];
        let bias = operands::integers::<f64>(4, n, 8).unwrap();
        for (i, c) in self.c.iter_mut().enumerate() {
            *c = function(*c + bias[i % n]);
        }
        Case { bias: Some(bias), activation, ..self }
    }

    /// The full and the sampled comparison of `c`. They are the same for all layouts.
    fn compare(&self, c: &[f64], [computed, stored]: [NumberFormat; 2]) -> (Comparison, Sample) {
        let [m, n, k] = self.sizes;
        let mut all = Vec::new();
        for (number, layout) in
            [0, 1, 2, 5].into_iter().flat_map(|x| LAYOUTS.map(|layout| (x, layout)))
        {
            let dense = |shift: usize, rows: usize, cols: usize, values: &[f64]| {
                let other = LAYOUTS[(number >> shift) & 1];
                let mut stored = vec![0.0; values.len()];
                let row_major = Dense::new(rows, cols, Layout::RowMajor, values).unwrap();
                row_major.read(0..rows, 0..cols, other, &mut stored).unwrap();
                Dense::new(rows, cols, other, stored).unwrap()
            };
            let (a, b) = (dense(0, m, k, &self.a), dense(1, k, n, &self.b));
            let before = dense(2, m, n, &self.before);
            let mut values = vec![0.0; m * n];
            let row_major = Dense::new(m, n, Layout::RowMajor, c).unwrap();
            row_major.read(0..m, 0..n, layout, &mut values).unwrap();
            let c = Dense::new(m, n, layout, values).unwrap();
            let (alpha, beta) = self.factors;
            let claim = Claim {
                a: &a,
                b: &b,
                before: Some(&before),
                c: &c,
                alpha,
                beta,
                bias: self.bias.as_deref(),
                activation: self.activation,
                factors: None,
                sliced: false,
                of_8_bits: None,
                computed,
                stored,
            };
            let sample = claim.sample(self.criterion, 7).unwrap();
            all.push((claim.compare(self.criterion).unwrap(), sample));
        }
        // The references are equal apart from rounding in the order of summation.
        assert!(all.windows(2).all(|two| {
            let [(full, sample), (other, other_sample)] = two else { return false };
            full.wrong == other.wrong && sample.wrong_rows == other_sample.wrong_rows
        }));
        all.remove(0)
    }
}

const SIZES: [usize; 3] = [97, 101, 50];
const PLACE: usize = 50 * 101 + 60;

#[test]
fn alpha_and_beta_are_seen() {
    let formats = [NumberFormat::F32; 2];
    for factors in [(1.0, 0.0), (0.7, 0.0), (1.0, 1.0), (-0.3, 2.5), (0.0, 2.0), (0.0, 0.0)] {
        let case = Case::new(SIZES, factors, 1.0);
        let single = case.c.iter().map(|&x| f64::from(x as f32)).collect::<Vec<_>>();
        let (full, sample) = case.compare(&single, formats);
        assert!(full.passed() && sample.passed(), "{factors:?} {full:?} {sample:?}");
        assert!(full.max_err_over_bound < 0.3, "{full:?}");
        assert_eq!((full.elements, sample.projections), (97 * 101, 16));
        // Without beta, without alpha, and with one element wrong.
        let other = Case::new(SIZES, (factors.0, factors.1 + 0.5), 1.0);
        let (full, sample) = other.compare(&single, formats);
        assert!(!full.passed() && !sample.passed(), "{factors:?}");
        let other = Case::new(SIZES, (factors.0 + 0.5, factors.1), 1.0);
        let (full, sample) = other.compare(&single, formats);
        assert!(!full.passed() && !sample.passed(), "{factors:?}");
        let mut wrong = single.clone();
        wrong[PLACE] += 1.0;
        let (full, sample) = case.compare(&wrong, formats);
        assert_eq!((full.wrong, sample.wrong_rows), (1, 1), "{factors:?}");
        assert_eq!(full.worst.map(|worst| (worst.row, worst.col)), Some((50, 60)));
    }
}

/// A bias and an activation are seen, in all of C and in a sample, within the bound and exactly.
#[test]
fn bias_and_activation_are_seen() {
    for activation in [Activation::Identity, Activation::Relu] {
        let function = |x: f64| if activation == Activation::Relu { x.max(0.0) } else { x };
        for factors in [(1.0, 0.0), (0.5, 2.0), (0.7, 0.0)] {
            let case = || Case::new(SIZES, factors, 1.0).with(activation, function);
            let right = case();
            let single = right.c.iter().map(|&x| f64::from(x as f32)).collect::<Vec<_>>();
            let (full, sample) = right.compare(&single, [NumberFormat::F32; 2]);
            assert!(
                full.passed() && sample.passed(),
                "{activation} {factors:?} {full:?} {sample:?}"
            );
            // An activation is not linear.
            let is_linear = activation == Activation::Identity;
            assert_eq!(sample.projections, if is_linear { 16 } else { 0 });
            let mut other = case();
            other.bias.as_mut().unwrap().iter_mut().for_each(|x| *x += 0.01);
            let (full, sample) = other.compare(&single, [NumberFormat::F32; 2]);
            assert!(!full.passed() && !sample.passed(), "{activation} {factors:?}");
            let other = Case { activation: Activation::Gelu, ..case() };
            let (full, sample) = other.compare(&single, [NumberFormat::F32; 2]);
            assert!(!full.passed() && !sample.passed(), "{activation} {factors:?}");
        }
    }
    let shape = Shape::new(1, 3, 1).unwrap();
    let short = slices(shape, &[1.0], &[1.0; 3], &[1.0f32; 3], |claim| {
        let mut claim: Claim = claim;
        claim.bias = Some(&[0.0; 2]);
        claim.compare(Criterion::Exact)
    });
    assert_eq!(short.unwrap_err().to_string(), "bias.len() = 2: must be 3");
}

/// After an exact sum only what follows it is rounded: the bound does not grow with k.
#[test]
fn an_exact_sum_has_the_error_of_its_epilogue_alone() {
    let integers = |factors| {
        let mut case = Case::new(SIZES, factors, 1.0);
        let [m, n, k] = SIZES;
        let draw = |seed, len| {
            let values = operands::integers::<f32>(seed, len, 8).unwrap();
            values.into_iter().map(f64::from).collect::<Vec<_>>()
        };
        (case.a, case.b, case.before) = (draw(1, m * k), draw(2, k * n), draw(3, m * n));
        for i in 0..m * n {
            let sum = (0..k).map(|p| case.a[i / n * k + p] * case.b[p * n + i % n]).sum::<f64>();
            case.c[i] = factors.0 * sum + factors.1 * case.before[i];
        }
        case.criterion = Criterion::Exact;
        case
    };
    let stored = |case: &Case| case.c.iter().map(|&x| f64::from(x as f32)).collect::<Vec<_>>();
    for factors in [(1.0, 0.0), (0.5, -1.0)] {
        let case = integers(factors).with(Activation::Relu, |x| x.max(0.0));
        let (full, sample) = case.compare(&stored(&case), [NumberFormat::F32; 2]);
        assert!(full.passed() && sample.passed(), "{full:?}");
        // Exactly: the next number is wrong.
        let next =
            stored(&case).iter().map(|&x| f64::from((x as f32).next_up())).collect::<Vec<_>>();
        let (full, _) = case.compare(&next, [NumberFormat::F32; 2]);
        assert_eq!(full.wrong, 97 * 101);
    }
    // A factor of many digits is rounded with each element.
    let case = integers((f64::from(0.7f32), 0.0)).with(Activation::Identity, |x| x);
    let (full, sample) = case.compare(&stored(&case), [NumberFormat::F32; 2]);
    assert!(full.passed() && sample.passed(), "{full:?} {sample:?}");
    let off = stored(&case).iter().map(|&x| x * (1.0 + 1e-5)).collect::<Vec<_>>();
    assert!(!case.compare(&off, [NumberFormat::F32; 2]).0.passed());
    // GELU has an error of its own, of a few units.
    let case =
        integers((1.0, 0.0)).with(Activation::Gelu, |x| 0.5 * x * libm::erfc(-x / 2f64.sqrt()));
    let (full, sample) = case.compare(&stored(&case), [NumberFormat::F32; 2]);
    assert!(full.passed() && sample.passed(), "{full:?} {sample:?}");
    let off = stored(&case).iter().map(|&x| x * (1.0 + 2e-6)).collect::<Vec<_>>();
    assert!(!case.compare(&off, [NumberFormat::F32; 2]).0.passed());
}

/// A factor with digits behind the point leaves no integer of 53 digits exact.
#[test]
fn what_follows_a_large_exact_sum_is_rounded() {
    let [m, n, k] = SIZES;
    let (alpha, beta) = (3.0 + 2f64.powi(-8), 2f64.powi(-8));
    let mut case = Case::new(SIZES, (alpha, beta), 1.0);
    let draw = |seed, len| operands::integers::<f64>(seed, len, 1 << 22).unwrap();
    (case.a, case.b, case.before) = (draw(1, m * k), draw(2, k * n), draw(3, m * n));
    case.criterion = Criterion::Exact;
    let mut others = 0;
    for i in 0..m * n {
        let sum = (0..k).map(|p| case.a[i / n * k + p] * case.b[p * n + i % n]).sum::<f64>();
        // Rounded once less than the reference.
        case.c[i] = alpha.mul_add(sum, beta * case.before[i]);
        others += usize::from(case.c[i] != alpha * sum + beta * case.before[i]);
    }
    assert!(others > 100, "{others}");
    let (full, sample) = case.compare(&case.c, [NumberFormat::F64; 2]);
    assert!(full.passed() && sample.passed(), "{full:?} {sample:?}");
    let off = case.c.iter().map(|&x| x * (1.0 + 1e-14)).collect::<Vec<_>>();
    assert!(!case.compare(&off, [NumberFormat::F64; 2]).0.passed());
}

#[test]
fn doubles_are_held_to_their_own_bound() {
    let case = Case::new(SIZES, (0.7, -2.0), 1.0);
    let (full, sample) = case.compare(&case.c, [NumberFormat::F64; 2]);
    assert!(full.passed() && sample.passed(), "{full:?}");
    let single = case.c.iter().map(|&x| f64::from(x as f32)).collect::<Vec<_>>();
    let (full, sample) = case.compare(&single, [NumberFormat::F64; 2]);
    assert!(full.wrong > 9000 && sample.wrong_rows == 97, "{full:?}");
    // Stored as f32 it is right.
    let (full, sample) = case.compare(&single, [NumberFormat::F64, NumberFormat::F32]);
    assert!(full.passed() && sample.passed(), "{full:?} {sample:?}");
    let next = single.iter().map(|&x| f64::from((x as f32).next_up())).collect::<Vec<_>>();
    let (full, _) = case.compare(&next, [NumberFormat::F64, NumberFormat::F32]);
    assert_eq!(full.wrong, 97 * 101);
}

#[test]
fn halves_may_be_rounded_and_overflow() {
    let formats = [NumberFormat::F32, NumberFormat::F16];
    let case = Case::new(SIZES, (1.5, 0.5), 1.0);
    let halves =
        |case: &Case| case.c.iter().map(|&x| NumberFormat::F16.nearest(x)).collect::<Vec<_>>();
    let (full, sample) = case.compare(&halves(&case), formats);
    assert!(full.passed() && sample.passed() && full.overflowing == 0, "{full:?} {sample:?}");
    assert!(full.max_abs_err > 1e-4 && full.max_err_over_bound <= 1.0, "{full:?}");
    let mut wrong = halves(&case);
    wrong[PLACE] = NumberFormat::F16.nearest(wrong[PLACE] * 1.002);
    assert_eq!(case.compare(&wrong, formats).0.wrong, 1);

    // Sums of some hundred thousands, which must be infinite in f16.
    let case = Case::new(SIZES, (1.5, 0.5), 150.0);
    let right = halves(&case);
    let infinite = right.iter().filter(|x| x.is_infinite()).count();
    let (full, sample) = case.compare(&right, formats);
    assert!(full.passed() && sample.nothing_wrong(), "{full:?} {sample:?}");
    assert!(infinite > 100 && full.overflowing == infinite as u64, "{infinite} {full:?}");
    let finite = right.iter().map(|x| x.clamp(-65504.0, 65504.0)).collect::<Vec<_>>();
    assert_eq!(case.compare(&finite, formats).0.wrong, infinite as u64);
    let mut wrong = right.clone();
    let place = right.iter().position(|x| x.abs() < 1000.0).unwrap();
    wrong[place] = f64::INFINITY;
    assert_eq!(case.compare(&wrong, formats).0.wrong, 1);
}

#[test]
fn sums_may_overflow_where_they_may_and_nowhere_else() {
    let formats = [NumberFormat::F32; 2];
    let case = Case::new(SIZES, (1.0, 0.0), 1e19);
    let single = case.c.iter().map(|&x| f64::from(x as f32)).collect::<Vec<_>>();
    let infinite = single.iter().filter(|x| x.is_infinite()).count();
    let (full, sample) = case.compare(&single, formats);
    assert!(full.passed() && sample.nothing_wrong(), "{full:?} {sample:?}");
    assert!(infinite > 100 && full.overflowing == infinite as u64, "{infinite} {full:?}");
    let case = Case::new(SIZES, (1.0, 0.0), 1.0);
    let mut wrong = case.c.clone();
    wrong[PLACE] = f64::INFINITY;
    let (full, sample) = case.compare(&wrong, formats);
    assert_eq!((full.wrong, sample.wrong_rows), (1, 1));
}

#[test]
fn blocks_of_the_reference_join() {
    // Longer than a block along each side in turn.
    for sizes in [[full::BLOCK + 3, 5, 7], [5, full::BLOCK + 3, 7], [5, 7, 2 * full::BLOCK + 3]] {
        let case = Case::new(sizes, (0.5, 1.0), 1.0);
        let single = case.c.iter().map(|&x| f64::from(x as f32)).collect::<Vec<_>>();
        let (full, sample) = case.compare(&single, [NumberFormat::F32; 2]);
        assert!(full.passed() && sample.passed(), "{sizes:?} {full:?} {sample:?}");
        assert_eq!(full.elements, (sizes[0] * sizes[1]) as u64);
        let mut wrong = single.clone();
        let last = wrong.len() - 1;
        wrong[last] += 1.0;
        let (full, sample) = case.compare(&wrong, [NumberFormat::F32; 2]);
        let place = full.worst.map(|worst| (worst.row, worst.col));
        assert_eq!((full.wrong, place), (1, Some((sizes[0] - 1, sizes[1] - 1))));
        assert_eq!((sample.wrong_rows, sample.elements.wrong), (1, 1));
    }
}

#[test]
fn what_is_in_the_way_of_a_projection_is_left_out() {
    let mut case = Case::new(SIZES, (1.0, 1.0), 1.0);
    (case.a[3 * 50 + 7], case.b[9 * 101 + 20]) = (f64::NAN, f64::INFINITY);
    case.before[40 * 101 + 30] = f64::NAN;
    let [_, n, k] = SIZES;
    for i in 0..case.c.len() {
        let sum: f64 = (0..k).map(|p| case.a[i / n * k + p] * case.b[p * n + i % n]).sum();
        case.c[i] = f64::from((sum + case.before[i]) as f32);
    }
    let (full, sample) = case.compare(&case.c, [NumberFormat::F32; 2]);
    assert!(full.passed() && sample.passed() && sample.projections == 16, "{full:?} {sample:?}");
    // In a row that is compared, and in the row that must be NaN.
    for place in [PLACE, 3 * 101 + 60] {
        let mut wrong = case.c.clone();
        wrong[place] = 9.0;
        let (full, sample) = case.compare(&wrong, [NumberFormat::F32; 2]);
        assert_eq!((full.wrong, sample.wrong_rows), (1, 1), "{place}");
    }
}
