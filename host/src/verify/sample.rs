//! Is C right, as far as some of it tells? For products whose reference would take too long.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{Comparison, Criterion, Worst, bound, check_lengths, within};
use crate::{error::Result, product::Shape};

/// Elements that are compared one by one, at most.
const ELEMENTS: usize = 4096;
/// Random projections.
const PROJECTIONS: usize = 16;

/// What [`sample`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Random elements and the four corners, compared as [`compare`](crate::verify::compare) does.
    pub elements: Comparison,
    /// Random vectors x for which C x was compared with A (B x), row by row.
    pub projections: usize,
    /// Rows in which one of them was off.
    pub wrong_rows: u64,
}

impl Sample {
    /// Has something been compared, and is all of that right?
    pub fn passed(&self) -> bool {
        self.elements.passed() && self.wrong_rows == 0
    }

    /// Is nothing of what was compared wrong?
    pub fn nothing_wrong(&self) -> bool {
        self.elements.wrong == 0 && self.wrong_rows == 0
    }
}

/// Compares some elements of C, and random projections of all of it, with A B.
///
/// The projections are R. Freivalds' check (*Probabilistic machines can use less running time*, 1977): for
/// a vector x of random signs, C x = A (B x). Under [`Criterion::Exact`] a wrong row passes all sixteen
/// with a probability of at most 2^-16. Under [`Criterion::Bound`] a row may be off by the sum of its
/// elements' bounds, so a single wrong element can hide there; the exact run on integers is the sharp one.
///
/// # Errors
/// [`Error::Argument`](crate::Error::Argument) for an operand of another length than the shape asks for;
/// [`Error::Interrupted`](crate::Error::Interrupted).
pub fn sample(
    shape: Shape,
    a: &[f32],
    b: &[f32],
    c: &[f32],
    criterion: Criterion,
    seed: u64,
) -> Result<Sample> {
    check_lengths(shape, a, b, c)?;
    let (m, n, k) = (shape.m(), shape.n(), shape.k());
    let mut found = Sample { elements: Comparison::NOTHING, projections: 0, wrong_rows: 0 };
    if shape.c_len() == 0 {
        return Ok(found);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);

    let corners = [(0, 0), (0, n - 1), (m - 1, 0), (m - 1, n - 1)];
    let random =
        (0..ELEMENTS.min(shape.c_len())).map(|_| (rng.random_range(0..m), rng.random_range(0..n)));
    for (row, col) in corners.into_iter().chain(random.collect::<Vec<_>>()) {
        let products = (0..k).map(|p| f64::from(a[row * k + p]) * f64::from(b[p * n + col]));
        let (want, magnitude) =
            products.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
        let bound = match criterion {
            Criterion::Bound => bound(k, magnitude),
            Criterion::Exact => 0.0,
        };
        found.elements.add(Worst::new(row, col, c[row * n + col], want, bound), bound);
    }

    // A NaN or an infinity swallows whatever is added to it. So the columns of B that have one are left out
    // of x, and the rows of A that have one out of the comparison; where it is a NaN, all of C's row or
    // column must be NaN instead.
    let rows = |good: fn(&f32) -> bool| (0..m).map(move |i| a[i * k..(i + 1) * k].iter().all(good));
    let cols = |good: fn(&f32) -> bool| {
        b.chunks(n).fold(vec![true; n], |mut so_far, row| {
            so_far.iter_mut().zip(row).for_each(|(so_far, value)| *so_far &= good(value));
            so_far
        })
    };
    let finite_rows = rows(|value| value.is_finite()).collect::<Vec<_>>();
    let finite_cols = cols(|value| value.is_finite());
    let number_cols = cols(|value| !value.is_nan());
    for (row, number_row) in c.chunks(n).zip(rows(|value| !value.is_nan())) {
        let must_be_nan = |col: usize| !number_row || !number_cols[col];
        let wrong = row.iter().enumerate().any(|(col, got)| must_be_nan(col) && !got.is_nan());
        found.wrong_rows += u64::from(wrong);
    }
    if !finite_rows.contains(&true) || !finite_cols.contains(&true) {
        return Ok(found);
    }

    let bounds = match criterion {
        Criterion::Exact => vec![0.0; m],
        Criterion::Bound => {
            let ones =
                finite_cols.iter().map(|&taken| f64::from(u8::from(taken))).collect::<Vec<_>>();
            let magnitudes = times(a, m, k, &times(b, k, n, &ones, f64::abs)?, f64::abs)?;
            // The bounds of a row's elements, summed, and the rounding of this check itself.
            let own = (n + k) as f64 * f64::EPSILON;
            let sum = |size: f64| bound(k, size) + n as f64 * bound(k, 0.0) + own * size;
            magnitudes.into_iter().map(sum).collect()
        }
    };
    for _ in 0..PROJECTIONS {
        let x = (0..n)
            .map(|col| {
                let sign = if rng.random::<bool>() { 1.0 } else { -1.0 };
                if finite_cols[col] { sign } else { 0.0 }
            })
            .collect::<Vec<f64>>();
        let want = times(a, m, k, &times(b, k, n, &x, |b| b)?, |a| a)?;
        let got = times(c, m, n, &x, |c| c)?;
        let wrong = (0..m)
            .filter(|&row| finite_rows[row] && !within((got[row] - want[row]).abs(), bounds[row]));
        found.wrong_rows = found.wrong_rows.max(wrong.count() as u64);
        found.projections += 1;
    }
    Ok(found)
}

/// A row-major `rows x cols` matrix, each element through `map`, times a vector.
fn times(
    matrix: &[f32],
    rows: usize,
    cols: usize,
    x: &[f64],
    map: impl Fn(f64) -> f64 + Sync,
) -> Result<Vec<f64>> {
    let row = |row: usize| {
        crate::check_interrupt()?;
        let elements = matrix[row * cols..(row + 1) * cols].iter().zip(x);
        // What x leaves out may be NaN.
        let taken = elements.filter(|&(_, &x)| x != 0.0);
        Ok(taken.map(|(&element, x)| map(f64::from(element)) * x).sum())
    };
    (0..rows).into_par_iter().map(row).collect()
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
        // Not a corner; the sample has at most 4100 of 9797 elements. Of these twenty it misses some.
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
        // A finite element, one of the row that must be NaN, one of the column.
        for place in [50 * 101 + 60, 3 * 101 + 60, 50 * 101 + 20] {
            let mut wrong = c.clone();
            wrong[place] = 1e30;
            assert!(found(&wrong).wrong_rows == 1, "{place}");
        }
    }

    #[test]
    fn nothing_compared_is_not_passed() {
        let (shape, [a, b, c]) = exact(0, 5, 3);
        assert!(!sample(shape, &a, &b, &c, Criterion::Exact, 7).unwrap().passed());
    }
}
