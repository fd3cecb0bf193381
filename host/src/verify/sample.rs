//! Comparison of a part of C, for products whose reference would take too long.

use std::ops::Range;

use rand::{RngExt, SeedableRng, seq::index};
use rand_chacha::ChaCha8Rng;

use super::{
    Claim, Compared, Comparison, Criterion, NumberFormat,
    comparison::within,
    doubled,
    full::{Block, add_panels, panels, parts},
    slices,
};
use gpu_gemm::{Activation, Result, Shape, blocks::Source, memory};

/// The most rows, and columns, whose crossings are compared one by one.
const LINES: usize = 64;
/// The most bytes of those rows of A, and of those columns of B.
const LINES_BYTES: usize = 256 << 20;
/// Random projections.
const PROJECTIONS: usize = 16;

/// The result of [`sample`].
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The crossings of random rows and columns, with the first and the last among them, compared
    /// as by [`compare`](crate::verify::compare).
    pub elements: Comparison,
    /// The number of random vectors x for which C x was compared with A (B x), row by row.
    pub projections: usize,
    /// Rows that were wrong for one of them.
    pub wrong_rows: u64,
}

impl Sample {
    /// Whether something was compared, and all of it is right.
    pub fn passed(&self) -> bool {
        self.elements.passed() && self.wrong_rows == 0
    }

    /// Whether nothing that was compared is wrong.
    pub fn nothing_wrong(&self) -> bool {
        self.elements.wrong == 0 && self.wrong_rows == 0
    }
}

/// Compares some elements of C, and random projections of all of it, with A B: [`Claim::sample`] of
/// row-major slices.
///
/// # Errors
/// [`Error::Argument`](gpu_gemm::Error::Argument) for an operand of another length than the
/// shape's; [`Error::Interrupted`](gpu_gemm::Error::Interrupted).
pub fn sample<T: Compared>(
    shape: Shape,
    a: &[T],
    b: &[T],
    c: &[T],
    criterion: Criterion,
    seed: u64,
) -> Result<Sample> {
    slices(shape, a, b, c, |claim| claim.sample(criterion, seed))
}

impl Claim<'_> {
    /// Compares some elements of C, and random projections of all of it.
    ///
    /// The projections are R. Freivalds' check (*Probabilistic machines can use less running time*,
    /// 1977): for a vector x of random signs, C x = alpha A (B x) + beta C0 x + bias x. An
    /// activation is not linear, so with one there are no projections: only elements are compared,
    /// four times as many. Under [`Criterion::Exact`] a wrong row passes all sixteen with a
    /// probability of at most 2^-16. Under [`Criterion::Bound`] a row may be off by the sum of its
    /// elements' bounds, so a single wrong element may pass. The exact run on integers finds it.
    /// (If C was rounded to another format, a row may be off by that rounding under both.)
    ///
    /// Each matrix is read once, block by block. B is read twice if it has a NaN or an infinity.
    /// The check takes some hundred bytes for each row and column, and at most half a GiB for the
    /// elements.
    ///
    /// # Errors
    /// As [`Claim::compare`].
    pub fn sample(&self, criterion: Criterion, seed: u64) -> Result<Sample> {
        let shape = self.shape()?;
        let (m, n, k) = (shape.m(), shape.n(), shape.k());
        let mut found = Sample { elements: Comparison::NOTHING, projections: 0, wrong_rows: 0 };
        if shape.c_len() == 0 {
            return Ok(found);
        }
        let bounds = (criterion == Criterion::Bound).then(|| self.bounds(k));
        // A, B, C, and the old C, each with its vectors and their weights.
        let again = usize::from(self.before().is_some());
        let sizes = [(m, k, 1), (k, n, 1), (m, n, 1 + again)];
        let all = sizes.map(|(rows, cols, times)| 2 * times * panels(rows) * parts(cols).count());
        gpu_gemm::progress::begin(all.into_iter().sum::<usize>() as u64);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let is_linear = self.activation == Activation::Identity;
        let lines_at_most = if is_linear { LINES } else { 2 * LINES };
        let most = (LINES_BYTES / size_of::<f64>() / k.max(1)).clamp(2, lines_at_most);
        let lines = [m, n].map(|size| lines(&mut rng, size, most));
        let mut signs = memory::reserved(n * PROJECTIONS)?;
        signs.extend((0..n * PROJECTIONS).map(|_| if rng.random() { 1.0 } else { -1.0 }));

        // A NaN or an infinity makes its whole sum useless. So columns of B with one have a zero in
        // x, and rows of A and C0 with one are not compared. If it is a NaN in A or B, the whole
        // row or column of C must be NaN.
        let mut x = Vectors { values: signs, weights: memory::filled(1.0, n)? };
        let operands = match k {
            0 => None,
            _ => {
                let mut b = pass(self.b, k, n, &x, (&[], &lines[1]))?;
                if b.cols.iter().any(|&bad| bad != FINE) {
                    x.leave_out(&b.cols);
                    b.x = pass(self.b, k, n, &x, (&[], &[]))?.x;
                }
                let a = pass(self.a, m, k, &b.x, (&lines[0], &[]))?;
                Some((a, b))
            }
        };
        let before = self.before().map(|before| pass(before, m, n, &x, (&lines[0], &[])));
        let before = before.transpose()?;
        let c = pass(self.c, m, n, &x, (&lines[0], &[]))?;

        for (i, &row) in lines[0].iter().enumerate() {
            for (j, &col) in lines[1].iter().enumerate() {
                let (mut sum, mut size) = (0.0, 0.0);
                if let Some((a, b)) = &operands {
                    let (a, b) = (&a.of_rows[i * k..(i + 1) * k], &b.of_cols[j * k..(j + 1) * k]);
                    for product in a.iter().zip(b).map(|(a, b)| a * b) {
                        sum += product;
                        size += product.abs();
                    }
                    if self.computed == NumberFormat::F64 {
                        sum = doubled::dot(a, b);
                    }
                }
                let before = before.as_ref().map(|before| before.of_rows[i * n + col]);
                let got = c.of_rows[i * n + col];
                self.add(&mut found.elements, (row, col), got, bounds, (sum, size), before);
            }
        }

        let mut wrong = memory::filled(false, m)?;
        let fine = [memory::filled(FINE, m)?, memory::filled(FINE, n)?];
        let (rows_of_a, cols_of_b) =
            operands.as_ref().map_or((&fine[0], &fine[1]), |(a, b)| (&a.rows, &b.cols));
        if rows_of_a.contains(&NAN) || cols_of_b.contains(&NAN) {
            must_be_nan(self.c, rows_of_a, cols_of_b, &mut wrong)?;
        }
        // Sums of 8-bit integers that may wrap around are no linear function.
        let largest_sum = self.alpha.abs() * k as f64 * 2f64.powi(14);
        let may_wrap = !self.stored.is_float() && largest_sum > self.stored.largest();
        let nothing_taken = may_wrap || !is_linear || x.weights.iter().all(|&weight| weight == 0.0);
        let (bias, bias_size) = x.of_row(self.bias.unwrap_or(&[]));
        let mut compared = false;
        for row in 0..m {
            let left_out = rows_of_a[row] != FINE
                || before.as_ref().is_some_and(|before| before.rows[row] != FINE);
            if left_out || nothing_taken {
                continue;
            }
            compared = true;
            let nothing = (&[0.0; PROJECTIONS][..], 0.0);
            let (product, size) = operands.as_ref().map_or(nothing, |(a, _)| a.row(row));
            let (added, added_size) = before.as_ref().map_or(nothing, |before| before.row(row));
            let magnitude = self.alpha.abs() * size + self.beta.abs() * added_size + bias_size;
            if c.rows[row] != FINE {
                // A row that exceeds the largest number of its type, or of its file's type, may
                // have an infinity.
                let largest = self.computed.largest().min(self.stored.largest());
                wrong[row] |= !self.may_overflow(size, magnitude) && magnitude < largest;
                continue;
            }
            let stored = match self.stored == self.computed {
                true => 0.0,
                false => {
                    let Stored { roundoff, tiny } = Stored::of(self);
                    2.0 * roundoff * c.x.weights[row] + n as f64 * tiny
                }
            };
            // The rounding of this check. float64 holds sums of integers that are not too large.
            let own = match bounds.is_none() && self.is_exact(magnitude, NumberFormat::F64) {
                true => 0.0,
                false => (n + k) as f64 * f64::EPSILON * magnitude,
            };
            // The sum of the errors of a row's elements.
            let of_elements = match bounds {
                None => self.sum_after_exact_sums(magnitude),
                Some(bounds) => bounds.of(magnitude) + n as f64 * bounds.least,
            };
            let bound = stored + of_elements + own;
            let (got, _) = c.row(row);
            wrong[row] |= (0..PROJECTIONS).any(|i| {
                let want = self.alpha * product[i] + self.beta * added[i] + bias[i];
                !within((got[i] - want).abs(), bound)
            });
        }
        found.projections = if compared { PROJECTIONS } else { 0 };
        found.wrong_rows = wrong.into_iter().filter(|&wrong| wrong).count() as u64;
        Ok(found)
    }
}

/// The rounding of a result that is stored in another format.
struct Stored {
    roundoff: f64,
    tiny: f64,
}

impl Stored {
    fn of(claim: &Claim) -> Self {
        Stored { roundoff: claim.stored.roundoff(), tiny: claim.stored.tiny() }
    }
}

/// Random rows or columns, with the first and the last among them.
fn lines(rng: &mut ChaCha8Rng, size: usize, most: usize) -> Vec<usize> {
    let within = size.saturating_sub(2);
    let mut lines = index::sample(rng, within, within.min(most - 2)).into_vec();
    lines.iter_mut().for_each(|line| *line += 1);
    lines.extend([0, size - 1]);
    lines.dedup(); // if there is one line only
    lines
}

/// The content of a row or column: numbers only, an infinity, or a NaN.
type Content = u8;
const FINE: Content = 0;
const INFINITE: Content = 1;
const NAN: Content = 2;

fn content(value: f64) -> Content {
    match value {
        value if value.is_nan() => NAN,
        value if value.is_infinite() => INFINITE,
        _ => FINE,
    }
}

/// [`PROJECTIONS`] vectors, interleaved by element, and one more with the weights of the elements'
/// absolute values.
struct Vectors {
    values: Vec<f64>,
    weights: Vec<f64>,
}

impl Vectors {
    fn values(&self, element: usize) -> &[f64] {
        &self.values[element * PROJECTIONS..(element + 1) * PROJECTIONS]
    }

    /// A row's products with the vectors, and the weight of its absolute values.
    fn of_row(&self, row: &[f64]) -> ([f64; PROJECTIONS], f64) {
        let (mut products, mut size) = ([0.0; PROJECTIONS], 0.0);
        for (element, &value) in row.iter().enumerate() {
            let pairs = products.iter_mut().zip(self.values(element));
            pairs.for_each(|(product, sign)| *product += value * sign);
            size += self.weights[element] * value.abs();
        }
        (products, size)
    }

    fn leave_out(&mut self, elements: &[Content]) {
        for (element, _) in elements.iter().enumerate().filter(|&(_, &bad)| bad != FINE) {
            self.weights[element] = 0.0;
            self.values[element * PROJECTIONS..(element + 1) * PROJECTIONS].fill(0.0);
        }
    }
}

/// The result of reading a matrix once.
struct Pass {
    /// The matrix times the vectors, and its absolute values times their weights. Elements that are
    /// not finite are left out.
    x: Vectors,
    /// The content of its rows, where their elements have a weight, and of its columns.
    rows: Vec<Content>,
    cols: Vec<Content>,
    /// The elements of the selected rows and columns, each one's contiguous.
    of_rows: Vec<f64>,
    of_cols: Vec<f64>,
}

impl Pass {
    /// A row's products with the vectors, and its weight.
    fn row(&self, row: usize) -> (&[f64], f64) {
        (self.x.values(row), self.x.weights[row])
    }
}

/// Reads a matrix once.
fn pass(
    source: &dyn Source<f64>,
    rows: usize,
    cols: usize,
    x: &Vectors,
    (take_rows, take_cols): (&[usize], &[usize]),
) -> Result<Pass> {
    let mut found = Pass {
        x: Vectors {
            values: memory::filled(0.0, rows * PROJECTIONS)?,
            weights: memory::filled(0.0, rows)?,
        },
        rows: memory::filled(FINE, rows)?,
        cols: memory::filled(FINE, cols)?,
        of_rows: memory::filled(0.0, take_rows.len() * cols)?,
        of_cols: memory::filled(0.0, take_cols.len() * rows)?,
    };
    for row_part in parts(rows) {
        for col_part in parts(cols) {
            let mut block = Block::read(source, row_part.clone(), col_part.clone())?;
            let inside = |range: &Range<usize>, line: usize| range.contains(&line);
            for (i, &row) in
                take_rows.iter().enumerate().filter(|(_, row)| inside(&row_part, **row))
            {
                for col in col_part.clone() {
                    let value = block.at(row - row_part.start, col - col_part.start);
                    found.of_rows[i * cols + col] = value;
                }
            }
            for (j, &col) in
                take_cols.iter().enumerate().filter(|(_, col)| inside(&col_part, **col))
            {
                for row in row_part.clone() {
                    let value = block.at(row - row_part.start, col - col_part.start);
                    found.of_cols[j * rows + row] = value;
                }
            }
            let fine = block.values.iter().all(|value| value.is_finite());
            for place in 0..if fine { 0 } else { block.values.len() } {
                let what = content(block.values[place]);
                if what == FINE {
                    continue;
                }
                block.values[place] = 0.0;
                let (row, col) = block.place(place);
                let (row, col) = (row_part.start + row, col_part.start + col);
                found.cols[col] = found.cols[col].max(what);
                if x.weights[col] != 0.0 {
                    found.rows[row] = found.rows[row].max(what);
                }
            }
            let of_cols = |values: &[f64], each: usize| {
                let part = values[col_part.start * each..col_part.end * each].to_vec();
                Block::row_major(part, each)
            };
            let (depth, lines) = (col_part.len(), row_part.clone());
            let products = &mut found.x.values[lines.start * PROJECTIONS..lines.end * PROJECTIONS];
            add_panels(&block, depth, &of_cols(&x.values, PROJECTIONS), PROJECTIONS, products)?;
            let sizes = &mut found.x.weights[lines];
            add_panels(&block.abs()?, depth, &of_cols(&x.weights, 1), 1, sizes)?;
        }
    }
    Ok(found)
}

/// Marks the rows of C with a number where A's row or B's column has a NaN.
fn must_be_nan(
    c: &dyn Source<f64>,
    rows_of_a: &[Content],
    cols_of_b: &[Content],
    wrong: &mut [bool],
) -> Result<()> {
    for rows in parts(rows_of_a.len()) {
        for cols in parts(cols_of_b.len()) {
            let block = Block::read(c, rows.clone(), cols.clone())?;
            for row in rows.clone() {
                wrong[row] |= cols.clone().any(|col| {
                    let nan = rows_of_a[row] == NAN || cols_of_b[col] == NAN;
                    nan && !block.at(row - rows.start, col - cols.start).is_nan()
                });
            }
        }
    }
    Ok(())
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::operands;

    /// Integer operands and their exact product.
    fn exact(m: usize, n: usize, k: usize) -> (Shape, [Vec<f32>; 3]) {
        let shape = Shape::new(m as u64, n as u64, k as u64).unwrap();
        let [a, b] =
            [(1, m * k), (2, k * n)].map(|(seed, len)| operands::integers(seed, len, 8).unwrap());
        let element = |i: usize| (0..k).map(|p| a[i / n * k + p] * b[p * n + i % n]).sum();
        let c = (0..m * n).map(element).collect();
        (shape, [a, b, c])
    }

    #[test]
    fn what_is_right_passes() {
        for (m, n, k) in [(1, 1, 1), (3, 5, 0), (97, 101, 50)] {
            let (shape, [a, b, c]) = exact(m, n, k);
            for criterion in [Criterion::Exact, Criterion::Bound] {
                let found = sample(shape, &a, &b, &c, criterion, 7).unwrap();
                assert!(found.passed() && found.projections == PROJECTIONS, "{found:?}");
            }
        }
    }

    #[test]
    fn a_projection_finds_a_wrong_element_that_the_sample_misses() {
        let (shape, [a, b, mut c]) = exact(97, 101, 50);
        let c_len = c.len();
        // Not a corner. The sample has 4096 of 9797 elements, so it misses some of these twenty.
        let missed = (0..20).filter(|number| {
            let place = (number * 487 + 1234) % c_len;
            c[place] += 1.0;
            let found = sample(shape, &a, &b, &c, Criterion::Exact, 7).unwrap();
            c[place] -= 1.0;
            assert!(!found.passed() && !found.nothing_wrong(), "{place}: {found:?}");
            assert!(found.wrong_rows <= 1);
            found.elements.wrong == 0
        });
        assert!(missed.count() > 0);
    }

    #[test]
    fn a_nan_and_an_infinity_are_found() {
        for wrong in [f32::NAN, f32::INFINITY] {
            let (shape, [a, b, mut c]) = exact(97, 101, 50);
            c[5000] = wrong;
            let found = sample(shape, &a, &b, &c, Criterion::Bound, 7).unwrap();
            assert!(!found.nothing_wrong() && found.wrong_rows == 1, "{found:?}");
        }
    }

    #[test]
    fn a_nan_in_an_operand_hides_nothing() {
        let (shape, [mut a, mut b, _]) = exact(97, 101, 50);
        (a[3 * 50 + 7], b[9 * 101 + 20]) = (f32::NAN, f32::NAN);
        let element = |i: usize| (0..50).map(|p| a[i / 101 * 50 + p] * b[p * 101 + i % 101]).sum();
        let c = (0..97 * 101).map(element).collect::<Vec<f32>>();
        let found = |c: &[f32]| sample(shape, &a, &b, c, Criterion::Exact, 7).unwrap();
        assert!(found(&c).passed() && found(&c).projections == PROJECTIONS);
        // A finite element, one in the row that must be NaN, and one in the column.
        for place in [50 * 101 + 60, 3 * 101 + 60, 50 * 101 + 20] {
            let mut wrong = c.clone();
            wrong[place] = 1e30;
            assert!(found(&wrong).wrong_rows == 1, "{place}");
        }
    }

    /// Sums of f64 may have all 53 digits, and so the check of a row is rounded.
    #[test]
    fn a_row_of_large_integers_is_right() {
        let [m, n, k] = [40, 60, 6];
        let shape = Shape::new(m as u64, n as u64, k as u64).unwrap();
        let [a, b] = [(1, m * k), (2, k * n)]
            .map(|(seed, len)| operands::integers::<f64>(seed, len, 1 << 25).unwrap());
        let sum = |at: usize| (0..k).map(|p| a[at / n * k + p] * b[p * n + at % n]).sum::<f64>();
        let mut c = (0..m * n).map(sum).collect::<Vec<_>>();
        let found = |c: &[f64]| sample(shape, &a, &b, c, Criterion::Exact, 7).unwrap();
        assert!(found(&c).passed(), "{:?}", found(&c));
        c[17 * n + 5] += 2f64.powi(40);
        assert_eq!(found(&c).wrong_rows, 1);
    }

    #[test]
    fn nothing_compared_is_not_passed() {
        let (shape, [a, b, c]) = exact(0, 5, 3);
        assert!(!sample(shape, &a, &b, &c, Criterion::Exact, 7).unwrap().passed());
    }
}
