//! `errors`: the errors of products of f32 or f64, for kinds of numbers and inner sizes, compared
//! with libraries.

use std::{io::Write, iter};

use host::{
    Error, Gemm, Shape, Type,
    baseline::{DenseBatch, Epilogue},
    parallel,
    verify::{NumberFormat, product_of_doubles},
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::{
    Failure,
    args::{ComputeMode, Errors, KernelChoice, Numbers, name_of, product_by},
    bench::{
        case::{Set, Views},
        library::{self, Compared},
    },
    list::{json, six_digits},
    memory::check_bytes,
    note,
    steps::Steps,
    types::Value,
};

/// The errors for a kind of numbers and an inner size, over all compared elements.
#[derive(Clone, Debug, Serialize)]
struct Line {
    numbers: String,
    k: usize,
    who: String,
    /// Relative to the element.
    median: f64,
    largest: f64,
    /// `|C - ref| / |ref|` in the Frobenius norm.
    frobenius: f64,
    /// The largest error divided by the sum of the terms' absolute values.
    of_terms: f64,
    elements: usize,
}

/// Compares errors, and prints them.
pub(super) fn errors(args: &Errors, steps: Steps, out: &mut impl Write) -> Result<(), Failure> {
    if args.compute != ComputeMode::Fp32 && args.operands != Type::F32 {
        let limit = format!("must be fp32 with --type {}", args.operands);
        return Err(Error::argument("--compute", name_of(&args.compute), limit).into());
    }
    match args.operands == Type::F64 {
        true => errors_of::<f64>(args, steps, out),
        false => errors_of::<f32>(args, steps, out),
    }
}

fn errors_of<T: Compared<T>>(
    args: &Errors,
    steps: Steps,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let device = super::open(args.device)?;
    let stream = device.stream()?;
    let outer = args.outer.unwrap_or(if device.is_cuda() { 1024 } else { 128 }) as usize;
    let (inner, left_out) = args.inner_on(&device);
    if !left_out.is_empty() {
        let sizes = left_out.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        note(format_args!(
            "note: inner sizes of {sizes} take minutes on the CPU, and are left out: --inner {sizes} takes them"
        ));
    }
    let shapes = inner.iter().map(|&k| Shape::new(outer as u64, outer as u64, k.into()));
    let shapes = shapes.collect::<Result<Vec<_>, _>>()?;
    // All sizes are checked before the first one runs. Host memory has the operands twice in
    // float64.
    for shape in &shapes {
        let bytes = DenseBatch::one(*shape).bytes_of::<T, T>();
        check_bytes(bytes.saturating_mul(5), bytes, &device)?;
    }
    let compute = args.compute.into();
    let libraries = match args.vs {
        Some(vs) => library::open::<T, T>(vs, host::Compute::Native, &stream)?,
        None => Vec::new(),
    };
    let gemm = match args.kernel {
        KernelChoice::Auto => Gemm::<T>::new().compute(compute),
        KernelChoice::Named(entry) => product_by(entry, compute)?,
    };
    if !args.json {
        let description = device.description();
        writeln!(
            out,
            "C = A B, {outer} x {outer}, {}, on {}: {description}",
            T::NAME,
            device.name()
        )?;
        writeln!(
            out,
            "{:<11} {:>6}  {:<34} {:>8} {:>8} {:>9} {:>14}",
            "numbers", "k", "kernel", "median", "largest", "Frobenius", "|err|/(|A||B|)"
        )?;
    }
    for &numbers in args.kinds() {
        for &shape in &shapes {
            let product = DenseBatch::one(shape);
            let mut found = Vec::<(String, Found)>::new();
            for number in 0..args.seeds {
                let seed = args.seed.wrapping_add(number.into());
                let step = format!("{}, k = {}, seed {seed}", name_of(&numbers), shape.k());
                steps.step(&step, || -> Result<(), Failure> {
                    let [a, b] = draw::<T>(numbers, shape, seed)?;
                    let rows = args.rows.min(outer as u32) as usize;
                    let rows = (0..rows).map(|row| row * outer / rows).collect::<Vec<_>>();
                    let wanted = Wanted::new(shape, &rows, &a, &b)?;
                    let mut set = Set::<T, T>::upload(&device, &product, [&a, &b])?;
                    let mut put = |who: String, c: Vec<T>| match found
                        .iter_mut()
                        .find(|(other, _)| *other == who)
                    {
                        Some((_, errors)) => errors.add(&wanted, &rows, &c),
                        None => {
                            let mut errors = Found::default();
                            errors.add(&wanted, &rows, &c);
                            found.push((who, errors));
                        }
                    };
                    let Views { a, b, c, .. } = set.views();
                    let choice = product.launch(&gemm, &stream, a, b, c)?;
                    put(choice.entry.name().to_owned(), set.c.to_vec()?);
                    for library in &libraries {
                        if let Some(ready) = library.prepare(&product, Epilogue::PLAIN)? {
                            set.c.fill_bytes(0xff)?;
                            ready.launch(set.views())?;
                            stream.synchronize()?;
                            put(library.name().to_owned(), set.c.to_vec()?);
                        }
                    }
                    Ok(())
                })?;
            }
            for (who, errors) in found {
                let line = errors.line(name_of(&numbers), shape.k(), who);
                match args.json {
                    true => json(out, &line)?,
                    false => show(out, &line)?,
                }
            }
            out.flush()?;
        }
    }
    if libraries.is_empty() && args.vs.is_some() {
        note(format_args!("note: errors beside nobody's"));
    }
    Ok(())
}

fn show(out: &mut impl Write, line: &Line) -> std::io::Result<()> {
    let Line { numbers, k, who, median, largest, frobenius, of_terms, .. } = line;
    writeln!(
        out,
        "{numbers:<11} {k:>6}  {who:<34} {median:>8.1e} {largest:>8.1e} {frobenius:>9.1e} {of_terms:>14.1e}"
    )
}

/// A and B, row-major.
fn draw<T: Value>(numbers: Numbers, shape: Shape, seed: u64) -> Result<[Vec<T>; 2], Error> {
    let (m, n, k) = (shape.m(), shape.n(), shape.k());
    let mut drawn = [Vec::new(), Vec::new()];
    parallel::for_each(drawn.iter_mut().enumerate(), |(operand, values)| {
        if operand == 0 {
            *values = rows(numbers, [m, k], false, seed);
            return Ok(());
        }
        // Drawn column by column: then the factors of a sum are one row of numbers each.
        let columns = rows(numbers, [n, k], true, !seed);
        values.resize(n * k, T::default());
        for (col, column) in columns.chunks(k).enumerate() {
            for (p, &value) in column.iter().enumerate() {
                values[p * n + col] = value;
            }
        }
        Ok(())
    })?;
    Ok(drawn)
}

/// `outer` rows of k numbers.
fn rows<T: Value>(numbers: Numbers, [outer, k]: [usize; 2], is_b: bool, seed: u64) -> Vec<T> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut values = Vec::with_capacity(outer * k);
    for _ in 0..outer {
        // A power that f32 holds, and of numbers of any type the same ones.
        let power = |rng: &mut ChaCha8Rng| f64::from(rng.random_range(-20.0f32..20.0).exp2());
        let of_row = power(&mut rng);
        let outlier = rng.random_range(0..k);
        let start = values.len();
        for p in 0..k {
            let normal: f64 = T::normal(&mut rng).into();
            let value = match numbers {
                Numbers::Normal => normal,
                Numbers::Positive => T::between(&mut rng, [0.0, 1.0]).into(),
                Numbers::Wide => normal * power(&mut rng),
                Numbers::WideRows => normal * of_row,
                Numbers::Outlier if p == outlier => normal * 20f64.exp2(),
                Numbers::Outlier => normal,
                Numbers::Cancelling if p < k / 2 => normal,
                Numbers::Cancelling => {
                    let first: f64 = T::into(values[start + p - k / 2]);
                    let other: f64 = T::nearest(1.0 + normal * (-12f64).exp2()).into();
                    if is_b { first } else { -first * other }
                }
            };
            values.push(T::nearest(value));
        }
    }
    values
}

/// The reference for some rows.
struct Wanted {
    /// The sums, and the sums of the terms' absolute values.
    sums: Vec<f64>,
    sizes: Vec<f64>,
}

impl Wanted {
    fn new<T: Value>(shape: Shape, rows: &[usize], a: &[T], b: &[T]) -> Result<Self, Error> {
        let (n, k) = (shape.n(), shape.k());
        let a = rows.iter().flat_map(|row| &a[row * k..][..k]).copied().map(Into::into);
        let (a, b) = (a.collect::<Vec<_>>(), b.iter().copied().map(Into::into).collect::<Vec<_>>());
        let sizes = |values: &[f64]| values.iter().map(|value| value.abs()).collect::<Vec<_>>();
        // Sums in f64 are no reference for those of f64.
        let sums = match T::FORMAT == NumberFormat::F64 {
            true => product_of_doubles([rows.len(), n, k], &a, &b)?,
            false => multiply([rows.len(), n, k], &a, &b)?,
        };
        Ok(Wanted { sums, sizes: multiply([rows.len(), n, k], &sizes(&a), &sizes(&b))? })
    }
}

/// A product of row-major matrices, on all cores.
fn multiply([m, n, k]: [usize; 3], a: &[f64], b: &[f64]) -> Result<Vec<f64>, Error> {
    let mut c = vec![0.0; m * n];
    assert!(a.len() == m * k && b.len() == k * n);
    let rows_each = m.div_ceil(parallel::threads()).max(1);
    let (n_step, k_step) = (n as isize, k as isize);
    let parts = c.chunks_mut((rows_each * n).max(1)).enumerate();
    parallel::for_each(parts, |(part, c)| {
        let (first, rows) = (part * rows_each, c.len() / n);
        // SAFETY: A has `rows` rows of k elements from `first` on, B has k rows of n, and C's part
        // has `rows` rows of n.
        unsafe {
            let a = a.as_ptr().add(first * k);
            let (b, c) = (b.as_ptr(), c.as_mut_ptr());
            matrixmultiply::dgemm(rows, k, n, 1.0, a, k_step, 1, b, n_step, 1, 0.0, c, n_step, 1);
        }
        Ok(())
    })?;
    Ok(c)
}

/// The errors of all products so far.
#[derive(Default)]
struct Found {
    relative: Vec<f64>,
    squares: f64,
    wanted_squares: f64,
    of_terms: f64,
}

impl Found {
    /// Adds the errors of these rows of a product.
    fn add<T: Value>(&mut self, wanted: &Wanted, rows: &[usize], c: &[T]) {
        let n = wanted.sums.len() / rows.len().max(1);
        let elements = rows.iter().flat_map(|row| &c[row * n..][..n]);
        for (&c, (sum, size)) in elements.zip(iter::zip(&wanted.sums, &wanted.sizes)) {
            let error = (c.into() - sum).abs();
            // Zero that should be zero has no error.
            let over = |size: f64| if error == 0.0 { 0.0 } else { error / size };
            self.relative.push(over(sum.abs()));
            // NaN counts as the largest.
            let of_terms = over(*size);
            if of_terms > self.of_terms || of_terms.is_nan() {
                self.of_terms = of_terms;
            }
            self.squares += error.powi(2);
            self.wanted_squares += sum.powi(2);
        }
    }

    fn line(mut self, numbers: String, k: usize, who: String) -> Line {
        self.relative.sort_by(f64::total_cmp);
        let [median, largest] = [self.relative.len() / 2, self.relative.len().saturating_sub(1)]
            .map(|place| self.relative.get(place).copied().map_or(0.0, six_digits));
        let frobenius = six_digits((self.squares / self.wanted_squares).sqrt());
        let (of_terms, elements) = (six_digits(self.of_terms), self.relative.len());
        Line { numbers, k, who, median, largest, frobenius, of_terms, elements }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_the_elements_compared() {
        let shape = Shape::new(4, 2, 2).unwrap();
        let (a, b) = ([1.0f32, 2.0, 3.0, 4.0, -5.0, 6.0, 0.0, 0.0], [1.0, -1.0, 2.0, 1.0]);
        let rows = [0, 2, 3];
        let wanted = Wanted::new(shape, &rows, &a, &b).unwrap();
        assert_eq!(wanted.sums, [5.0, 1.0, 7.0, 11.0, 0.0, 0.0]);
        assert_eq!(wanted.sizes, [5.0, 3.0, 17.0, 11.0, 0.0, 0.0]);
        let mut found = Found::default();
        // Row 1 is not compared.
        found.add(&wanted, &rows, &[5.0, 1.5, f32::NAN, 0.0, 7.0, 11.0, 0.0, 0.0]);
        let line = found.line("some".to_owned(), 2, "who".to_owned());
        assert_eq!((line.median, line.largest, line.elements), (0.0, 0.5, 6));
        assert_eq!(line.of_terms, six_digits(0.5 / 3.0));
        assert_eq!(line.frobenius, six_digits((0.25f64 / 196.0).sqrt()));
    }

    #[test]
    fn what_is_no_number_is_the_largest_error() {
        let wanted = Wanted { sums: vec![1.0, 1.0], sizes: vec![1.0, 1.0] };
        for c in [[f32::NAN, 1.0], [1.0, f32::NAN]] {
            let mut found = Found::default();
            found.add(&wanted, &[0], &c);
            let line = found.line(String::new(), 1, String::new());
            assert!(line.largest.is_nan() && line.of_terms.is_nan() && line.frobenius.is_nan());
        }
    }

    #[test]
    fn sums_that_cancel_are_small_beside_their_terms() {
        let shape = Shape::new(3, 5, 64).unwrap();
        let [a, b] = draw::<f32>(Numbers::Cancelling, shape, 7).unwrap();
        let wanted = Wanted::new(shape, &[0, 1, 2], &a, &b).unwrap();
        let small = |(sum, size): (&f64, &f64)| sum.abs() < 1e-3 * size;
        assert!(wanted.sums.iter().zip(&wanted.sizes).all(small));
        let [a, _] = draw::<f32>(Numbers::Outlier, shape, 7).unwrap();
        assert!(a.chunks(64).all(|row| row.iter().filter(|value| value.abs() > 1e3).count() == 1));
    }
}
